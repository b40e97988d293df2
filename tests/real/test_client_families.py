"""A client of each family does all it can before old brokers; the matrix has the others."""

from pathlib import Path

import pytest

from tests.harness import franz_go, maven
from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster
from tests.matrix.brokers import BrokerKind
from tests.matrix.cell import run_cell
from tests.matrix.roster import newest
from tests.real.names import ZK_24, ZK_28, ZK_34, ZK_36

MOVES = 1


@pytest.mark.parametrize(
    "family", ["java", "confluent-kafka", "kafka-python", "franz-go", "aiokafka"]
)
@pytest.mark.parametrize("cluster", [ZK_24, ZK_28, ZK_34, ZK_36], indirect=True)
def test_all_features(
    cluster: RealCluster, family: str, admin: ClusterAdmin, tmp_path: Path
) -> None:
    if family == "franz-go":
        need_go()
    cell = run_cell(
        BrokerKind(cluster.version, cluster.mode), cluster, newest(family), tmp_path, MOVES
    )
    assert not cell.failures


def need_go() -> None:
    """Skip without Go, but fail in CI."""
    missing = franz_go.missing_go()
    if missing is not None:
        if maven.in_ci():
            pytest.fail(missing)
        pytest.skip(missing)
