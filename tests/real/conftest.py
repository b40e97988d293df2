"""Clusters and client processes that the tests of the real tier share."""

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

import pytest

from tests.harness import maven
from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ClientProcess
from tests.harness.cluster import Mode, RealCluster
from tests.harness.history import LeaderHistory
from tests.harness.java import NEWEST, java_clients
from tests.harness.judge import Judgement
from tests.harness.kdc import need_kerberos
from tests.harness.kerberos import KerberosCluster
from tests.harness.python_client import python_clients
from tests.harness.secured import Authority, sasl_brokers
from tests.matrix.brokers import BROKERS, CLOSEST_REPLICA
from tests.real.names import (
    APART_24,
    APART_36,
    APART_39,
    APART_SECURED,
    CONFLUENT,
    JAVA,
    JAVA_36,
    JAVA_41,
    KAFKA_PYTHON,
    KERBEROS_24,
    KERBEROS_36,
    KRAFT_36,
    KRAFT_41,
    OLD_JAVA,
    PLAIN_24,
    PLAIN_28,
    SASL_24,
    SASL_28,
    SASL_36,
    TLS_36,
    ZK_24,
    ZK_28,
    ZK_34,
    ZK_35,
    ZK_36,
    ZK_37,
)

_CLUSTERS: Mapping[str, Callable[[Path], RealCluster]] = {
    ZK_24: BROKERS["2.4.1-zk"].cluster,
    ZK_28: BROKERS["2.8.2-zk"].cluster,
    ZK_34: BROKERS["3.4.1-zk"].cluster,
    ZK_36: lambda folder: RealCluster(
        "3.6.2",
        "zk",
        folder=folder,
        sasl=True,
        overrides={**CLOSEST_REPLICA, "log.retention.check.interval.ms": "1000"},
    ),
    KRAFT_36: lambda folder: RealCluster("3.6.2", "kraft", folder=folder),
    ZK_35: lambda folder: RealCluster("3.5.2", "zk", folder=folder, racks=False),
    ZK_37: lambda folder: RealCluster("3.7.2", "zk", folder=folder),
    KRAFT_41: BROKERS["4.1.1-kraft"].cluster,
    SASL_24: lambda folder: _with_sasl("2.4.1", "zk", folder),
    SASL_28: lambda folder: _with_sasl("2.8.2", "zk", folder),
    SASL_36: lambda folder: _with_sasl("3.6.2", "kraft", folder),
    KERBEROS_24: lambda folder: _with_kerberos("2.4.1", "zk", folder, signed=False),
    # It looks up the keys of tokens (KIP-768).
    KERBEROS_36: lambda folder: _with_kerberos("3.6.2", "kraft", folder, signed=True),
    TLS_36: lambda folder: RealCluster(
        "3.6.2", "zk", folder=folder, overrides=Authority(folder / "tls").brokers()
    ),
    PLAIN_24: lambda folder: RealCluster("2.4.1", "zk", folder=folder, racks=False),
    PLAIN_28: lambda folder: RealCluster("2.8.2", "zk", folder=folder, racks=False),
    APART_24: lambda folder: RealCluster("2.4.1", "zk", folder=folder, apart=True),
    APART_36: lambda folder: RealCluster("3.6.2", "zk", folder=folder, apart=True),
    APART_39: lambda folder: RealCluster("3.9.1", "kraft", folder=folder, apart=True),
    APART_SECURED: lambda folder: RealCluster(
        "3.6.2",
        "zk",
        folder=folder,
        apart=True,
        overrides=Authority(folder / "tls").sasl_brokers(session_ms=SESSION_MS),
    ),
}
#: How long a client's session lasts at brokers that ask for SASL. What the proxy asks just
#: before it renews its own, when 15 % of it are left, must not come after its end.
SESSION_MS = 10_000
_LIBRARIES: Mapping[str, Callable[[Path], ClientProcess]] = {
    JAVA: lambda folder: java_clients(folder, NEWEST),
    OLD_JAVA: lambda folder: java_clients(folder, "3.5.2"),
    JAVA_36: lambda folder: java_clients(folder, "3.6.2"),
    JAVA_41: lambda folder: java_clients(folder, "4.1.1"),
    CONFLUENT: lambda folder: python_clients(folder, CONFLUENT),
    KAFKA_PYTHON: lambda folder: python_clients(folder, KAFKA_PYTHON),
}
#: The first test may have to fetch jars and start a cluster, beside another one and Spark. Each
#: wait has a bound of its own: this one is for what hangs.
_TEST_TIMEOUT_S = 900
_STATE = "INFO logger - ["
_LINE_LENGTH = 300
_JUDGEMENT = "hints"
_topic_numbers = itertools.count(1)


class _Shared:
    """The one cluster that runs for several tests, if there is one."""

    def __init__(self) -> None:
        self._name = ""
        self._running = contextlib.ExitStack()
        self._cluster: RealCluster | None = None

    def cluster(self, name: str, folders: pytest.TempPathFactory) -> RealCluster:
        """Return the cluster ``name``, started unless it runs."""
        if self._cluster is None or name != self._name:
            self.close()
            cluster = _CLUSTERS[name](folders.mktemp(name))
            self._name, self._cluster = name, self._running.enter_context(cluster)
        return self._cluster

    def close(self) -> None:
        """Stop it."""
        self._cluster = None
        self._running.close()


