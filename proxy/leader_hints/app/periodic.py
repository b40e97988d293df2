"""Work that is done again and again: expired links, the log's summaries.

Tested in ``tests/app/test_process.py``.
"""

import trio

from leader_hints.net.pump.pump import Pump
from leader_hints.net.time_slices import TimeSlices
from leader_hints.observe.event_log import EventLog
from leader_hints.observe.summary import Summary
from leader_hints.observe.watched import Watched

#: Seconds between two checks whether a link has expired or the log has something to sum up.
_TICK = 1.0
#: Seconds between two summaries.
_SUMMARY = 60.0


async def tick(pump: Pump, log: EventLog) -> None:
    """End expired links, and have the log write what it sums up, until cancelled."""
    slices = TimeSlices()
    while True:
        await slices.take(pump.sweep(trio.current_time()))
        log.tick()
        await trio.sleep(_TICK)


async def sum_up(watched: Watched, log: EventLog) -> None:
    """Have the log write a line for each minute, until cancelled."""
    summary = Summary(watched)
    while True:
        await trio.sleep(_SUMMARY)
        values = summary.take()
        if values is not None:
            log.summary(values)
