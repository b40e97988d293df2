"""Memory of the proxy's process: idle links, long polls, and slow readers of large responses."""

import resource
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio

from bench.fake_cluster import HOST, FakeCluster, Layout
from leader_hints.apis.fetch_response import Topic
from tests.core import samples
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyProcess
from tests.net.messages import NOT_LEADER, api_versions_request

_TOPIC = "t"
_LINKS = 1000
_CONSUMERS = 50
_LARGE = 50 * 1024 * 1024
#: Just below what a link keeps of one response: it is kept, as it has an error at its end.
_KEPT = 4_000_000
#: What a slow reader takes at a time, how often, and for how many seconds before it leaves.
_SIP = 16_384
_PAUSE = 0.02
_SECONDS = 10.0


@dataclass(frozen=True)
class Memory:
    """Bytes of anonymous memory.

    ``idle_link``: for each idle link beyond the first. ``long_polls``: of 1000 links in a long poll
    above one. ``growth``: most that 50 consumers made of it, half of which read slowly.
    """

    idle_link: float
    long_polls: int
    growth: int


def measure() -> Memory:
    """Measure all three, each on a process of its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return trio.run(_measure)


async def _measure() -> Memory:
    idle = await _grown(_LINKS, None)
    polls = await _grown(_LINKS, b"")
    growth = await _peak_growth()
    return Memory(idle / _LINKS, polls, growth)


class _Scene:
    """A fake broker, a proxy before it, and clients."""

    def __init__(self, folder: Path, nursery: trio.Nursery) -> None:
        self.cluster = FakeCluster(1, Layout({_TOPIC: [1]}, 1))
        (self.listen,) = free_ports(1)
        self.cluster.advertised[1] = self.listen
        route = (HOST, self.listen), (HOST, self.cluster.ports[1])
        self.proxy = ProxyProcess([route], folder / "proxy.log", arguments=["--log-level", "info"])
        self._nursery = nursery

    async def start(self) -> None:
        """Wait until the proxy knows its cluster."""
        await self._nursery.start(self.cluster.run)
        known = 0.0
        while not known:
            known = await trio.to_thread.run_sync(self.proxy.metric, "leader_hints_partitions")
            await trio.sleep(0.05)

    async def client(self, name: str, answer: bytes | None) -> trio.SocketStream:
        """Make a link; have it fetch, unless ``answer`` is ``None``: of "" there is none."""
        stream = await trio.open_tcp_stream(HOST, self.listen)
        await stream.send_all(api_versions_request(1))
        await stream.receive_some()
        if answer is not None:
            self.cluster.answers[name] = answer
            topic = self.cluster.layouts[1].ids[_TOPIC]
            asked: dict[tuple[Topic, int], int] = {(topic, number): 1 for number in range(10)}
            await stream.send_all(samples.fetch_request(16, 2, asked, client_id=name))
        return stream

    def memory(self, of: str) -> int:
        """Return bytes of the proxy's memory: RssAnon, or VmHWM, the most so far."""
        lines = Path(f"/proc/{self.proxy.pid}/status").read_text().splitlines()
        (kilobytes,) = (line.split()[1] for line in lines if line.startswith(of))
        return int(kilobytes) * 1024


async def _grown(links: int, answer: bytes | None) -> int:
    """Return by how much ``links`` links more than one make the process grow."""
    with tempfile.TemporaryDirectory(prefix="leader-hints-memory-") as folder:
        async with trio.open_nursery() as nursery:
            scene = _Scene(Path(folder), nursery)
            with scene.proxy:
                await scene.start()
                streams = [await scene.client("first", answer)]
                before = await _settled(scene)
                streams += [
                    await scene.client(f"client-{number}", answer) for number in range(links)
                ]
                grown = await _settled(scene) - before
                for stream in streams:
                    await stream.aclose()
            nursery.cancel_scope.cancel()
    return grown


async def _settled(scene: _Scene) -> int:
    """Return the memory once all that was sent has come."""
    await trio.to_thread.run_sync(scene.proxy.metric, "leader_hints_links_open")
    await trio.sleep(0.5)
    return scene.memory("RssAnon")


async def _peak_growth() -> int:
    with tempfile.TemporaryDirectory(prefix="leader-hints-memory-") as folder:
        async with trio.open_nursery() as nursery:
            scene = _Scene(Path(folder), nursery)
            with scene.proxy:
                await scene.start()
                await scene.client("first", None)
                await _settled(scene)
                before = scene.memory("VmHWM")
                topic = scene.cluster.layouts[1].ids[_TOPIC]
                for size, error in ((_LARGE, 0), (_KEPT, NOT_LEADER)):
                    answer = samples.fetch_answer(
                        15, 0, [(topic, 0, 0, bytes(size)), (topic, 1, error, b"")]
                    )
                    async with trio.open_nursery() as readers:
                        for number in range(_CONSUMERS):
                            read = _sip if number % 2 else partial(_drink, len(answer))
                            name = f"{size}-{number}"
                            readers.start_soon(_consume, scene, name, answer, read)
                growth = scene.memory("VmHWM") - before
            nursery.cancel_scope.cancel()
    return growth


_Reads = Callable[[trio.SocketStream], Awaitable[None]]


async def _consume(scene: _Scene, name: str, answer: bytes, reads: _Reads) -> None:
    async with await scene.client(name, answer) as stream:
        await reads(stream)


async def _drink(size: int, stream: trio.SocketStream) -> None:
    """Read all of a response at once; hints may make it larger."""
    taken = 0
    while taken < size:
        data = await stream.receive_some(1 << 20)
        assert data, "the link was closed"
        taken += len(data)


async def _sip(stream: trio.SocketStream) -> None:
    """Read slowly for a while, and leave."""
    with trio.move_on_after(_SECONDS):
        while await stream.receive_some(_SIP):  # noqa: ASYNC110
            await trio.sleep(_PAUSE)
