"""kafka-python's clients, as the worker drives them; from 2.0 on."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import kafka
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import KafkaError

from tests.harness.python_client import CLOSE_S, POLL_S, Clients, Delivered, Record

# From 3.0 on the admin client takes and gives plain dictionaries.
_PLAIN = int(kafka.__version__.split(".")[0]) >= 3

_ASK_BRIEFLY = {"timeout_ms": 1000} if _PLAIN else {}
_FIRST_POLL_S = 30.0
# What an older version without the setting does anyway.
_ALWAYS_SO = ("false", "read_uncommitted")


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


class KafkaPythonOffsets:
    """Asks by kafka-python's consumer where partitions end."""

    error: ClassVar[type[Exception]] = KafkaError

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        self._settings = _typed(settings, KafkaConsumer.DEFAULT_CONFIG)
        self._consumer = KafkaConsumer(**self._settings)

    def ends(self, partitions: Sequence[int]) -> Mapping[int, int]:
        wheres = [TopicPartition(self._topic, partition) for partition in partitions]
        try:
            ends = self._consumer.end_offsets(wheres, **_ASK_BRIEFLY)
        except KafkaError:
            # 3.0 goes on asking the old leader, without Metadata: only a new one asks the next.
            self._consumer.close()
            self._consumer = KafkaConsumer(**self._settings)
            raise
        return {where.partition: offset for where, offset in ends.items()}

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonAdmin:
    """kafka-python's admin client."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._admin = KafkaAdminClient(**_typed(settings, KafkaAdminClient.DEFAULT_CONFIG))

    def create(self, topic: str, replicas: int) -> None:
        if _PLAIN:
            wanted = {"num_partitions": 1, "replication_factor": replicas}
            self._admin.create_topics({topic: wanted})
        else:
            self._admin.create_topics([kafka.admin.NewTopic(topic, 1, replicas)])

    def topics(self) -> Collection[str]:
        return set(self._admin.list_topics())

    def partitions(self, topic: str) -> int:
        (described,) = self._admin.describe_topics([topic])
        return len(described["partitions"])

    def grow(self, topic: str, partitions: int) -> None:
        wanted = partitions if _PLAIN else kafka.admin.NewPartitions(partitions)
        self._admin.create_partitions({topic: wanted})

    def settings(self, topic: str) -> Collection[str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        if _PLAIN:
            described = self._admin.describe_configs([resource], config_filter="all")
            return set(described["topic"][topic])
        (answer,) = self._admin.describe_configs([resource])
        ((*_, entries),) = answer.resources
        return {name for name, *_ in entries}

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def close(self) -> None:
        self._admin.close()


def _typed(settings: Mapping[str, str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted names as kafka-python wants them: its names, numbers as numbers."""
    typed: dict[str, Any] = {}
    for dotted, text in settings.items():
        name = dotted.replace(".", "_")
        if name not in defaults and text in _ALWAYS_SO:
            continue
        if isinstance(defaults[name], bool):
            typed[name] = text == "true"
        else:
            typed[name] = int(text) if text.lstrip("-").isdecimal() else text
    return typed


CLIENTS = Clients(KafkaPythonProducer, KafkaPythonConsumer, KafkaPythonOffsets, KafkaPythonAdmin)
