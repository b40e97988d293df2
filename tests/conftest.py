"""What holds for all tests."""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import structlog
from coverage import Coverage
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from leader_hints.observe.logs import configure_logs
from tests.net.serving import Log
from tests.real.names import CLUSTERS
from tests.tiers import Tier, may_have, tier_of

# No deadline for one example: machines are shared, and a slow one is no defect. The profile
# that Hypothesis takes with CI=true is derandomized besides; this keeps that.
settings.register_profile(
    "here",
    settings.default,
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("here")

#: Tests that are run in one process, one after the other: those of Spark, which share its session,
#: and those of the wheel, which share its environments.
_TOGETHER = ("tests/pipeline/", "tests/packaging/")
#: Tests that coverage does not follow, to save time: those run much of the proxy, again and again,
#: or none of it. What they alone reach counts as not covered.
_NOT_MEASURED = (
    *("tests/bench/", "tests/docs/", "tests/mock/", "tests/mutants/", "tests/pipeline/"),
    *("tests/real/", "tests/world/"),
)
#: By this variable coverage follows the processes that tests start.
_PROCESSES_MEASURED = "COVERAGE_PROCESS_CONFIG"
#: What a process of the proxy handles.
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class _ByWhatIsShared(LoadScopeScheduling):  # type: ignore[misc]
    """Has tests that share something expensive run in one process.

    Those of real brokers share a cluster, or start some for the tests of their file.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/real/"):
            path, _, name = nodeid.partition("::")
            return next((cluster for cluster in CLUSTERS if cluster in name), path)
        return next((path for path in _TOGETHER if nodeid.startswith(path)), nodeid)

    def _assign_work_unit(self, node: object) -> None:
        # Files that start clusters of their own come first: they take longest, and no worker should
        # still have one to do when the others have ended.
        own = next((scope for scope in self.workqueue if scope.startswith("tests/real/")), None)
        if own is not None:
            self.workqueue.move_to_end(own, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _ByWhatIsShared:
    """Say which tests go together; marks (xdist_group) are not seen by pytest 9.2."""
    return _ByWhatIsShared(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of a tier; ``rest`` are the tests that ``test`` leaves out."""
    tiers = [tier.name.lower() for tier in Tier]
    parser.addoption("--tier", choices=[*tiers, "rest"], default="all", help="see tests/tiers.py")
    parser.addoption("--fleets", metavar="FIRST:END", help="random fleets of the pipeline, besides")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not read folders that have no test of the tier that is asked for."""
    name = config.getoption("--tier")
    if name == "rest" or not collection_path.is_dir():
        return None
    folder = collection_path.relative_to(config.rootpath).as_posix()
    return None if may_have(f"{folder}/", Tier[name.upper()]) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not of the tier that is asked for."""
    name = config.getoption("--tier")
    if name == "rest":
        wanted = [item for item in items if tier_of(item) > Tier.TEST]
    else:
        wanted = [item for item in items if tier_of(item) <= Tier[name.upper()]]
    kept = set(wanted)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = wanted
    for item in items:
        if item.nodeid.startswith(_NOT_MEASURED):
            item.add_marker(pytest.mark.no_cover)


def pytest_configure(config: pytest.Config) -> None:
    """Have one measurement of coverage follow a worker, that which pytest-cov begins next.

    The process has one by then, and another that pytest-cov took it to need without workers. They
    would go on where the last one pauses for ``no_cover``.
    """
    if hasattr(config, "workerinput"):
        while (running := Coverage.current()) is not None:
            running.stop()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Have coverage not follow the processes of tests that are not measured, fixtures included."""
    kept = os.environ.get(_PROCESSES_MEASURED)
    if kept is None or item.get_closest_marker("no_cover") is None:
        return (yield)
    del os.environ[_PROCESSES_MEASURED]
    try:
        return (yield)
    finally:
        os.environ[_PROCESSES_MEASURED] = kept


def pytest_collection_finish() -> None:
    """Leave out of each garbage collection what lives to the end: a tenth of the tests' time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def log() -> Iterator[Log]:
    """What is logged."""
    stream = Log()
    configure_logs("debug", "json", stream)
    yield stream
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """A process that ends ignores signals from then on; other tests' processes must not."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)
