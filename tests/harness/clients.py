"""Producers and consumers of real client libraries, each library in a process of its own.

Every such process speaks the same protocol, so that tests can be written once for all of them.
It reads lines of fields between tabs: ``produce ID name=value...``, the same with ``consume``,
``offsets`` and ``administer``, and ``stop ID``; it ends when its input does. It writes one JSON
object a line:

- ``started``: the producer is ready; the consumer has its partitions and knows its position;
- ``acked`` and ``aborted``: partition, seq, offset (-1 where the broker told none), at, latency_ms;
- ``failed``: partition, seq, error;
- ``consumed``: partition, offset, producer, seq, at, latency_ms (since the record was sent);
- ``end``: partition, offset: where ListOffsets says that it ends;
- ``called``: call: an admin call, once its effect was seen;
- ``done``, or ``crashed`` with its error.

``at`` is in seconds since 1970.
"""

import itertools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.harness import processes
from tests.harness.waiting import TimedOutError, until

Acks = str
Event = Mapping[str, Any]


class ClientError(AssertionError):
    """A client crashed, or its process did."""


class Outcome(NamedTuple):
    """What became of one record that a producer sent."""

    partition: int
    seq: int
    offset: int
    at: float
    latency_ms: float


class Failure(NamedTuple):
    """A record that its producer gave up."""

    partition: int
    seq: int
    error: str


class Consumed(NamedTuple):
    """One record that a consumer got."""

    partition: int
    offset: int
    producer: str
    seq: int
    at: float
    latency_ms: float


@dataclass(frozen=True)
class ProducerSpec:
    """What a producer does; ``settings`` are the client's own, by their dotted names.

    ``rate`` is in records a second over all partitions (0: as fast as it can). By default a move or
    restart meets some requests, and brokers have time for other tests. ``count`` 0 means until
    stopped. With ``transaction`` that many records make a transaction, every third aborted.
    """

    bootstrap: str
    topic: str
    partitions: Sequence[int] = (0,)
    acks: Acks = "all"
    rate: float = 20
    count: int = 0
    size: int = 100
    idempotent: bool = False
    transaction: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)

    def fields(self, name: str) -> dict[str, str]:
        """The fields of the command, for a producer called ``name``."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            "client.id": name,
            "acks": self.acks,
            "enable.idempotence": _truth(self.idempotent or self.transaction > 0),
        }
        if self.transaction:
            settings["transactional.id"] = f"{name}-{self.topic}"
        return {
            "topic": self.topic,
            "partitions": _numbers(self.partitions),
            "rate": f"{self.rate}",
            "count": f"{self.count}",
            "size": f"{self.size}",
            "transaction": f"{self.transaction}",
            **_properties({**settings, **self.settings}),
        }


@dataclass(frozen=True)
class ConsumerSpec:
    """What a consumer reads: as a member of ``group``, or else the partitions assigned to it."""

    bootstrap: str
    topic: str
    partitions: Sequence[int] = (0,)
    group: str | None = None
    from_end: bool = False
    committed_only: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def fields(self, name: str) -> dict[str, str]:
        """The fields of the command, for a consumer called ``name``."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if self.committed_only else "read_uncommitted",
        }
        if self.group is not None:
            settings["group.id"] = self.group
        return {
            "topic": self.topic,
            "partitions": _numbers(self.partitions),
            "from": "end" if self.from_end else "start",
            **_properties({**settings, **self.settings}),
        }


@dataclass(frozen=True)
class OffsetsSpec:
    """Asks again and again where partitions end, until stopped."""

    bootstrap: str
    topic: str
    partitions: Sequence[int] = (0,)

    def fields(self, name: str) -> dict[str, str]:
        """The fields of the command, under the name ``name``."""
        return {
            "topic": self.topic,
            "partitions": _numbers(self.partitions),
            **_properties({"bootstrap.servers": self.bootstrap, "client.id": name}),
        }


@dataclass(frozen=True)
class AdminSpec:
    """Makes a topic of its own, looks at it, changes and removes it."""

    bootstrap: str
    topic: str

    def fields(self, name: str) -> dict[str, str]:
        """The fields of the command, under the name ``name``."""
        return {
            "topic": self.topic,
            "partitions": "0",
            **_properties({"bootstrap.servers": self.bootstrap, "client.id": name}),
        }


