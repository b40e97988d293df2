"""Many partitions, and large records."""

from dataclasses import replace

from tests.harness.admin import TopicPartition
from tests.harness.clients import ConsumerSpec, ProducerSpec
from tests.harness.java import java_clients
from tests.harness.waiting import patience
from tests.matrix.roster import newest
from tests.runs.place import Figures, Load, Place, carry, hints, numbers

_PARTITIONS = 3_000
#: Every so many of them move at the same time.
_MOVES_EVERY = 10
_ROUNDS = 2
_RATE = 1_500
#: Brokers take long to make so many.
_PATIENCE_S = 300.0

_RECORD_BYTES = 20_000_000
_LARGE_HEAP = "-Xmx1g"
_MOST_BYTES = str(_RECORD_BYTES + 1_000_000)


def many_partitions(place: Place) -> Figures:
    """One producer and one consumer of 3,000 partitions, of which 300 move at a time."""
    topic = f"run-partitions-{place.folder.name}"
    nodes = list(place.cluster.brokers)
    assignment = [
        [nodes[at % len(nodes)], nodes[(at + 1) % len(nodes)]] for at in range(_PARTITIONS)
    ]
    moving = dict.fromkeys(
        (TopicPartition(topic, number) for number in range(0, _PARTITIONS, _MOVES_EVERY)), None
    )
    everywhere = range(_PARTITIONS)
    with place.proxies() as fleet, patience(_PATIENCE_S):
        place.admin.create_topic(topic, assignment)
        process = place.java()
        consumer = process.consume(ConsumerSpec(place.bootstrap, topic, everywhere))
        count = (place.moves + 1) * _ROUNDS * _PARTITIONS
        producer = process.produce(
            ProducerSpec(
                place.bootstrap, topic, everywhere, rate=_RATE, count=count, idempotent=True
            )
        )
        for number in range(1, place.moves + 1):
            producer.wait_acked_in_all(number * _ROUNDS * _PARTITIONS)
            place.admin.move_leaders(moving)
        producer.wait_done()
        sent = numbers(producer.acked)
        consumer.wait_count(sent.total())
        read = numbers(consumer.consumed)
        assert not producer.failed, f"given up: {producer.failed[:3]}"
        assert read == sent, f"not read: {sent - read}, read twice: {read - sent}"
        consumer.stop()
        place.admin.delete_topic(topic)
        return {"partitions": _PARTITIONS, "records": sent.total(), **hints(fleet)}


def large_records(place: Place) -> Figures:
    """Records of 20 MB while leaders move."""
    load = Load(
        rate=2,
        size=_RECORD_BYTES,
        between=2,
        topic={"max.message.bytes": _MOST_BYTES},
        producer={"max.request.size": _MOST_BYTES, "buffer.memory": str(3 * _RECORD_BYTES)},
    )
    clients = java_clients(place.folder, newest("java").version, options=[_LARGE_HEAP])
    with place.proxies() as fleet, clients as process:
        return {**carry(replace(place, java=lambda: process), "large", load), **hints(fleet)}
