"""The report's files: the page, and the same numbers as JSON and CSV."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from leader_hints_report.kip951.document import Document, csv_files
from leader_hints_report.report.listings import LISTINGS, Numbers
from leader_hints_report.report.page import make_page
from leader_hints_report.text import to_csv

#: The published figures have at most six decimals.
_DIGITS: Final = 6


def write_report(numbers: Numbers, kip951: Document, page: Path) -> Iterator[Path]:
    """Write the page, and beside it the JSON and a folder of CSV files; yield each path."""
    page.parent.mkdir(parents=True, exist_ok=True)
    yield _written(page, make_page(numbers, kip951))
    yield _written(page.with_suffix(".json"), to_json(numbers, kip951))
    folder = page.with_name(f"{page.stem}-csv")
    folder.mkdir(exist_ok=True)
    for name, text in to_csv_files(numbers, kip951):
        _written(folder / name, text)
    yield folder


def _written(file: Path, text: str) -> Path:
    file.write_text(text, "utf-8")
    return file


def to_json(numbers: Numbers, kip951: Document) -> str:
    """All numbers, text as it is; ASCII, so it is safe to be shown anywhere."""
    document = {
        **numbers.model_dump(mode="json"),
        "columns": {
            listing.name: {
                column.name: f"{column.meaning} ({column.kind})" for column in listing.columns
            }
            for listing in LISTINGS
        },
        "kip951": _rounded(kip951.model_dump(mode="json")),
    }
    return json.dumps(document, indent=1, allow_nan=False).replace("\x7f", "\\u007f")


def _rounded(value: Any) -> Any:
    """Averages without the digits that no one measured; what is no number is null."""
    match value:
        case dict():
            return {name: _rounded(one) for name, one in value.items()}
        case list():
            return [_rounded(one) for one in value]
        case float():
            return round(value, _DIGITS) if math.isfinite(value) else None
        case _:
            return value


def to_csv_files(numbers: Numbers, kip951: Document) -> Iterator[tuple[str, str]]:
    """Yield name and text of a CSV file for each listing, and those of the KIP's tables."""
    for listing in LISTINGS:
        names = [column.name for column in listing.columns]
        rows = ([row[name] for name in names] for row in numbers.rows(listing))
        yield f"{listing.name}.csv", to_csv(names, rows)
    yield from csv_files(kip951).items()
