"""Producers and consumers of the Python client libraries, in a process of their own.

Run as ``python -m tests.harness.worker LIBRARY``; ``clients.py`` has the protocol. In a process
of its own, because librdkafka is C code and kafka-python would share the interpreter's lock with
the relays and readers of the tests.
"""

import itertools
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from tests.harness.python_client import CONFLUENT, ConsumerClient, ProducerClient

_ABORT_EVERY = 3
_output = threading.Lock()


class Run(threading.Thread):
    """A producer or consumer at work in a thread of its own, until it is told to stop."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name=name, daemon=True)
        self.options = options
        self.stopping = threading.Event()
        self.topic = options["topic"]
        self.partitions = [int(number) for number in options["partitions"].split(",")]
        self.settings = {
            name.removeprefix("prop."): value
            for name, value in options.items()
            if name.startswith("prop.")
        }

    def run(self) -> None:
        """Work and report how it ended."""
        try:
            self.work()
        except BaseException as error:
            traceback.print_exc()
            self.report("crashed", error=repr(error))
        else:
            self.report("done")

    def work(self) -> None:
        """What the thread is for."""
        raise NotImplementedError

    def report(self, event: str, **fields: Any) -> None:
        """Write an event for the harness."""
        with _output:
            print(json.dumps({"id": self.name, "event": event, **fields}), flush=True)


class ProducerRun(Run):
    """Sends numbered records to partitions in turn at a steady rate and reports each outcome."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, str],
        make: Callable[[str, dict[str, str]], ProducerClient],
    ) -> None:
        super().__init__(name, options)
        self._make = make
        self._rate = float(options["rate"])
        self._count = float(options["count"])
        self._size = int(options["size"])
        self._transaction = int(options["transaction"])
        self._next = dict.fromkeys(self.partitions, 0)
        self._sent = 0

    def work(self) -> None:
        self._producer = self._make(self.topic, self.settings)
        self.report("started")
        self._began = time.monotonic()
        if self._transaction:
            self._send_transactions()
        else:
            while self._wants_more():
                self._pace()
                self._send(self._report_outcome)
        self._producer.flush()
        self._producer.close()

    def _send_transactions(self) -> None:
        for number in itertools.count(1):
            if not self._wants_more():
                return
            self._send_transaction(commits=number % _ABORT_EVERY != 0)

    def _send_transaction(self, commits: bool) -> None:
        outcomes: list[tuple[int, int, int, float]] = []
        errors: list[str] = []

        def collect(partition: int, seq: int, offset: int, at: float, error: str | None) -> None:
            outcomes.append((partition, seq, offset, at))
            if error is not None:
                errors.append(error)

        try:
            self._producer.begin_transaction()
            for _ in range(self._transaction):
                self._pace()
                self._send(collect)
            self._producer.flush()
            if commits and not errors:
                self._producer.commit_transaction()
        except self._producer.error as error:
            errors.append(str(error))
        if errors:
            print("transaction aborted:", errors, file=sys.stderr)
        committed = commits and not errors
        if not committed:
            # After an error that does not allow it, this fails too, and so does the run.
            self._producer.abort_transaction()
        for outcome in outcomes:
            self._report("acked" if committed else "aborted", *outcome)

    def _wants_more(self) -> bool:
        return not self.stopping.is_set() and (self._count == 0 or self._sent < self._count)

    def _pace(self) -> None:
        if self._rate > 0:
            left = self._began + self._sent / self._rate - time.monotonic()
            if left > 0:
                self._producer.wait(left)

    def _send(self, outcome: Callable[[int, int, int, float, str | None], None]) -> None:
        partition = self.partitions[self._sent % len(self.partitions)]
        seq = self._next[partition]
        self._sent += 1
        self._next[partition] += 1
        at = time.time()
        text = f"{self.name}|{partition}|{seq}|{at:.6f}|".ljust(self._size, "x")
        self._producer.send(
            partition,
            f"{self.name}-{partition}".encode(),
            text.encode(),
            lambda offset, error: outcome(partition, seq, offset, at, error),
        )

    def _report_outcome(
        self, partition: int, seq: int, offset: int, at: float, error: str | None
    ) -> None:
        if error is None:
            self._report("acked", partition, seq, offset, at)
        else:
            self.report("failed", partition=partition, seq=seq, error=error)

    def _report(self, event: str, partition: int, seq: int, offset: int, sent_at: float) -> None:
        now = time.time()
        self.report(
            event,
            partition=partition,
            seq=seq,
            offset=offset,
            at=now,
            latency_ms=(now - sent_at) * 1e3,
        )


class ConsumerRun(Run):
    """Reads a topic and reports each record."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, str],
        make: Callable[[str, dict[str, str]], ConsumerClient],
    ) -> None:
        super().__init__(name, options)
        self._make = make

    def work(self) -> None:
        consumer = self._make(self.topic, self.settings)
        from_end = self.options["from"] == "end"
        consumer.start(self.partitions, from_end, lambda: self.report("started"))
        while not self.stopping.is_set():
            for partition, offset, value in consumer.poll():
                self._report(partition, offset, value)
        consumer.close()

    def _report(self, partition: int, offset: int, value: bytes) -> None:
        producer, _, seq, sent_at, _ = value.decode().split("|")
        now = time.time()
        self.report(
            "consumed",
            partition=partition,
            offset=offset,
            producer=producer,
            seq=int(seq),
            at=now,
            latency_ms=(now - float(sent_at)) * 1e3,
        )


def main() -> None:
    """Serve commands until the input ends."""
    producer: Callable[[str, dict[str, str]], ProducerClient]
    consumer: Callable[[str, dict[str, str]], ConsumerClient]
    if sys.argv[1] == CONFLUENT:
        from tests.harness.confluent import ConfluentConsumer, ConfluentProducer

        producer, consumer = ConfluentProducer, ConfluentConsumer
    else:
        from tests.harness.kafka_python import KafkaPythonConsumer, KafkaPythonProducer

        producer, consumer = KafkaPythonProducer, KafkaPythonConsumer
    runs: dict[str, Run] = {}
    for line in sys.stdin:
        verb, name, *fields = line.rstrip("\n").split("\t")
        options = dict(field.split("=", 1) for field in fields)
        if verb == "stop":
            runs.pop(name).stopping.set()
        elif verb == "produce":
            runs[name] = ProducerRun(name, options, producer)
            runs[name].start()
        else:
            runs[name] = ConsumerRun(name, options, consumer)
            runs[name].start()


if __name__ == "__main__":
    main()
