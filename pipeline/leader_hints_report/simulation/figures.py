"""The figures of simulations: of one, and of many seeds with intervals."""

from collections.abc import Iterable, Sequence
from statistics import mean, stdev
from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from leader_hints_report.simulation.arms import Arm
from leader_hints_report.simulation.arrays import Floats
from leader_hints_report.simulation.latencies import SHARES
from leader_hints_report.simulation.layout import Layout
from leader_hints_report.simulation.simulate import Outcome, simulate

#: Milliseconds by which records are late.
LATE: Final = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000)
#: Two-sided 95 % of Student's t, by degrees of freedom; beyond them the normal one.
_T: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
_NORMAL: Final = 1.96


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Interval(_Part):
    """A figure over seeds."""

    mean: float = Field(description="Mean of all seeds.")
    low: float = Field(description="Low end of the mean's 95 % interval; of one seed, the figure.")
    high: float = Field(description="High end.")


class ArmFigures(_Part):
    """What came of one arm, by the figure's name."""

    arm: str = Field(description="The mode, and the changed setting.")
    mode: str = Field(description="The mode.")
    change: str = Field(description="The changed setting, empty for none.")
    figures: dict[str, Interval] = Field(description="By name; docs/simulation.md has them.")


def percent_name(share: float) -> str:
    """Return p99.9 for 0.999."""
    return f"p{share * 100:g}"


def run(arm: Arm, seed: int, where: Layout | None = None) -> dict[str, float]:
    """Simulate an arm once, and return its figures."""
    return figures_of(simulate(arm.fleet, arm.mode, seed, where))


def figures_of(outcome: Outcome) -> dict[str, float]:
    """Return the figures of one simulation."""
    figures: dict[str, float] = {}
    for name, latencies in (("produce", outcome.produce), ("e2e", outcome.consume)):
        for share in SHARES:
            figures[f"{name} {percent_name(share)} ms"] = latencies.percentile(share)
        for late in LATE:
            figures[f"{name} late by {late} ms"] = latencies.late(late)
    for name, lengths in (
        ("produce", outcome.stalls.lengths),
        ("e2e", _of_records(outcome.read_stalls.lengths, outcome.read_stalls.first)),
    ):
        for share in (0.5, 0.9, 0.99, 1.0):
            value = float(np.quantile(lengths, share)) if len(lengths) else 0.0
            figures[f"{name} stall {percent_name(share) if share < 1 else 'max'} ms"] = value
    counts = outcome.counts
    return {
        **figures,
        "stalls": float(len(outcome.stalls.lengths)),
        "stalled s": float(outcome.stalls.lengths.sum()) / 1000,
        "moves": float(outcome.moves),
        "records": outcome.records,
        "errors": counts.errors,
        "hinted errors": counts.hinted,
        "Metadata requests": counts.metadata,
        "ListOffsets requests": counts.list_offsets,
        "held s": counts.held_ms / 1000,
        "UpdateMetadata MB": outcome.update_bytes / 1e6,
        "minutes": outcome.duration_ms / 60_000,
    }


def _of_records(lengths: Floats, first: Floats) -> Floats:
    return lengths[first > 0]


def over_seeds(arm: Arm, runs: Sequence[dict[str, float]]) -> ArmFigures:
    """Return the figures of all seeds of an arm."""
    figures = {name: interval(one[name] for one in runs) for name in runs[0]}
    return ArmFigures(arm=arm.name, mode=arm.mode, change=arm.change, figures=figures)


def interval(values: Iterable[float]) -> Interval:
    """Return mean and 95 % interval of the mean, of figures that are never below 0."""
    given = [*values]
    middle = mean(given)
    if len(given) == 1:
        return Interval(mean=middle, low=middle, high=middle)
    free = len(given) - 1
    t = _T[free - 1] if free <= len(_T) else _NORMAL
    around = t * stdev(given) / len(given) ** 0.5
    return Interval(mean=middle, low=max(middle - around, 0.0), high=middle + around)
