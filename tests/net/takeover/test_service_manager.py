"""What systemd learns."""

import os
import socket
from pathlib import Path

import pytest

from leader_hints.net.takeover.service_manager import tell_ready


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_learns_which_process_serves(tmp_path: Path, abstract: bool) -> None:
    name = f"leader-hints-{os.getpid()}"
    bound = f"\0{name}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(bound)
        tell_ready({"NOTIFY_SOCKET": f"@{name}" if abstract else bound})
        manager.settimeout(1.0)
        assert manager.recv(100) == f"READY=1\nMAINPID={os.getpid()}".encode()


def test_without_a_service_manager_nothing_is_done(tmp_path: Path) -> None:
    tell_ready({})
    tell_ready({"NOTIFY_SOCKET": str(tmp_path / "gone")})