class _Run:
    """Something at work in its process."""

    def __init__(self, process: "ClientProcess", name: str) -> None:
        self.name = name
        self._process = process
        self._started = False
        self._done = False
        self._crash: str | None = None

    def wait_started(self) -> Self:
        """Wait until it works."""
        self._wait(lambda: self._started, "has started")
        return self

    def stop(self) -> Self:
        """Let it finish what it has begun and close; returns when it has."""
        self.ask_to_stop()
        return self.wait_done()

    def ask_to_stop(self) -> None:
        """The same, but return at once."""
        self._process.send(["stop", self.name])

    def wait_done(self) -> Self:
        """Wait until it has ended by itself."""
        self._wait(lambda: self._done, "has ended")
        return self

    @property
    def ended(self) -> bool:
        """Whether it has ended well."""
        return self._done

    def take(self, event: Event) -> None:
        """Note an event; called in the thread that reads the process."""
        match event["event"]:
            case "started":
                self._started = True
            case "done":
                self._done = True
            case "crashed":
                self._crash = event["error"]

    def check(self) -> None:
        """Raise ClientError if it crashed, or its process ended."""
        if self._crash is not None:
            raise ClientError(f"{self.name}: {self._crash}\n{self._process.log_tail()}")
        self._process.check()

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        def checked() -> bool:
            self.check()
            return condition()

        try:
            until(checked, f"{self.name} {what}")
        except TimedOutError as late:
            raise TimedOutError(f"{late}\n{self._process.log_tail()}") from None


class ProducerRun(_Run):
    """A producer at work; the lists grow as it reports."""

    def __init__(self, process: "ClientProcess", name: str, spec: ProducerSpec) -> None:
        super().__init__(process, name)
        self.spec = spec
        self.acked: list[Outcome] = []
        self.aborted: list[Outcome] = []
        self.failed: list[Failure] = []
        self.writes_again = process.writes_again

    def take(self, event: Event) -> None:
        super().take(event)
        match event["event"]:
            case "acked":
                self.acked.append(_outcome(event))
            case "aborted":
                self.aborted.append(_outcome(event))
            case "failed":
                self.failed.append(Failure(event["partition"], event["seq"], event["error"]))

    def wait_acked(self, more: int) -> None:
        """Wait until ``more`` records than now are acknowledged."""
        self.wait_acked_in_all(len(self.acked) + more)

    def wait_acked_in_all(self, count: int) -> None:
        """Wait until ``count`` records in all are acknowledged."""
        self._wait(lambda: len(self.acked) >= count, f"has {count} records acknowledged")


class ConsumerRun(_Run):
    """A consumer at work; the list grows as it reports."""

    def __init__(self, process: "ClientProcess", name: str, spec: ConsumerSpec) -> None:
        super().__init__(process, name)
        self.spec = spec
        self.consumed: list[Consumed] = []

    def take(self, event: Event) -> None:
        super().take(event)
        if event["event"] == "consumed":
            self.consumed.append(
                Consumed(
                    event["partition"],
                    event["offset"],
                    event["producer"],
                    event["seq"],
                    event["at"],
                    event["latency_ms"],
                )
            )

    def wait_consumed(self, condition: Callable[[Sequence[Consumed]], bool], what: str) -> None:
        """Wait until what was consumed so far fulfils a condition."""
        self._wait(lambda: condition(self.consumed), f"has consumed {what}")

    def wait_count(self, count: int) -> None:
        """Wait until ``count`` records in all have been consumed."""
        self.wait_consumed(lambda records: len(records) >= count, f"{count} records")


class OffsetsRun(_Run):
    """Asks for the ends of partitions; the list grows as it reports partition and offset."""

    def __init__(self, process: "ClientProcess", name: str, spec: OffsetsSpec) -> None:
        super().__init__(process, name)
        self.spec = spec
        self.ends: list[tuple[int, int]] = []

    def take(self, event: Event) -> None:
        super().take(event)
        if event["event"] == "end":
            self.ends.append((event["partition"], event["offset"]))

    def wait_ends(self, more: int) -> None:
        """Wait until ``more`` ends than now were reported."""
        goal = len(self.ends) + more
        self._wait(lambda: len(self.ends) >= goal, f"got {more} more ends")


