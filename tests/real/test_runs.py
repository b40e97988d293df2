"""Some of what users run besides client libraries: see ``tests.runs``."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import maven
from tests.harness.clients import ClientProcess
from tests.harness.cluster import RealCluster
from tests.real.names import JAVA_41, ZK_36
from tests.runs.place import Place
from tests.runs.roster import RUNS

#: A cell of each kind; brokers take too long to make 3,000 partitions for more than a release.
_NAMES = ("streams", "haproxy", "ipv6", "names", "chain", "large-records", "client-sarama")


@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
@pytest.mark.parametrize("name", _NAMES)
def test_it_goes_on_while_leaders_move(
    cluster: RealCluster, name: str, clients: Callable[[str], ClientProcess], tmp_path: Path
) -> None:
    run = RUNS[name]
    missing = run.missing()
    if missing is not None:
        if maven.in_ci():
            pytest.fail(missing)
        pytest.skip(missing)
    figures = run.do(Place(cluster, tmp_path, lambda: clients(JAVA_41)))
    assert not any(figures.get(name) for name in ("stalled", "lost", "unread"))
    cluster.check()
