"""The fleet whose journals are made, and columns that follow from it.

Tested in ``tests/pipeline/generator/test_generation.py``.
"""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

#: The first instant: 2026-01-01, in microseconds since 1970.
BEGIN: Final = 1_767_225_600_000_000
SECOND: Final = 1_000_000
BROKERS: Final = 6
SLOT_S: Final = 1800
#: What happens in one half hour after the other. An election brings partitions back to the broker
#: that failed; to the pipeline it is of no kind of its own.
KINDS: Final = ("roll", "reassignment", "failure", "election")
#: Modes of its sidecars' hints.
MIXED, OBSERVE, ON = HINTS = ("mixed", "observe", "on")
#: The name of such clients is not known.
UNKNOWN: Final = "unknown"
#: Software, version, and the hints that it uses, as sidecars report them.
SOFTWARE: Final = (
    ("apache-kafka-java", "3.9.1", "fetch,fetch_without_endpoints,produce"),
    ("librdkafka", "2.5.3", "fetch,produce"),
    ("apache-kafka-java", "2.8.2", "none"),
    ("sarama", "1.43.0", UNKNOWN),
)
#: Racks that its brokers are in, one after the other, and consumers that name one.
RACKS: Final = 3
READERS: Final = 4
#: Events of moves for each partition and four slots, about: what sets the number of partitions.
_EVENTS_A_PARTITION: Final = 66
#: The share of events that are not latencies, about.
_MOVES_SHARE: Final = 0.4


@dataclass(frozen=True)
class Fleet:
    """What to make. ``hot``: the share of events that one partition has besides its own.

    ``hints``: the mode of all sidecars; ``mixed``: one of each cluster observes, the others are on.
    """

    sidecars: int
    hours: int
    events: int
    seed: int
    skew_ms: float = 20.0
    hot: float = 0.0
    hints: str = MIXED

    @property
    def clusters(self) -> int:
        """How many clusters its sidecars make."""
        return self.sidecars // BROKERS

    @property
    def slots(self) -> int:
        """How many incidents each cluster has."""
        return self.hours * 3600 // SLOT_S

    @property
    def partitions(self) -> int:
        """How many partitions each cluster has."""
        cycles = self.clusters * self.slots / len(KINDS)
        return max(2 * BROKERS, int(self.events * _MOVES_SHARE / cycles / _EVENTS_A_PARTITION))

    @property
    def hot_clients(self) -> int:
        """How many clients more the hot partition has."""
        moves = self.slots / len(KINDS) * 2.5
        return int(self.events * self.hot / moves / 2.7)


def chance(seed: int, what: str, *of: str) -> Column:
    """A number in [0, 1) that follows from the seed, a word and columns."""
    mixed = F.xxhash64(F.lit(seed), F.lit(what), *(F.col(name) for name in of))
    return F.pmod(mixed, F.lit(1_000_003)) / 1_000_003


def sidecar_name(cluster: Column, broker: Column) -> Column:
    """The name of the sidecar in front of a broker, by their numbers."""
    return F.format_string("sidecar-%03d-%d", cluster.cast("int"), broker.cast("int"))


def observes(fleet: Fleet, broker: Column) -> Column:
    """Whether the sidecar in front of a broker only counts hints."""
    return broker == BROKERS - 1 if fleet.hints == MIXED else F.lit(fleet.hints == OBSERVE)


def skew_us(fleet: Fleet, sidecar: str) -> Column:
    """By how many microseconds the clock of a sidecar, named by a column, is fast."""
    return F.round((chance(fleet.seed, "skew", sidecar) * 2 - 1) * fleet.skew_ms * 1000).cast(
        "long"
    )
