"""The demo as a whole: it passes when all is well, and fails for each thing that it promises."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import demo.__main__
from demo.faults import find_faults
from demo.move import Move
from demo.screen import Screen
from demo.stage import Stage, open_stage, play_round
from leader_hints.mock.cluster import MockCluster
from tests.harness.waiting import until

#: A busy machine may stop a process for longer than the usual hold; then a move has no hint.
_PATIENT = {
    "LEADER_HINTS_HOLD__DEADLINE_MS": "5000",
    "LEADER_HINTS_HOLD__LINK_MS_PER_SECOND": "1000",
}
#: `python -m demo`, with these settings.
_PATIENT_DEMO = f"""
import functools, runpy, demo.stage
demo.stage.open_stage = functools.partial(demo.stage.open_stage, settings={_PATIENT})
runpy.run_module("demo", run_name="__main__", alter_sys=True)
"""


def run_main(monkeypatch: pytest.MonkeyPatch, hints_on: bool = True) -> int:
    """One short round of the demo; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["demo", "--plain", "--moves", "2"])
    monkeypatch.setattr(demo.__main__, "_ROUNDS", (hints_on,))
    return demo.__main__.main()


def test_it_passes_as_users_run_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PATIENT_DEMO, "--moves", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = ran.stdout.splitlines()
    assert sum(" -> " in line for line in lines) == 4
    assert sum(" hint x" in line for line in lines) == 2
    assert any(line.split()[:6] == ["|", "leader", "moves", "|", "2", "|"] for line in lines)
    assert "PASSED" in ran.stdout
    assert ran.stderr == ""


def test_many_moves_with_hints_lose_and_double_nothing() -> None:
    with open_stage(hints_on=True, settings=_PATIENT) as stage:
        report = play_round(stage, stage.bootstrap, 30, lambda move: None)
    assert find_faults([report]) == []
    assert len(report.moves) == 30
    assert all(move.hints for move in report.moves)


@contextmanager
def stage_of_brokers_that_advertise_themselves(hints_on: bool) -> Iterator[Stage]:
    with open_stage(hints_on) as stage:
        for node, (host, port) in stage.cluster.brokers.items():
            stage.cluster.set_advertised(node, host, port)
        yield stage


@pytest.mark.parametrize("hints_on", [True, False])
def test_it_fails_if_clients_are_sent_past_the_proxy(
    hints_on: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo.__main__, "open_stage", stage_of_brokers_that_advertise_themselves)
    assert run_main(monkeypatch, hints_on) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "FAILED" in shown
    assert "traffic went past the proxy: a client connected to 127.0.0.1:" in shown
    assert "the clients sent" in shown
    assert ("Produce requests reached the brokers" in shown) == hints_on


def test_it_fails_if_the_brokers_could_give_hints_themselves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("demo.stage.BEFORE_HINTS", {"Produce": 10, "Fetch": 16})
    assert run_main(monkeypatch) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "mock broker 1 offers Produce up to 10, not 9, so a hint could come from it" in shown


def test_it_fails_if_the_mock_cluster_crashes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stages: list[Stage] = []

    @contextmanager
    def remembered_stage(hints_on: bool) -> Iterator[Stage]:
        with open_stage(hints_on) as stage:
            stages.append(stage)
            yield stage

    def crash(self: Screen, move: Move) -> None:
        cluster: MockCluster = stages[-1].cluster
        os.kill(cluster.pid, signal.SIGKILL)
        until(lambda: not cluster.alive, "the crash shows", 10)

    monkeypatch.setattr(demo.__main__, "open_stage", remembered_stage)
    monkeypatch.setattr(Screen, "move", crash)
    assert run_main(monkeypatch) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "FAILED: - the mock cluster's process" in shown
    assert "killed by SIGKILL" in shown
