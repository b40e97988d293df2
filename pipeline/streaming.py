"""Journals as they are written: two queries of Structured Streaming over one source.

One stores events as they come. The other is the join of errors and successes: it keeps what a
client met at a partition until the watermark has passed the end of it, across sidecars and whatever
the order of arrival, and stores it then. So what tables tell of recoveries is final.

Both store batch by batch, by the number that the checkpoint gives a batch. A batch that is stored
again after a crash is the same one: nothing is lost or doubled.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pipeline.events import ENCOUNTER, OPEN_PART, STORED
from pipeline.recoveries import KEY, PATIENCE_S
from pipeline.store import Batch, Store

_EVENTS: Final = "events"
_ENCOUNTERS: Final = "encounters"


def take_stream(store: Store, rows: DataFrame) -> None:
    """Store all that a stream has at present, errors and successes too, as a batch run does."""
    query = _stored(store, "batch", rows).trigger(availableNow=True).start()
    query.awaitTermination()


def begin(store: Store, rows: DataFrame, late: str, *, once: bool) -> list[StreamingQuery]:
    """Begin both queries on ``rows`` of :func:`pipeline.sources.stream`.

    ``late``: how far behind the newest event one may be, such as ``10 minutes``; what comes later
    is stored, but in no table of recoveries. ``once``: end when all is read that is there.
    """
    is_encounter = F.col("part") == ENCOUNTER
    # Not filtered: a filter would have each line parsed twice.
    others = rows.withColumn("part", F.when(is_encounter, OPEN_PART).otherwise(F.col("part")))
    queries = [
        _stored(store, _EVENTS, others),
        _stored(store, _ENCOUNTERS, encounters(rows, late)),
    ]
    if once:
        queries = [query.trigger(availableNow=True) for query in queries]
    return [query.start() for query in queries]


def encounters(rows: DataFrame, late: str) -> DataFrame:
    """Errors and successes, once what the client met there is over."""
    # The condition names the time, so that it is not moved before the watermark: events of all
    # kinds move that on.
    met = rows.withWatermark("time", late).where(
        F.when(F.col("part") == ENCOUNTER, F.col("time")).isNotNull()
    )
    names = [name for name in STORED.fieldNames() if name not in KEY]
    over = met.groupBy(*KEY, F.session_window("time", f"{PATIENCE_S} seconds")).agg(
        F.collect_list(F.struct(*(F.col(name).alias(f"its_{name}") for name in names))).alias("met")
    )
    one = over.select(*KEY, F.explode("met").alias("one"))
    return one.select(
        *(
            F.col(name) if name in KEY else F.col("one")[f"its_{name}"].alias(name)
            for name in STORED.fieldNames()
        )
    )


def keep_fresh(store: Store, queries: list[StreamingQuery], seconds: float) -> None:
    """Make the tables anew each so many seconds, until the queries have ended.

    :raises StreamingQueryException: one failed; the other is stopped.
    """
    try:
        while any(query.isActive for query in queries):
            for query in queries:
                query.awaitTermination(int(max(1, seconds / len(queries))))
            store.refresh()
        for query in queries:
            query.awaitTermination()
        store.refresh()
    finally:
        for query in queries:
            query.stop()


def _stored(store: Store, name: str, rows: DataFrame) -> DataStreamWriter:
    def take(batch: DataFrame, number: int) -> None:
        store.take(Batch(f"{name}-{number:09}", {"stream": name}), batch)

    return (
        rows.writeStream.queryName(name)
        .option("checkpointLocation", store.checkpoint(name))
        .foreachBatch(take)
    )
