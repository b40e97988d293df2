"""Clients go to the hinted broker without any Metadata; without hints the same clients wait.

Speed alone proves no hint. So every response to the client's Metadata requests is held at a gate
from before the move on: only a hint can lead the client to the new leader then.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import Hints
from tests.harness.relay import Gate, RequestHeader
from tests.harness.waiting import never, until
from tests.real.names import (
    CONFLUENT,
    JAVA,
    KAFKA_PYTHON,
    KRAFT_36,
    ZK_24,
    ZK_28,
    ZK_34,
    ZK_36,
)
from tests.real.sandwich import Sandwich

PRODUCE, FETCH, METADATA, OFFSET_FOR_LEADER_EPOCH = 0, 1, 3, 23
# A client validates its position at the hinted leader before it fetches there (KIP-320).
FIRST_AT_LEADER = {PRODUCE, FETCH, OFFSET_FOR_LEADER_EPOCH}
WITHOUT_HINT_S = 2.0
#: Clients ask for Metadata 100 ms after they learnt of a reason for it.
CALM_S = 0.5
USERS = [
    (JAVA, "produce"),
    (JAVA, "fetch"),
    (CONFLUENT, "produce"),
    (CONFLUENT, "fetch"),
    (KAFKA_PYTHON, "fetch"),
]
# Of 2.4: librdkafka needs Fetch 16, and that needs topic ids.
USERS_OF_2_4 = [user for user in USERS if user != (CONFLUENT, "fetch")]
CASES = [
    *((cluster, *user) for cluster in (ZK_36, KRAFT_36, ZK_34, ZK_28) for user in USERS),
    *((ZK_24, *user) for user in USERS_OF_2_4),
]


@dataclass(frozen=True)
class Watched:
    """The client that is watched, by its name, and how to see that its records flow."""

    name: str
    flow: Callable[[], None]
    stop: Callable[[], object]


def start_watched(
    side: str, client: ClientProcess, other: ClientProcess, cluster: RealCluster, topic: str
) -> list[Watched]:
    """A client on one side of a topic, and what it needs: the watched one first."""
    if side == "produce":
        producer = client.produce(ProducerSpec(cluster.bootstrap, topic, acks="1"))
        return [Watched(producer.name, lambda: producer.wait_acked(5), producer.stop)]
    # The records to read come past the proxies: their producer needs no hint.
    feed = other.produce(ProducerSpec(cluster.direct_bootstrap, topic, acks="1"))
    consumer = client.consume(ConsumerSpec(cluster.bootstrap, topic))
    return [
        Watched(
            consumer.name,
            lambda: consumer.wait_count(len(consumer.consumed) + 5),
            consumer.stop,
        ),
        Watched(feed.name, lambda: feed.wait_acked(5), feed.stop),
    ]


def is_settled(sandwich: Sandwich, client: Watched) -> bool:
    """Let records flow for a while; return whether the client asked for no Metadata meanwhile.

    It asks for some when it learns of the new epoch. What a broker answers behind a request that
    is held at the gate, the client would not get: not the error of the move either.
    """

    def asked() -> int:
        return sum(
            sandwich.requests(node, lambda r: (r.client_id, r.api_key) == (client.name, METADATA))
            for node in sandwich.before
        )

    before, end = asked(), time.monotonic() + CALM_S
    while time.monotonic() < end:
        client.flow()
    return asked() == before


@pytest.mark.parametrize("hints", ["on", "off"])
@pytest.mark.parametrize(
    ("cluster", "library", "side"),
    CASES,
    indirect=["cluster"],
    scope="session",  # or pytest would start the cluster again for each test
)
def test_next_request_goes_to_the_hinted_broker(
    cluster: RealCluster,
    library: str,
    side: str,
    hints: Hints,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_topic(f"hinted-{side}")
    name = ""
    gate = Gate(lambda request: request.api_key == METADATA and request.client_id == name)

    def at_leader(request: RequestHeader) -> bool:
        return request.client_id == name and request.api_key in FIRST_AT_LEADER

    # How fast the cluster elects is not what is tested.
    slow = tmp_path / "slow.yaml"
    slow.write_text("hold: {deadline_ms: 5000, link_ms_per_second: 1000}\n")
    with Sandwich(cluster, tmp_path, hints, gate, arguments=["--config", str(slow)]) as sandwich:
        runs = start_watched(side, clients(library), clients(CONFLUENT), cluster, topic)
        name = runs[0].name
        runs[0].flow()
        # The epoch goes up beforehand: validating a position at the same leader needs an answer,
        # which could stand behind one that is held.
        before, after = 1, 2
        targets = admin.raise_epochs({TopicPartition(topic, 0): after})
        until(lambda: is_settled(sandwich, runs[0]), f"{name} asks for no more Metadata")
        assert sandwich.requests(after, at_leader) == 0
        gate.shut()
        admin.elect_preferred(targets)
        if hints == "on":
            until(
                lambda: sandwich.requests(after, at_leader) > 0,
                f"{name} asks broker {after}, which only a hint can have named",
            )
            assert sandwich.fleet.events("hint_given")
        else:
            if (side, cluster.version) != ("fetch", "2.4.1"):
                # There the ex-leader serves a fetch session on, as a follower.
                until(lambda: gate.held, f"{name} asks for Metadata")
            never(
                lambda: sandwich.requests(after, at_leader),
                f"requests at broker {after} without hint or Metadata",
                WITHOUT_HINT_S,
            )
        gate.open()
        runs[0].flow()
        assert sandwich.requests(before, at_leader) > 0
        for run in runs:
            run.stop()
