"""KIP-951's published benchmarks, forecast by the model after calibrating on their baseline arm."""

from collections.abc import Callable, Mapping
from functools import cache
from statistics import mean
from typing import Any, Final, NamedTuple

from leader_hints_report.kip951.published import RollRow, published
from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.fleet import Fleet, make_fleet
from leader_hints_report.simulation.latencies import Base, Latencies
from leader_hints_report.simulation.simulate import Outcome, simulate

SEEDS: Final = (1, 2, 3)
#: Of clients before hints, and of those that use them.
_BEFORE, _AFTER = "3.6.2", "3.7.2"
_LATE_STEPS: Final = 12
_LATEST_MS: Final = 30_000.0
#: Median of the roll's base latency, as a share of its p99; its own was not published.
_MIDDLE: Final = 0.25


class Try(NamedTuple):
    """One way of modelling the KIP's clusters. ``calibrates``: whether how late Metadata is follows
    from the micro-benchmark's baseline arm; ``refused``: share of followers that ask too early."""

    name: str
    calibrates: bool
    refused: float


TRIES: Final = (
    Try("as measured here", calibrates=False, refused=0.0),
    Try("Metadata as late as the baseline arm has it", calibrates=True, refused=0.0),
    Try("that, and followers that ask a new leader too early", calibrates=True, refused=1.0),
)


class Micro(NamedTuple):
    """p99.9 in milliseconds: with brokers' hints, without, and without a back-off; and how late
    Metadata was taken to be."""

    baseline: float
    hints: float
    no_backoff: float
    late_ms: float


class Roll(NamedTuple):
    """A row: the p99 that the base was calibrated to, and the gain in percent."""

    row: RollRow
    baseline: float
    hints: float

    @property
    def gain(self) -> float:
        """Percent that the figure is lower with hints."""
        return 100 * (1 - self.hints / self.baseline)


def _fleet(document: Mapping[str, Any], version: str, parameters: Mapping[str, float]) -> Fleet:
    clients = [{**one, "version": version} for one in document["clients"]]
    return make_fleet({**document, "clients": clients, "parameters": dict(parameters)}, "KIP-951")


_MICRO: Final = {
    "cluster": {"brokers": 6, "mode": "kraft"},
    "topics": [{"name": "t", "partitions": 100}],
    "clients": [
        {"name": "p", "role": "producer", "records_per_second": 100_000, "acks": "all"},
    ],
    "event": {"kind": "reassignment", "batch": 1, "batch_pause_s": 3},
    "duration_s": 400,
}
_MICRO_BASE: Final = {"base_p50_ms": 6.0, "base_p99_ms": 13.0}


def micro(of: Try) -> Micro:
    """Forecast the micro-benchmark."""
    late = _late() if of.calibrates else 0.0
    return Micro(
        _p999(of, Mode.NO_PROXY, _BEFORE, late),
        _p999(of, Mode.NATIVE, _AFTER, late),
        _p999(of, Mode.NO_BACKOFF, _BEFORE, late),
        late,
    )


def _p999(of: Try, mode: Mode, version: str, late: float) -> float:
    parameters = {**_MICRO_BASE, "late_metadata_ms": late, "refused_share": of.refused}
    fleet = _fleet(_MICRO, version, parameters)
    return mean(simulate(fleet, mode, seed).produce.percentile(0.999) for seed in SEEDS)


@cache
def _late() -> float:
    """How late Metadata must be for the baseline arm to have its published p99.9."""
    stated = mean(float(run.p999_ms) for run in published().micro.runs if run.arm == "baseline")
    return _solve(lambda late: _p999(TRIES[1], Mode.NO_PROXY, _BEFORE, late), stated, _LATEST_MS)


def _solve(value: Callable[[float], float], wanted: float, most: float) -> float:
    """Return where a rising function has a value."""
    low, high = 0.0, most
    for _ in range(_LATE_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if value(middle) < wanted else (low, middle)
    return high


def _roll_document(partitions: str, acks: str) -> dict[str, Any]:
    high = partitions == "high"
    clients: list[dict[str, Any]] = [
        {
            "name": "p",
            "role": "producer",
            "count": 60 if high else 6,
            "records_per_second": 23_400 if high else 234_000,
            "acks": acks,
        },
        *(
            {"name": f"c{number}", "role": "consumer", "count": 60 if high else 6}
            for number in range(3)
        ),
    ]
    return {
        "cluster": {"brokers": 6, "mode": "kraft"},
        "topics": [{"name": "t", "partitions": 9000 if high else 108}],
        "clients": clients,
        "event": {"kind": "rolling_restart", "pause_s": 600},
        "duration_s": 4200,
    }


def rolls(of: Try, late: float) -> list[Roll]:
    """Forecast the rows of the roll. Each base is calibrated so that the baseline arm has its
    published p99; ``late``: how late Metadata is."""
    rows = []
    for partitions, acks in dict.fromkeys(
        (row.partitions, row.acks) for row in published().roll.rows
    ):
        document = _roll_document(partitions, acks)
        parameters = {"late_metadata_ms": late, "refused_share": of.refused}
        arms = [
            [simulate(_fleet(document, version, parameters), mode, seed) for seed in SEEDS]
            for mode, version in ((Mode.NO_PROXY, _BEFORE), (Mode.NATIVE, _AFTER))
        ]
        rows += [
            _row(row, arms[0], arms[1])
            for row in published().roll.rows
            if (row.partitions, row.acks) == (partitions, acks)
        ]
    return rows


def _row(row: RollRow, before: list[Outcome], after: list[Outcome]) -> Roll:
    e2e = row.figure == "p99 E2E"
    stated = float(row.baseline_ms)
    base = _solve(lambda p99: _p99(before, p99, e2e=e2e), stated, 2 * stated)
    return Roll(row, _p99(before, base, e2e=e2e), _p99(after, base, e2e=e2e))


def _p99(outcomes: list[Outcome], base_p99: float, *, e2e: bool) -> float:
    base = Base(base_p99 * _MIDDLE, base_p99, 3.3)
    found = []
    for outcome in outcomes:
        stalls = outcome.read_stalls if e2e else outcome.stalls
        found.append(Latencies(outcome.records, base, *stalls).percentile(0.99))
    return mean(found)
