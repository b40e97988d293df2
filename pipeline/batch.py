"""A run over what is new in a journal."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import NamedTuple

from pyspark.sql import SparkSession

from pipeline import sources
from pipeline.store import Store
from pipeline.streaming import take_stream


class Taken(NamedTuple):
    """What a run did. ``batches`` that are new, the events and bad lines in them, lines that came
    twice among them; ``days``: whose tables were made."""

    batches: int
    events: int
    bad: int
    days: list[date]


def run(
    session: SparkSession,
    journal: str,
    out: str,
    *,
    anew: bool = False,
    kafka: Mapping[str, str] | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> Taken:
    """Take in what is new in ``journal``, and make the tables of ``out``.

    :raises PipelineError: the journal cannot be read.
    """
    store = Store(session, out, told)
    before = {batch.id for batch in store.batches}
    if sources.topic_of(journal) is None:
        files = sources.new_files(session, journal, store.batches)
        if files:
            store.take(sources.files_batch(files), sources.read_files(session, files))
    else:
        take_stream(store, sources.stream(session, journal, dict(kafka or {})))
    new = [batch.id for batch in store.batches if batch.id not in before]
    events, bad = store.counted(new)
    return Taken(len(new), events, bad, store.refresh(anew=anew))
