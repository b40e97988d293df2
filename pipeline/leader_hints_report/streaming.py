"""Journals as they are written: a query of Structured Streaming stores events as they come.

Tables are made of what is stored, by the code of a batch run. A batch is stored by the number that
the checkpoint gives it. One that is stored again after a crash is the same one: nothing is lost or
doubled.
"""

import time
from collections.abc import Callable
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.events import read
from leader_hints_report.lost_records import LostRecords, why_it_ended
from leader_hints_report.store.batches import Batch
from leader_hints_report.store.folder import Store

#: What a session with a stream needs, where the user sets nothing else. The stream does not wait
#: for the making of tables: they share the cores.
SETTINGS: Final = {"spark.scheduler.mode": "FAIR"}
_EVENTS: Final = "events"
_POOL: Final = "spark.scheduler.pool"


#: Takes how many records of a topic a micro-batch was to read, and did not find; ``None``: nobody
#: asks, since a query ends where it does not find some.
OnLost = Callable[[int], None] | None


def take_stream(store: Store, rows: DataFrame, name: str, on_lost: OnLost = None) -> None:
    """Store all that a stream has at present, as a batch run does.

    ``name``: of its checkpoint.

    :raises PipelineError: it cannot be read.
    """
    query = _stored(store, name, rows).trigger(availableNow=True).start()
    _wait(query, _look(query, on_lost))


def begin(store: Store, lines: DataFrame, every_s: float | None) -> StreamingQuery:
    """Begin to store ``lines`` of :func:`leader_hints_report.journal.sources.stream`.

    ``every_s``: seconds from one micro-batch to the next; ``None``: end when all is read that is
    there.
    """
    writer = _stored(store, _EVENTS, read(lines))
    if every_s is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{every_s} seconds")
    context = lines.sparkSession.sparkContext
    # The query's thread inherits it.
    context.setLocalProperty(_POOL, _EVENTS)
    query = writer.start()
    context.setLocalProperty(_POOL, None)  # type: ignore[arg-type]
    return query


def keep_fresh(store: Store, query: StreamingQuery, seconds: float, on_lost: OnLost = None) -> None:
    """Rebuild the tables every so many seconds, until the query has ended.

    :raises PipelineError: the query failed.
    """
    look = _look(query, on_lost)
    try:
        active = True
        while active:
            _wait(query, look, seconds)
            active = query.isActive
            store.refresh()
    finally:
        query.stop()


def _look(query: StreamingQuery, on_lost: OnLost) -> Callable[[], None]:
    return (lambda: None) if on_lost is None else LostRecords(query, on_lost).look


def _wait(query: StreamingQuery, look: Callable[[], None], seconds: float = float("inf")) -> None:
    """Wait until it has ended, at most about so many seconds, and ``look`` meanwhile."""
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            ended = query.awaitTermination(1)
            look()
            if ended:
                return
    except StreamingQueryException as error:
        reason = why_it_ended(str(error)) or str(error).splitlines()[0]
        raise PipelineError(f"the stream {query.name} ended: {reason}") from None


def _stored(store: Store, name: str, rows: DataFrame) -> DataStreamWriter:
    checkpoint = store.checkpoint(name)

    def take(batch: DataFrame, number: int) -> None:
        # A checkpoint that was removed is another one, whose numbers begin again.
        id_ = f"{name}-{store.checkpoint_id(name)[:8]}-{number:09}"
        store.take(Batch(id_, {"stream": name}), batch)

    return (
        rows.writeStream.queryName(name).option("checkpointLocation", checkpoint).foreachBatch(take)
    )
