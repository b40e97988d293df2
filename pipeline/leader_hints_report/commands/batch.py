"""`leader-hints-report batch`: takes in what is new, and makes the tables.

Tested in ``tests/pipeline/test_cli.py``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from leader_hints_report.journal_options import takes_journal
from leader_hints_report.progress import steps
from leader_hints_report.spark_session import takes_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@click.command("batch")
@takes_journal("A file, folder or pattern of finished journal files, or the journal's topic.")
@click.option("--rebuild", is_flag=True, help="Make the tables of all days again, from the events.")
@click.option("--anew", is_flag=True, hidden=True)  # its name up to 0.1
@takes_session
def command(
    session: Callable[..., "SparkSession"],
    journal: str,
    out: str,
    kafka: dict[str, str],
    *,
    skip_lost: bool,
    rebuild: bool,
    anew: bool,
) -> None:
    """Read the new events of a journal and make the tables of their days.

    A second run over the same input changes nothing. The next run
    completes one that was killed.
    """
    from leader_hints_report.batch import run
    from leader_hints_report.journal.sources import packages
    from leader_hints_report.little_work import is_little

    with steps() as on_step:
        taken = run(
            session(packages=packages(journal), little=is_little(journal, out)),
            journal,
            out,
            rebuild=rebuild or anew,
            kafka=kafka,
            skip_lost=skip_lost,
            on_step=on_step,
        )
    click.echo(
        f"new batches: {taken.batches}; events: {taken.events}; quarantined lines: {taken.bad}; "
        f"days made: {', '.join(map(str, taken.days)) or 'none'}"
        + (f"; records that were gone: {taken.lost}" if taken.lost else "")
    )
