"""The journal's writer: what reaches the sink, what is dropped, and that nobody waits."""

import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from leader_hints.core.events import (
    Event,
    JournalAbandoned,
    JournalFailing,
    JournalWritten,
    LeaderMoved,
    TaskFailed,
)
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.net.journal.journal_writer import JournalWriter, Work
from leader_hints.net.journal.line_buffer import LineBuffer
from leader_hints.net.journal.sink import LinesLostError, Sink
from leader_hints.observe.journal import Journal, JournalCounters
from tests.harness.lines import lines_of
from tests.observe.journal_lines import Line, checked, in_order

_FULL = OSError(28, "No space left on device")


class _Sink:
    """Remembers what it took. ``fault``: raised instead, while it is set; ``closing_fault``: the
    same of its end.
    """

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.calls = 0
        self.fault: Exception | None = None
        self.closing_fault: Exception | None = None
        self.closed = 0

    def write(self, lines: Sequence[bytes]) -> None:
        """See :class:`leader_hints.net.journal.sink.Sink`."""
        self.calls += 1
        if self.fault is not None:
            raise self.fault
        assert not self.closed
        if lines:
            self.batches.append(list(lines))

    def close(self) -> None:
        """See :class:`leader_hints.net.journal.sink.Sink`."""
        if self.closing_fault is not None:
            raise self.closing_fault
        self.closed += 1

    @property
    def lines(self) -> list[Line]:
        """All that it took."""
        return [checked(line) for batch in self.batches for line in batch]


async def _at_once(work: Work) -> None:
    """Stands for the thread: a MockClock does not know how long that takes."""
    await trio.lowlevel.checkpoint()
    work()


#: Seconds.
_FLUSH = 7.0


class _Scene:
    """A writer at work."""

    def __init__(
        self,
        sink: Sink,
        *,
        buffer_bytes: int = 1 << 20,
        in_thread: Callable[[Work], Awaitable[None]] = _at_once,
    ) -> None:
        self.told: list[Event] = []
        self.counters = JournalCounters()
        journal = Journal([Route("r", Mode.ON)], "s", "run-1", lambda: 0)
        self.writer = JournalWriter(
            journal, sink, self.counters, buffer_bytes, _FLUSH, self.told.append, in_thread
        )
        self.writer.begin("leader-hints", "1", "on")

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Have it write meanwhile; it is cancelled then."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.writer.run)
            yield
            nursery.cancel_scope.cancel()

    def move(self, epoch: int) -> None:
        """Give it one event, which its epoch tells apart."""
        self.writer.take(
            LeaderMoved(
                cluster="k",
                topic="t",
                partition=0,
                leader_before=1,
                epoch_before=epoch - 1,
                leader=2,
                epoch=epoch,
            )
        )


def _moves(lines: list[Line]) -> list[int]:
    return [line["epoch"] for line in lines if line["event"] == "leader_change"]


def _events(lines: list[Line]) -> list[str]:
    return [line["event"] for line in lines]


async def test_events_are_written_many_at_a_time(autojump_clock: trio.testing.MockClock) -> None:
    sink = _Sink()
    scene = _Scene(sink)
    async with scene.writing():
        for epoch in range(1, 101):
            scene.move(epoch)
        await trio.sleep(1)
        assert [len(batch) for batch in sink.batches] == [101]
        scene.move(101)
        await trio.sleep(1)
        assert len(sink.batches) == 2
    assert _moves(sink.lines) == list(range(1, 102))
    assert scene.counters == JournalCounters(written=103, dropped=0)


@pytest.mark.parametrize("how", ["finished", "cancelled"])
async def test_at_the_end_all_is_written(autojump_clock: trio.testing.MockClock, how: str) -> None:
    sink = _Sink()
    scene = _Scene(sink)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.writer.run)
        await trio.sleep(1)
        scene.move(1)
        before = trio.current_time()
        if how == "cancelled":
            nursery.cancel_scope.cancel()
        else:
            scene.writer.finish()
    assert scene.writer.finished.is_set()
    assert trio.current_time() == before  # Nothing gathers any more.
    assert _events(in_order(sink.lines)) == ["start", "leader_change", "stop"]
    assert sink.closed == 1
    scene.move(2)
    assert not scene.told


