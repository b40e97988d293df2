"""kafka-python's producer and consumer, as the worker drives them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from tests.harness.python_client import CLOSE_S, POLL_S, Delivered, Record

_FIRST_POLL_S = 30.0


class KafkaPythonProducer:
    """kafka-python's producer."""

    error: ClassVar[type[Exception]] = KafkaError

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        self._producer = KafkaProducer(**_typed(settings, KafkaProducer.DEFAULT_CONFIG))
        if "transactional.id" in settings:
            self._producer.init_transactions()

    def send(self, partition: int, key: bytes, value: bytes, delivered: Delivered) -> None:
        future = self._producer.send(self._topic, value, key, partition=partition)
        future.add_callback(lambda metadata: delivered(metadata.offset, None))
        future.add_errback(lambda error: delivered(-1, repr(error)))

    def flush(self) -> None:
        self._producer.flush(CLOSE_S)

    def begin_transaction(self) -> None:
        self._producer.begin_transaction()

    def commit_transaction(self) -> None:
        self._producer.commit_transaction()

    def abort_transaction(self) -> None:
        self._producer.abort_transaction()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        self._producer.close(CLOSE_S)


class KafkaPythonConsumer:
    """kafka-python's consumer."""

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        self._grouped = "group.id" in settings
        self._has_read = False
        own = {} if self._grouped else {"enable.auto.commit": "false"}
        self._consumer = KafkaConsumer(**_typed(own | settings, KafkaConsumer.DEFAULT_CONFIG))

    def start(self, partitions: Sequence[int], from_end: bool, ready: Callable[[], None]) -> None:
        if self._grouped:

            class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
                def on_partitions_assigned(self, assigned: Sequence[object]) -> None:
                    if assigned:
                        ready()

                def on_partitions_revoked(self, revoked: Sequence[object]) -> None:
                    pass

            self._consumer.subscribe([self._topic], listener=Listener())
            return
        wheres = [TopicPartition(self._topic, partition) for partition in partitions]
        self._consumer.assign(wheres)
        if from_end:
            self._consumer.seek_to_end(*wheres)
        else:
            self._consumer.seek_to_beginning(*wheres)
        for where in wheres:
            self._consumer.position(where)
        ready()

    def poll(self) -> Iterable[Record]:
        # kafka-python 3.0 never fetches if a poll ends while its group is being joined.
        seconds = POLL_S if self._has_read else _FIRST_POLL_S
        for records in self._consumer.poll(timeout_ms=int(seconds * 1e3)).values():
            self._has_read = True
            for record in records:
                yield record.partition, record.offset, record.value

    def close(self) -> None:
        self._consumer.close()


def _typed(settings: Mapping[str, str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted names as kafka-python wants them: its names, numbers as numbers."""
    typed: dict[str, Any] = {}
    for dotted, text in settings.items():
        name = dotted.replace(".", "_")
        if isinstance(defaults[name], bool):
            typed[name] = text == "true"
        else:
            typed[name] = int(text) if text.lstrip("-").isdecimal() else text
    return typed
