"""What systemd learns."""

import contextlib
import os
import socket
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from leader_hints.net.takeover.service_manager import tell_ready


@pytest.mark.parametrize("abstract", [False, True])
async def test_systemd_learns_which_process_serves(tmp_path: Path, abstract: bool) -> None:
    name = f"leader-hints-{os.getpid()}"
    bound = f"\0{name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(bound)
        await tell_ready({"NOTIFY_SOCKET": f"@{name}" if abstract else bound})
        manager.settimeout(1.0)
        assert manager.recv(100) == f"READY=1\nMAINPID={os.getpid()}".encode()


async def test_systemd_learns_it_though_its_queue_is_full_at_first(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """As while it reloads. It would have ended a process that served, since it did not know."""
    path = str(tmp_path / "notify")
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other,
    ):
        manager.bind(path)
        other.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                other.sendto(b"WATCHDOG=1", path)
                sent += 1
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell_ready, {"NOTIFY_SOCKET": path})
            await trio.sleep(60)
            got = [manager.recv(100) for _ in range(sent)]
            await trio.sleep(1)
            got.append(manager.recv(100))
        assert got.pop() == f"READY=1\nMAINPID={os.getpid()}".encode()
        assert {*got} == {b"WATCHDOG=1"}


async def test_without_a_service_manager_nothing_is_done(tmp_path: Path) -> None:
    await tell_ready({})
    await tell_ready({"NOTIFY_SOCKET": str(tmp_path / "gone")})
