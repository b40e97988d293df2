"""Which pause between brokers keeps a percentile below a limit: found by halving.

A longer pause changes no stall: it spreads the same stalls over more records. So the stalls are
simulated once for each seed, and only the number of records follows from the pause.
"""

import math
from collections.abc import Sequence
from statistics import mean
from typing import Final, NamedTuple

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.arms import Arm
from leader_hints_report.simulation.fleet import RollingRestart
from leader_hints_report.simulation.layout import layout
from leader_hints_report.simulation.moves import least_pause
from leader_hints_report.simulation.simulate import simulate

_LONGEST: Final = 86_400


class Pause(NamedTuple):
    """The shortest pause of whole seconds that is long enough; ``None``: none of up to a day is.
    ``value``: the percentile with it, of the mean over seeds."""

    arm: str
    pause_s: float | None
    value: float
    hours: float


def shortest_pause(arm: Arm, share: float, limit_ms: float, seeds: Sequence[int]) -> Pause:
    """Search the shortest pause between brokers with which the percentile is below a limit.

    :raises PipelineError: the event is no rolling restart, or there are no producers.
    """
    event = arm.fleet.event
    if not isinstance(event, RollingRestart):
        raise PipelineError(f"--pause-for: event {event.kind} has no pause between brokers")
    where = layout(arm.fleet)
    if not where.records_per_ms:
        raise PipelineError("--pause-for: there are no producers, so no latency of theirs")
    # What is asked for is of the roll itself, however long figures are to be about.
    fleet = arm.fleet.model_copy(update={"duration_s": 0.0})
    outcomes = [simulate(fleet, arm.mode, seed, where) for seed in seeds]
    longer = (where.brokers - 1) * 1000.0

    def value(pause: float) -> float:
        more = (pause - event.pause_s) * longer
        records = more * where.records_per_ms
        return mean(
            one.produce.of_records(one.records + records).percentile(share) for one in outcomes
        )

    def hours(pause: float) -> float:
        return (outcomes[0].duration_ms + (pause - event.pause_s) * longer) / 3_600_000

    # Rounded: times of batches are sums of fractions.
    low, high = math.ceil(round(least_pause(where, event), 6)), _LONGEST
    if value(high) >= limit_ms:
        return Pause(arm.name, None, value(high), hours(high))
    if value(low) < limit_ms:
        return Pause(arm.name, low, value(low), hours(low))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if value(middle) < limit_ms else (middle, high)
    return Pause(arm.name, high, value(high), hours(high))
