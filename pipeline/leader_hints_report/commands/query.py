"""`leader-hints-report query`: an operator's own question, in SQL.

Tested in ``tests/pipeline/query/test_queries.py``.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from leader_hints_report.query.answer import FORMATS
from leader_hints_report.spark_session import takes_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DASH: Final = "-"


@click.command("query")
@click.option("--tables", required=True, metavar="DIR", help="What was --out of batch or stream.")
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMATS]),
    default="table",
    show_default=True,
    help="How the answer is written.",
)
@click.argument("sql")
@takes_session
def command(
    session: Callable[..., "SparkSession"],
    tables: str,
    form: str,
    sql: str,
) -> None:
    """Answer a question in SQL from stored events and tables.

    Ask the view events, the lines that were none (quarantine), or a table
    by its name. With - as SQL the question is read from standard input. On
    one machine DuckDB answers; Spark is started for folders elsewhere, and
    for those of version 0.1.
    """
    from leader_hints_report.query import by_duckdb

    asked = sys.stdin.read() if sql == _DASH else sql
    question = asked.strip().removesuffix(";")
    answer = by_duckdb.ask(tables, question)
    if answer is None:
        from leader_hints_report.query import by_spark

        answer = by_spark.ask(session(), tables, question)
    click.echo(FORMATS[form](answer), nl=False)
