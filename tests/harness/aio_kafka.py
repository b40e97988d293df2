"""aiokafka's clients, as the worker drives them: each with an event loop in a thread of its own."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.harness.python_client import CLOSE_S, POLL_S, Clients, Delivered, Record

T = TypeVar("T")

_NO_CONTROLLER = 41
_AGAIN_S = 0.1
_STOP_S = 20.0


class _Loop:
    """An event loop that runs until it is closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in the loop and wait for the result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class AioKafkaProducer:
    """aiokafka's producer."""

    error: ClassVar[type[Exception]] = KafkaError

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        self._loop = _Loop()
        self._producer = self._loop.run(self._open(_typed(settings)))

    async def _open(self, settings: dict[str, Any]) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(**settings)
        await producer.start()
        return producer

    def send(self, partition: int, key: bytes, value: bytes, delivered: Delivered) -> None:
        self._loop.run(self._send(partition, key, value, delivered))

    async def _send(self, partition: int, key: bytes, value: bytes, delivered: Delivered) -> None:
        future = await self._producer.send(self._topic, value, key, partition=partition)
        future.add_done_callback(lambda done: _tell(done, delivered))

    def flush(self) -> None:
        self._loop.run(asyncio.wait_for(self._producer.flush(), CLOSE_S))

    def begin_transaction(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def commit_transaction(self) -> None:
        self._loop.run(self._producer.commit_transaction())

    def abort_transaction(self) -> None:
        self._loop.run(self._producer.abort_transaction())

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        self._loop.run(self._producer.stop())
        self._loop.close()


class AioKafkaConsumer:
    """aiokafka's consumer."""

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        self._grouped = "group.id" in settings
        self._loop = _Loop()
        own = {} if self._grouped else {"enable.auto.commit": "false"}
        self._consumer = self._loop.run(self._open(_typed(own | settings)))

    async def _open(self, settings: dict[str, Any]) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(**settings)
        await consumer.start()
        return consumer

    def start(self, partitions: Sequence[int], from_end: bool, ready: Callable[[], None]) -> None:
        self._loop.run(self._start(partitions, from_end, ready))

    async def _start(
        self, partitions: Sequence[int], from_end: bool, ready: Callable[[], None]
    ) -> None:
        if self._grouped:

            class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
                async def on_partitions_assigned(self, assigned: Collection[object]) -> None:
                    if assigned:
                        ready()

                async def on_partitions_revoked(self, revoked: Collection[object]) -> None:
                    pass

            self._consumer.subscribe([self._topic], listener=Listener())
            return
        wheres = [TopicPartition(self._topic, partition) for partition in partitions]
        self._consumer.assign(wheres)
        if from_end:
            await self._consumer.seek_to_end(*wheres)
        else:
            await self._consumer.seek_to_beginning(*wheres)
        for where in wheres:
            await self._consumer.position(where)
        ready()

    def poll(self) -> Iterable[Record]:
        polled = self._loop.run(self._consumer.getmany(timeout_ms=int(POLL_S * 1e3)))
        for records in polled.values():
            for record in records:
                yield record.partition, record.offset, record.value

    def close(self) -> None:
        self._loop.run(self._stop())
        self._loop.close()

    async def _stop(self) -> None:
        # Where the coordinator is not known any more, aiokafka 0.14 tries its last commit for ever:
        # it looks for none while it stops (`GroupCoordinator.commit_offsets`). The loop ends it.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._consumer.stop()), _STOP_S)


class AioKafkaOffsets:
    """Asks by aiokafka's consumer where partitions end."""

    error: ClassVar[type[Exception]] = KafkaError

    def __init__(self, topic: str, settings: dict[str, str]) -> None:
        self._topic = topic
        self._loop = _Loop()
        self._consumer = self._loop.run(self._open(_typed(settings)))

    async def _open(self, settings: dict[str, Any]) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(**settings)
        await consumer.start()
        return consumer

    def ends(self, partitions: Sequence[int]) -> Mapping[int, int]:
        wheres = [TopicPartition(self._topic, partition) for partition in partitions]
        ends = self._loop.run(self._consumer.end_offsets(wheres))
        return {where.partition: offset for where, offset in ends.items()}

    def close(self) -> None:
        self._loop.run(self._consumer.stop())
        self._loop.close()


class AioKafkaAdmin:
    """aiokafka's admin client."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._loop = _Loop()
        self._admin = self._loop.run(self._open(_typed(settings)))

    async def _open(self, settings: dict[str, Any]) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(**settings)
        await admin.start()
        return admin

    def create(self, topic: str, replicas: int) -> None:
        wanted = NewTopic(topic, 1, replicas)
        self._change(lambda: self._admin.create_topics([wanted]), "topic_errors")

    def topics(self) -> Collection[str]:
        return set(self._loop.run(self._admin.list_topics()))

    def partitions(self, topic: str) -> int:
        (described,) = self._loop.run(self._admin.describe_topics([topic]))
        return len(described["partitions"])

    def grow(self, topic: str, partitions: int) -> None:
        wanted = {topic: NewPartitions(partitions)}
        self._change(lambda: self._admin.create_partitions(wanted), "topic_errors")

    def settings(self, topic: str) -> Collection[str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._loop.run(self._admin.describe_configs([resource]))
        ((*_, entries),) = answer.resources
        return {name for name, *_ in entries}

    def delete(self, topic: str) -> None:
        self._change(lambda: self._admin.delete_topics([topic]), "topic_error_codes")

    def close(self) -> None:
        self._loop.run(self._admin.close())
        self._loop.close()

    def _change(self, ask: Callable[[], Coroutine[Any, Any, Any]], errors: str) -> None:
        # aiokafka asks any broker and hands back what it says, also that another one controls.
        while True:
            ((_, code, *_),) = getattr(self._loop.run(ask()), errors)
            if code != _NO_CONTROLLER:
                break
            time.sleep(_AGAIN_S)
        assert code == 0, f"refused with {code}"


def _tell(done: "asyncio.Future[Any]", delivered: Delivered) -> None:
    error = done.exception()
    if error is not None:
        delivered(-1, repr(error))
    else:
        # With acks=0 there is no metadata.
        delivered(-1 if done.result() is None else done.result().offset, None)


def _typed(settings: Mapping[str, str]) -> dict[str, Any]:
    """Settings by dotted names as aiokafka wants them: its names, numbers and truths as such."""
    values: dict[str, Any] = {"true": True, "false": False}
    return {
        dotted.replace(".", "_"): int(text) if text.isdecimal() else values.get(text, text)
        for dotted, text in settings.items()
    }


CLIENTS = Clients(AioKafkaProducer, AioKafkaConsumer, AioKafkaOffsets, AioKafkaAdmin)
