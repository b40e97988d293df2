"""What is pending in a proxy, by its own counts and the system's."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import trio

from tests.harness.proxyproc import ProxyProcess

#: Within which a proxy must have let go of all that clients had.
_AT_REST_S = 60.0
_LOOKS_S = 0.2
#: So many looks one after the other show the same when a proxy has begun.
_LOOKS_ALIKE = 5


class Pending(NamedTuple):
    """Nothing but tasks and descriptors may be left when all clients have gone."""

    links: float
    exchanges: float
    held: float
    kept_bytes: float
    queued_bytes: float
    tasks: float
    descriptors: int

    def nothing_beyond(self, before: "Pending") -> bool:
        """Whether of all that clients had nothing is left."""
        return (
            self[:5] == (0, 0, 0, 0, 0)
            and self.tasks <= before.tasks
            and self.descriptors <= before.descriptors
        )


def pending(proxy: ProxyProcess) -> Pending:
    """Return what it has now; the question itself takes a task and a descriptor."""
    return Pending(
        proxy.metric("leader_hints_links_open"),
        proxy.metric("leader_hints_exchanges"),
        proxy.metric("leader_hints_held_responses"),
        proxy.metric("leader_hints_kept_bytes"),
        proxy.metric("leader_hints_queued_bytes"),
        proxy.metric("leader_hints_tasks"),
        int(proxy.metric("process_open_fds")),
    )


async def settled(proxy: ProxyProcess) -> Pending:
    """Return what a proxy has that no client has come to yet, once that stays the same."""
    now = await trio.to_thread.run_sync(pending, proxy)
    same = 1
    with trio.fail_after(_AT_REST_S):
        while same < _LOOKS_ALIKE:
            await trio.sleep(_LOOKS_S)
            before, now = now, await trio.to_thread.run_sync(pending, proxy)
            same = same + 1 if now == before else 1
    return now


async def at_rest(proxy: ProxyProcess, before: Pending) -> Pending:
    """Wait until nothing is left but what was there ``before``, and return that.

    :raises AssertionError: something is kept.
    """
    now = before
    with trio.move_on_after(_AT_REST_S):
        while True:
            now = await trio.to_thread.run_sync(pending, proxy)
            if now.nothing_beyond(before):
                return now
            await trio.sleep(_LOOKS_S)
    raise AssertionError(f"left: {now}, before: {before}")


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def slope(samples: Sequence[tuple[float, int]]) -> float:
    """Return by how much the second of each pair rises while the first rises by one."""
    count = len(samples)
    middle = sum(at for at, _ in samples) / count
    mean = sum(value for _, value in samples) / count
    spread = sum((at - middle) ** 2 for at, _ in samples)
    return sum((at - middle) * (value - mean) for at, value in samples) / spread
