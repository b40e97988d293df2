import sys
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from leader_hints.app import replacement
from leader_hints.app.replacement import Replacement
from leader_hints.core.events import Event, TakeoverFailed

#: What a process runs that does nothing until a signal comes.
_HANGS = "import signal; signal.pause()"


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (OSError(12, "Cannot allocate memory"), "Cannot allocate memory"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
    ],
)
async def test_a_process_that_the_system_does_not_start_is_reported(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, reason: str
) -> None:
    """A thread that was refused ended the process that was to be replaced, with all its links."""

    async def refused(*_: object, **__: object) -> trio.Process:
        raise raised

    monkeypatch.setattr(trio.lowlevel, "open_process", refused)
    events: list[Event] = []
    starting = Replacement(trio.Event(), events.append)
    for _ in range(2):
        await starting.start()
    assert events == 2 * [TakeoverFailed(error=f"no new process can be started: {reason}")]


async def test_a_process_that_hangs_as_it_begins_makes_room_for_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that met a TLS file that hung was the last one that SIGUSR2 started."""
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", _HANGS])
    monkeypatch.setattr(replacement, "_TO_ASK", 0.1)
    events: list[Event] = []
    starting = Replacement(trio.Event(), events.append)
    for _ in range(2):
        await starting.start()
    assert events == 2 * [
        TakeoverFailed(
            error="the new process has asked for nothing within 0.1 s; does a disk hang?"
        ),
        TakeoverFailed(error="the new process ended with -9: see its own log"),
    ]


async def test_a_process_that_has_asked_for_the_sockets_waits_for_as_long_as_it_likes(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-c", _HANGS])
    processes: list[trio.Process] = []
    is_open, open_process = trio.Event(), trio.lowlevel.open_process

    async def opened(*command: Any, **options: Any) -> trio.Process:
        processes.append(await open_process(*command, **options))
        is_open.set()
        return processes[-1]

    monkeypatch.setattr(trio.lowlevel, "open_process", opened)
    events: list[Event] = []
    starting = Replacement(trio.Event(), events.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(starting.start)
        await is_open.wait()
        await trio.testing.wait_all_tasks_blocked()
        starting.asked(processes[0].pid)
        await trio.sleep(1000)
        assert events == []
        assert processes[0].returncode is None
        nursery.cancel_scope.cancel()
