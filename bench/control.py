"""The control plane at scale: polls of a large cluster, and a storm of leader moves."""

import json
import math
import random
import re
import signal
import subprocess
import sys
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import trio

from bench.cost import cpu_seconds
from bench.fake_cluster import HOST, FakeCluster, Layout, Traffic
from bench.stepped import HOLD
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.poll_plan import FULL_POLL_EVERY
from tests.apis.messages import element, plain, read_response_frame, request_type, response_type
from tests.core import samples
from tests.harness import processes
from tests.harness.maven import PYTHONPATH
from tests.harness.ports import free_ports
from tests.net.messages import FETCH, NOT_LEADER, PRODUCE, api_versions_request

PARTITIONS, BROKERS = 100_000, 100
_EPOCH = 5
#: Topics that the broker behind the route leads, and how many partitions each topic has.
_OWN_TOPICS = 50
_EACH_TOPIC = 100
#: One topic as large as the one that KIP-951 measured with.
_LARGE = 9000
_POLL_MS = 4000
#: Clients of the storm, each with as many partitions of one topic.
CLIENTS = 200
_EACH_CLIENT = _OWN_TOPICS * _EACH_TOPIC // CLIENTS
#: The versions of the fake broker.
_AS_THE_BROKER = {FETCH: 15, PRODUCE: 9}
#: Seconds within which each half of the brokers learns of the moves.
_ODD_HEAR = 0.02
_EVEN_HEAR = 0.04
#: Seconds after which a client asks again that got no hint, and for which it tries.
_BACK_OFF = 0.1
_PATIENCE = 5.0
#: Seconds between two looks at the proxy.
_LOOK = 0.05
_SETTLED = re.compile(
    r'^leader_hints_errors_settled_total\{.*outcome="(\w+)".*\} (\S+)$', re.MULTILINE
)
_MISSED = re.compile(r'^leader_hints_hints_missed_total\{.*reason="(\w+)".*\} (\S+)$', re.MULTILINE)


@dataclass
class Polls:
    """CPU seconds of polls that ask for everything at once, and of polls in slices.

    ``largest``: most partitions in one answer to a poll in slices. ``steps``: milliseconds of CPU
    of the longest step of the event loop, by task. ``view``: bytes that the view takes.
    ``process``: bytes of the process's memory at most.
    """

    whole: list[float] = field(default_factory=list)
    sliced: list[float] = field(default_factory=list)
    largest: int = 0
    steps: dict[str, float] = field(default_factory=dict)
    view: int = 0
    process: int = 0


@dataclass
class Storm:
    """What came of a storm.

    ``hinted``: partitions that got their hint, ``late``: not at their first error, ``wrong``: with
    another leader than the new one; all 0 of clients without hints. ``waits``: milliseconds from
    the request to the response of each response with errors. ``longest_hold``: milliseconds, as the
    proxy has it. ``seconds``: until all clients had their first answer. ``cpu``: seconds of the
    proxy. ``missed``: by reason, as the proxy counts them; ``settled``: by what came of errors that
    wait to be settled.
    """

    moved: int = _OWN_TOPICS * _EACH_TOPIC
    hinted: int = 0
    wrong: int = 0
    late: int = 0
    longest_hold: float = 0.0
    waits: list[float] = field(default_factory=list)
    steps: dict[str, float] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)
    settled: dict[str, int] = field(default_factory=dict)
    traffic: Traffic = field(default_factory=Traffic)
    seconds: float = 0.0
    cpu: float = 0.0


def layout(partitions: int, brokers: int) -> Layout:
    """Return topics of which the first ones are led by broker 1, and all others by the others."""
    own = {f"own-{number:05}": [1] * _EACH_TOPIC for number in range(_OWN_TOPICS)}
    others = range(2, brokers + 1)
    large = {"large": [others[number % len(others)] for number in range(_LARGE)]}
    left = (partitions - _OWN_TOPICS * _EACH_TOPIC - _LARGE) // _EACH_TOPIC
    rest = {
        f"rest-{number:05}": [others[(number + p) % len(others)] for p in range(_EACH_TOPIC)]
        for number in range(left)
    }
    return Layout(own | large | rest, _EPOCH)


