"""Have thousands of connections come and go through a proxy; end with 1 where any is kept."""

import argparse
import os
import random
import resource
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from tests.harness.connection import Address
from tests.harness.ports import free_ports
from tests.harness.processes import cpu_seconds
from tests.harness.proxyproc import ProxyProcess
from tests.harness.trial import run_trial
from tests.soak.client import Connection, Counts, come_and_go, connect, keep_busy
from tests.soak.pair import Pair
from tests.soak.watch import at_rest, resident_bytes, settled, slope

_BETWEEN_MOVES = 0.5
_SAMPLES_S = 1.0
#: Within which all clients must have come.
_ALL_THERE_S = 120.0
#: Of the time: before memory is measured.
_WARM_UP = 1 / 2
#: From here on a run is a long one. Its slope in ten minutes is held to the first; in a shorter run
#: what is remembered of the last hour still fills up, so the growth itself is held to the second.
_LONG = 1200.0
_MOST_GROWTH, _MOST_SHORT_GROWTH = 1 << 20, 2 << 20
_SPAN = 600.0
#: Links at once, and those among them that are busy.
_BUSY = 50
_BUSY_PAUSE = 0.05
#: Seconds of a measurement, and how many there are of each kind in a short run and in a long one.
_WINDOW = 5.0
_WINDOWS, _WINDOWS_LONG = 3, 5
_AT_ONCE = 100
#: How many times what it is without the others the p99 of the busy ones may be, and the CPU of an
#: exchange. The first needs a machine that does nothing else: it judges long runs, the second all.
_MOST_RATIO = 2.0
#: Within which the proxy must have seen that links have gone.
_ALL_GONE_S = 120.0
_DESCRIPTORS = 20_000


class Failure(AssertionError):
    """What is too much, in words."""


