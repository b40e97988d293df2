"""All tables, from events.

Tested in ``tests/pipeline/store/test_folder.py``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from leader_hints_report.journal.events import (
    ENCOUNTER,
    LATENCY,
    MOVE,
    OPEN_PART,
    OVER,
    READ,
    REST,
)
from leader_hints_report.journal.runs import journal_runs, repeated, words
from leader_hints_report.tables.asked import asked_versions
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
from leader_hints_report.tables.racks import rack_reads
from leader_hints_report.tables.recoveries import errors_in_order, recoveries
from leader_hints_report.tables.routes import completed, learned_later
from leader_hints_report.tables.skew import clock_skew, corrections
from leader_hints_report.tables.uses import client_uses, with_uses


@contextmanager
def planned(events: DataFrame, other_runs: DataFrame) -> Iterator[Iterator[tuple[str, DataFrame]]]:
    """Give the tables with their names, from events with ``part`` and ``day``. ``other_runs``: what
    is there of the table `journal_runs` of other days.

    They come one after the other: what the later ones need is made between them, so the first can
    be written beside that. What several tables are made of is kept on the way, and let go at the
    end. :func:`typed` makes them what is promised.
    """
    kept: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        kept.append(frame.persist())
        return frame

    try:
        yield _tables(events, other_runs, keep)
    finally:
        for frame in kept:
            frame.unpersist()


def _tables(
    events: DataFrame, other_runs: DataFrame, keep: Callable[[DataFrame], DataFrame]
) -> Iterator[tuple[str, DataFrame]]:
    def of_part(*parts: str) -> DataFrame:
        return events.where(F.col("part").isin(*parts))

    words_ = events.where(F.col("part") != OVER).transform(words).transform(keep)
    yield "latencies", of_part(LATENCY).transform(latencies, words_.transform(repeated))
    yield "journal_runs", words_.transform(journal_runs, of_part(REST), other_runs)
    yield "rack_reads", of_part(READ).transform(rack_reads)
    yield "asked_versions", of_part(REST).transform(asked_versions)
    encounters = of_part(ENCOUNTER, OPEN_PART)
    epochs = of_part(MOVE).transform(sighted).transform(keep)
    wrong = epochs.transform(wrong_clocks).transform(taken)
    seen = epochs.transform(leader_moves, wrong).transform(keep)
    later = encounters.transform(learned_later, words_).transform(taken)
    encounters = encounters.transform(completed, later).transform(on_true_days, wrong)
    skew = seen.transform(clock_skew, encounters).transform(keep)
    right = skew.transform(corrections).transform(taken)
    moves = seen.transform(corrected, right).transform(named).transform(keep)
    uses = of_part(REST).transform(client_uses)
    errors = encounters.transform(with_uses, uses).transform(errors_in_order, right)
    errors = errors.transform(keep)
    episodes = errors.transform(recoveries)
    yield "recoveries", episodes
    yield "leader_moves", moves
    yield "clock_skew", skew
    yield "broker_hours", moves.transform(broker_hours, errors)
    yield "incidents", moves.transform(incidents, episodes)
    yield "hint_effectiveness", episodes.transform(hint_effectiveness)
    yield "hint_misses", episodes.transform(hint_misses)
    yield "clients_without_hints", episodes.transform(clients_without_hints)


def typed(name: str, table: DataFrame) -> DataFrame:
    """The table with the columns and types that are promised."""
    return table.to(TABLES[name].schema)


def taken(frame: DataFrame) -> DataFrame:
    """A frame of few rows, which are made now, and once: else each step that has them broadcast
    would look for them in the cache first. What has no rows is left out of plans."""
    java = frame._jdf
    rows = java.sparkSession().createDataFrame(java.collectAsList(), java.schema())
    return DataFrame(rows, frame.sparkSession)
