"""All tables, from events.

Tested in ``tests/pipeline/test_store.py``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from leader_hints_report.journal.events import ENCOUNTER, LATENCY, MOVE, OPEN_PART, OVER, REST
from leader_hints_report.journal.runs import journal_runs, repeated, words
from leader_hints_report.tables.columns import TABLES
from leader_hints_report.tables.hints import clients_without_hints, hint_effectiveness, hint_misses
from leader_hints_report.tables.hours import broker_hours
from leader_hints_report.tables.incidents import incidents, named
from leader_hints_report.tables.latencies import latencies
from leader_hints_report.tables.moves import (
    corrected,
    leader_moves,
    on_true_days,
    sighted,
    wrong_clocks,
)
from leader_hints_report.tables.recoveries import recoveries, refusals
from leader_hints_report.tables.routes import completed, learned_later
from leader_hints_report.tables.skew import clock_skew, corrections

#: Makes a table from the table of recoveries.
Derive = Callable[[DataFrame], DataFrame]


@contextmanager
def answers(
    events: DataFrame, other_runs: DataFrame
) -> Iterator[tuple[dict[str, DataFrame], dict[str, Derive]]]:
    """Give the tables by name, from events with ``part`` and ``day``. ``other_runs``: what is there
    of the table `journal_runs` of other days.

    Those that are made of the table of recoveries are given as functions of it: it is large, so it
    is read again where it was written, and not kept besides. What else several tables are made of
    is kept on the way, and let go at the end. :func:`typed` makes them what is promised.
    """
    kept: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        kept.append(frame.persist())
        return frame

    try:
        events = events.where(F.col("part") != OVER)
        words_ = keep(words(events))
        met = events.where(F.col("part").isin(ENCOUNTER, OPEN_PART))
        encounters = completed(met, keep(learned_later(met, words_)))
        epochs = keep(sighted(events.where(F.col("part") == MOVE)))
        wrong = keep(wrong_clocks(epochs))
        seen = keep(leader_moves(epochs, wrong))
        encounters = on_true_days(encounters, wrong)
        skew = keep(clock_skew(seen, encounters))
        right = corrections(skew)
        moves = keep(named(corrected(seen, right)))
        samples = events.where(F.col("part") == LATENCY)
        tables = {
            "recoveries": recoveries(encounters, right),
            "leader_moves": moves,
            "latencies": latencies(samples, repeated(words_)),
            "clock_skew": skew,
            "broker_hours": broker_hours(moves, refusals(encounters, right)),
            "journal_runs": journal_runs(words_, events.where(F.col("part") == REST), other_runs),
        }
        derived: dict[str, Derive] = {
            "incidents": partial(incidents, moves),
            "hint_effectiveness": hint_effectiveness,
            "hint_misses": hint_misses,
            "clients_without_hints": clients_without_hints,
        }
        yield tables, derived
    finally:
        for frame in kept:
            frame.unpersist()


def typed(name: str, table: DataFrame) -> DataFrame:
    """The table with the columns and types that are promised."""
    return table.to(TABLES[name].schema)
