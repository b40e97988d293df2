"""What a proxy has in hand, by its own counts and the system's."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.harness.proxyproc import ProxyProcess


class InHand(NamedTuple):
    """Nothing but tasks and descriptors may be left when all clients have gone."""

    links: float
    exchanges: float
    held: float
    kept_bytes: float
    queued_bytes: float
    tasks: float
    descriptors: int


def in_hand(proxy: ProxyProcess) -> InHand:
    """Return what it has now; the question itself takes a task and a descriptor."""
    return InHand(
        proxy.metric("leader_hints_links_open"),
        proxy.metric("leader_hints_exchanges"),
        proxy.metric("leader_hints_held_responses"),
        proxy.metric("leader_hints_kept_bytes"),
        proxy.metric("leader_hints_queued_bytes"),
        proxy.metric("leader_hints_tasks"),
        len(os.listdir(f"/proc/{proxy.pid}/fd")),
    )


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
