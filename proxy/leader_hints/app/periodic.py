"""Work that is done again and again: expired links, forgotten sessions, garbage, the log's
summaries, and the journal's lines on which versions clients ask.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice

import trio

from leader_hints.core.events import Event
from leader_hints.core.route import Route
from leader_hints.net.pump.pump import Pump
from leader_hints.net.time_slices import TimeSlices, in_turns
from leader_hints.observe.event_log import EventLog
from leader_hints.observe.summary import Summary
from leader_hints.observe.watched import Watched

#: Seconds between two checks whether a link has expired or the log has something to sum up.
_TICK = 1.0
#: Seconds that count at most between two checks. In longer ones the process did not run: it was
#: stopped, or its machine. What clients have sent meanwhile waits in their sockets.
_COUNTED = 5.0
#: When garbage is looked for; see gc.set_threshold. What little there is of it in cycles can wait.
#: With Python's own figures a storm of leader moves, which makes many objects, has all of them
#: looked through several times. Where very many are made, such as by 10,000 held responses, few of
#: them are looked through at once, and all seldom.
_GARBAGE = (10_000, 5, 40)
#: Seconds between two reports of which versions clients ask, and clients in each: some 2 ms.
_ASKED = 10.0
_MOST_ASKED = 100
#: Seconds between two summaries.
_SUMMARY = 60.0


def tune_garbage() -> None:
    """Have garbage looked for seldom, and not among what was imported and built by now.

    That stays: a full collection would look through all of it each time, and stop every link for
    tens of milliseconds.
    """
    gc.freeze()
    gc.set_threshold(*_GARBAGE)


def utc_day() -> str:
    """Return the day that it is, in UTC."""
    return datetime.now(UTC).date().isoformat()


async def tick(
    pump: Pump,
    also: Callable[[], None],
    routes: Sequence[Route],
    today: Callable[[], str] = utc_day,
) -> None:
    """End expired links, free what is left of fetch sessions, have it noted on each day what
    clients ask, and do what is to be done ``also`` about every second, until cancelled.
    ``routes``: may become more.
    """
    slices = TimeSlices()
    now, stopped = trio.current_time(), 0.0
    while True:
        before, now = now, trio.current_time()
        stopped += max(now - before - _COUNTED, 0.0)
        await slices.take(_sweep(pump, [*routes], now - stopped, today()))
        also()
        await trio.sleep(_TICK)


def _sweep(pump: Pump, routes: Sequence[Route], now: float, day: str) -> Iterator[None]:
    yield from pump.sweep(now)
    for route in routes:
        yield from route.sessions.sweep()
    began = False
    for route in routes:
        # A route may have 500 clients.
        began |= route.asked.begin_day(day)
        yield
    if began:
        yield from pump.note_again()


async def report_clients(routes: Sequence[Route], emit: Callable[[Event], None]) -> None:
    """Have it reported which versions clients ask: what is new of the day, a few clients at a
    time; until cancelled. ``routes``: may become more.

    What is new of a client is reported once in ten seconds, however often it changes.
    """
    while True:
        await trio.sleep(_ASKED)
        report_changes(routes, emit, _MOST_ASKED)


def report_changes(routes: Sequence[Route], emit: Callable[[Event], None], most: int) -> None:
    """Report what is new of at most so many clients."""
    changes = (events for route in [*routes] for events in route.asked.changes(route.name))
    for events in islice(changes, most):
        for event in events:
            emit(event)


async def sum_up(watched: Watched, log: EventLog) -> None:
    """Have the log write a line for each minute, until cancelled."""
    summary = Summary(watched)
    while True:
        await trio.sleep(_SUMMARY)
        values = await in_turns(summary.take())
        if values is not None:
            log.summary(values)
