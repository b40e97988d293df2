"""A topic that is deleted and created again on brokers without topic ids.

Its epochs begin with 0 again, and the sidecars know the former topic's higher ones. A Java
client that gets such an epoch drops all Metadata below it, until it is started again.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.admin import AdminError, ClusterAdmin
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyFleet
from tests.harness.waiting import patience, until
from tests.real.names import JAVA, ZK_24

TOPIC = "recreated-without-ids"
#: Far more than a client needs to go on after a move; the wait for one that never does is bounded.
GOES_ON_S = 20.0
MORE = 20


def _created(admin: ClusterAdmin, replicas: list[int]) -> bool:
    """Whether the topic could be created; ZooKeeper has a deleted one longer than brokers."""
    with contextlib.suppress(AdminError):
        admin.create_topic(TOPIC, [replicas], {"min.insync.replicas": "2"})
        return True
    return False


@pytest.mark.parametrize("cluster", [ZK_24], indirect=True)
def test_clients_go_on_when_the_new_topics_leader_moves(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    tmp_path: Path,
) -> None:
    _created(admin, [3, 1, 2])
    for node in (1, 3, 1, 3):
        admin.move_leader(TOPIC, to=node)
    former = admin.partitions(TOPIC)[0]
    assert (former.leader, former.epoch) == (3, 8)
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    client = clients(JAVA)
    with ProxyFleet.before(routes, tmp_path, sidecars=True) as fleet:
        admin.delete_topic(TOPIC)
        until(lambda: _created(admin, [1, 2, 3]), "the topic is there again")
        consumer = client.consume(ConsumerSpec(cluster.bootstrap, TOPIC))
        producer = client.produce(ProducerSpec(cluster.bootstrap, TOPIC))
        consumer.wait_count(MORE)
        for node, epoch in ((2, 2), (3, 4), (1, 6)):
            admin.move_leader(TOPIC, to=node)
            state = admin.partitions(TOPIC)[0]
            assert (state.leader, state.epoch) == (node, epoch)
            with patience(GOES_ON_S):
                producer.wait_acked(MORE)
                consumer.wait_count(len(consumer.consumed) + MORE)
        producer.stop()
        check_produced(admin, producer)
        check_consumed(admin, consumer)
        consumer.stop()
        given = {(hint["leader"], hint["epoch"]) for hint in fleet.events("hint_given")}
        assert given <= {(1, 1), (2, 2), (2, 3), (3, 4), (3, 5), (1, 6)}
