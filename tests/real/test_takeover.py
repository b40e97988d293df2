"""One proxy after the other takes over, under load of three families of clients."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ClientProcess
from tests.harness.cluster import RealCluster
from tests.harness.takeovers import Takeovers
from tests.real.names import CONFLUENT, JAVA, KAFKA_PYTHON, ZK_36

_TAKEOVERS = 5
_LIBRARIES = (JAVA, CONFLUENT, KAFKA_PYTHON)


@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
def test_clients_notice_nothing_while_proxies_take_over(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    names = new_topics(*(f"takeover-{one}" for one in _LIBRARIES), partitions=3)
    topics = dict(zip(_LIBRARIES, names, strict=True))
    with Takeovers(cluster, clients, topics, tmp_path) as takeovers:
        for _ in range(_TAKEOVERS):
            takeovers.take_over()
            takeovers.flow()
        takeovers.finish(admin)
