"""Worlds on several processes break what they break in one, and processes end."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.rules import DEFAULT_RULES
from tests.harness.waiting import until
from tests.world import product, workers
from tests.world.run import Life, live
from tests.world.workers import lived

#: The command as in a terminal: what a shell starts with & ignores SIGINT.
_COMMAND = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["tests.world", "--workers", "2"]
runpy.run_module("tests.world", run_name="__main__", alter_sys=True)
"""
#: The same on one process, which is interrupted in the middle of a world.
_IN_A_WORLD = """
import runpy, signal, sys
from tests.world.schedule import Schedule
run = Schedule.run_with
def interrupted(schedule, *arguments):
    schedule.at(1.0, signal.raise_signal, signal.SIGINT)
    run(schedule, *arguments)
Schedule.run_with = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["tests.world", "--workers", "1"]
runpy.run_module("tests.world", run_name="__main__", alter_sys=True)
"""


def test_worlds_break_the_same_on_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    unbound = replace(DEFAULT_RULES, deadline=1.0, link_second=10.0, shared=1.0, grace=1.0)
    monkeypatch.setattr(product, "_RULES", unbound)
    # A process after the other.
    monkeypatch.setattr(workers, "_LIVES", 1)
    of_three = [*lived(range(10, 15), 3)]
    assert of_three == [*lived(range(10, 15), 1)]
    assert [seed for seed, _ in of_three] == [*range(10, 15)]
    assert any(rule for _, rule in of_three)


@pytest.mark.parametrize("lives", [1, 2, 50])
def test_a_world_that_ends_its_process_is_named(
    lives: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_at_three(seed: int) -> Life:
        assert seed != 3
        return live(0)

    monkeypatch.setattr(workers, "live", fails_at_three)
    monkeypatch.setattr(workers, "_LIVES", lives)
    worlds = lived(range(100), 2)
    assert [next(worlds)[0] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(RuntimeError, match="seed 3"):
        next(worlds)


def _ignore_interrupts(parent: int) -> list[bool]:
    """Whether each child of a process ignores SIGINT."""
    states = []
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        # One may end meanwhile: ctypes starts ldconfig when it looks for a library.
        with suppress(FileNotFoundError, ProcessLookupError):
            states.append(Path(f"/proc/{child}/status").read_text())
    masks = [int(state.partition("SigIgn:")[2].split()[0], 16) for state in states]
    return [bool(mask & 1 << signal.SIGINT - 1) for mask in masks]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells when the processes are there")
def test_an_interrupt_ends_all_processes() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _COMMAND],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            until(lambda: _ignore_interrupts(process.pid) == [True, True], "two workers")
            # As a terminal does it: all of them get it.
            os.killpg(process.pid, signal.SIGINT)
            printed, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors) == (130, "")
    assert "of them broke a rule" in printed
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_an_interrupt_in_the_middle_of_a_world_ends_with_one_line() -> None:
    """It ended with a traceback: Trio puts what its tasks raise into a group."""
    ended = subprocess.run(
        [sys.executable, "-c", _IN_A_WORLD], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "")
    assert ended.stdout == "0 worlds lived from seed 0 on, 0 of them broke a rule\n"
