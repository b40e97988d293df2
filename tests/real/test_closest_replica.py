"""Consumers read from the replica in their rack, where the brokers have no selector (KIP-392)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness.admin import ClusterAdmin
from tests.harness.checker import check_consumed, check_ends, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, OffsetsSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.franz_go import go_clients
from tests.harness.proxyproc import Hints
from tests.harness.rack_fleet import GROUP_SETTINGS, RackFleet
from tests.harness.waiting import until
from tests.real.names import CONFLUENT, JAVA, KAFKA_PYTHON, KRAFT_36, PLAIN_24, PLAIN_28
from tests.real.test_client_families import need_go

LEADER, OTHER, CLOSE = 1, 2, 3
RACKS = {node: f"rack-{node}" for node in (LEADER, OTHER, CLOSE)}
PARTITIONS = (0, 1)
_OFFSETS = "__consumer_offsets"


def _fleet(cluster: RealCluster, folder: Path, mode: Hints = "on") -> RackFleet:
    """Sidecars before a cluster whose racks only they may know.

    A follower that falls behind is to be noticed within the test.
    """
    return RackFleet(cluster, folder, mode, racks=RACKS, poll_ms=1000)


@pytest.mark.parametrize(
    ("library", "cluster", "least"),
    [
        *((JAVA, cluster, 0.95) for cluster in (PLAIN_24, PLAIN_28, KRAFT_36)),
        *((CONFLUENT, cluster, 0.95) for cluster in (PLAIN_24, PLAIN_28, KRAFT_36)),
        # It asks the leader every second time, for nothing: that is some bytes.
        *((KAFKA_PYTHON, cluster, 0.9) for cluster in (PLAIN_28, KRAFT_36)),
    ],
    indirect=["cluster"],
)
def test_a_consumer_reads_in_its_rack_and_nothing_is_lost_or_doubled(
    cluster: RealCluster,
    library: str,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
    least: float,
) -> None:
    """KIP-392: the leader names a follower; KIP-207: ListOffsets still asks the leader alone."""
    (topic,) = new_topics("closest", partitions=len(PARTITIONS))
    for partition in PARTITIONS:
        admin.move_leader(topic, partition, to=LEADER)
    fleet = _fleet(cluster, tmp_path)
    with fleet.proxies:
        producer = clients(JAVA).produce(
            ProducerSpec(fleet.bootstrap, topic, PARTITIONS, rate=40, size=5000)
        )
        ends = clients(JAVA).ask_offsets(OffsetsSpec(fleet.bootstrap, topic, PARTITIONS))
        consumers = [
            clients(library).consume(
                ConsumerSpec(
                    fleet.bootstrap,
                    topic,
                    PARTITIONS,
                    group=f"group-{topic}" if group else None,
                    committed_only=committed,
                    settings={
                        "client.rack": RACKS[CLOSE],
                        **(GROUP_SETTINGS.get(library, {}) if group else {}),
                    },
                )
            )
            for group, committed in ((False, False), (False, True), (True, False))
        ]
        fleet.wait_read_nearby(1_000_000)
        same, crossing = fleet.wait_read_nearby(3_000_000)
        named = fleet.proxies.events("replica_named")
        assert {line["replica"] for line in named} == {CLOSE}
        # A group whose coordinator stops may begin again at what it has committed.
        for partition in admin.partitions(_OFFSETS):
            admin.move_leader(_OFFSETS, partition, to=LEADER)
        # The follower stops: its consumers go on at the leader.
        cluster.brokers[CLOSE].stop()
        until(lambda: CLOSE not in _in_sync(admin, topic), "it is out of sync")
        before = [len(consumer.consumed) for consumer in consumers]
        for consumer, count in zip(consumers, before, strict=True):
            consumer.wait_count(count + 120)
        cluster.brokers[CLOSE].start()
        admin.wait_in_sync(topic)
        # The leader moves, and they come back to the follower.
        for partition in PARTITIONS:
            admin.move_leader(topic, partition, to=OTHER)
        fleet.wait_read_nearby(1_000_000)
        producer.stop()
        ends.stop()
        check_produced(admin, producer)
        check_ends(ends)
        for consumer in consumers:
            check_consumed(admin, consumer)
            consumer.stop()
    share = same / (same + crossing)
    assert share >= least, f"{share:.1%} of {same + crossing} bytes were read in the rack"


@pytest.fixture
def go(tmp_path: Path) -> Iterator[ClientProcess]:
    """The process of franz-go's clients."""
    need_go()
    with go_clients(tmp_path) as process:
        yield process


@pytest.mark.parametrize("cluster", [KRAFT_36], indirect=True)
def test_franz_go_leaves_a_follower_that_is_gone_when_its_recheck_is_due(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    go: ClientProcess,
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """Before that nothing moves it but another leader epoch: `move` in its source.go."""
    topic = new_topic("closest-recheck")
    # It is known which broker the follower is, once it leads something.
    admin.move_leader(new_topic("closest-led"), to=CLOSE)
    fleet = _fleet(cluster, tmp_path)
    with fleet.proxies:
        producer = clients(JAVA).produce(ProducerSpec(fleet.bootstrap, topic, size=5000))
        consumer = go.consume(
            ConsumerSpec(
                fleet.bootstrap,
                topic,
                settings={
                    "client.rack": RACKS[CLOSE],
                    "recheck.preferred.replica.ms": "20000",
                },
            )
        )
        fleet.wait_read_nearby(100_000)
        with cluster.without(CLOSE):
            until(lambda: CLOSE not in _in_sync(admin, topic), "it is out of sync")
            consumer.wait_count(len(consumer.consumed) + 200)
        producer.stop()
        check_consumed(admin, consumer)
        consumer.stop()


def _in_sync(admin: ClusterAdmin, topic: str) -> set[int]:
    answer = admin.metadata([topic], LEADER)
    return {int(node) for part in answer.topics[0].partitions for node in part.isr_nodes}


@pytest.mark.parametrize("cluster", [PLAIN_24], indirect=True)
def test_observed_nobody_moves(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_topic("closest-observed")
    admin.move_leader(topic, to=LEADER)
    fleet = _fleet(cluster, tmp_path, "observe")
    with fleet.proxies:
        producer = clients(JAVA).produce(ProducerSpec(fleet.bootstrap, topic, size=5000))
        consumer = clients(JAVA).consume(
            ConsumerSpec(fleet.bootstrap, topic, settings={"client.rack": RACKS[CLOSE]})
        )
        consumer.wait_count(100)
        avoidable = fleet.proxies.metric("leader_hints_consumer_bytes_avoidable_total")
        assert (fleet.read("same"), avoidable > 300_000) == (0, True)
        producer.stop()
        consumer.stop()
