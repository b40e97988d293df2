"""``python -m bench simulation``: the model beside what was measured, and its speed."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Final

import click

from bench import forecast_moves
from bench.forecast_kip951 import TRIES, Micro, Roll, Try, micro, rolls
from bench.forecast_moves import CASES, TRIED_MOVES, Compared, compare
from bench.forecast_speed import FLEETS, Speed, measure
from bench.report import Verdict, finish, table, target_table
from bench.samples import Samples, from_samples_option
from leader_hints_report.kip951.published import published
from tests.harness import maven

_PAGE = maven.ROOT / "docs" / "simulation.md"
_COMPARISON: Final = "speed"
#: Points by which a gain may differ; share by which p99.9 may; distance of two distributions.
_MOST_POINTS, _MOST_AWAY, _MOST_APART = 3.0, 0.25, 0.15
#: Seconds and megabytes at most, by fleet.
_BOUNDS: Final = dict(zip(FLEETS, ((10.0, 2048.0), (120.0, 2048.0), (120.0, 2048.0)), strict=True))
#: The try that the verdicts are about.
_JUDGED: Final = TRIES[1]


@click.command("simulation")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(from_samples: bool, write: bool) -> None:
    """Hold the simulation against KIP-951's figures and this repository's samples, and time it.

    Only the speed is measured, all else is computed. Ends with 1 where a target is missed.
    """
    samples = Samples.read("simulation") if from_samples else _measured()
    speeds = {name: samples.get(Speed, _COMPARISON, name) for name in FLEETS}
    micros = {of: micro(of) for of in TRIES}
    rows = {of: rolls(of, micros[of].late_ms) for of in TRIES}
    compared = compare()
    verdicts = [
        *_gains(rows[_JUDGED]),
        *_p999(micros),
        _distances(compared),
        *_speeds(speeds),
    ]
    text = "\n\n".join(
        [
            "KIP-951's roll: gain of p99 in percent, published and by three tries:",
            _roll_table(rows),
            "KIP-951's micro-benchmark: p99.9 in ms, averages of the runs, by the same tries:",
            _micro_table(micros),
            "Stalls that this repository's benches measured, and the model's; KS: the "
            "Kolmogorov-Smirnov distance of both distributions. It was calibrated on those that "
            "say so, and on former ones of Java 3.6 and 2.8 without idempotence in front of 3.6.2:",
            _distance_table(compared),
            f"What was tried, with {TRIED_MOVES} moves of each of the distributions that were not "
            "calibrated on:",
            tried_table(),
            "One roll, in one process, CPU seconds and memory:",
            _speed_table(speeds),
            target_table(verdicts),
        ]
    )
    finish(_PAGE, "simulation", text, samples, verdicts, write=write)


def _measured() -> Samples:
    samples = Samples()
    for name in FLEETS:
        samples.add(_COMPARISON, name, measure(name))
    return samples


def _gains(rows: Sequence[Roll]) -> list[Verdict]:
    verdicts = []
    for of in rows:
        stated = float(of.row.gain_percent)
        met = abs(of.gain - stated) <= _MOST_POINTS and (of.gain >= 0 or not stated)
        text = f"{of.gain:.1f}, published {stated:g}"
        verdicts.append((of.row.name, text, f"within {_MOST_POINTS:g} points", met))
    return verdicts


def _p999(micros: Mapping[Try, Micro]) -> list[Verdict]:
    stated = _stated()
    verdicts = []
    # Followers that ask too early are the last try's; nothing of the arm with hints is used.
    of = micros[TRIES[-1]]
    for arm, value in (("baseline", of.baseline), ("KIP-951", of.hints)):
        away = value / stated[arm] - 1
        text = f"{value:.0f} ms, published {stated[arm]:.0f} ({away:+.0%})"
        met = abs(away) <= _MOST_AWAY
        verdicts.append((f"micro-benchmark, p99.9, {arm}", text, f"within {_MOST_AWAY:.0%}", met))
    return verdicts


def _stated() -> dict[str, float]:
    runs = published().micro.runs
    return {
        arm: mean(float(run.p999_ms) for run in runs if run.arm == arm)
        for arm in ("baseline", "KIP-951", "rejected alternative")
    }


def _distances(compared: Sequence[Compared]) -> Verdict:
    others = [one for one in compared if not one.case.calibrated]
    near = sum(one.distance <= _MOST_APART for one in others)
    text = f"{near} of {len(others)} distributions that were not calibrated on"
    return f"KS distance at most {_MOST_APART}", text, "all", near == len(others)


def _speeds(speeds: Mapping[str, Speed]) -> list[Verdict]:
    verdicts = []
    for name, speed in speeds.items():
        seconds, megabytes = _BOUNDS[name]
        text = f"{speed.seconds:.1f} s, {speed.megabytes:.0f} MB"
        met = speed.seconds <= seconds and speed.megabytes <= megabytes
        verdicts.append((name, text, f"at most {seconds:.0f} s, {megabytes:.0f} MB", met))
    return verdicts


def _roll_table(rows: Mapping[Try, Sequence[Roll]]) -> str:
    head = ["row", "published", *(of.name for of in TRIES)]
    lines = [
        [
            of.row.name.removeprefix("roll, "),
            f"{of.row.gain_percent}",
            *(f"{rows[by][place].gain:.1f}" for by in TRIES),
        ]
        for place, of in enumerate(rows[TRIES[0]])
    ]
    return table(head, lines)


def _micro_table(micros: Mapping[Try, Micro]) -> str:
    head = ["try", "Metadata late by, ms", "baseline", "KIP-951", "rejected alternative"]
    lines = [["published", "", *(f"{value:.0f}" for value in _stated().values())]]
    for by, of in micros.items():
        values = (of.late_ms, of.baseline, of.hints, of.no_backoff)
        lines.append([by.name, *(f"{value:.0f}" for value in values)])
    return table(head, lines)


def _distance_table(compared: Sequence[Compared]) -> str:
    head = ["samples", "calibrated on", "stall", "model, median ms", "measured", "KS", "met"]
    lines = [
        [
            of.case.name,
            "yes" if of.case.calibrated else "",
            of.kind,
            f"{of.model:.0f}",
            f"{of.measured:.0f}",
            f"{of.distance:.2f}",
            "yes" if of.distance <= _MOST_APART else "no",
        ]
        for of in compared
    ]
    return table(head, lines)


def tried_table() -> str:
    """Return how near the model's distributions are with other parameters."""
    head = ["tried", "parameter", "distances at most 0.15", "mean distance"]
    cases = [case for case in CASES if not case.calibrated]
    rows = []
    for name, parameters in forecast_moves.TRIES:
        distances = [of.distance for of in compare(cases, parameters, TRIED_MOVES)]
        near = sum(one <= _MOST_APART for one in distances)
        changed = ", ".join(f"`{of}` {value:g}" for of, value in parameters.items())
        rows.append([name, changed, f"{near} of {len(distances)}", f"{mean(distances):.3f}"])
    return table(head, rows)


def _speed_table(speeds: Mapping[str, Speed]) -> str:
    lines = [[name, f"{of.seconds:.1f}", f"{of.megabytes:.0f}"] for name, of in speeds.items()]
    return table(["fleet", "CPU seconds", "MB"], lines)
