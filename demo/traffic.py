"""Traffic: a producer and a consumer that run in threads, with a ledger of their records."""

import json
import struct
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from demo.ledger import Ledger, Watch

_RECORD_INTERVAL_SECONDS = 0.01
_POLL_SECONDS = 0.05
_STATISTICS_MS = 200
_WARM_UP_RECORDS = 10  # Of each partition: by then every broker has its connections.
_DEADLINE_SECONDS = 60.0
_SEQUENCE = struct.Struct(">q")

# The mock answers an empty Fetch, also one that carries an error, only after this time. So it is
# part of every recovery; a real broker answers as soon as there is something to say.
_FETCH_WAIT_MS = 10


class TrafficError(Exception):
    """The clients do not get through."""


class Traffic:
    """Records flow from the start of the `with` block to `finish` or to its end.

    All client settings that matter to recovery have their default values, but for
    fetch.wait.max.ms. The producer is idempotent.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.met_addresses: set[str] = set()
        """Every host:port to which a client has made a connection."""
        self.client_errors: list[str] = []
        """The errors that the clients handed to the application."""
        self._ledger = Ledger(partitions)
        self._changed = threading.Condition()
        self._topic = topic
        self._partitions = range(partitions)
        self._bytes: dict[str, int] = {}
        self._statistics: dict[str, int] = {"producer": 0, "consumer": 0}
        self._producing = threading.Event()
        self._consuming = threading.Event()
        self._producer = Producer(
            {**self._settings(bootstrap, "producer"), "enable.idempotence": True}
        )
        self._consumer = Consumer(
            {
                **self._settings(bootstrap, "consumer"),
                "group.id": "demo",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": _FETCH_WAIT_MS,
            }
        )
        self._threads = [
            threading.Thread(target=self._produce),
            threading.Thread(target=self._consume),
        ]

    def __enter__(self) -> Self:
        self._producing.set()
        self._consuming.set()
        self._consumer.assign([TopicPartition(self._topic, p, 0) for p in self._partitions])
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._producing.clear()
        self._consuming.clear()
        for thread in self._threads:
            thread.join()
        self._consumer.close()
        self._producer.purge()
        self._producer.close()

    @property
    def client_bytes(self) -> int:
        """Bytes that both clients have sent, by their last statistics."""
        with self._changed:
            return sum(self._bytes.values())

    def await_flow(self) -> None:
        """Wait until records of every partition arrive.

        :raises TrafficError: they do not arrive.
        """
        if not self._wait(lambda: self._ledger.flowing(_WARM_UP_RECORDS)):
            errors = "; ".join(self.client_errors) or "the clients report no error"
            raise TrafficError(f"no records arrive after {_DEADLINE_SECONDS:.0f} s: {errors}")

    def watch(self, partition: int) -> Watch:
        """Watch for the records of a partition that are produced from now on."""
        with self._changed:
            return self._ledger.watch(partition)

    def await_recovery(self, watch: Watch) -> None:
        """Wait until the watch is done, or for the demo's deadline."""
        self._wait(lambda: watch.done)

    def finish(self) -> Ledger:
        """Produce no more, let everything arrive, and return the final ledger."""
        self._producing.clear()
        self._threads[0].join()
        self._producer.flush(_DEADLINE_SECONDS)
        self._wait(lambda: self._ledger.lost == 0)
        self._await_statistics()
        return self._ledger

    def _settings(self, bootstrap: str, role: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": bootstrap,
            "client.id": f"demo-{role}",
            "statistics.interval.ms": _STATISTICS_MS,
            "stats_cb": lambda text: self._on_statistics(role, text),
            "error_cb": self._on_error,
            "log_level": 0,  # Errors come through the callback; lines would tear the screen.
        }

    def _produce(self) -> None:
        while self._producing.is_set():
            for partition in self._partitions:
                with self._changed:
                    sequence = self._ledger.next_sequence(partition)
                self._producer.produce(
                    self._topic,
                    _SEQUENCE.pack(sequence),
                    partition=partition,
                    on_delivery=self._on_delivery,
                )
            due = time.monotonic() + _RECORD_INTERVAL_SECONDS
            while (left := due - time.monotonic()) > 0:
                self._producer.poll(left)  # It returns early when it has served something.

    def _consume(self) -> None:
        while self._consuming.is_set():
            message = self._consumer.poll(_POLL_SECONDS)
            if message is None:
                continue
            now = time.monotonic()
            error = message.error()
            if error is not None:
                self._on_error(error)
                continue
            with self._changed:
                self._ledger.read(*_place(message), now)
                self._changed.notify_all()

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        now = time.monotonic()
        with self._changed:
            if error is not None:
                self.client_errors.append(f"delivery failed: {error.str()}")
            else:
                self._ledger.acknowledge(*_place(message), now)
            self._changed.notify_all()

    def _on_error(self, error: KafkaError) -> None:
        with self._changed:
            self.client_errors.append(error.str())

    def _on_statistics(self, role: str, text: str) -> None:
        statistics = json.loads(text)
        met = {
            broker["nodename"] for broker in statistics["brokers"].values() if broker["connects"]
        }
        with self._changed:
            self.met_addresses |= met
            self._bytes[role] = statistics["tx_bytes"]
            self._statistics[role] += 1
            self._changed.notify_all()

    def _await_statistics(self) -> None:
        # The next statistics may have been gathered before now, those after them were not.
        with self._changed:
            wanted = {role: count + 2 for role, count in self._statistics.items()}
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while any(self._statistics[role] < count for role, count in wanted.items()):
            if time.monotonic() > deadline:
                raise TrafficError("the clients gave no statistics")
            self._producer.poll(_POLL_SECONDS)

    def _wait(self, condition: Callable[[], bool]) -> bool:
        with self._changed:
            return self._changed.wait_for(condition, _DEADLINE_SECONDS)


def _place(message: Message) -> tuple[int, int]:
    """The partition and the sequence number of a record that was produced or read."""
    partition, value = message.partition(), message.value()
    assert partition is not None
    assert value is not None
    (sequence,) = _SEQUENCE.unpack(value)
    return partition, sequence
