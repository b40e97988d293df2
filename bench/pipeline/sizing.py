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


def sizing(trial: Trial, cores: int) -> str:
    """A table of what some loads need, by the figures of a trial on so many cores."""
    json_rate = trial.events / trial.json_s / cores
    stored_rate = trial.events / trial.stored_s / cores
    rows = [
        [
            f"{load.sampled:g}",
            f"{load.events / _MILLION:,.0f} million",
            f"{load.events / json_rate / _HOUR_S:,.1f}",
            f"{load.events / stored_rate / _HOUR_S:,.1f}",
            f"{load.events * trial.json_bytes / trial.events / _GB:,.0f} GB",
            f"{load.events * trial.stored_bytes / trial.events / _GB:,.1f} GB",
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
            f"By the run of {trial.events:,} events above, R is {json_rate:,.0f} events a second "
            f"and core from JSON to all tables, and {stored_rate:,.0f} for rebuilding a day's "
            f"tables from stored events. A line has {trial.json_bytes / trial.events:.0f} bytes as "
            f"JSON and {trial.stored_bytes / trial.events:.0f} as stored. A day of 1000 brokers:",
            table(head, rows),
        ]
    )
