"""All tables, from events."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.events import ENCOUNTER, LATENCY, MOVE, OVER, REST
from pipeline.hints import clients_without_hints, hint_effectiveness, hint_misses
from pipeline.hours import broker_hours
from pipeline.incidents import incidents, named
from pipeline.latencies import SAMPLE, latencies
from pipeline.moves import apart_corrected_ms, leader_moves
from pipeline.recoveries import recoveries
from pipeline.runs import journal_runs, once, repeated, words
from pipeline.skew import clock_skew, corrections
from pipeline.tables import TABLES


@contextmanager
def answers(events: DataFrame) -> Iterator[dict[str, DataFrame]]:
    """Give the tables by name, from events with ``part`` and ``day``.

    What several tables are made of is kept on the way, and let go at the end.
    """
    kept: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        kept.append(frame.persist())
        return frame

    try:
        # What is over was told before, when it was open.
        words_ = keep(words(events.where(F.col("part") != OVER)))
        twice = repeated(words_)
        seen = keep(leader_moves(events.where(F.col("part") == MOVE)))
        skew = keep(clock_skew(seen))
        right = corrections(skew)
        apart = apart_corrected_ms(F.col("sights"), F.col("skews"))
        moves = keep(
            named(
                seen.join(F.broadcast(right), ["day", "cluster"], "left")
                .withColumn("apart_corrected_ms", apart)
                .drop("sights", "skews", "bounds")
            )
        )
        met = keep(recoveries(events.where(F.col("part").isin(ENCOUNTER, OVER)), right))
        samples = events.where(F.col("part") == LATENCY)
        if not twice.isEmpty():
            samples = once(samples.select("run", "seq", *SAMPLE), twice)
        tables = {
            "leader_moves": moves,
            "recoveries": met,
            "incidents": incidents(moves, met),
            "hint_effectiveness": hint_effectiveness(met),
            "hint_misses": hint_misses(met),
            "latencies": latencies(samples),
            "clients_without_hints": clients_without_hints(met),
            "clock_skew": skew,
            "broker_hours": broker_hours(moves, met),
            "journal_runs": journal_runs(words_, events.where(F.col("part") == REST)),
        }
        yield {name: _typed(name, table) for name, table in tables.items()}
    finally:
        for frame in kept:
            frame.unpersist()


def _typed(name: str, table: DataFrame) -> DataFrame:
    """The table with the columns and types that are promised."""
    return table.select(
        *(F.col(field.name).cast(field.dataType) for field in TABLES[name].schema.fields)
    )
