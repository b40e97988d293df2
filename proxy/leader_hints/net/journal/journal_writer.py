"""Writes the journal. No other task waits for it.

Events become lines immediately and wait in a bounded buffer. One task hands them on, many at a
time, to a sink in a worker thread, since files and Kafka's client block. Where the sink fails, the
same lines are tried again after a pause. Where it is too slow, or fails for too long, the buffer is
full: events are dropped then, and a gap line says which, as soon as there is room.
"""

import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

import trio

from leader_hints.core.events import (
    Event,
    JournalAbandoned,
    JournalFailing,
    JournalWritten,
    TaskFailed,
)
from leader_hints.core.route import Route
from leader_hints.errors import places_of
from leader_hints.net.journal.line_buffer import LineBuffer
from leader_hints.net.journal.sink import LinesLostError, Sink
from leader_hints.observe.journal import Journal, JournalCounters

#: Seconds that events gather before they are handed on: a thread for each would cost more.
_GATHER = 0.2
#: Seconds after which the sink is called although there is nothing to write.
_TICK = 1.0
#: Seconds before a failed write is tried again.
_PAUSE = 1.0
#: Seconds of one write after which it counts as failing.
_PATIENCE = 60.0
#: Handed on at once.
_BATCH_BYTES = 1 << 20
_TOO_SLOW = "it is written more slowly than events come"
#: Gap lines that are remembered: they may be lost, too, as long as their file is open.
_MOST_GAPS = 1000

Work = Callable[[], None]


async def _in_thread(work: Work) -> None:
    # Abandoned at the end's deadline: a disk that hangs must not keep the process from ending.
    # A thread of its own: look-ups of names that hang may have all that Trio gives by itself.
    own = trio.CapacityLimiter(1)
    await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=own)


class _Gap(NamedTuple):
    """Numbers of the first and the last event that were dropped or lost, and why."""

    first: int
    last: int
    reason: str

    @property
    def events(self) -> int:
        """How many they are."""
        return self.last - self.first + 1


