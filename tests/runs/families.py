"""Client libraries that the matrix lacks: what each loses, through proxies and direct."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.harness import franz_go, node, rust
from tests.harness.clients import ClientProcess, ConsumerRun, ConsumerSpec, ProducerSpec
from tests.harness.waiting import TimedOutError
from tests.runs.place import (
    PARTITIONS,
    RATE,
    Figures,
    Numbers,
    Place,
    hints,
    move_under_load,
    numbers,
)


@dataclass(frozen=True)
class Family:
    """A library: ``start`` gives its process, ``missing`` says what it needs and is not there.

    ``idempotent``: its producer is set to write each record once.
    """

    name: str
    start: Callable[[Path], ClientProcess]
    missing: Callable[[], str | None]
    idempotent: bool = False


FAMILIES = (
    Family("sarama", franz_go.sarama_clients, franz_go.missing_go),
    Family("sarama, idempotent", franz_go.sarama_clients, franz_go.missing_go, idempotent=True),
    Family("kafka-go", franz_go.kafka_go_clients, franz_go.missing_go),
    Family("kafkajs", node.kafkajs_clients, node.missing_npm),
    Family("kafkajs, idempotent", node.kafkajs_clients, node.missing_npm, idempotent=True),
    Family("confluent-kafka-javascript", node.confluent_clients, node.missing_compiler),
    Family(
        "confluent-kafka-javascript, idempotent",
        node.confluent_clients,
        node.missing_compiler,
        idempotent=True,
    ),
    Family("@platformatic/kafka", node.node_clients, node.missing_npm),
    Family("@platformatic/kafka, idempotent", node.node_clients, node.missing_npm, idempotent=True),
    Family("rskafka (Rust)", rust.rust_clients, rust.missing_cargo),
)


def losses(family: Family, place: Place) -> Figures:
    """Count what came of acknowledged records (acks=all) while leaders move: lost, doubled, unread.

    A producer that does not go on is left where it is, and counted.
    """
    with place.proxies() as fleet, family.start(place.folder) as process:
        topic = place.make_topic("family")
        partitions = range(PARTITIONS)
        reads = ConsumerSpec(place.bootstrap, topic, partitions, group=f"group-{topic}")
        consumer = process.consume(reads)
        producer = process.produce(
            ProducerSpec(
                place.bootstrap, topic, partitions, rate=RATE, idempotent=family.idempotent
            )
        )
        stalled = _stalls(lambda: move_under_load(place, producer, [topic]))
        if not stalled:
            producer.stop()
        acked, stored = numbers(producer.acked), place.stored(topic)
        unread = _unread_of(stored, consumer)
        return {
            **({"stalled": 1} if stalled else {}),
            "acknowledged": len(acked),
            "given up": len(producer.failed),
            "lost": len(acked.keys() - stored.keys()),
            "doubled": sum(1 for count in stored.values() if count > 1),
            "unread": unread,
            **hints(fleet),
        }


def _stalls(work: Callable[[], None]) -> bool:
    try:
        work()
    except TimedOutError:
        traceback.print_exc()
        return True
    return False


def _unread_of(stored: Numbers, consumer: ConsumerRun) -> int:
    """How many records a consumer has not read when it had the time for all."""

    def left() -> set[tuple[int, int]]:
        return stored.keys() - numbers(consumer.consumed).keys()

    try:
        consumer.wait_consumed(lambda _: not left(), "all that is stored")
    except TimedOutError:
        return len(left())
    return 0
