"""Child: the process that owns an embedded mock cluster. Run as `python -m
leader_hints.mock.child`.

It reads one JSON object a line from its standard input, `{"do": NAME, ...arguments}`, and answers
each with one line: `{"ok": RESULT}` or `{"error": TEXT}`. The end of its input is its order to
end: the pipe closes too when its parent dies, however that happens.

Tested in ``tests/mock/test_cluster.py``.
"""

import json
import signal
import sys
from typing import Any

from leader_hints.mock.embedded import EmbeddedCluster, EmbeddedError, Leader


class Child:
    """The commands, one method each; every argument and result is a JSON value."""

    def __init__(self) -> None:
        self._cluster: EmbeddedCluster | None = None

    def answer(self, line: str) -> str:
        """The answer to one line of input, without a line end."""
        arguments: dict[str, Any] = json.loads(line)
        command = getattr(self, "do_" + arguments.pop("do"))
        try:
            return json.dumps({"ok": command(**arguments)})
        except EmbeddedError as error:
            return json.dumps({"error": str(error)})

    def do_start(
        self, brokers: int, topics: dict[str, int], apiversions: dict[str, int]
    ) -> dict[str, Any]:
        """Start the cluster; returns each node's real address and each topic's leaders."""
        self._cluster = cluster = EmbeddedCluster(brokers)
        for api, highest in apiversions.items():
            cluster.cap_version(api, highest)
        leaders = {topic: cluster.create_topic(topic, size) for topic, size in topics.items()}
        return {"addresses": cluster.addresses(), "leaders": leaders}

    def do_set_leader(self, topic: str, partition: int, node: int, metadata_lag: float) -> Leader:
        """Move a leader; returns the new one."""
        return self._started().set_leader(topic, partition, node, metadata_lag)

    def do_move_leader(self, topic: str, partition: int, node: int) -> None:
        """Move a leader, also of a topic that a client had created."""
        self._started().move_leader(topic, partition, node)

    def do_set_running(self, node: int, running: bool) -> None:
        """Stop or start a broker."""
        self._started().set_running(node, running)

    def do_set_advertised(self, node: int, host: str, port: int) -> None:
        """Change the address that Metadata gives for a node."""
        self._started().set_advertised(node, host, port)

    def do_request_counts(self) -> dict[str, int]:
        """Requests received by all brokers so far, by API name."""
        return self._started().request_counts()

    def close(self) -> None:
        """Stop the cluster, if it runs."""
        if self._cluster is not None:
            self._cluster.close()

    def _started(self) -> EmbeddedCluster:
        if self._cluster is None:
            raise EmbeddedError("no cluster was started")
        return self._cluster


def main() -> None:
    """Obey the commands on standard input until it ends."""
    # Ctrl-C in a terminal reaches every process of the group; the parent decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = Child()
    for line in sys.stdin:
        print(child.answer(line), flush=True)
    child.close()


if __name__ == "__main__":
    main()
