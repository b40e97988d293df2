"""Whether a client goes to a hinted leader before any Metadata answer."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.relay import Gate, RequestHeader
from tests.matrix.brokers import BrokerKind
from tests.matrix.roster import Client
from tests.real.sandwich import Sandwich

PRODUCE, FETCH, METADATA, OFFSET_FOR_LEADER_EPOCH = 0, 1, 3, 23
_AT_LEADER_FIRST = {
    "produce": {PRODUCE},
    # A consumer may validate its position at the new leader before it fetches there (KIP-320).
    "fetch": {FETCH, OFFSET_FOR_LEADER_EPOCH},
}
_FLOW = 5
_BEFORE, _AFTER = 1, 2
_WITHOUT_HINT_S = 2.0
_WITH_HINT_S = 10.0
# Each look goes through all requests so far.
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class Used:
    """On which side hints are used."""

    produce: bool
    fetch: bool

    @classmethod
    def expected(cls, client: Client, broker: BrokerKind) -> Self:
        """What is known of a client, at a broker that gives hints itself or through the proxy.

        The way a leader moves here leaves the old one a replica, so a consumer's Fetch gets
        FENCED_LEADER_EPOCH, or on 2.4, where Fetch goes as 10, NOT_LEADER_OR_FOLLOWER. A native
        broker gives Fetch hints from version 16 on only.
        """
        fetch = {
            "none": False,
            "leader": True,
            "leader_below_16": not broker.native,
            "endpoints": broker.fetches_with_endpoints,
            "not_leader": False,
        }
        return cls(client.uses.produce, fetch[client.uses.fetch])

    def __str__(self) -> str:
        sides = [name for name in ("produce", "fetch") if getattr(self, name)]
        return ", ".join(sides) or "none"


class MetadataGate(Gate):
    """While shut, holds the Metadata answers to the clients that are watched."""

    def __init__(self) -> None:
        super().__init__(
            lambda request: request.api_key == METADATA and request.client_id in self.watched
        )
        self.watched: frozenset[str] = frozenset()


def watch(
    process: ClientProcess,
    bootstrap: str,
    settings: Mapping[str, str],
    admin: ClusterAdmin,
    sandwich: Sandwich,
    gate: MetadataGate,
    expected: Used,
    topics: tuple[str, str],
) -> Used:
    """Move leaders while Metadata answers are held back, and see who goes to the new one.

    ``settings`` are those of producers, ``topics`` those to write and to read.

    :raises AssertionError: the clients did not work, or do not go on afterwards.
    """
    written, read = topics
    writes = ProducerSpec(bootstrap, written, acks="1", settings=settings)
    producer = process.produce(writes)
    # The records to read come past the proxies: their producer needs no hint.
    past = replace(writes, bootstrap=admin.cluster.direct_bootstrap, topic=read)
    feed = process.produce(past)
    consumer = process.consume(ConsumerSpec(bootstrap, read))

    def flow() -> None:
        producer.wait_acked(_FLOW)
        consumer.wait_count(len(consumer.consumed) + _FLOW)

    def seen() -> Used:
        def asked(side: str, name: str) -> bool:
            def chosen(request: RequestHeader) -> bool:
                return request.client_id == name and request.api_key in _AT_LEADER_FIRST[side]

            return sandwich.requests(_AFTER, chosen) > 0

        return Used(asked("produce", producer.name), asked("fetch", consumer.name))

    flow()
    # The epochs go up beforehand: validating a position at the same leader needs an answer, which
    # could stand behind one that is held.
    targets = admin.raise_epochs({TopicPartition(topic, 0): _AFTER for topic in topics})
    flow()
    assert seen() == Used(False, False), "a client is at the follower already"
    gate.watched = frozenset({producer.name, consumer.name})
    gate.shut()
    try:
        admin.elect_preferred(targets)
        used = _settled(seen, expected)
    finally:
        gate.open()
    flow()
    for run in (producer, feed, consumer):
        run.stop()
    return used


def _settled(seen: Callable[[], Used], expected: Used) -> Used:
    """What was seen, once that can no longer become what is expected."""
    began = time.monotonic()
    while True:
        used, passed = seen(), time.monotonic() - began
        if passed >= _WITHOUT_HINT_S and (used == expected or passed >= _WITH_HINT_S):
            return used
        if used == expected == Used(True, True):
            return used
        time.sleep(_LOOK_EVERY_S)