class JournalWriter:
    """Takes events until :meth:`finish`.

    ``buffer_bytes``: what waits in memory, at most, but for one line. ``flush``: seconds that the
    end may wait for what is buffered. ``emit``: takes the events about the journal itself.
    ``in_thread``: how blocking work is done. ``finished``: set when :meth:`run` is over.
    """

    def __init__(
        self,
        journal: Journal,
        sink: Sink,
        counters: JournalCounters,
        buffer_bytes: int,
        flush: float,
        emit: Callable[[Event], None],
        in_thread: Callable[[Work], Awaitable[None]] = _in_thread,
    ) -> None:
        self._journal = journal
        self._sink = sink
        self._counters = counters
        self._flush = flush
        self._emit = emit
        self._in_thread = in_thread
        self._lines = LineBuffer(buffer_bytes)
        self._gap: _Gap | None = None
        #: Those that were written, with the numbers of their lines.
        self._gaps: deque[tuple[int, _Gap]] = deque(maxlen=_MOST_GAPS)
        self._trouble: str | None = None
        self._ending = False
        self._some = trio.Event()
        self._urgent = trio.Event()
        self._scope = trio.CancelScope(shield=True)
        self.finished = trio.Event()

    def begin(self, software: str, version: str, hints: str) -> None:
        """Buffer the line that begins the run; before all else."""
        self._push(self._journal.start(software, version, hints))

    def follow(self, route: Route) -> None:
        """Have one more route of the process looked up."""
        self._journal.follow(route)

    def take(self, event: Event) -> None:
        """Buffer ``event``, if it belongs into the journal and there is room."""
        row = None if self._ending else self._journal.row(event)
        if row is None:
            return
        if self._lines.full:
            self._drop(1)
        else:
            self._push(self._journal.line(row))

    def lose(self, events: int) -> None:
        """Take it that so many events never came: a worker had no room for them."""
        if events and not self._ending:
            self._drop(events)
        if not self._lines.full:
            self._report_gap()

    def finish(self) -> None:
        """Take no more events; :meth:`run` ends when all is written, or ``flush`` is over."""
        if self._ending:
            return
        self._ending = True
        self._report_gap()
        self._push(self._journal.stop())
        self._urgent.set()
        self._scope.deadline = trio.current_time() + self._flush

    async def run(self) -> None:
        """Write until :meth:`finish` or cancelled; then write the rest, for a bounded time."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._finish_when_cancelled)
                with self._scope:
                    await self._keep_writing()
                nursery.cancel_scope.cancel()
        finally:
            if self._lines:
                self._emit(JournalAbandoned(events=len(self._lines)))
            self.finished.set()

    async def _finish_when_cancelled(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self.finish()

    async def _keep_writing(self) -> None:
        while True:
            try:
                return await self._write_all()
            except Exception as error:
                # A defect of the proxy: the same lines are tried again.
                self._emit(TaskFailed(task="journal", traceback=places_of(error)))
            await trio.sleep(_PAUSE)

    async def _write_all(self) -> None:
        closed = False
        while not closed:
            while self._lines or not self._ending:
                await self._gather()
                batch = self._lines.oldest(_BATCH_BYTES)
                written = False
                while not written:
                    written = await self._try(partial(self._sink.write, batch))
                self._wrote(batch)
            closed = await self._try(self._sink.close)

    async def _try(self, work: Work) -> bool:
        """Have the sink do something; return whether it did, after a pause where it did not."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._say_if_it_hangs)
            try:
                await self._in_thread(work)
                return True
            except LinesLostError as error:
                self._lose(error)
            except Exception as error:
                # However the sink fails, the process relays other people's data and goes on.
                self._fail(_reason(error))
            finally:
                nursery.cancel_scope.cancel()
        await trio.sleep(_PAUSE)
        return False

    async def _say_if_it_hangs(self) -> None:
        await trio.sleep(_PATIENCE)
        self._fail(f"one write has taken {_PATIENCE:g} s so far; does a disk hang?")

    def _lose(self, error: LinesLostError) -> None:
        """Report lines that were written and are lost, like those that found no room."""
        # What found no room comes first: its numbers are lower than that of the line for these.
        self._report_gap()
        first, last = (json.loads(line)["seq"] for line in (error.first, error.last))
        lost = _Gap(first, last, str(error))
        gaps = [gap for number, gap in self._gaps if first <= number <= last]
        # What was dropped between the lines has been counted.
        between = sum(gap.events for gap in gaps if gap.first >= first)
        self._counters.dropped += lost.events - between
        for gap in (*(gap for gap in gaps if gap.first < first), lost):
            self._write_gap(gap)
        self._fail(str(error))

    async def _gather(self) -> None:
        """Wait until there is something to do, and then briefly for more lines."""
        if not self._lines:
            with trio.move_on_after(_TICK):
                await self._some.wait()
        if self._lines:
            with trio.move_on_after(_GATHER):
                await self._urgent.wait()

    def _wrote(self, batch: Sequence[bytes]) -> None:
        self._counters.written += len(batch)
        self._lines.remove(batch)
        self._report_gap()
        if not self._lines:
            self._some = trio.Event()
        # Where events come all the time some always wait.
        if self._trouble is not None and not self._lines.half_full:
            self._trouble = None
            self._emit(JournalWritten(dropped=self._counters.dropped))
        if not self._ending and not self._lines.half_full:
            self._urgent = trio.Event()

    def _push(self, line: bytes) -> None:
        self._lines.append(line)
        self._some.set()
        if self._lines.half_full:
            self._urgent.set()

    def _drop(self, events: int) -> None:
        first, reason = self._journal.skip(events), self._trouble or _TOO_SLOW
        self._gap = _Gap(self._gap.first if self._gap else first, first + events - 1, reason)
        self._counters.dropped += events
        self._fail(reason)

    def _report_gap(self) -> None:
        """Write which events were dropped; none was taken since the first of them."""
        if self._gap is not None:
            gap, self._gap = self._gap, None
            self._write_gap(gap)

    def _write_gap(self, gap: _Gap) -> None:
        self._gaps.append((self._journal.next_number, gap))
        self._push(self._journal.gap(*gap))

    def _fail(self, reason: str) -> None:
        """Report a failure once, until little waits."""
        reported, self._trouble = self._trouble, reason
        if reported is None:
            self._emit(JournalFailing(reason=reason))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
