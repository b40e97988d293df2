"""One of each kind of what users run besides client libraries: see ``tests.runs``."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import maven
from tests.harness.clients import ClientProcess
from tests.harness.cluster import RealCluster
from tests.real.names import JAVA_41, KRAFT_41, ZK_24, ZK_28, ZK_36
from tests.runs.place import Place
from tests.runs.roster import RUNS


@pytest.mark.parametrize(
    ("cluster", "name"),
    [
        (ZK_24, "large-records"),
        (ZK_28, "streams"),
        (ZK_36, "haproxy"),
        (ZK_36, "ipv6"),
        (ZK_36, "names"),
        (ZK_36, "chain"),
        (ZK_36, "partitions"),
        (ZK_36, "mirror-maker"),
        (ZK_36, "client-sarama"),
        (KRAFT_41, "consumer-protocol"),
        (KRAFT_41, "share-group"),
    ],
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
    # MirrorMaker copies to the cluster itself, under another name.
    figures = run.do(place, *([place] if run.target else []))
    assert figures.get("lost", 0) == 0
    assert figures.get("unread", 0) == 0
    cluster.check()