_shared = _Shared()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder time for set-up, and sort all tests by their clusters."""
    # After pytest's own sorting, which minds other session parameters too. Tests without a
    # cluster come first, in their order.
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(_TEST_TIMEOUT_S))
    items.sort(key=_cluster_name)


def _with_sasl(version: str, mode: Mode, folder: Path) -> RealCluster:
    settings = sasl_brokers(mode, session_ms=SESSION_MS)
    return RealCluster(version, mode, folder=folder, overrides=settings)


def _with_kerberos(version: str, mode: Mode, folder: Path, *, signed: bool) -> RealCluster:
    need_kerberos()
    return KerberosCluster(version, mode, folder=folder, session_ms=SESSION_MS, signed=signed)


def _cluster_name(item: pytest.Item) -> str:
    parameters = getattr(item, "callspec", None)
    return str(parameters.params.get("cluster", "")) if parameters else ""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write how many errors got their hints, test by test."""
    lines = [
        f"{report.nodeid.rpartition('::')[2]}: {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == _JUDGEMENT and report.when == "call"
    ]
    if lines:
        terminalreporter.section("hints before real brokers")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the ends of the brokers' and proxies' logs to a failure."""
    report = yield
    if report.failed:
        logs = _logs_of(item)
        report.sections += [(f"end of {log}", _tail(log)) for log in logs]
    return report


def _logs_of(item: pytest.Item) -> list[Path]:
    arguments = getattr(item, "funcargs", {})
    cluster = arguments.get("cluster")
    logs = [server.log for server in cluster.servers] if cluster else []
    folder = arguments.get("tmp_path")
    return logs + (sorted(folder.glob("**/*.log")) if folder else [])


def _tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, without the brokers' many on state changes."""
    if not log.exists():
        return ""
    telling = (line for line in log.read_text(errors="replace").splitlines() if _STATE not in line)
    return "\n".join(line[:_LINE_LENGTH] for line in deque(telling, maxlen=lines))


@pytest.fixture(scope="session", autouse=True)
def _tools() -> None:
    missing = maven.missing_tools()
    if missing is not None:
        if maven.in_ci():
            pytest.fail(missing)
        pytest.skip(missing)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Stop the cluster of a test if the next one has another, or none.

    Idle brokers take a tenth of a machine with two processors.
    """
    try:
        return (yield)
    finally:
        if nextitem is None or _cluster_name(nextitem) != _cluster_name(item):
            _shared.close()


def pytest_sessionfinish() -> None:
    """Stop it where the tests were interrupted."""
    _shared.close()


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> RealCluster:
    """The cluster that a test names as its parameter.

    pytest sorts the tests by it, so that each cluster is started once and one runs at a time.
    """
    return _shared.cluster(request.param, tmp_path_factory)


@pytest.fixture
def admin(cluster: RealCluster) -> Iterator[ClusterAdmin]:
    """Asks the cluster's brokers; at the end all of them must still run."""
    yield ClusterAdmin(cluster)
    cluster.check()


@pytest.fixture
def history(cluster: RealCluster) -> LeaderHistory:
    """Who led what and when in the cluster."""
    return LeaderHistory(cluster)


@pytest.fixture(scope="session")
def _client_processes() -> Iterator[dict[str, ClientProcess]]:
    running: dict[str, ClientProcess] = {}
    yield running
    for process in running.values():
        process.close()


@pytest.fixture
def clients(
    _client_processes: dict[str, ClientProcess],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], ClientProcess]]:
    """Gives the process of a client library, started when first used.

    A process whose runs a failed test left behind is not used again.
    """

    def process(library: str) -> ClientProcess:
        if library not in _client_processes:
            folder = tmp_path_factory.mktemp(library)
            _client_processes[library] = _LIBRARIES[library](folder)
        return _client_processes[library]

    yield process
    for library, used in list(_client_processes.items()):
        if used.busy:
            used.close()
            del _client_processes[library]


@pytest.fixture
def new_topics(admin: ClusterAdmin) -> Callable[..., list[str]]:
    """Makes topics of names never used before, with three replicas and two of them in sync."""

    def make(*labels: str, partitions: int = 1) -> list[str]:
        names = [f"{label}-{next(_topic_numbers)}" for label in labels]
        nodes = list(admin.cluster.brokers)
        assignment = [nodes[i % 3 :] + nodes[: i % 3] for i in range(partitions)]
        admin.create_topics(dict.fromkeys(names, assignment), {"min.insync.replicas": "2"})
        return names

    return make


@pytest.fixture
def new_topic(new_topics: Callable[..., list[str]]) -> Callable[[str], str]:
    """Makes one such topic, with a single partition."""
    return lambda label: new_topics(label)[0]


@pytest.fixture
def note_hints(record_property: Callable[[str, object], None]) -> Callable[[Judgement], None]:
    """Takes a judgement for the summary at the end of the session."""
    return lambda judgement: record_property(_JUDGEMENT, str(judgement))
