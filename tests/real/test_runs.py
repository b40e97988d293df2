"""Some of what users run besides client libraries: see ``tests.runs``."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness import maven
from tests.harness.clients import ClientProcess
from tests.harness.cluster import RealCluster
from tests.real.names import JAVA_41, KRAFT_36, KRAFT_41, ZK_24, ZK_28, ZK_36
from tests.runs.place import Place
from tests.runs.roster import RUNS, Run

#: A cell of each kind; clients that take minutes to compile are left to ``tests.runs``. 3,000
#: partitions are in front of KRaft: a controller with ZooKeeper is busy for half a minute after
#: their topic was deleted, and the next test would wait for it.
_CELLS: Mapping[str, tuple[str, ...]] = {
    ZK_36: ("streams", "haproxy", "ipv6", "names", "chain", "large-records", "client-sarama"),
    KRAFT_36: ("partitions",),
    ZK_28: ("mirror-maker", "client-kafka-go"),
    ZK_24: ("client-kafkajs",),
    KRAFT_41: ("consumer-protocol", "share-group"),
}


@pytest.mark.parametrize(
    ("cluster", "name"),
    [(cluster, name) for cluster, names in _CELLS.items() for name in names],
    indirect=["cluster"],
)
def test_it_goes_on_while_leaders_move(
    cluster: RealCluster, name: str, clients: Callable[[str], ClientProcess], tmp_path: Path
) -> None:
    run = RUNS[name]
    missing = run.missing()
    if missing is not None:
        if maven.in_ci():
            pytest.fail(missing)
        pytest.skip(missing)
    place = Place(cluster, tmp_path, lambda: clients(JAVA_41))
    figures = _do(run, place)
    assert not any(figures.get(name) for name in ("stalled", "lost", "unread"))
    cluster.check()


def _do(run: Run, place: Place) -> Mapping[str, int]:
    if not run.target:
        return run.do(place)
    folder = place.folder / "target"
    with RealCluster("3.6.2", "kraft", folder=folder) as target:
        return run.do(place, replace(place, cluster=target, folder=folder))
