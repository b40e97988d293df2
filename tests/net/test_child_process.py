"""The end of a process that this one has started is noticed, whatever the system refuses."""

import subprocess
import sys

import pytest
import trio
import trio.testing

from leader_hints.net.child_process import ended

_SECONDS = 20.0


async def test_the_end_is_noticed_without_pidfd_and_without_room_for_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ended this process with all its links, and not that one alone.

    Linux before 5.3 has no pidfd_open, older sandboxes do not let it through, and it needs a
    descriptor. Trio then has a thread wait, in a task of its own: what ends that ends the run.
    """

    async def refused(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("trio._subprocess.can_try_pidfd_open", False)
    monkeypatch.setattr("trio._subprocess.wait_child_exiting", refused)
    command = [sys.executable, "-c", "input(); raise SystemExit(7)"]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE)
    assert process.stdin is not None
    with trio.fail_after(_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ended, process)
            await trio.testing.wait_all_tasks_blocked()
            await process.stdin.send_all(b"\n")
        assert await ended(process) == 7
    await process.stdin.aclose()
