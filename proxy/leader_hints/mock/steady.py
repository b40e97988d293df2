"""SteadyCluster: a mock cluster that is started again when it dies.

Tested in ``tests/mock/test_local.py``.
"""

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from leader_hints.mock.cluster import BEFORE_HINTS, Address, Leader, MockCluster


class SteadyCluster:
    """A mock cluster as of Kafka 3.6, until `close`.

    Topics that a client asks for are made at once, with four partitions; `topics` has those that
    are there from the start, whose leaders can be moved. What a cluster held that died is lost.
    """

    def __init__(self, brokers: int, topics: Mapping[str, int] | None = None) -> None:
        """Start it.

        Raises MockClusterError as MockCluster does.
        """
        self._size = brokers
        self._topics = dict(topics or {})
        #: Held by the thread that has a command carried out, or starts the cluster again.
        self._lock = threading.Lock()
        self._cluster = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def brokers(self) -> dict[int, Address]:
        """Node id -> address."""
        return self._cluster.brokers

    @property
    def leaders(self) -> Mapping[tuple[str, int], Leader]:
        """Topic and partition -> leader and epoch, of the topics from the start."""
        return self._cluster.leaders

    @property
    def pid(self) -> int:
        """The process id of the present child."""
        return self._cluster.pid

    def renew(self) -> dict[int, Address] | None:
        """Start it again if it has died; return where its brokers are then."""
        with self._lock:
            if self._cluster.alive:
                return None
            self._cluster.close()
            self._cluster = self._start()
            return self.brokers

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make `node` the leader of a partition; see MockCluster. Any thread may call it."""
        with self._lock:
            self._cluster.move_leader(topic, partition, node)

    def set_running(self, node: int, *, running: bool) -> None:
        """Stop or start a broker; see MockCluster. Any thread may call it."""
        with self._lock:
            self._cluster.set_running(node, running=running)

    def set_leader(
        self, topic: str, partition: int, node: int, metadata_lag: float = 0.0
    ) -> Leader:
        """Make `node` the leader of a partition; see MockCluster."""
        return self._cluster.set_leader(topic, partition, node, metadata_lag)

    def request_counts(self) -> dict[str, int]:
        """API name -> requests received since the last start; see MockCluster."""
        return self._cluster.request_counts()

    def close(self) -> None:
        """End it."""
        self._cluster.close()

    def _start(self) -> MockCluster:
        return MockCluster(self._size, self._topics, BEFORE_HINTS)
