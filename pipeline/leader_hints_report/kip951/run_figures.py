"""RunFigures: what kafka-producer-perf-test prints of a run, as numbers.

Tested in ``tests/pipeline/kip951/test_comparison.py``.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

#: The figures that are averaged over runs and compared between arms, and how they are headed.
COLUMNS: Final[dict[str, str]] = {
    "records_per_s": "records/s",
    "mb_per_s": "MB/s",
    "avg_ms": "avg, ms",
    "max_ms": "max, ms",
    "p50_ms": "50th, ms",
    "p95_ms": "95th, ms",
    "p99_ms": "99th, ms",
    "p999_ms": "99.9th, ms",
}
#: The share of records that a percentile's figure is above, by its column.
PERCENTILES: Final[dict[str, float]] = {
    "p50_ms": 0.5,
    "p95_ms": 0.95,
    "p99_ms": 0.99,
    "p999_ms": 0.999,
}


class RunFigures(BaseModel):
    """One run of an arm, or the average of its runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    arm: str = Field(description="What was measured.")
    run: int | None = Field(description="Number of the run; null: the average of the arm's runs.")
    records: float = Field(description="Records that were acknowledged.")
    failed: float = Field(default=0, description="Records that the producer gave up.")
    records_per_s: float = Field(
        description="Acknowledged records a second, from the first send to the last answer."
    )
    mb_per_s: float = Field(description="The same in units of 1,048,576 bytes of records.")
    avg_ms: float = Field(description="Mean latency of a record, milliseconds.")
    max_ms: float = Field(description="Longest latency.")
    p50_ms: float = Field(description="Latency of the record at rank floor(0.5 records), from 0.")
    p95_ms: float = Field(description="The same at 0.95.")
    p99_ms: float = Field(description="The same at 0.99.")
    p999_ms: float = Field(description="The same at 0.999.")


def average(runs: Sequence[RunFigures]) -> RunFigures:
    """Return the average of an arm's runs, as the KIP has it: also of the percentiles."""
    names = ("records", "failed", *COLUMNS)
    means = {name: fmean(getattr(run, name) for run in runs) for name in names}
    return RunFigures(arm=runs[0].arm, run=None, **means)
