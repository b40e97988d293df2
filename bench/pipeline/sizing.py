"""What a large fleet needs, worked out from what was measured.

A day of 1000 brokers: 20 clusters of 50 brokers, each with 10,000 partitions and rolled once.
"""

from typing import Final, NamedTuple

from bench.pipeline.trials import Trial
from bench.report import table

_BROKERS: Final = 1000
_A_DAY_S: Final = 86_400
_HOUR_S: Final = 3600
_CLUSTERS: Final = 20
#: Each of a cluster's 50 sidecars reports each move: 20,000 moves, a million lines.
_LINES_OF_A_ROLL: Final = 1_000_000
_MILLION: Final = 1_000_000
_GB: Final = 1_000_000_000


class Load(NamedTuple):
    """``sampled``: latencies that each sidecar samples in a second."""

    sampled: float

    @property
    def events(self) -> float:
        """Lines a day."""
        return _CLUSTERS * _LINES_OF_A_ROLL + _BROKERS * self.sampled * _A_DAY_S


_LOADS: Final = (Load(0.1), Load(1), Load(10))


def sizing(alone: Trial, cluster: Trial, cores: int) -> str:
    """A table of what some loads need, by the figures of a cluster on so many cores; and those of
    one machine alone, with as many."""
    json_rate, stored_rate = _rates(cluster, cores)
    json_alone, stored_alone = _rates(alone, cores)
    line, stored = cluster.json_bytes / cluster.events, cluster.stored_bytes / cluster.events
    rows = [
        [
            f"{load.sampled:g}",
            f"{load.events / _MILLION:,.0f} million",
            f"{load.events / json_rate / _HOUR_S:,.1f}",
            f"{load.events / stored_rate / _HOUR_S:,.1f}",
            f"{load.events * line / _GB:,.0f} GB",
            f"{load.events * stored / _GB:,.1f} GB",
        ]
        for load in _LOADS
    ]
    head = [
        "latencies a sidecar samples each second",
        "events a day",
        "core hours, JSON to all tables",
        "core hours, a day's tables from stored events",
        "JSON a day",
        "stored a day",
    ]
    return "\n\n".join(
        [
            f"On a cluster of Spark's own with {cores} workers of one core, {cluster.events:,} "
            f"events in a new Java: R is {json_rate:,.0f} events a second and core from JSON to "
            f"all tables, and {stored_rate:,.0f} for rebuilding a day's tables from stored events. "
            f"By the run above on one machine it is {json_alone:,.0f} and {stored_alone:,.0f}. A "
            f"line has {line:.0f} bytes as JSON and {stored:.0f} as stored. A day of 1000 brokers:",
            table(head, rows),
        ]
    )


def _rates(trial: Trial, cores: int) -> tuple[float, float]:
    """Events a second and core, from JSON and from stored events."""
    return trial.events / trial.json_s / cores, trial.events / trial.stored_s / cores
