"""Journals as they are written: two queries of Structured Streaming over one source.

One stores events as they come. The other is the join of errors and successes: it keeps what a
client met at a partition until the watermark has passed the end of it, across sidecars and whatever
the order of arrival, and stores it then. So the tables' recoveries are final.

Both store batch by batch, by the number that the checkpoint gives a batch. A batch that is stored
again after a crash is the same one: nothing is lost or doubled.
"""

import time
from collections.abc import Callable
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.events import (
    ENCOUNTER,
    ENCOUNTERS,
    OPEN_PART,
    OVER,
    STORED,
    glanced,
    read,
)
from leader_hints_report.store import Batch, Store
from leader_hints_report.tables.recoveries import KEY, PATIENCE_S

#: What a session with streams needs, where the user sets nothing else. So many parts has the state,
#: from its beginning on. No stream waits for the making of tables: they share the cores.
SETTINGS: Final = {"spark.sql.shuffle.partitions": "8", "spark.scheduler.mode": "FAIR"}
_EVENTS: Final = "events"
_ENCOUNTERS: Final = "encounters"
_POOL: Final = "spark.scheduler.pool"


def take_stream(store: Store, rows: DataFrame, name: str) -> None:
    """Store all that a stream has at present, errors and successes too, as a batch run does.

    ``name``: of its checkpoint.

    :raises PipelineError: it cannot be read.
    """
    _wait([_stored(store, name, rows).trigger(availableNow=True).start()])


def begin(
    store: Store, lines: DataFrame, late_s: float, every_s: float | None
) -> list[StreamingQuery]:
    """Begin both queries on ``lines`` of :func:`leader_hints_report.journal.sources.stream`.

    ``late_s``: how many seconds behind the newest event an error or success may come and still be
    in tables of recoveries. ``every_s``: seconds from one micro-batch to the next; ``None``: end
    when all is read that is there.
    """
    is_encounter = F.col("part") == ENCOUNTER
    # Not filtered: a filter would have each line parsed twice.
    others = read(lines).withColumn(
        "part", F.when(is_encounter, OPEN_PART).otherwise(F.col("part"))
    )
    context = lines.sparkSession.sparkContext
    begun = []
    for name, frame in ((_EVENTS, others), (_ENCOUNTERS, encounters(lines, late_s))):
        writer = _stored(store, name, frame)
        if every_s is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{every_s} seconds")
        # The query's thread inherits it.
        context.setLocalProperty(_POOL, name)
        begun.append(writer.start())
    context.setLocalProperty(_POOL, None)  # type: ignore[arg-type]
    return begun


def encounters(lines: DataFrame, late_s: float) -> DataFrame:
    """Errors and successes, once what the client met there is over."""
    # No event is later than now: one clock that is far ahead would move the watermark past all
    # that the others still have to tell.
    known = glanced(lines).select(
        "source",
        "line",
        "kind",
        F.when(F.col("at").isNotNull(), F.least("at", F.current_timestamp())).alias("known"),
    )
    # The condition names the time, so that it is not moved before the watermark: events of all
    # kinds move that on. Only what is met here is read as a whole.
    met = known.withWatermark("known", f"{late_s} seconds").where(
        F.when(F.col("kind").isin(*ENCOUNTERS), F.col("known")).isNotNull()
    )
    names = [name for name in STORED.fieldNames() if name not in KEY]
    row = F.struct(*(F.col(name).alias(f"its_{name}") for name in names))
    # Not filtered: a filter would have each line parsed once more.
    its = F.when(F.col("part") == ENCOUNTER, row)
    over = (
        read(met, "known")
        .groupBy(*KEY, F.session_window("known", f"{PATIENCE_S} seconds"))
        .agg(F.collect_list(its).alias("met"))
    )
    one = over.select(*KEY, F.explode("met").alias("one"))
    told = one.select(
        *(
            F.col(name) if name in KEY else F.col("one")[f"its_{name}"].alias(name)
            for name in STORED.fieldNames()
        )
    )
    return told.withColumn("part", F.lit(OVER))


def keep_fresh(
    store: Store,
    queries: list[StreamingQuery],
    seconds: float,
    behind: Callable[[int], None] = lambda _: None,
) -> None:
    """Rebuild the tables every so many seconds, until the queries have ended.

    ``behind``: is called with how many errors and successes came too late for the tables, when
    there were some again. Too few may be reported, not too many.

    :raises PipelineError: a query failed; the other is stopped.
    """
    seen: dict[str, int] = {}
    try:
        active = True
        while active:
            _wait(queries, seconds)
            active = any(query.isActive for query in queries)
            dropped = sum(_dropped(query, seen) for query in queries)
            if dropped:
                behind(dropped)
            store.refresh()
    finally:
        for query in queries:
            query.stop()


def _dropped(query: StreamingQuery, seen: dict[str, int]) -> int:
    """How many rows a query left out, since the watermark had passed them, after the micro-batch
    that ``seen`` has of it."""
    new = [one for one in query.recentProgress if one["batchId"] > seen.get(query.id, -1)]
    seen[query.id] = max((one["batchId"] for one in new), default=seen.get(query.id, -1))
    return sum(of["numRowsDroppedByWatermark"] for one in new for of in one["stateOperators"])


def _wait(queries: list[StreamingQuery], seconds: float = float("inf")) -> None:
    """Wait until all have ended, at most so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for query in queries:
            try:
                query.awaitTermination(1)
            except StreamingQueryException as error:
                reason = str(error).splitlines()[0]
                raise PipelineError(f"the stream {query.name} ended: {reason}") from None
        if not any(query.isActive for query in queries):
            return


def _stored(store: Store, name: str, rows: DataFrame) -> DataStreamWriter:
    checkpoint = store.checkpoint(name)

    def take(batch: DataFrame, number: int) -> None:
        # A checkpoint that was removed is another one, whose numbers begin again.
        id_ = f"{name}-{store.checkpoint_id(name)[:8]}-{number:09}"
        if not store.take(Batch(id_, {"stream": name}), batch):
            # It is stored, but the state that follows from it may be not.
            batch.write.format("noop").mode("overwrite").save()

    return (
        rows.writeStream.queryName(name).option("checkpointLocation", checkpoint).foreachBatch(take)
    )
