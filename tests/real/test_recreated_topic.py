"""A topic that is deleted and recreated while clients run, where ids are turned into names.

What a client would see of such a topic on the same broker without the proxy is the measure: the
records of the new topic, read from its start or, where all of the old topic's offsets are there
again before it comes, from its old position on.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.admin import AdminError, ClusterAdmin
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyFleet
from tests.harness.waiting import until
from tests.real.names import CONFLUENT, JAVA, ZK_28

RECORDS = 30


def _created(admin: ClusterAdmin, topic: str) -> bool:
    """Whether a topic could be made; ZooKeeper has a deleted one a little longer than brokers."""
    with contextlib.suppress(AdminError):
        admin.create_topic(topic, [[1, 2, 3]], {"min.insync.replicas": "2"})
        return True
    return False


@pytest.mark.parametrize("library", [JAVA, CONFLUENT])
@pytest.mark.parametrize("cluster", [ZK_28], indirect=True)
def test_consumers_go_on_with_the_new_topic(
    cluster: RealCluster,
    library: str,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_topic("made-anew")
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    client = clients(library)
    with ProxyFleet.before(routes, tmp_path, sidecars=True) as fleet:
        # Learns of changes soon, so that the test need not wait for its usual minutes.
        settings = {"metadata.max.age.ms": "1000"}
        consumers = {
            "proxied": client.consume(ConsumerSpec(cluster.bootstrap, topic, settings=settings)),
            "direct": client.consume(
                ConsumerSpec(cluster.direct_bootstrap, topic, settings=settings)
            ),
        }
        first = client.produce(
            ProducerSpec(cluster.direct_bootstrap, topic, rate=100, count=RECORDS)
        )
        first.wait_done()
        for consumer in consumers.values():
            consumer.wait_count(RECORDS)
        assert fleet.metric("leader_hints_requests_total", api="Fetch", asked="16", sent="12"), (
            "the consumer's fetches were by id"
        )

        admin.delete_topic(topic)
        until(lambda: _created(admin, topic), "the topic is there again")
        # More than there were, so that the old position is a valid one and nothing but the
        # topic's id tells that it means nothing.
        second = client.produce(
            ProducerSpec(cluster.direct_bootstrap, topic, rate=100, count=2 * RECORDS)
        )
        second.wait_done()
        for consumer in consumers.values():
            consumer.wait_consumed(
                lambda records: (
                    records[-1].producer == second.name and records[-1].seq == 2 * RECORDS - 1
                ),
                "the last record of the new topic",
            )
        for kind, consumer in consumers.items():
            got = [record.seq for record in consumer.consumed if record.producer == second.name]
            # Where it begins depends on which is sooner, the producer or the consumer.
            assert got[0] <= RECORDS, kind
            assert got == list(range(got[0], 2 * RECORDS)), kind
            consumer.stop()
