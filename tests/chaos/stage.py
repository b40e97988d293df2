"""A cluster, relays before and behind its proxies, and the proxies."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.chaos.toxiproxy import Toxiproxy
from tests.harness.admin import AdminError, ClusterAdmin, TopicPartition
from tests.harness.cluster import HOST, RealCluster
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyProcess
from tests.harness.waiting import TimedOutError, until

#: So short that a fault of seconds meets them.
_SETTINGS = """\
limits: {{linger_ms: 5000}}
hold: {{deadline_ms: 500, link_ms_per_second: 500}}
journal: {{kind: files, path: {journal}, kept_bytes: 65536, file_bytes: 16384}}
"""


class StageError(Exception):
    """The brokers did not do in time, or at all, what was asked of them past every proxy."""


class Stage:
    """A context manager. ``relays`` are the names of those that a fault may be done to.

    Without proxies, what is in front of them is in front of the relays behind them.
    """

    def __init__(self, cluster: RealCluster, folder: Path, journal: Path, *, proxied: bool) -> None:
        self.cluster = cluster
        self.proxied = proxied
        self.admin = ClusterAdmin(cluster)
        self.toxiproxy = Toxiproxy(folder / "toxiproxy.log")
        self._folder = folder
        self._journal = journal
        self._numbers = itertools.count(1)
        count = len(cluster.brokers)
        self._middle = [(HOST, port) for port in free_ports(count)]
        self._behind = [(HOST, port) for port in free_ports(count)]
        self.relays = [
            f"{where}-{node}" for where in ("before", "behind") for node in cluster.brokers
        ]
        self._proxy: ProxyProcess | None = None
        self.hints = 0.0
        self.journal_dropped = 0.0

    @property
    def nodes(self) -> Sequence[int]:
        """The brokers by id."""
        return list(self.cluster.brokers)

    def controller(self) -> int:
        """Return which broker is the controller, once there is one."""

        def known() -> int | None:
            node = int(self.admin.metadata([]).controller_id)
            return node if node in self.nodes else None

        with _of_the_brokers():
            return until(known, "a broker knows the controller")

    def move_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Move leaders, each to its next replica."""
        with _of_the_brokers():
            self.admin.move_leaders(dict.fromkeys(partitions))

    def restart(self, node: int) -> None:
        """Start a broker that was stopped or killed, and wait until the cluster has it back."""
        with _of_the_brokers():
            self.cluster.restart(node)

    def wait_in_sync(self, topics: Iterable[str]) -> None:
        """Wait until every replica of these topics is in sync."""
        with _of_the_brokers():
            for topic in topics:
                self.admin.wait_in_sync(topic)

    @property
    def proxy(self) -> ProxyProcess:
        """The proxy that runs."""
        assert self._proxy is not None
        return self._proxy

    def start_proxy(self) -> None:
        """Start a proxy before all brokers."""
        config = self._folder / "leader-hints.yaml"
        config.write_text(_SETTINGS.format(journal=self._journal))
        self._proxy = ProxyProcess(
            list(zip(self._middle, self._behind, strict=True)),
            self._folder / f"proxy-{next(self._numbers)}.log",
            arguments=["--config", str(config), "--log-level", "info"],
        )
        self._proxy.__enter__()

    def stop_proxy(self) -> None:
        """Stop it as an operator does; it must end well, and have logged no error."""
        self._count()
        self.proxy.__exit__(None, None, None)

    def kill_proxy(self) -> None:
        """End it at once."""
        self._count()
        self.proxy.kill()

    def _count(self) -> None:
        self.hints += self.proxy.metric("leader_hints_hints_given_total")
        self.journal_dropped += self.proxy.metric("leader_hints_journal_dropped_total")

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as started:
            started.enter_context(self.toxiproxy)
            rows = zip(self.cluster.brokers.items(), self._middle, self._behind, strict=True)
            for (node, broker), middle, behind in rows:
                self.toxiproxy.relay(f"behind-{node}", behind, broker.upstream)
                next_hop = middle if self.proxied else behind
                self.toxiproxy.relay(f"before-{node}", broker.advertised, next_hop)
            if self.proxied:
                self.start_proxy()
                started.callback(lambda: self.proxy.kill())
            self._started = started.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._started.__exit__(kind, error, trace)


@contextlib.contextmanager
def _of_the_brokers() -> Iterator[None]:
    """Have what goes wrong meanwhile not be taken for the clients' loss."""
    try:
        yield
    except (TimedOutError, AdminError, OSError) as error:
        raise StageError(f"{type(error).__name__}: {error}") from error
