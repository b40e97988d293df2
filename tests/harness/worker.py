"""Producers and consumers of the Python client libraries, in a process of their own.

Run as ``python -m tests.harness.worker LIBRARY``; ``clients.py`` has the protocol. In a process
of its own, because librdkafka is C code and kafka-python would share the interpreter's lock with
the relays and readers of the tests.
"""

import importlib
import itertools
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from tests.harness.python_client import (
    AIOKAFKA,
    CONFLUENT,
    KAFKA_PYTHON,
    AdminClient,
    Clients,
    ConsumerClient,
    Library,
    OffsetsClient,
    ProducerClient,
)

# Imported by name: in its process only the one library is there.
_MODULES: Mapping[Library, str] = {
    AIOKAFKA: "tests.harness.aio_kafka",
    CONFLUENT: "tests.harness.confluent",
    KAFKA_PYTHON: "tests.harness.kafka_python",
}
_ABORT_EVERY = 3
_ASK_EVERY_S = 0.02
_LOOK_EVERY_S = 0.1
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
        #: Partition and seq of what the client has reported no outcome of.
        self._open: set[tuple[int, int]] = set()

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
        # A client that forgets a record is no harness that loses what it reported.
        assert not self._open, f"the client reported no outcome of {sorted(self._open)[:5]}"

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

        def delivered(offset: int, error: str | None) -> None:
            self._open.remove((partition, seq))
            outcome(partition, seq, offset, at, error)

        self._open.add((partition, seq))
        self._producer.send(
            partition, f"{self.name}-{partition}".encode(), text.encode(), delivered
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


class OffsetsRun(Run):
    """Asks again and again where partitions end."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, str],
        make: Callable[[str, dict[str, str]], OffsetsClient],
    ) -> None:
        super().__init__(name, options)
        self._make = make

    def work(self) -> None:
        client = self._make(self.topic, self.settings)
        self.report("started")
        while not self.stopping.wait(_ASK_EVERY_S):
            try:
                ends = client.ends(self.partitions)
            except client.error as error:
                # Some libraries leave it to their callers to ask again.
                print("no offsets:", error, file=sys.stderr)
                continue
            for partition, offset in ends.items():
                self.report("end", partition=partition, offset=offset)
        client.close()


class AdminRun(Run):
    """Admin calls on a topic of its own, each followed by a look at its effect."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, str],
        make: Callable[[dict[str, str]], AdminClient],
    ) -> None:
        super().__init__(name, options)
        self._make = make

    def work(self) -> None:
        client = self._make(self.settings)
        client.create(self.topic, 3)
        self._see("create", lambda: self.topic in client.topics())
        self._see("describe", lambda: client.partitions(self.topic) == 1)
        client.grow(self.topic, 2)
        self._see("grow", lambda: client.partitions(self.topic) == 2)
        self._see("settings", lambda: "min.insync.replicas" in client.settings(self.topic))
        client.delete(self.topic)
        self._see("delete", lambda: self.topic not in client.topics())
        client.close()

    def _see(self, call: str, effect: Callable[[], bool]) -> None:
        # Brokers learn of each other's changes a moment later; the harness has the deadline.
        while not effect():
            time.sleep(_LOOK_EVERY_S)
        self.report("called", call=call)


def main() -> None:
    """Serve commands until the input ends."""
    clients: Clients = importlib.import_module(_MODULES[sys.argv[1]]).CLIENTS
    makers: Mapping[str, Callable[[str, Mapping[str, str]], Run]] = {
        "produce": lambda name, options: ProducerRun(name, options, clients.producer),
        "consume": lambda name, options: ConsumerRun(name, options, clients.consumer),
        "offsets": lambda name, options: OffsetsRun(name, options, clients.offsets),
        "administer": lambda name, options: AdminRun(name, options, clients.admin),
    }
    runs: dict[str, Run] = {}
    for line in sys.stdin:
        verb, name, *fields = line.rstrip("\n").split("\t")
        if verb == "stop":
            runs.pop(name).stopping.set()
        else:
            runs[name] = makers[verb](name, dict(field.split("=", 1) for field in fields))
            runs[name].start()


if __name__ == "__main__":
    main()
