"""`leader-hints-report generate`: journals with known answers.

Tested in ``tests/pipeline/test_cli.py``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from leader_hints_report.spark_session import takes_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@click.command("generate")
@click.option("--sidecars", default=12, show_default=True, help="How many; six make a cluster.")
@click.option("--hours", default=4, show_default=True, help="How much time they cover.")
@click.option("--events", default=100_000, show_default=True, help="About how many in all.")
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same journals.")
@click.option("--skew-ms", default=20.0, show_default=True, help="How wrong clocks are at most.")
@click.option("--hot", default=0.0, show_default=True, help="Share that one partition has.")
@click.option(
    "--hints",
    default="mixed",
    show_default=True,
    metavar="MODE",
    help="on or observe: of all sidecars; mixed: one of each cluster observes, the others are on.",
)
@click.option("--out", required=True, metavar="DIR", help="Gets the folders journal and answers.")
@takes_session
def command(
    session: Callable[..., "SparkSession"],
    sidecars: int,
    hours: int,
    events: int,
    seed: int,
    skew_ms: float,
    hot: float,
    hints: str,
    out: str,
) -> None:
    """Generate synthetic journals with known answers, to check the tables against."""
    from leader_hints_report.generator.fleet import Fleet
    from leader_hints_report.generator.generation import generate

    fleet = Fleet(sidecars, hours, events, seed, skew_ms, hot, hints)
    generate(session(), fleet, out)
    click.echo(f"journals: {out}/journal; answers: {out}/answers")
