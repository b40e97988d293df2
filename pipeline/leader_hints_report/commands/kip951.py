"""`leader-hints-report kip951`: the tables of KIP-951's benchmarks, published and one's own."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from leader_hints_report.kip951.document import csv_files, make_document, markdown
from leader_hints_report.spark_session import takes_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@click.command("kip951")
@click.option(
    "--samples",
    metavar="PATH",
    help="Raw latencies: a file or a folder of *.csv, *.csv.gz or *.parquet. Without it only the "
    "published tables are shown.",
)
@click.option(
    "--baseline",
    metavar="ARM",
    help="The arm that the others are compared with.  [default: baseline or hints off]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the tables there too, as kip951.json and as CSV.",
)
@takes_session
def command(
    session: "Callable[[], SparkSession]",
    samples: str | None,
    baseline: str | None,
    out: Path | None,
) -> None:
    """Print the tables of KIP-951's benchmarks: from raw samples, arms side by side, and as they
    were published, with their arithmetic worked out again."""
    runs = None
    if samples is not None:
        # Spark is imported only where there is something to read.
        from leader_hints_report.kip951.samples import read_samples, run_figures

        runs = run_figures(read_samples(session(), samples))
    document = make_document(runs, baseline)
    click.echo(markdown(document))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "kip951.json").write_text(document.model_dump_json(indent=2), "utf-8")
        for name, text in csv_files(document).items():
            (out / name).write_text(text, "utf-8")
