"""Fleet: a mock cluster with a sidecar in front of each broker, each with a journal."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from demo.ports import free_ports
from demo.proxy_process import ProxyProcess
from demo.stage import BROKERS, METADATA_LAG_SECONDS, PARTITIONS, TOPIC
from demo.traffic import Traffic
from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster

_HOST = "127.0.0.1"
_SECONDS_BETWEEN_MOVES = 0.15  # Longer than librdkafka's first back-off: moves stay separate.

Address = tuple[str, int]


class Fleet:
    """A mock cluster, and where the sidecars of its brokers listen, for clients and for admins."""

    def __init__(
        self, cluster: MockCluster, listens: Mapping[int, Address], admins: Mapping[int, Address]
    ) -> None:
        self._cluster = cluster
        self._listens = listens
        self._admins = admins

    def play(self, hints: str, journal: Path, moves: int, on_move: Callable[[], None]) -> None:
        """Start the sidecars, move leaders under traffic, and stop the sidecars.

        ``hints``: "on", "observe" or "off". ``journal``: the folder that all of them write to.

        :raises MockClusterError: the cluster died.
        :raises ProxyFailedError: a proxy did not start, or ended.
        :raises TrafficError: the clients do not get through.
        """
        with ExitStack() as stack:
            sidecars = [
                stack.enter_context(
                    ProxyProcess(
                        {listen: self._cluster.brokers[node]},
                        hints,
                        self._admins[node],
                        {
                            "LEADER_HINTS_JOURNAL__KIND": "files",
                            "LEADER_HINTS_JOURNAL__PATH": str(journal),
                            "LEADER_HINTS_JOURNAL__SIDECAR": f"broker-{node}",
                            "LEADER_HINTS_JOURNAL__SAMPLE_LATENCIES": "10",
                        },
                    )
                )
                for node, listen in self._listens.items()
            ]
            bootstrap = ",".join(sorted(address for s in sidecars for address in s.addresses))
            traffic = stack.enter_context(Traffic(bootstrap, TOPIC, PARTITIONS))
            traffic.await_flow()
            for number in range(moves):
                self._move_leader(traffic, number % PARTITIONS)
                for sidecar in sidecars:
                    sidecar.check()
                on_move()
            traffic.finish()

    def _move_leader(self, traffic: Traffic, partition: int) -> None:
        before, _ = self._cluster.leaders[TOPIC, partition]
        self._cluster.set_leader(TOPIC, partition, before % BROKERS + 1, METADATA_LAG_SECONDS)
        traffic.await_recovery(traffic.watch(partition))
        time.sleep(_SECONDS_BETWEEN_MOVES)


@contextmanager
def open_fleet() -> Iterator[Fleet]:
    """A fresh cluster, whose brokers advertise the addresses of sidecars that are to come.

    :raises MockClusterError: it cannot start; or, at the end, it died meanwhile.
    """
    # At once, so that no port is drawn twice: nothing listens there yet.
    addresses = [(_HOST, port) for port in free_ports(2 * BROKERS)]
    listens = dict(enumerate(addresses[:BROKERS], start=1))
    admins = dict(enumerate(addresses[BROKERS:], start=1))
    with MockCluster(BROKERS, {TOPIC: PARTITIONS}, BEFORE_HINTS, listens) as cluster:
        yield Fleet(cluster, listens, admins)
