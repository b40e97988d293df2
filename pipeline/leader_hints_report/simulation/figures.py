"""The figures of simulations: of one, and of many seeds with intervals."""

from collections.abc import Iterable, Sequence
from statistics import mean, stdev
from typing import Final, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from leader_hints_report.simulation.arms import Arm
from leader_hints_report.simulation.arrays import Floats
from leader_hints_report.simulation.latencies import SHARES
from leader_hints_report.simulation.layout import Layout
from leader_hints_report.simulation.load.requests import Api, BrokerLoad
from leader_hints_report.simulation.simulate import Outcome, simulate

#: Milliseconds by which records are late.
LATE: Final = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000)
#: Two-sided 95 % of Student's t, by degrees of freedom; beyond them it follows from the normal one.
_T: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
_NORMAL: Final = 1.96


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Interval(_Part):
    """A figure over seeds."""

    mean: float = Field(description="Mean of all seeds.")
    low: float = Field(description="Low end of the mean's 95 % interval; of one seed, the figure.")
    high: float = Field(description="High end.")


class Busiest(_Part):
    """The busiest second of all brokers and seeds."""

    broker: int = Field(description="The broker, numbered from 0.")
    begins_s: float = Field(description="When it begins, in seconds of the event.")
    requests: float = Field(description="Requests that the broker gets in it.")
    seed: int = Field(description="The seed.")


class ApiLoad(_Part):
    """The load of one API, by broker: requests a second, means over seeds."""

    api: str = Field(description="Metadata or ListOffsets.")
    peak: list[float] = Field(description="In each broker's busiest second, without polls.")
    begins_s: list[float] = Field(description="When that second begins, with the first seed.")
    clients: list[float] = Field(description="Of clients, over the event.")
    questions: list[float] = Field(description="Of proxies that hold errors, over the event.")
    polls: list[float] = Field(description="Of proxies' polls.")
    busiest: Busiest = Field(description="Which broker gets most in a second, and when.")


class ArmFigures(_Part):
    """What came of one arm, by the figure's name."""

    arm: str = Field(description="The mode, and the changed setting.")
    mode: str = Field(description="The mode.")
    change: str = Field(description="The changed setting, empty for none.")
    figures: dict[str, Interval] = Field(description="By name; docs/simulation.md has them.")
    load: list[ApiLoad] = Field(description="Load on each broker.")


class Run(NamedTuple):
    """The figures of one simulation, by name, and the load on brokers."""

    seed: int
    figures: dict[str, float]
    load: dict[Api, BrokerLoad]


def percent_name(share: float) -> str:
    """Return p99.9 for 0.999."""
    return f"p{share * 100:g}"


def run(arm: Arm, seed: int, where: Layout | None = None) -> Run:
    """Simulate an arm once, and return its figures."""
    outcome = simulate(arm.fleet, arm.mode, seed, where)
    return Run(seed, figures_of(outcome), outcome.load)


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
    for api, load in outcome.load.items():
        figures[f"{api} peak a second"] = float(load.peak.max())
        figures[f"{api} peak a second, median broker"] = float(np.median(load.peak))
        figures[f"{api} mean a second"] = float(load.mean.mean())
        figures[f"{api} polls a second"] = float(load.polls.mean())
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
        "Metadata requests of proxies": outcome.questions[Api.METADATA],
        "ListOffsets requests": outcome.questions[Api.LIST_OFFSETS],
        "held s": counts.held_ms / 1000,
        "UpdateMetadata MB": outcome.update_bytes / 1e6,
        "minutes": outcome.duration_ms / 60_000,
    }


def _of_records(lengths: Floats, first: Floats) -> Floats:
    return lengths[first > 0]


def over_seeds(arm: Arm, runs: Sequence[Run]) -> ArmFigures:
    """Return the figures of all seeds of an arm."""
    figures = {name: interval(one.figures[name] for one in runs) for name in runs[0].figures}
    load = [_load(api, runs) for api in Api]
    return ArmFigures(arm=arm.name, mode=arm.mode, change=arm.change, figures=figures, load=load)


def _load(api: Api, runs: Sequence[Run]) -> ApiLoad:
    def means(columns: Iterable[Floats]) -> list[float]:
        return [*np.mean([*columns], axis=0).tolist()]

    loads = [one.load[api] for one in runs]
    most = max(runs, key=lambda one: float(one.load[api].peak.max()))
    of, broker = most.load[api], int(most.load[api].peak.argmax())
    return ApiLoad(
        api=api,
        peak=means(one.peak for one in loads),
        begins_s=[*loads[0].begins_s.tolist()],
        clients=means(one.clients for one in loads),
        questions=means(one.questions for one in loads),
        polls=means(one.polls for one in loads),
        busiest=Busiest(
            broker=broker,
            begins_s=float(of.begins_s[broker]),
            requests=float(of.peak[broker]),
            seed=most.seed,
        ),
    )


def interval(values: Iterable[float]) -> Interval:
    """Return mean and 95 % interval of the mean, of figures that are never below 0."""
    given = [*values]
    middle = mean(given)
    if len(given) == 1:
        return Interval(mean=middle, low=middle, high=middle)
    free = len(given) - 1
    t = _T[free - 1] if free <= len(_T) else _student(free)
    around = t * stdev(given) / len(given) ** 0.5
    return Interval(mean=middle, low=max(middle - around, 0.0), high=middle + around)


def _student(free: int) -> float:
    """Return Student's t by the first terms of its series (Abramowitz and Stegun, 26.7.5)."""
    z = _NORMAL
    return z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
