"""Published: the figures of KIP-951's own benchmarks, and their arithmetic worked out again."""

import json
from collections.abc import Iterator, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from leader_hints_report.kip951.run_figures import RunFigures

_MEGABYTE = 1024 * 1024


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PublishedRun(_Part):
    """One run of the micro-benchmark. Decimals keep the digits that were published."""

    arm: str
    run: int
    records: int
    records_per_s: Decimal
    mb_per_s: Decimal
    avg_ms: Decimal
    max_ms: Decimal
    p50_ms: Decimal
    p95_ms: Decimal
    p99_ms: Decimal
    p999_ms: Decimal


class MicroBenchmark(_Part):
    """kafka-producer-perf-test while all leaders move once."""

    setup: str
    record_bytes: int
    runs: tuple[PublishedRun, ...]
    stated_p999_ms: dict[str, Decimal]
    stated_fall_percent: Decimal


class RollRow(_Part):
    """One row of the roll simulation: averages as stated, and the runs that they are of."""

    acks: Literal["all", "1"]
    partitions: Literal["high", "low"]
    figure: Literal["p99 E2E", "p99 produce"]
    baseline_ms: Decimal
    baseline_runs_ms: tuple[Decimal, ...]
    kip_ms: Decimal
    kip_runs_ms: tuple[Decimal, ...]
    gain_percent: Decimal

    @property
    def name(self) -> str:
        """What the row is about, in words."""
        return f"roll, acks={self.acks}, {self.partitions} partitions, {self.figure}"


class RollSimulation(_Part):
    """OpenMessagingBenchmark while brokers are restarted one after the other."""

    setup: str
    rows: tuple[RollRow, ...]


class Published(_Part):
    """All published figures and where they stand."""

    title: str
    url: str
    micro: MicroBenchmark
    roll: RollSimulation

    @property
    def runs(self) -> tuple[RunFigures, ...]:
        """The runs of the micro-benchmark, in the form of one's own."""
        return tuple(RunFigures.model_validate(run.model_dump()) for run in self.micro.runs)


class Verdict(StrEnum):
    """Whether a stated figure is the one that its own data give."""

    AGREES = "agrees"
    CUT = "digits cut off, not rounded"
    DIFFERS = "differs"


class Check(_Part):
    """One stated figure, and the same computed from its stated parts."""

    what: str = Field(description="The figure, in words.")
    unit: str = Field(description="Its unit: ms, %, or MB/s.")
    stated: Decimal = Field(description="As published.")
    computed: Decimal = Field(description="Worked out again.")
    verdict: Verdict = Field(description="By the digits that were published.")


@cache
def published() -> Published:
    """The data set that comes with this package."""
    text = (
        resources.files("leader_hints_report.kip951").joinpath("published.json").read_text("utf-8")
    )
    return Published.model_validate(json.loads(text, parse_float=Decimal))


def checks(data: Published) -> tuple[Check, ...]:
    """Work out again all that can be."""
    return (*_micro_checks(data.micro), *_roll_checks(data.roll))


def _micro_checks(micro: MicroBenchmark) -> Iterator[Check]:
    averages = {
        arm: _mean([run.p999_ms for run in micro.runs if run.arm == arm])
        for arm in micro.stated_p999_ms
    }
    fall = _fall(averages["baseline"], averages["KIP-951"])
    yield _check("p99.9, fall from baseline to KIP-951", "%", micro.stated_fall_percent, fall)
    for arm, stated in micro.stated_p999_ms.items():
        yield _check(f"p99.9, average of the runs, {arm}", "ms", stated, averages[arm])
    for run in micro.runs:
        megabytes = run.records_per_s * micro.record_bytes / _MEGABYTE
        yield _check(f"bytes a second, {run.arm}, run {run.run}", "MB/s", run.mb_per_s, megabytes)


def _roll_checks(roll: RollSimulation) -> Iterator[Check]:
    for row in roll.rows:
        for arm, stated, runs in (
            ("baseline", row.baseline_ms, row.baseline_runs_ms),
            ("KIP-951", row.kip_ms, row.kip_runs_ms),
        ):
            yield _check(f"{row.name}, average of the runs, {arm}", "ms", stated, _mean(runs))
        gain = _fall(_mean(row.baseline_runs_ms), _mean(row.kip_runs_ms))
        yield _check(f"{row.name}, gain", "%", row.gain_percent, gain)


def _mean(values: Sequence[Decimal]) -> Decimal:
    return sum(values, Decimal(0)) / len(values)


def _fall(before: Decimal, after: Decimal) -> Decimal:
    """How much less ``after`` is, in percent."""
    return 100 * (before - after) / before


def _check(what: str, unit: str, stated: Decimal, computed: Decimal) -> Check:
    if computed.quantize(stated, ROUND_HALF_UP) == stated:
        verdict = Verdict.AGREES
    elif computed.quantize(stated, ROUND_DOWN) == stated:
        verdict = Verdict.CUT
    else:
        verdict = Verdict.DIFFERS
    return Check(what=what, unit=unit, stated=stated, computed=computed, verdict=verdict)
