"""`leader-hints-report html`: the report as one page, and its numbers as JSON and CSV."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from leader_hints_report.errors import PipelineError
from leader_hints_report.kip951.document import Document, make_document
from leader_hints_report.progress import steps
from leader_hints_report.spark_session import takes_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: A day in UTC.
_DAY: Final = click.DateTime(["%Y-%m-%d"])


@click.command("html")
@click.option("--tables", required=True, metavar="DIR", help="What was --out of batch or stream.")
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the page goes. The numbers go beside it: as FILE with .json in place of its "
    "ending, and as CSV in a folder with -csv.",
)
@click.option(
    "--kip951",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="kip951.json that `leader-hints-report kip951 --out` wrote, to show own samples too.",
)
@click.option(
    "--from", "first", type=_DAY, metavar="DAY", help="The first day, as 2026-01-31; UTC."
)
@click.option("--to", "last", type=_DAY, metavar="DAY", help="Last day, which is included.")
@click.option(
    "--compare",
    "change",
    type=_DAY,
    metavar="DAY",
    help="The day of a change, such as hints that were turned on: compares what a day cost before "
    "with what it costs from then on.",
)
@click.option(
    "--price-per-gb",
    type=click.FloatRange(min=0),
    metavar="PRICE",
    help="What a billion bytes between racks costs, in any currency: bytes between racks get a "
    "price.",
)
@takes_session
def command(
    session: "Callable[..., SparkSession]",
    tables: str,
    out: Path,
    kip951: Path | None,
    first: datetime | None,
    last: datetime | None,
    change: datetime | None,
    price_per_gb: float | None,
) -> None:
    """Write the report: one HTML page that needs nothing besides itself."""
    # Drawing is imported only here, too: it takes its time.
    from leader_hints_report.little_work import is_little_stored
    from leader_hints_report.report.files import write_report
    from leader_hints_report.report.gathering import gather
    from leader_hints_report.report.period import Period

    document = _document(kip951)
    if first is not None and last is not None and last < first:
        raise PipelineError(f"--to {last:%Y-%m-%d} is before --from {first:%Y-%m-%d}")
    if change is not None and first is not None and change <= first:
        raise PipelineError(f"--compare {change:%Y-%m-%d} has no day before it: see --from")
    if change is not None and last is not None and last < change:
        raise PipelineError(f"--to {last:%Y-%m-%d} is before --compare {change:%Y-%m-%d}")
    period = Period(*(day and day.date() for day in (first, last, change)))
    with _named(out):
        # Now, and not after minutes of work.
        out.parent.mkdir(parents=True, exist_ok=True)
    with steps() as on_step:
        begun = session(little=is_little_stored(f"{tables}/tables"))
        numbers = gather(begun, tables, on_step, period, price_per_gb)
        on_step("Drawing the page")
    with _named(out):
        for file in write_report(numbers, document, out):
            click.echo(file)


@contextmanager
def _named(out: Path) -> Iterator[None]:
    """Name the file where nothing can be written."""
    try:
        yield
    except OSError as error:
        raise PipelineError(f"--out {out}: {error.filename}: {error.strerror}") from None


def _document(file: Path | None) -> Document:
    if file is None:
        return make_document(None)
    try:
        return Document.model_validate_json(file.read_text("utf-8"))
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise PipelineError(
            f"--kip951 {file}: {reason}; give the kip951.json that `leader-hints-report kip951 "
            "--out` wrote"
        ) from None
