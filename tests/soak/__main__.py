"""Have thousands of connections come and go through a proxy; end with 1 where any is kept."""

import argparse
import random
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import trio

from tests.harness.connection import Address
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyProcess
from tests.harness.trial import run_trial
from tests.soak.client import Connection, Tally, come_and_go, connect, keep_busy
from tests.soak.pair import Pair
from tests.soak.watch import at_rest, resident_bytes, settled, slope

_BETWEEN_MOVES = 0.5
_SAMPLES_S = 1.0
#: Within which all clients must have come.
_ALL_THERE_S = 120.0
#: Of the time: before memory is measured.
_WARM_UP = 1 / 2
#: The slope is held to the first where it was measured for so long. In a shorter run what is
#: remembered of the last hour still fills up, so the growth itself is held to the second.
_MOST_GROWTH, _MOST_SHORT_GROWTH = 1 << 20, 2 << 20
_SPAN = 600.0
#: Links at once, and those among them that are busy.
_BUSY = 50
_BUSY_PAUSE = 0.05
_WINDOW = 5.0
_WINDOWS = 3
_AT_ONCE = 100
_MOST_RATIO = 2.0
_DESCRIPTORS = 20_000


class Failure(AssertionError):
    """What is too much, in words."""


def main() -> int:
    """Run the command; returns its exit code."""
    options = _options()
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
    return parser.parse_args()


async def _soak(options: argparse.Namespace, folder: Path) -> None:
    listens: list[Address] = [("127.0.0.1", port) for port in free_ports(2)]
    pair = Pair(listens)
    async with trio.open_nursery() as nursery:
        upstreams = await pair.listen(nursery)
        nursery.start_soon(_move, pair)
        routes = list(zip(listens, upstreams, strict=True))
        # Started in the thread that lives on: a child ends with the thread that started it.
        proxy = ProxyProcess(routes, folder / "proxy.log", arguments=["--log-level", "info"])
        with proxy:
            await _come_and_go(options, listens, proxy)
            await _many_at_once(options.links, listens, proxy)
        nursery.cancel_scope.cancel()


async def _move(pair: Pair) -> None:
    while True:
        await trio.sleep(_BETWEEN_MOVES)
        pair.move()


async def _come_and_go(
    options: argparse.Namespace, listens: list[Address], proxy: ProxyProcess
) -> None:
    tally = Tally()
    before = await settled(proxy)
    samples: list[tuple[float, int]] = []
    chance = random.Random(options.seed)
    async with trio.open_nursery() as nursery:
        for _ in range(options.connections):
            own = random.Random(chance.random())
            nursery.start_soon(come_and_go, listens, tally, options.pause, own)
        with trio.fail_after(_ALL_THERE_S):
            while tally.connections < options.connections:  # noqa: ASYNC110 - a tally has no event
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
        f"{options.connections} clients for {options.seconds:g} s: {tally.connections} connections,"
        f" {tally.responses} responses, all matched; {tally.errors} errors, {tally.hints} with a "
        f"hint; memory {warm[-1][1] / 1e6:.1f} MB, slope {per_second * _SPAN / 1e6:+.2f} MB in ten "
        f"minutes over {warm[-1][0] - warm[0][0]:.0f} s; left: {after}",
        flush=True,
    )
    _require(proxy.metric("leader_hints_passed_raw_total") == 0, "messages were not understood")
    _require(tally.hints > 0, "no hint was given")
    long = warm[-1][0] - warm[0][0] >= _SPAN
    rises, most = (per_second * _SPAN, _MOST_GROWTH) if long else (growth, _MOST_SHORT_GROWTH)
    _require(rises < most, f"memory grows by {rises / 1e6:.2f} MB")


async def _many_at_once(links: int, listens: list[Address], proxy: ProxyProcess) -> None:
    busy, others = Tally(), Tally()
    async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
        for number in range(_BUSY):
            connection = await connect(listens[number % 2], busy)
            await stack.enter_async_context(connection.stream)
            nursery.start_soon(keep_busy, connection, _BUSY_PAUSE)
        alone = [await _window(busy)]
        opened: list[Connection] = []

        async def open_some(count: int) -> None:
            for number in range(count):
                connection = await connect(listens[number % 2], others)
                opened.append(connection)

        began = trio.current_time()
        async with trio.open_nursery() as opening:
            for _ in range(_AT_ONCE):
                opening.start_soon(open_some, (links - _BUSY) // _AT_ONCE)
        took = trio.current_time() - began
        for connection in opened:
            await stack.enter_async_context(connection.stream)
        crowded = [await _window(busy) for _ in range(_WINDOWS)]
        open_now = await trio.to_thread.run_sync(proxy.metric, "leader_hints_links_open")
        async with (late := await connect(listens[0], others)).stream:
            await late.produce()
        for connection in opened:
            await trio.aclose_forcefully(connection.stream)
        alone += [await _window(busy)]
        nursery.cancel_scope.cancel()
    print(
        f"{open_now:.0f} links at once, opened in {took:.1f} s, a new one served; p99 of {_BUSY} "
        f"busy ones, ms: {_ms(alone)} before and after, {_ms(crowded)} among them; memory "
        f"{resident_bytes(proxy.pid) / 1e6:.1f} MB",
        flush=True,
    )
    _require(open_now >= links - _AT_ONCE, f"only {open_now:.0f} links")
    # What else the machine does can only make a window worse.
    ratio = min(crowded) / max(alone)
    _require(ratio <= _MOST_RATIO, f"p99 is {ratio:.2f} times that without them")


def _ms(times: Sequence[float]) -> str:
    return ", ".join(f"{seconds * 1e3:.2f}" for seconds in times)


async def _window(tally: Tally) -> float:
    """Return the 99th percentile of exchanges for a while."""
    tally.times = []
    await trio.sleep(_WINDOW)
    times, tally.times = tally.times, None
    return statistics.quantiles(times, n=100)[98]


def _require(met: bool, otherwise: str) -> None:
    if not met:
        raise Failure(otherwise)


if __name__ == "__main__":
    sys.exit(main())
