"""The tables as text."""

import csv
import io

from leader_hints_report.kip951.document import Document, csv_files, make_document, markdown
from tests.pipeline.kip951.runs import make_run


def test_the_published_tables_stand_as_they_were_printed() -> None:
    lines = markdown(make_document(None)).splitlines()
    figures = "99997.750051 | 95.37 | 12.56 | 8087 | 6 | 8 | 12 | 2967"
    assert f"| baseline | run 1 | 40000000 | 0 | {figures} |" in lines
    fall = next(line for line in lines if line.startswith("| p99.9, fall"))
    assert fall == "| p99.9, fall from baseline to KIP-951 | 88 % | 87.2 % | differs |"
    assert not any("Own samples" in line for line in lines)


def test_own_runs_come_first() -> None:
    runs = [make_run("hints off", 1, 2.0), make_run("hints on", 1, 1.0)]
    lines = markdown(make_document(runs)).splitlines()
    assert lines[2] == "## Own samples"
    assert "| hints on | run 1 | 10 | 0 | 1.000000 | 1.00 | 1.00 | 1 | 1 | 1 | 1 | 1 |" in lines
    assert "| hints on" + 8 * " | -50.0 %" + " |" in lines


def test_an_arm_cannot_break_the_table() -> None:
    text = markdown(make_document([make_run("a|b\n\x1b[31m", 1, 2.0)]))
    assert "| a\\|b\\n\\x1b[31m | run 1 |" in text
    assert "\x1b" not in text


def test_as_json_and_back_it_is_the_same() -> None:
    document = make_document([make_run("baseline", 1, 2.5), make_run("b", 1, 1.0)])
    assert Document.model_validate_json(document.model_dump_json()) == document


def test_as_csv_all_runs_and_checks_are_there() -> None:
    document = make_document([make_run("=1+1", 1, 2.5)])
    files = {
        name: list(csv.DictReader(io.StringIO(text))) for name, text in csv_files(document).items()
    }
    runs = files["kip951-runs.csv"]
    assert [row["source"] for row in runs] == ["published"] * 12 + ["measured"] * 2
    assert (runs[0]["arm"], runs[0]["run"], runs[0]["p999_ms"]) == ("baseline", "1", "2967.0")
    # A spreadsheet must not take it for a formula.
    assert runs[-1]["arm"] == "'=1+1"
    assert [row["arm"] for row in files["kip951-changes.csv"]] == [
        "KIP-951",
        "rejected alternative",
    ]
    assert len(files["kip951-checks.csv"]) == len(document.checks)
