"""Journals as they are written: a query of Structured Streaming stores events as they come.

Tables are made of what is stored, by the code of a batch run. A batch is stored by the number that
the checkpoint gives it. One that is stored again after a crash is the same one: nothing is lost or
doubled.
"""

import time
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.events import read
from leader_hints_report.store.folder import Store
from leader_hints_report.store.manifest import Batch

#: What a session with a stream needs, where the user sets nothing else. The stream does not wait
#: for the making of tables: they share the cores.
SETTINGS: Final = {"spark.scheduler.mode": "FAIR"}
_EVENTS: Final = "events"
_POOL: Final = "spark.scheduler.pool"


def take_stream(store: Store, rows: DataFrame, name: str) -> None:
    """Store all that a stream has at present, as a batch run does.

    ``name``: of its checkpoint.

    :raises PipelineError: it cannot be read.
    """
    _wait(_stored(store, name, rows).trigger(availableNow=True).start())


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


def keep_fresh(store: Store, query: StreamingQuery, seconds: float) -> None:
    """Rebuild the tables every so many seconds, until the query has ended.

    :raises PipelineError: the query failed.
    """
    try:
        active = True
        while active:
            _wait(query, seconds)
            active = query.isActive
            store.refresh()
    finally:
        query.stop()


def _wait(query: StreamingQuery, seconds: float = float("inf")) -> None:
    """Wait until it has ended, at most about so many seconds."""
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            if query.awaitTermination(1):
                return
    except StreamingQueryException as error:
        reason = str(error).splitlines()[0]
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