async def test_a_sink_without_anything_to_write_is_called_now_and_then(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sink = _Sink()
    scene = _Scene(sink)
    async with scene.writing():
        await trio.sleep(60)
        assert 50 <= sink.calls <= 62
        assert len(sink.batches) == 1


async def test_a_sink_that_fails_is_reported_once_and_loses_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sink = _Sink()
    sink.fault = _FULL
    scene = _Scene(sink)
    async with scene.writing():
        for epoch in range(1, 11):
            scene.move(epoch)
            await trio.sleep(1)
        assert scene.told == [JournalFailing(reason="no space left on device")]
        assert 8 <= sink.calls <= 11  # A pause after each.
        sink.fault = None
        await trio.sleep(3)
        assert scene.told[1:] == [JournalWritten(dropped=0)]
    assert _moves(in_order(sink.lines)) == list(range(1, 11))


async def test_that_it_is_written_again_is_known_though_events_come_all_the_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """So the next failure is news, and what is dropped later for another reason has that one."""
    sink = _Sink()

    async def slowly(work: Work) -> None:
        await trio.sleep(0.05)
        work()

    scene = _Scene(sink, in_thread=slowly)
    failing = JournalFailing(reason="no space left on device")
    epoch = 0
    async with scene.writing():
        for fault in (_FULL, None, _FULL, None):
            sink.fault = fault
            for _ in range(500):
                epoch += 1
                scene.move(epoch)
                await trio.sleep(0.01)
    assert scene.told == [failing, JournalWritten(dropped=0)] * 2
    assert _moves(in_order(sink.lines)) == list(range(1, epoch + 1))


@pytest.mark.parametrize("error", [ValueError("odd"), RuntimeError()])
async def test_whatever_a_sink_raises_the_process_goes_on(
    autojump_clock: trio.testing.MockClock, error: Exception
) -> None:
    sink = _Sink()
    sink.fault = error
    scene = _Scene(sink)
    async with scene.writing():
        await trio.sleep(5)
        sink.fault = None
        await trio.sleep(5)
    assert scene.told[0] == JournalFailing(reason=str(error) or "RuntimeError")
    assert _events(sink.lines) == ["start", "stop"]


async def test_what_finds_no_room_is_dropped_and_told_as_a_gap(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sink = _Sink()
    sink.fault = _FULL
    scene = _Scene(sink, buffer_bytes=2000)
    async with scene.writing():
        await trio.sleep(1)
        for epoch in range(1, 101):
            scene.move(epoch)
        assert 80 < scene.counters.dropped < 100
        sink.fault = None
        await trio.sleep(5)
        # It is written without another event.
        assert _events(sink.lines)[-1] == "gap"
        scene.move(101)
        await trio.sleep(1)
    lines = in_order(sink.lines)
    kept = 100 - scene.counters.dropped
    assert _moves(lines) == [*range(1, kept + 1), 101]
    (gap,) = (line for line in lines if line["event"] == "gap")
    assert gap["dropped"] == scene.counters.dropped
    assert (gap["first_seq"], gap["last_seq"]) == (kept + 1, 100)
    assert gap["reason"] == "no space left on device"
    assert scene.told == [
        JournalFailing(reason="no space left on device"),
        JournalWritten(dropped=scene.counters.dropped),
    ]


async def test_every_gap_is_whole_whatever_fits_between(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sink = _Sink()
    scene = _Scene(sink, buffer_bytes=3000)
    epoch = 0
    async with scene.writing():
        for burst in (5, 50, 3, 200, 20, 1):
            for _ in range(burst):
                epoch += 1
                scene.move(epoch)
            await trio.sleep(0.05)
        await trio.sleep(1)
    lines = in_order(sink.lines)  # Numbers, gaps and all.
    assert _events(lines).count("gap") >= 2
    dropped = sum(line["dropped"] for line in lines if line["event"] == "gap")
    assert dropped == scene.counters.dropped == epoch - len(_moves(lines))
    reasons = {line["reason"] for line in lines if line["event"] == "gap"}
    assert reasons == {"it is written more slowly than events come"}


async def test_a_gap_at_the_end_is_told_too(autojump_clock: trio.testing.MockClock) -> None:
    sink = _Sink()
    scene = _Scene(sink, buffer_bytes=2000)
    async with scene.writing():
        await trio.sleep(1)
        for epoch in range(1, 101):
            scene.move(epoch)
    assert _events(in_order(sink.lines))[-2:] == ["gap", "stop"]


async def test_the_end_waits_no_longer_than_it_may(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sink = _Sink()
    sink.fault = _FULL
    scene = _Scene(sink)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.writer.run)
        scene.move(1)
        await trio.sleep(3)
        before = trio.current_time()
        scene.writer.finish()
    assert trio.current_time() - before == pytest.approx(_FLUSH)
    assert scene.told[-1] == JournalAbandoned(events=3)
    assert scene.writer.finished.is_set()


async def test_a_sink_that_comes_back_at_the_end_gets_all(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sink = _Sink()
    sink.fault = _FULL
    scene = _Scene(sink)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.writer.run)
        scene.move(1)
        await trio.sleep(3)
        scene.writer.finish()
        await trio.sleep(_FLUSH / 2)
        sink.fault = None
    assert _events(in_order(sink.lines)) == ["start", "leader_change", "stop"]


async def test_large_amounts_go_in_pieces(autojump_clock: trio.testing.MockClock) -> None:
    sink = _Sink()
    scene = _Scene(sink, buffer_bytes=8 << 20)
    async with scene.writing():
        for epoch in range(1, 20_001):
            scene.move(epoch)
        await trio.sleep(5)
    assert len(sink.batches) > 2
    assert all(sum(map(len, batch)) <= 1 << 20 for batch in sink.batches)
    written = [json.loads(line)["seq"] for batch in sink.batches for line in batch]
    assert written == list(range(20_002))


@pytest.mark.parametrize("comes_back", [True, False])
async def test_a_sink_that_cannot_be_closed_is_tried_again_and_raises_nothing(
    autojump_clock: trio.testing.MockClock, comes_back: bool
) -> None:
    sink = _Sink()
    scene = _Scene(sink)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.writer.run)
        scene.move(1)
        await trio.sleep(2)
        before = trio.current_time()
        sink.closing_fault = _FULL
        scene.writer.finish()
        await trio.sleep(_FLUSH / 2)
        if comes_back:
            sink.closing_fault = None
    assert scene.writer.finished.is_set()
    assert _events(in_order(sink.lines)) == ["start", "leader_change", "stop"]
    assert scene.told[0] == JournalFailing(reason="no space left on device")
    assert sink.closed == comes_back
    assert trio.current_time() - before <= _FLUSH


@pytest.mark.parametrize("when", ["write", "close"])
async def test_lines_that_the_sink_lost_are_reported_as_a_gap(
    autojump_clock: trio.testing.MockClock, when: str
) -> None:
    class _Losing(_Sink):
        lost = False

        def close(self) -> None:
            """Have lost all that was written, the first time."""
            if when == "close" and not self.lost:
                self.lost = True
                lost, self.batches = [line for batch in self.batches for line in batch], []
                raise LinesLostError("the file cannot be read", lost[0], lost[-1])
            super().close()

    sink = _Losing()
    scene = _Scene(sink)
    async with scene.writing():
        for epoch in range(1, 4):
            scene.move(epoch)
        await trio.sleep(2)
        lost = 4
        if when == "write":
            (batch,), sink.batches = sink.batches, []
            sink.fault = LinesLostError("the file cannot be read", batch[0], batch[-1])
            scene.move(4)
            await trio.sleep(0.5)
            sink.fault = None
            await trio.sleep(2)
        else:
            lost = 5  # The line for the end, too.
    gaps = [line for line in sink.lines if line["event"] == "gap"]
    assert [(gap["first_seq"], gap["last_seq"], gap["dropped"]) for gap in gaps] == [
        (0, lost - 1, lost)
    ]
    assert {gap["reason"] for gap in gaps} == {"the file cannot be read"}
    assert scene.counters.dropped == lost
    assert JournalFailing(reason="the file cannot be read") in scene.told
    assert scene.told[-1] == JournalWritten(dropped=lost)
    numbers = [line["seq"] for line in sink.lines]
    assert numbers == list(range(lost, lost + len(numbers)))


async def test_lines_are_named_though_the_gap_for_them_was_lost_as_well(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """As where a daemon of FUSE is restarted again and again."""
    sink = _Sink()
    scene = _Scene(sink)
    async with scene.writing():
        for epoch in range(1, 4):
            scene.move(epoch)
            await trio.sleep(2)
            lost, sink.batches = [line for batch in sink.batches for line in batch], []
            sink.fault = LinesLostError("the file cannot be read", lost[0], lost[-1])
            await trio.sleep(1)
            sink.fault = None
            scene.writer.lose(10)
            await trio.sleep(3)
    written = {line["seq"] for line in sink.lines}
    gaps = [line for line in sink.lines if line["event"] == "gap"]
    missing = [seq for gap in gaps for seq in range(gap["first_seq"], gap["last_seq"] + 1)]
    assert sorted([*missing, *written]) == list(range(max(written) + 1))
    assert scene.counters.dropped == len(missing)


async def test_a_defect_of_the_writer_is_reported_and_the_same_lines_are_taken_up_again(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = _Sink()
    scene = _Scene(sink)
    oldest = LineBuffer.oldest
    broken = True

    def once(lines: LineBuffer, most_bytes: int) -> list[bytes]:
        nonlocal broken
        if broken:
            broken = False
            raise KeyError("a defect")
        return oldest(lines, most_bytes)

    monkeypatch.setattr(LineBuffer, "oldest", once)
    async with scene.writing():
        scene.move(1)
        await trio.sleep(5)
    assert _events(in_order(sink.lines)) == ["start", "leader_change", "stop"]
    (failed,) = scene.told
    assert isinstance(failed, TaskFailed)
    assert failed.task == "journal"


class _Stuck:
    """A sink that hangs in the system until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let_go = threading.Event()

    def write(self, lines: Sequence[bytes]) -> None:
        """Hang."""
        self.entered.set()
        self.let_go.wait()

    def close(self) -> None:
        """Never reached."""
        raise AssertionError("closed while it hangs")


@asynccontextmanager
async def _stuck(
    clock: trio.testing.MockClock,
) -> AsyncIterator[list[Any]]:
    """A writer whose sink hangs, and which is finished at the end; gives what it told.

    With a real thread; the clock is moved by hand, once the thread hangs.
    """
    sink = _Stuck()
    told: list[Any] = []
    journal = Journal([], "s", "run-1", lambda: 0)
    writer = JournalWriter(journal, sink, JournalCounters(), 1 << 20, _FLUSH, told.append)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(writer.run)
            writer.begin("leader-hints", "1", "on")
            await trio.testing.wait_all_tasks_blocked()
            clock.jump(1)
            assert await trio.to_thread.run_sync(sink.entered.wait, 10)
            yield told
            writer.finish()
            await trio.testing.wait_all_tasks_blocked()
            assert not writer.finished.is_set()
            clock.jump(_FLUSH)
            await writer.finished.wait()
    finally:
        sink.let_go.set()


async def test_a_sink_that_hangs_is_left_behind_at_the_end(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with _stuck(mock_clock) as told:
        pass
    assert told == [JournalAbandoned(events=2)]


async def test_a_sink_that_hangs_is_reported_after_a_minute(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with _stuck(mock_clock) as told:
        mock_clock.jump(59)
        await trio.testing.wait_all_tasks_blocked()
        assert told == []
        mock_clock.jump(1)
        await trio.testing.wait_all_tasks_blocked()
        assert told == [JournalFailing(reason="one write has taken 60 s so far; does a disk hang?")]


async def test_events_that_never_came_are_a_gap_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    sink = _Sink()
    scene = _Scene(sink)
    async with scene.writing():
        scene.move(1)
        scene.writer.lose(3)
        scene.move(2)
        await trio.sleep(1)
    lines = in_order(sink.lines)
    assert _events(lines) == ["start", "leader_change", "gap", "leader_change", "stop"]
    assert lines[2]["dropped"] == scene.counters.dropped == 3


def test_very_many_events_that_never_came_are_noted_in_one_short_step() -> None:
    """A worker whose messages are not read drops thousands in a second."""
    scene = _Scene(_Sink())
    assert lines_of(lambda: scene.writer.lose(1_000_000)) < 100
    assert scene.counters.dropped == 1_000_000
