"""Comparison: the runs of all arms side by side, their averages, and the changes to a baseline."""

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from leader_hints_report.errors import PipelineError
from leader_hints_report.kip951.run_figures import COLUMNS, RunFigures, average

#: Arms that others are compared with by default: as the KIP and as
#: `make bench WHAT=stall` call them.
BASELINES: Final = ("baseline", "hints off")


class Change(BaseModel):
    """What became of the averages of the baseline in another arm."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    arm: str = Field(description="The arm that is compared with the baseline.")
    percent: dict[str, float | None] = Field(
        description="By column, how much more (above 0) or less (below 0) its average is, in "
        "percent of the baseline's; null where the baseline's is 0."
    )


class Comparison(BaseModel):
    """The comparison of some runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    runs: tuple[RunFigures, ...] = Field(description="By arm, in the order of the arms.")
    averages: tuple[RunFigures, ...] = Field(description="One for each arm, in the same order.")
    baseline: str | None = Field(description="The arm that others are compared with.")
    changes: tuple[Change, ...] = Field(description="One for each other arm.")


class NoSuchArmError(PipelineError):
    """The baseline that was asked for is not among the arms."""


def compare(runs: Sequence[RunFigures], baseline: str | None = None) -> Comparison:
    """Put runs side by side: the baseline first, then the others as they come.

    Without ``baseline`` it is one of :data:`BASELINES`; where there is none, nothing is compared.

    :raises NoSuchArmError: no run is of that arm.
    """
    arms = list(dict.fromkeys(run.arm for run in runs))
    if baseline is None:
        baseline = next((name for name in BASELINES if name in arms), None)
    elif baseline not in arms:
        raise NoSuchArmError(f"no samples of the baseline {baseline!r}: the arms are {arms}")
    arms.sort(key=lambda arm: arm != baseline)
    by_arm = {arm: [run for run in runs if run.arm == arm] for arm in arms}
    averages = {arm: average(of_arm) for arm, of_arm in by_arm.items()}
    changes = [
        _change(averages[baseline], averages[arm])
        for arm in arms
        if baseline is not None and arm != baseline
    ]
    return Comparison(
        runs=tuple(run for of_arm in by_arm.values() for run in of_arm),
        averages=tuple(averages.values()),
        baseline=baseline,
        changes=tuple(changes),
    )


def _change(before: RunFigures, after: RunFigures) -> Change:
    percent = {}
    for name in COLUMNS:
        base = getattr(before, name)
        percent[name] = 100 * (getattr(after, name) - base) / base if base else None
    return Change(arm=after.arm, percent=percent)
