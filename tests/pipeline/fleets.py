"""A small fleet with known answers, and the tables that a batch run makes of it.

One partition has half of all events, as a topic that everybody reads would.
"""

from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from leader_hints_report.batch import Taken, run
from leader_hints_report.generator.fleet import Fleet
from leader_hints_report.generator.generation import generate
from leader_hints_report.store.folder import Store

FLEET = Fleet(sidecars=6, hours=2, events=3_000, seed=7, hot=0.5)


class Made(NamedTuple):
    """``folder`` has journal and answers; ``out`` the tables."""

    folder: Path
    out: str
    taken: Taken
    store: Store


def make(spark: SparkSession, folder: Path) -> Made:
    """Generate the fleet and run a batch over its journals."""
    generate(spark, FLEET, str(folder))
    out = str(folder / "out")
    taken = run(spark, str(folder / "journal"), out)
    return Made(folder, out, taken, Store(spark, out))
