"""confluent-kafka's producer and consumer, as the worker drives them."""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

# Its type stubs do not export what it is documented to have.
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from tests.harness.python_client import CLOSE_S, POLL_S, Clients, Delivered, Record

_ASK_S = 10.0


class ConfluentProducer:
    """confluent-kafka's producer."""

    error: ClassVar[type[Exception]] = KafkaException

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        self._producer = Producer(settings)
        if "transactional.id" in settings:
            self._producer.init_transactions()

    def send(self, partition: int, key: bytes, value: bytes, delivered: Delivered) -> None:
        def report(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            told = -1 if offset is None or offset < 0 else offset
            delivered(told, None if error is None else str(error))

        self._producer.produce(self._topic, value, key, partition=partition, on_delivery=report)
        self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(CLOSE_S) == 0, "records without an outcome"

    def begin_transaction(self) -> None:
        self._producer.begin_transaction()

    def commit_transaction(self) -> None:
        self._producer.commit_transaction()

    def abort_transaction(self) -> None:
        self._producer.abort_transaction()

    def wait(self, seconds: float) -> None:
        # Delivery reports are served only while polling, and each one ends a poll.
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._producer.poll(left)

    def close(self) -> None:
        self.flush()


class ConfluentConsumer:
    """confluent-kafka's consumer."""

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        self._grouped = "group.id" in settings
        # librdkafka wants a group id even where partitions are assigned.
        own = {"group.id": "unused", "enable.auto.commit": "false"}
        self._consumer = Consumer(settings if self._grouped else own | settings)

    def start(self, partitions: Sequence[int], from_end: bool, ready: Callable[[], None]) -> None:
        if self._grouped:
            self._consumer.subscribe(
                [self._topic], on_assign=lambda _, assigned: ready() if assigned else None
            )
            return
        starts = []
        for partition in partitions:
            where = TopicPartition(self._topic, partition)
            # A logical end would be looked up later, perhaps behind the first record of the test.
            start = self._consumer.get_watermark_offsets(where)[1] if from_end else OFFSET_BEGINNING
            starts.append(TopicPartition(self._topic, partition, start))
        self._consumer.assign(starts)
        ready()

    def poll(self) -> Iterable[Record]:
        for message in self._consumer.consume(100, POLL_S):
            error, value = message.error(), message.value()
            partition, offset = message.partition(), message.offset()
            if error is not None:
                # librdkafka goes on by itself after every error that it tells here.
                print(error, file=sys.stderr)
            elif partition is not None and offset is not None and value is not None:
                yield partition, offset, value

    def close(self) -> None:
        self._consumer.close()


class ConfluentOffsets:
    """Asks by confluent-kafka's consumer where partitions end."""

    error: ClassVar[type[Exception]] = KafkaException

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        self._consumer = Consumer({"group.id": "unused"} | settings)

    def ends(self, partitions: Sequence[int]) -> Mapping[int, int]:
        return {
            partition: self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, partition), timeout=_ASK_S
            )[1]
            for partition in partitions
        }

    def close(self) -> None:
        self._consumer.close()


class ConfluentAdmin:
    """confluent-kafka's admin client."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._admin = AdminClient(dict(settings))

    def create(self, topic: str, replicas: int) -> None:
        self._admin.create_topics([NewTopic(topic, 1, replicas)])[topic].result()

    def topics(self) -> Collection[str]:
        return set(self._admin.list_topics(timeout=_ASK_S).topics)

    def partitions(self, topic: str) -> int:
        return len(self._admin.list_topics(topic, timeout=_ASK_S).topics[topic].partitions)

    def grow(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()

    def settings(self, topic: str) -> Collection[str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        return set(self._admin.describe_configs([resource])[resource].result())

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result()

    def close(self) -> None:
        pass


CLIENTS = Clients(ConfluentProducer, ConfluentConsumer, ConfluentOffsets, ConfluentAdmin)
