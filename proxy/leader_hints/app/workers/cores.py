"""How many processors this process may use."""

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from leader_hints.settings.settings import Settings

#: Of control groups: microseconds of processor time within a period, and the period.
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


def worker_count(settings: Settings) -> int:
    """Return how many workers the settings ask for."""
    return usable_cores() if settings.workers == "auto" else settings.workers


def usable_cores(quota: Path = _QUOTA) -> int:
    """Return how many processors this process may use, at least one.

    ``quota``: the file in which a container's limit stands, if there is one.
    """
    cores = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        allowed, period = quota.read_text().split()
        if allowed != "max":
            cores = min(cores, math.ceil(int(allowed) / int(period)))
    return max(cores, 1)
