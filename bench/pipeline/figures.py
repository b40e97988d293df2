"""What was measured, held against what is aimed at."""

from typing import Final, NamedTuple

#: Values from here on are shown without decimals.
_LARGE: Final = 1000


class Target(NamedTuple):
    """``bound``: what a figure must be at least, or at most."""

    bound: float
    at_least: bool

    def met_by(self, value: float) -> bool:
        """Whether a figure is as good."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"at {'least' if self.at_least else 'most'} {self.bound:,}"


class Figure(NamedTuple):
    """``value`` of ``what``, in the unit that it names."""

    what: str
    value: float
    target: Target

    @property
    def shown(self) -> str:
        """The value as people read it."""
        return f"{self.value:,.0f}" if self.value >= _LARGE else f"{self.value:.2f}"

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.target.met_by(self.value)


JSON_RATE: Final = Target(90_000, at_least=True)
#: CPU seconds, times those that DuckDB alone takes to store the rows of the same JSON.
INGEST_COST: Final = Target(4, at_least=False)
LARGE_INGEST_COST: Final = Target(2.5, at_least=False)
TABLES_COST: Final = Target(5, at_least=False)
SKEW: Final = Target(2, at_least=False)
MICRO_BATCH_S: Final = Target(3, at_least=False)
TIMES_DUCKDB: Final = Target(3, at_least=False)
#: Seconds until a day's journal files of 1000 sidecars are listed, and a day's batches are known.
LISTED_S: Final = Target(30, at_least=False)
LOG_S: Final = Target(2, at_least=False)
