"""MockCluster: a mock Kafka cluster in a child process, and the ways that it can fail."""

import json
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any, Self

# Commands take milliseconds, the start of Python more; only a hung child needs longer, also on a
# machine that has much else to do.
_ANSWER_SECONDS = 60.0
_CLOSE_SECONDS = 5.0
_LAST_WORDS_LINES = 3

BEFORE_HINTS: Mapping[str, int] = {"Produce": 9, "Fetch": 15}
"""The highest versions of Kafka 3.5 and 3.6. Below Produce 10 and Fetch 16 no hint can be sent."""

Address = tuple[str, int]
"""Host and port."""

Leader = tuple[int, int]
"""A partition's leader: node id and epoch."""


class MockClusterError(Exception):
    """The mock cluster refused a command."""


class MockClusterDiedError(MockClusterError):
    """The process of the mock cluster ended, or stopped answering, too early."""


class MockCluster:
    """A mock cluster of `brokers` nodes, with ids from 1 on; it runs until `close`.

    topics: topic name -> number of partitions. Each has every broker as a replica; partition 0 is
        led by node 1, partition 1 by node 2, and so on round the brokers.
    apiversions: API name -> the highest version offered; the mock's own highest where absent.
    advertise: node id -> the address that Metadata gives for it, where that is known already.

    As a context manager it closes itself, and raises MockClusterDiedError at the end of the block
    if the process died on the way: a crash never passes unnoticed. One thread may use it at a time.
    """

    def __init__(
        self,
        brokers: int = 3,
        topics: Mapping[str, int] | None = None,
        apiversions: Mapping[str, int] | None = None,
        advertise: Mapping[int, Address] | None = None,
    ) -> None:
        """Start the process and the cluster.

        Raises MockClusterError if the cluster refuses an argument, MockClusterDiedError if its
        process fails.
        """
        try:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
            self._process = _start_child(self._errors)
        except OSError as error:
            # Descriptors, processes or the disk are short: the caller tries again.
            raise MockClusterError(f"cannot start the mock cluster: {error.strerror}") from None
        try:
            started = self._command(
                "start",
                brokers=brokers,
                topics=dict(topics or {}),
                apiversions=dict(apiversions or {}),
            )
            self.brokers: dict[int, Address] = {
                int(node): (host, port) for node, (host, port) in started["addresses"].items()
            }
            """Node id -> the address at which that broker really listens."""
            self.leaders: dict[tuple[str, int], Leader] = {
                (topic, partition): (node, epoch)
                for topic, leaders in started["leaders"].items()
                for partition, (node, epoch) in enumerate(leaders)
            }
            """Topic and partition -> leader and epoch, as they are now."""
            for node, (host, port) in (advertise or {}).items():
                self.set_advertised(node, host, port)
        except MockClusterError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        died = None if self.alive else self._death()
        self.close()
        if died is not None and error is None:
            raise died

    @property
    def bootstrap(self) -> str:
        """The brokers' real addresses as a bootstrap.servers list."""
        return ",".join(f"{host}:{port}" for host, port in self.brokers.values())

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id of the child."""
        return self._process.pid

    def set_leader(
        self, topic: str, partition: int, node: int, metadata_lag: float = 0.0
    ) -> Leader:
        """Make `node` the leader of a partition; returns it with its epoch.

        The epoch rises by one, also where `node` led before. Metadata goes on giving the former
        leader for `metadata_lag` seconds; a call within that time waits for its end first.
        Raises MockClusterError for an unknown topic, partition or node.
        """
        leader, epoch = self._command(
            "set_leader", topic=topic, partition=partition, node=node, metadata_lag=metadata_lag
        )
        self.leaders[topic, partition] = (leader, epoch)
        return leader, epoch

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make `node` the leader of a partition, also of a topic that a client had created.

        `leaders` has the topics from the start only. Raises MockClusterError for an unknown topic,
        partition or node.
        """
        self._known(node)
        self._command("move_leader", topic=topic, partition=partition, node=node)
        if (topic, partition) in self.leaders:
            self.leaders[topic, partition] = (node, self.leaders[topic, partition][1] + 1)

    def set_running(self, node: int, *, running: bool) -> None:
        """Have a broker take connections, or end all that it has and take none.

        It goes on to lead what it leads. Raises MockClusterError for an unknown node.
        """
        self._known(node)
        self._command("set_running", node=node, running=running)

    def set_advertised(self, node: int, host: str, port: int) -> None:
        """Make Metadata give this address for `node` from now on.

        A broker's own port is known only once it listens, so a proxy is started after the cluster
        and advertised afterwards. Raises MockClusterError for an unknown node.
        """
        self._known(node)
        self._command("set_advertised", node=node, host=host, port=port)

    def request_counts(self) -> dict[str, int]:
        """API name -> requests that all brokers together have received so far.

        An API whose name the mock's driver does not know stands under its key as text.
        """
        counts: dict[str, int] = self._command("request_counts")
        return counts

    def close(self) -> None:
        """End the process; harmless if it has ended already."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _known(self, node: int) -> None:
        if node not in self.brokers:
            raise MockClusterError(f"no node {node}; there are {sorted(self.brokers)}")

    def _command(self, name: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": name, **arguments}).encode() + b"\n")
        except BrokenPipeError:
            raise self._death() from None
        answer = json.loads(self._read_answer())
        if "error" in answer:
            raise MockClusterError(answer["error"])
        return answer["ok"]

    def _read_answer(self) -> bytes:
        assert self._process.stdout is not None
        # Not select(), which refuses descriptors from 1024 on: a process with many links has them.
        answer = select.poll()
        answer.register(self._process.stdout, select.POLLIN)
        ready = answer.poll(_ANSWER_SECONDS * 1000)
        line: bytes = self._process.stdout.readline() if ready else b""
        if not line:
            raise self._death()
        return line

    def _death(self) -> MockClusterDiedError:
        # Its pipes close an instant before the process can be reaped.
        try:
            status = self._process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            # Else its answer would be taken for that of the next command.
            self._process.kill()
            return MockClusterDiedError(
                f"the mock cluster's process (pid {self.pid}) did not answer "
                f"within {_ANSWER_SECONDS:.0f} s"
            )
        how = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
        return MockClusterDiedError(
            f"the mock cluster's process (pid {self.pid}) died: {how}{self._last_words()}"
        )

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()[-_LAST_WORDS_LINES:]
        return "; its last words: " + " / ".join(lines) if lines else ""


def _start_child(errors: IO[bytes]) -> subprocess.Popen[bytes]:
    # Unbuffered, so that select() on the pipe tells the truth about what can be read. Errors go to
    # a file: a pipe without a reader would fill and stop the child.
    return subprocess.Popen(
        [sys.executable, "-m", "leader_hints.mock.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        bufsize=0,
    )
