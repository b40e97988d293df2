"""The files of a report."""

import csv
import json
import re
from pathlib import Path

from leader_hints_report.kip951.document import make_document
from leader_hints_report.report import listings
from leader_hints_report.report.files import write_report
from tests.pipeline.kip951.runs import make_run
from tests.pipeline.report.samples import make_fleet, make_numbers, row


def test_json_and_csv_have_the_numbers_of_the_page(tmp_path: Path) -> None:
    numbers = make_fleet()
    page, data, folder = write_report(numbers, make_document(None), tmp_path / "new" / "r.html")
    assert (page.name, data.name, folder.name) == ("r.html", "r.json", "r-csv")
    assert page.read_text("utf-8").startswith("<!doctype html>")

    document = json.loads(data.read_text())
    assert document["version"] == 1
    for listing in listings.LISTINGS:
        rows = document["listings"][listing.name]["rows"]
        assert rows == list(numbers.rows(listing))
        assert document["columns"][listing.name].keys() == rows[0].keys()
        with (folder / f"{listing.name}.csv").open() as file:
            read = list(csv.DictReader(file))
        assert len(read) == len(rows)
        assert read[0].keys() == rows[0].keys()
    assert document["kip951"]["checks"][0]["verdict"] == "differs"
    # Nobody measured more digits than these.
    assert not re.search(r": [0-9]+\.[0-9]{7}", json.dumps(document["kip951"]))
    assert (folder / "kip951-runs.csv").is_file()


def test_hostile_text_is_whole_in_json_and_no_formula_in_csv(tmp_path: Path) -> None:
    name = '=HYPERLINK("http://x")\n\x1b\x7f,'
    numbers = make_numbers(topics=[row(listings.TOPICS, topic=name)])
    _, data, folder = write_report(numbers, make_document(None), tmp_path / "r.html")
    text = data.read_text()
    assert "\x7f" not in text
    assert json.loads(text)["listings"]["topics"]["rows"][0]["topic"] == name
    with (folder / "topics.csv").open() as file:
        (read,) = csv.DictReader(file)
    assert read["topic"] == '\'=HYPERLINK("http://x")\\n\\x1b\\x7f,'


def test_a_second_report_takes_the_place_of_the_first(tmp_path: Path) -> None:
    first = make_numbers(topics=[row(listings.TOPICS)])
    list(write_report(first, make_document(None), tmp_path / "r.html"))
    list(write_report(make_numbers(), make_document(None), tmp_path / "r.html"))
    assert json.loads((tmp_path / "r.json").read_text())["listings"] == {}
    assert (tmp_path / "r-csv" / "topics.csv").read_text().count("\n") == 1


def test_json_has_no_nan(tmp_path: Path) -> None:
    kip951 = make_document([make_run("of our own", 1, float("nan"))])
    _, data, _ = write_report(make_numbers(), kip951, tmp_path / "r.html")
    assert "NaN" not in data.read_text()