class AdminRun(_Run):
    """Admin calls one after the other; the list has those whose effect was seen."""

    def __init__(self, process: "ClientProcess", name: str, spec: AdminSpec) -> None:
        super().__init__(process, name)
        self.spec = spec
        self.called: list[str] = []

    def take(self, event: Event) -> None:
        super().take(event)
        if event["event"] == "called":
            self.called.append(event["call"])


class ClientProcess:
    """A process of one client library, as a context manager; names of its runs are unique."""

    _serial = itertools.count(1)

    def __init__(
        self,
        argv: Sequence[str],
        log: Path,
        environment: dict[str, str] | None = None,
        *,
        writes_again: bool = False,
    ) -> None:
        """Start ``argv``; its standard error goes to ``log``.

        ``writes_again``: its idempotent producers may begin a new producer epoch while they
        produce, and write records again in it (``tests.matrix.doubles``).
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        self.writes_again = writes_again
        self._log = log
        self._runs: dict[str, _Run] = {}
        self._process = processes.start(argv, errors=log, talk=True, environment=environment)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def produce(self, spec: ProducerSpec) -> ProducerRun:
        """Start a producer and wait until it is ready."""
        return self.begin_to_produce(spec).wait_started()

    def begin_to_produce(self, spec: ProducerSpec) -> ProducerRun:
        """Start a producer."""
        name = self._name("producer")
        run = ProducerRun(self, name, spec)
        self._start("produce", run, spec.fields(name))
        return run

    def consume(self, spec: ConsumerSpec) -> ConsumerRun:
        """Start a consumer and wait until it has its partitions."""
        return self.begin_to_consume(spec).wait_started()

    def begin_to_consume(self, spec: ConsumerSpec) -> ConsumerRun:
        """Start a consumer."""
        name = self._name("consumer")
        run = ConsumerRun(self, name, spec)
        self._start("consume", run, spec.fields(name))
        return run

    def ask_offsets(self, spec: OffsetsSpec) -> OffsetsRun:
        """Start asking for the ends of partitions."""
        name = self._name("offsets")
        run = OffsetsRun(self, name, spec)
        self._start("offsets", run, spec.fields(name))
        return run.wait_started()

    def administer(self, spec: AdminSpec) -> AdminRun:
        """Start the admin calls."""
        name = self._name("admin")
        run = AdminRun(self, name, spec)
        self._start("administer", run, spec.fields(name))
        return run

    def send(self, fields: Sequence[str]) -> None:
        """Send a command."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("\t".join(fields) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self.check()
            raise

    @property
    def busy(self) -> bool:
        """Whether anything runs in it, or crashed, or whether it has ended itself."""
        return self._process.poll() is not None or not all(run.ended for run in self._runs.values())

    def check(self) -> None:
        """Raise ClientError if the process has ended."""
        code = self._process.poll()
        if code is not None:
            raise ClientError(f"client process ended with {code}:\n{self.log_tail()}")

    def log_tail(self, lines: int = 40) -> str:
        """The last lines that it wrote to standard error."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def close(self) -> None:
        """End the process with all that still runs in it."""
        processes.end(self._process)
        self._reader.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _name(self, kind: str) -> str:
        return f"{kind}-{next(self._serial)}"

    def _start(self, verb: str, run: _Run, fields: Mapping[str, str]) -> None:
        self._runs[run.name] = run
        self.send([verb, run.name, *(f"{name}={value}" for name, value in fields.items())])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            self._runs[event["id"]].take(event)


def _outcome(event: Event) -> Outcome:
    return Outcome(
        event["partition"], event["seq"], event["offset"], event["at"], event["latency_ms"]
    )


def _properties(settings: Mapping[str, str]) -> dict[str, str]:
    return {f"prop.{name}": value for name, value in settings.items()}


def _numbers(numbers: Sequence[int]) -> str:
    return ",".join(str(number) for number in numbers)


def _truth(value: bool) -> str:
    return "true" if value else "false"
