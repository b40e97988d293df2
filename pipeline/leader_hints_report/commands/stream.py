"""`leader-hints-report stream`: takes journals in as they are written.

Tested in ``tests/pipeline/test_streaming.py``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from leader_hints_report.journal_options import takes_journal
from leader_hints_report.progress import steps
from leader_hints_report.spark_session import takes_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@click.command("stream")
@takes_journal("A folder of finished journal files, or the journal's topic.")
@click.option("--late", hidden=True)  # up to 0.1: seconds that a stream waited for late events
@click.option(
    "--every",
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(min=0, max=86400),
    help="From one micro-batch to the next. Each writes files.",
)
@click.option(
    "--refresh",
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(min=1, max=86400),
    help="From the end of one making of the tables to the next.",
)
@click.option("--once", is_flag=True, help="End when all is taken in that is there.")
@takes_session
def command(
    session: Callable[..., "SparkSession"],
    journal: str,
    out: str,
    kafka: dict[str, str],
    late: str | None,
    every: float,
    refresh: float,
    *,
    skip_lost: bool,
    once: bool,
) -> None:
    """Take in a journal as it is written, and keep the tables up to date.

    Tables have all that has come. Killed and started again, nothing is lost or doubled.
    """
    from leader_hints_report.journal.sources import packages, stream
    from leader_hints_report.store.folder import Store
    from leader_hints_report.streaming import SETTINGS, begin, keep_fresh

    begun = session(packages=packages(journal), ours=SETTINGS)
    with steps() as on_step:
        store = Store(begun, out, on_step)
        lines = stream(begun, journal, kafka, skip_lost=skip_lost)
        with store.opened():
            query = begin(store, lines, None if once else every)
            seconds = float("inf") if once else refresh
            keep_fresh(store, query, seconds, _say_lost if skip_lost else None)


def _say_lost(number: int) -> None:
    click.echo(
        f"leader-hints-report: {number} records of the topic were removed before they were read",
        err=True,
    )
