"""Period: the tables of the days that a report is about.

Tested in ``tests/pipeline/report/test_gathering.py``.
"""

from datetime import date, timedelta
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from leader_hints_report.store.folder import Store

#: All days of a period, and its parts.
ALL: Final = "all"
BEFORE: Final = "before"
AFTER: Final = "after"


class Period(NamedTuple):
    """Days in UTC, both included; ``None``: no bound. ``change``: the day from which on something
    was different, to be compared with the days before; ``None``: nothing is."""

    first: date | None = None
    last: date | None = None
    change: date | None = None

    @property
    def parts(self) -> "dict[str, Period]":
        """The days before the change and those from then on, by their names; none without one."""
        if self.change is None:
            return {}
        last, first = self.change - timedelta(days=1), self.change
        return {
            BEFORE: Period(self.first, last if self.last is None else min(self.last, last)),
            AFTER: Period(first if self.first is None else max(self.first, first), self.last),
        }


class Tables(NamedTuple):
    """What is there of these days."""

    store: Store
    period: Period

    def table(self, name: str) -> DataFrame:
        """The rows of a table."""
        frame = self.store.table(name)
        if self.period.first is not None:
            frame = frame.where(F.col("day") >= F.lit(self.period.first))
        if self.period.last is not None:
            frame = frame.where(F.col("day") <= F.lit(self.period.last))
        return frame

    def quarantine(self) -> DataFrame:
        """All lines that were not understood; their days are not known."""
        return self.store.quarantine()
