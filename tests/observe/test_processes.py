import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from leader_hints.observe.processes import Processes
from tests.harness.waiting import until

#: Uses some time of the processor, more than half a second for a kernel that counts in hundredths,
#: says so, and waits.
_BUSY = """
import sys, time
while time.process_time() < 0.55: pass
print("done", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        [sys.executable, "-c", _BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        yield process
        process.kill()


def _read(*others: int) -> dict[str, float]:
    return {metric.name: metric.samples[0].value for metric in Processes().collect(others)}


def test_what_workers_take_is_added(child: "subprocess.Popen[bytes]") -> None:
    alone, together = _read(), _read(child.pid)
    assert together["process_cpu_seconds"] >= alone["process_cpu_seconds"] + 0.5
    for name in ("process_resident_memory_bytes", "process_virtual_memory_bytes"):
        assert together[name] > alone[name]
    assert together["process_open_fds"] >= alone["process_open_fds"] + 3
    assert together["process_start_time_seconds"] == alone["process_start_time_seconds"]


def test_a_worker_that_has_ended_takes_no_seconds_back(child: "subprocess.Popen[bytes]") -> None:
    before = _read(child.pid)["process_cpu_seconds"]
    child.kill()
    child.wait()
    until(lambda: not os.path.exists(f"/proc/{child.pid}"), "it is gone")
    assert _read(child.pid)["process_cpu_seconds"] >= before
