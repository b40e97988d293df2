"""A run over what is new in a journal.

Tested in ``tests/pipeline/store/test_folder.py``.
"""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Final, NamedTuple

from pyspark.sql import SparkSession

from leader_hints_report.journal import sources
from leader_hints_report.journal.events import read
from leader_hints_report.store.folder import Store
from leader_hints_report.streaming import take_stream

#: Records of a topic in one batch: a killed run repeats at most these.
_RECORDS_AT_ONCE: Final = 2_000_000


class Taken(NamedTuple):
    """What a run did. ``batches`` that are new, the events and bad lines in them, lines that came
    twice among them; ``days``: whose tables were made; ``lost``: records of a topic that were
    removed before they were read."""

    batches: int
    events: int
    bad: int
    days: list[date]
    lost: int = 0


def run(
    session: SparkSession,
    journal: str,
    out: str,
    *,
    rebuild: bool = False,
    kafka: Mapping[str, str] | None = None,
    skip_lost: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
) -> Taken:
    """Read the new events of ``journal``, and make the tables of ``out``.

    ``rebuild``: the tables of all days. ``kafka`` and ``skip_lost``: see
    :func:`leader_hints_report.journal.sources.stream`.

    :raises PipelineError: the journal cannot be read, or another run uses ``out``.
    """
    topic = sources.topic_of(journal)
    store = Store(session, out, on_step)
    lost: list[int] = []
    with store.opened():
        before = {batch.id for batch in store.batches}
        if topic is None:
            files = sources.new_files(session, journal, store.batches)
            if files:
                store.take_files(sources.files_batch(files), files)
        else:
            records = sources.stream(
                session, journal, kafka or {}, _RECORDS_AT_ONCE, skip_lost=skip_lost
            )
            name = sources.checkpoint_of(topic)
            take_stream(store, read(records), name, lost.append if skip_lost else None)
        new = [batch.id for batch in store.batches if batch.id not in before]
        events, bad = store.counted(new)
        return Taken(len(new), events, bad, store.refresh(rebuild=rebuild), sum(lost))
