"""Period: the tables of the days that a report is about.

Tested in ``tests/pipeline/report/test_gathering.py``.
"""

from datetime import date
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from leader_hints_report.store import Store


class Period(NamedTuple):
    """Days in UTC, both included; ``None``: no bound."""

    first: date | None = None
    last: date | None = None


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