def moved(before: Layout, brokers: int) -> Layout:
    """Return the layout in which all that broker 1 led has gone to others."""
    leaders = {
        name: [2 + number % (brokers - 1) if node == 1 else node for number, node in enumerate(of)]
        for name, of in before.leaders.items()
    }
    return Layout(leaders, _EPOCH + 1)


def view_bytes(of: Layout) -> int:
    """Return how much memory a view takes that knows all of ``of``."""
    view = LeaderView("fake")
    tracemalloc.start()
    for name, leaders in of.leaders.items():
        led = tuple(Led(number, node, of.epoch) for number, node in enumerate(leaders))
        view.learn(TopicMetadata(0, name, of.ids[name], led), None, poll=True)
        del led
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken


class _Proxy:
    """A proxy before broker 1 of a fake cluster, whose steps are timed."""

    def __init__(
        self, cluster: FakeCluster, folder: Path, *, settle: bool = False, **subscription: int
    ) -> None:
        self.listen, self.admin = free_ports(2)
        cluster.advertised[1] = self.listen
        settings = {
            "routes": [
                {"listen": f"{HOST}:{self.listen}", "upstream": f"{HOST}:{cluster.ports[1]}"}
            ],
            "admin": f"{HOST}:{self.admin}",
            "subscription": subscription,
            "hold": {"settle": settle},
        }
        self._file = folder / "steps.json"
        self._argv = [sys.executable, "-m", "bench.stepped", str(self._file), json.dumps(settings)]
        self._log = folder / "proxy.log"
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run it in the block."""
        self._process = processes.start(
            self._argv, output=self._log, environment={"PYTHONPATH": PYTHONPATH}
        )
        try:
            yield
        finally:
            code = processes.end(self._process, grace_s=10.0)
        assert code == 0, self._log.read_text()

    async def get(self, path: str) -> str:
        """Return what the admin server answers; "" where it does not listen yet."""
        try:
            stream = await trio.open_tcp_stream(HOST, self.admin)
        except OSError:
            return ""
        async with stream:
            await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            answer = b""
            while b"\r\n\r\n" not in answer or len(answer) < _length(answer):
                answer += await stream.receive_some()
        return answer.decode()

    async def metric(self, name: str) -> float:
        """Return a metric, summed over its labels; 0 while it is not there."""
        lines = (await self.get("/metrics")).splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    async def counted(self, series: re.Pattern[str]) -> dict[str, int]:
        """Return how many errors a metric counts, by its label."""
        counted: Counter[str] = Counter()
        for label, count in series.findall(await self.get("/metrics")):
            counted[label] += int(float(count))
        return {label: count for label, count in counted.items() if count}

    async def knows(self, partitions: int) -> None:
        """Wait until it knows so many."""
        heard = 0.0
        while heard < partitions:
            await trio.sleep(_LOOK)
            heard = await self.metric("leader_hints_partitions")

    async def steps(self) -> dict[str, float]:
        """Return the longest steps since the last time."""
        self._file.unlink(missing_ok=True)
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR1)
        await _until(self._file.exists)
        steps: dict[str, float] = json.loads(self._file.read_text())
        return steps


async def _until(condition: Callable[[], bool]) -> None:
    # What another process does tells no event here.
    while not condition():  # noqa: ASYNC110
        await trio.sleep(_LOOK)


def _length(answer: bytes) -> int:
    head, _, _ = answer.partition(b"\r\n\r\n")
    (length,) = (
        int(line.split(b":")[1])
        for line in head.splitlines()
        if line.lower().startswith(b"content-length")
    )
    return len(head) + 4 + length


async def measure_polls(partitions: int, brokers: int, polls: int) -> Polls:
    """Have a proxy poll a cluster, while its metrics and status are read every second."""
    result = Polls(view=view_bytes(layout(partitions, brokers)))
    cluster = FakeCluster(brokers, layout(partitions, brokers))
    marks: list[float] = []
    enough = trio.Event()
    with tempfile.TemporaryDirectory(prefix="leader-hints-control-") as folder:
        proxy = _Proxy(cluster, Path(folder), poll_interval_ms=_POLL_MS)

        def polled() -> None:
            marks.append(cpu_seconds(proxy.pid))
            if len(marks) > polls:
                enough.set()

        cluster.polled = polled
        async with trio.open_nursery() as nursery:
            await nursery.start(cluster.run)
            with proxy.running():
                nursery.start_soon(_watch, proxy)
                with trio.fail_after(20 + 3 * polls * _POLL_MS / 1000):
                    await enough.wait()
                assert await proxy.metric("leader_hints_partitions") == partitions
                result.steps = await proxy.steps()
                result.process = _peak(proxy.pid)
                nursery.cancel_scope.cancel()
    took = [after - before for before, after in pairwise(marks)]
    result.whole = took[::FULL_POLL_EVERY]
    result.sliced = [seconds for number, seconds in enumerate(took) if number % FULL_POLL_EVERY]
    result.largest = cluster.largest_of_many
    return result


async def _watch(proxy: _Proxy) -> None:
    while True:
        for path in ("/metrics", "/status"):
            await proxy.get(path)
        await trio.sleep(1)


def _peak(pid: int) -> int:
    (kilobytes,) = (
        line.split()[1]
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    return int(kilobytes) * 1024


async def measure_storm(partitions: int, brokers: int, *, settle: bool) -> Storm:
    """Move all that broker 1 leads at once, under clients that produce to it and fetch from it.

    ``settle``: they use no hints, and their errors wait until all brokers name the new leaders.
    """
    before = layout(partitions, brokers)
    after = moved(before, brokers)
    # Whatever can be made before is: clients and brokers share a process, and what one of them is
    # busy with keeps the others from answering.
    for layout_of in (before, after):
        assert layout_of.shown
    cluster, storm = FakeCluster(brokers, before), Storm()
    clients = [_Client(number, before, hints=not settle) for number in range(CLIENTS)]
    cluster.answers = {client.name: client.refusal() for client in clients}
    with tempfile.TemporaryDirectory(prefix="leader-hints-control-") as folder:
        proxy = _Proxy(cluster, Path(folder), settle=settle, poll_interval_ms=3_600_000)
        async with trio.open_nursery() as nursery:
            await nursery.start(cluster.run)
            with proxy.running(), trio.fail_after(120):
                await proxy.knows(partitions)
                async with trio.open_nursery() as joining:
                    for client in clients:
                        joining.start_soon(client.join, proxy.listen)
                await proxy.steps()
                cluster.traffic = storm.traffic
                began, cpu = trio.current_time(), cpu_seconds(proxy.pid)
                answered = _Countdown(len(clients))
                async with trio.open_nursery() as storming:
                    cluster.layouts[1] = after
                    for node in range(2, brokers + 1):
                        storming.start_soon(_hear, cluster, node, after)
                    for client in clients:
                        storming.start_soon(client.storm, after, storm, answered)
                storm.seconds = answered.over_at - began
                storm.cpu = cpu_seconds(proxy.pid) - cpu
                storm.steps = await proxy.steps()
                storm.missed = await proxy.counted(_MISSED)
                storm.settled = await proxy.counted(_SETTLED)
                storm.longest_hold = storm.steps.pop(HOLD, 0.0)
                nursery.cancel_scope.cancel()
    return storm


async def _hear(cluster: FakeCluster, node: int, after: Layout) -> None:
    await trio.sleep(random.uniform(0, _ODD_HEAR if node % 2 else _EVEN_HEAR))
    cluster.layouts[node] = after


class _Countdown:
    """Lets all go on when so many have come, which is noted as ``over_at``."""

    def __init__(self, missing: int) -> None:
        self._missing = missing
        self._all = trio.Event()
        self.over_at = 0.0

    async def one_more(self) -> None:
        """Come, and wait for the others."""
        self._missing -= 1
        if not self._missing:
            self.over_at = trio.current_time()
            self._all.set()
        await self._all.wait()


class _Client:
    """A Java client that works on some partitions of one topic: it produces, or it fetches.

    ``hints``: it uses them, as from 3.7 on.
    """

    def __init__(self, number: int, before: Layout, *, hints: bool) -> None:
        self.name = f"client-{number}"
        topic, first = divmod(number * _EACH_CLIENT, _EACH_TOPIC)
        self._topic = f"own-{topic:05}"
        self._id = before.ids[self._topic]
        self._partitions = {*range(first, first + _EACH_CLIENT)}
        self._key = FETCH if number % 2 else PRODUCE
        self._software = "3.9.1" if hints else "3.6.2"
        self._version = ({FETCH: 16, PRODUCE: 10} if hints else _AS_THE_BROKER)[self._key]
        self._stream: trio.SocketStream | None = None
        self._asks = b""

    def refusal(self) -> bytes:
        """The broker's answer when it leads none of them any more."""
        errors = dict.fromkeys(sorted(self._partitions), NOT_LEADER)
        if self._key == PRODUCE:
            return samples.produce_answer(_AS_THE_BROKER[PRODUCE], 0, errors, topic=self._topic)
        return samples.fetch_answer(
            _AS_THE_BROKER[FETCH], 0, [(self._id, p, e, b"") for p, e in errors.items()]
        )

    async def join(self, port: int) -> None:
        """Connect, and say who this is."""
        self._stream = await trio.open_tcp_stream(HOST, port)
        self._asks = self._request()
        await self._ask(api_versions_request(1, self._software))

    async def storm(self, after: Layout, storm: Storm, answered: "_Countdown") -> None:
        """Ask until each partition has its hint; look at answers when all have their first one."""
        await trio.sleep(random.uniform(0, 0.05))
        end, late = math.inf, False
        while self._partitions and trio.current_time() < end:
            began = trio.current_time()
            answer = await self._ask(self._asks)
            storm.waits.append((trio.current_time() - began) * 1000)
            if not late:
                await answered.one_more()
                end = trio.current_time() + _PATIENCE
            if self._version == _AS_THE_BROKER[self._key]:
                # It learns the new leaders by Metadata, and does not come back.
                return
            # The fake broker always refuses all of them: what has its hint is not looked at again.
            for partition, leader in _hints(self._key, self._version, answer):
                if partition in self._partitions and leader >= 0:
                    self._partitions.discard(partition)
                    storm.hinted += 1
                    storm.late += late
                    storm.wrong += leader != after.leaders[self._topic][partition]
            late = True
            if self._partitions:
                self._asks = self._request()
                await trio.sleep(_BACK_OFF)

    def _request(self) -> bytes:
        if self._key == FETCH:
            asked: dict[tuple[Topic, int], int] = {
                (self._id, partition): _EPOCH for partition in sorted(self._partitions)
            }
            return samples.fetch_request(self._version, 2, asked, client_id=self.name)
        topic = element(request_type(PRODUCE, self._version), "topic_data")
        data = element(topic, "partition_data")
        return samples.request(
            PRODUCE,
            self._version,
            2,
            self.name,
            acks=1,
            topic_data=(
                plain(
                    topic,
                    name=self._topic,
                    partition_data=tuple(
                        plain(data, index=partition, records=samples.NUMBERED)
                        for partition in sorted(self._partitions)
                    ),
                ),
            ),
        )

    async def _ask(self, request: bytes) -> bytes:
        assert self._stream is not None
        await self._stream.send_all(request)
        answer = b""
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4]):
            data = await self._stream.receive_some()
            assert data, f"the link of {self.name} was closed"
            answer += data
        return answer


def _hints(key: int, version: int, frame: bytes) -> Iterator[tuple[int, int]]:
    """Iterate over partition and hinted leader (-1: none) of a response."""
    answer: Any = read_response_frame(response_type(key, version), frame)
    for topic in answer.responses:
        for partition in topic.partition_responses if key == PRODUCE else topic.partitions:
            number = partition.index if key == PRODUCE else partition.partition_index
            yield int(number), int(partition.current_leader.leader_id)


def polls(partitions: int, brokers: int, count: int) -> Polls:
    """See :func:`measure_polls`."""
    return trio.run(partial(measure_polls, partitions, brokers, count))


def storm(partitions: int, brokers: int, *, settle: bool = False) -> Storm:
    """See :func:`measure_storm`."""
    return trio.run(partial(measure_storm, partitions, brokers, settle=settle))
