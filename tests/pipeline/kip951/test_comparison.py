"""Runs side by side."""

import pytest

from leader_hints_report.kip951.comparison import NoSuchArmError, compare
from leader_hints_report.kip951.run_figures import COLUMNS
from tests.pipeline.kip951.runs import make_run


def test_the_baseline_comes_first_and_the_others_are_held_against_its_average() -> None:
    runs = [make_run("a", 1, 2.0), make_run("baseline", 1, 3.0), make_run("baseline", 2, 5.0)]
    found = compare(runs)
    assert [(run.arm, run.run) for run in found.runs] == [
        ("baseline", 1),
        ("baseline", 2),
        ("a", 1),
    ]
    assert [(mean.arm, mean.run, mean.p999_ms) for mean in found.averages] == [
        ("baseline", None, 4.0),
        ("a", None, 2.0),
    ]
    assert found.baseline == "baseline"
    assert [(change.arm, change.percent) for change in found.changes] == [
        ("a", dict.fromkeys(COLUMNS, -50.0))
    ]


def test_the_baseline_may_be_named() -> None:
    found = compare([make_run("baseline", 1, 2.0), make_run("b", 1, 1.0)], baseline="b")
    assert [mean.arm for mean in found.averages] == ["b", "baseline"]
    assert found.changes[0].percent["avg_ms"] == 100.0


def test_a_baseline_without_runs_is_refused() -> None:
    with pytest.raises(NoSuchArmError, match=r"'b'.*\['a'\]"):
        compare([make_run("a", 1, 2.0)], baseline="b")


def test_without_a_known_baseline_nothing_is_compared() -> None:
    found = compare([make_run("a", 1, 2.0), make_run("b", 1, 2.0)])
    assert (found.baseline, found.changes) == (None, ())


def test_there_is_no_change_from_nothing() -> None:
    found = compare([make_run("baseline", 1, 0.0), make_run("b", 1, 2.0)])
    assert found.changes[0].percent["p50_ms"] is None