def main() -> int:
    """Run the command; returns its exit code."""
    options = _options()
    os.environ["LEADER_HINTS_WORKERS"] = str(options.workers)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, _DESCRIPTORS), hard))
    print(f"seed {options.seed}", flush=True)
    return run_trial("soak", partial(_soak, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200.0, help="of coming and going")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--connections", type=int, default=2000, help="that come and go")
    parser.add_argument("--pause", type=float, default=10.0, help="mean seconds between requests")
    parser.add_argument("--links", type=int, default=9000, help="at once, in the second part")
    parser.add_argument("--workers", type=int, default=1, help="of each proxy")
    return parser.parse_args()


async def _soak(options: argparse.Namespace, folder: Path) -> None:
    listens: list[Address] = [("127.0.0.1", port) for port in free_ports(2)]
    pair = Pair(listens)
    async with trio.open_nursery() as nursery:
        upstreams = await pair.listen(nursery)
        routes = list(zip(listens, upstreams, strict=True))
        # Started in the thread that lives on: a child ends with the thread that started it.
        proxy = ProxyProcess(routes, folder / "proxy.log", arguments=["--log-level", "info"])
        with proxy:
            async with trio.open_nursery() as moving:
                moving.start_soon(_move, pair)
                await _come_and_go(options, listens, proxy)
                moving.cancel_scope.cancel()
            # The leader rests: what is measured then is no wait for it.
            leader = listens[pair.leader - 1]
            await _many_at_once(options, listens, leader, proxy)
        nursery.cancel_scope.cancel()


async def _move(pair: Pair) -> None:
    while True:
        await trio.sleep(_BETWEEN_MOVES)
        pair.move()


async def _come_and_go(
    options: argparse.Namespace, listens: list[Address], proxy: ProxyProcess
) -> None:
    counts = Counts()
    before = await settled(proxy)
    samples: list[tuple[float, int]] = []
    chance = random.Random(options.seed)
    async with trio.open_nursery() as nursery:
        for _ in range(options.connections):
            own = random.Random(chance.random())
            nursery.start_soon(come_and_go, listens, counts, options.pause, own)
        with trio.fail_after(_ALL_THERE_S):
            while counts.connections < options.connections:  # noqa: ASYNC110 - counts have no event
                await trio.sleep(_SAMPLES_S)
        began = trio.current_time()
        while trio.current_time() - began < options.seconds:
            await trio.sleep(_SAMPLES_S)
            samples.append((trio.current_time(), resident_bytes(proxy.pid)))
        nursery.cancel_scope.cancel()
    after = await at_rest(proxy, before)
    warm = [sample for sample in samples if sample[0] - began >= options.seconds * _WARM_UP]
    per_second = slope(warm)
    growth = per_second * (warm[-1][0] - warm[0][0])
    print(
        f"{options.connections} clients for {options.seconds:g} s: {counts.connections} "
        f"connections, {counts.responses} responses, all matched; {counts.errors} errors, "
        f"{counts.hints} with a hint; memory {warm[-1][1] / 1e6:.1f} MB, "
        f"slope {per_second * _SPAN / 1e6:+.2f} MB in ten minutes over "
        f"{warm[-1][0] - warm[0][0]:.0f} s; left: {after}",
        flush=True,
    )
    _require(proxy.metric("leader_hints_passed_raw_total") == 0, "messages were not understood")
    _require(counts.hints > 0, "no hint was given")
    long = options.seconds >= _LONG
    rises, most = (per_second * _SPAN, _MOST_GROWTH) if long else (growth, _MOST_SHORT_GROWTH)
    _require(rises < most, f"memory grows by {rises / 1e6:.2f} MB")


class _Measured:
    """What windows of one kind have shown: the 99th percentile of each, and CPU of all."""

    def __init__(self) -> None:
        self.p99: list[float] = []
        self._cpu = 0.0
        self._exchanges = 0

    @property
    def median(self) -> float:
        """The median of the 99th percentiles, in seconds."""
        return statistics.median(self.p99)

    @property
    def cpu(self) -> float:
        """Seconds of the proxy's CPU for an exchange."""
        return self._cpu / self._exchanges

    async def window(self, counts: Counts, proxy: ProxyProcess) -> None:
        """Look at exchanges for a while."""
        times = counts.times = []
        before = cpu_seconds(proxy.pid)
        await trio.sleep(_WINDOW)
        self._cpu += cpu_seconds(proxy.pid) - before
        counts.times = None
        self._exchanges += len(times)
        self.p99.append(statistics.quantiles(times, n=100)[98])


async def _many_at_once(
    options: argparse.Namespace, listens: list[Address], leader: Address, proxy: ProxyProcess
) -> None:
    busy, others = Counts(), Counts()
    alone, crowded = _Measured(), _Measured()
    took: list[float] = []
    long = options.seconds >= _LONG
    async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
        for _ in range(_BUSY):
            connection = await connect(leader, busy)
            await stack.enter_async_context(connection.stream)
            nursery.start_soon(keep_busy, connection, _BUSY_PAUSE)
        for _ in range(_WINDOWS_LONG if long else _WINDOWS):
            await alone.window(busy, proxy)
            async with _others(options.links - _BUSY, listens, others, took):
                await crowded.window(busy, proxy)
                open_now = await _links(proxy)
                async with (late := await connect(leader, others)).stream:
                    _require(await late.produce(), "a new one is not served")
                memory = resident_bytes(proxy.pid)
            with trio.fail_after(_ALL_GONE_S):
                while await _links(proxy) > _BUSY:  # noqa: ASYNC110 - another process has them
                    await trio.sleep(_SAMPLES_S)
            _require(open_now >= options.links - _AT_ONCE, f"only {open_now:.0f} links")
        nursery.cancel_scope.cancel()
    clock, cpu = crowded.median / alone.median, crowded.cpu / alone.cpu
    print(
        f"{open_now:.0f} links at once, opened in {_seconds(took)} s, a new one served each time; "
        f"p99 of {_BUSY} busy ones, ms: {_ms(alone.p99)} without the others, {_ms(crowded.p99)} "
        f"among them, by the medians {clock:.2f} times{'' if long else ', which does not judge'}; "
        f"CPU of an exchange, us: {alone.cpu * 1e6:.0f} and {crowded.cpu * 1e6:.0f}, {cpu:.2f} "
        f"times; memory {memory / 1e6:.1f} MB",
        flush=True,
    )
    _require(cpu <= _MOST_RATIO, f"an exchange costs {cpu:.2f} times the CPU")
    _require(not long or clock <= _MOST_RATIO, f"p99 is {clock:.2f} times that without them")


@asynccontextmanager
async def _others(
    links: int, listens: list[Address], counts: Counts, took: list[float]
) -> AsyncIterator[None]:
    """Have so many links more meanwhile, of which nothing is asked; note how long they took."""
    opened: list[Connection] = []

    async def open_some(count: int) -> None:
        for number in range(count):
            connection = await connect(listens[number % 2], counts)
            opened.append(connection)

    began = trio.current_time()
    try:
        async with trio.open_nursery() as opening:
            for _ in range(_AT_ONCE):
                opening.start_soon(open_some, links // _AT_ONCE)
        took.append(trio.current_time() - began)
        yield
    finally:
        for connection in opened:
            await trio.aclose_forcefully(connection.stream)


async def _links(proxy: ProxyProcess) -> float:
    return await trio.to_thread.run_sync(proxy.metric, "leader_hints_links_open")


def _ms(times: Sequence[float]) -> str:
    return ", ".join(f"{seconds * 1e3:.2f}" for seconds in times)


def _seconds(times: Sequence[float]) -> str:
    return ", ".join(f"{seconds:.1f}" for seconds in times)


def _require(met: bool, otherwise: str) -> None:
    if not met:
        raise Failure(otherwise)


if __name__ == "__main__":
    sys.exit(main())
