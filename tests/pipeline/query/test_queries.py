"""Questions to output folders: DuckDB and Spark answer alike, and only what counts is there."""

import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from leader_hints_report.batch import run
from leader_hints_report.cli import cli
from leader_hints_report.errors import PipelineError
from leader_hints_report.query import by_duckdb, by_spark
from leader_hints_report.query.answer import Answer
from leader_hints_report.store import folder, stored_events
from leader_hints_report.store.batches import Batch
from leader_hints_report.store.folder import Store
from leader_hints_report.tables.columns import TABLES
from tests.pipeline.fleets import Made
from tests.pipeline.lines import as_text, error, frame, move, success

_EVENTS = "SELECT event, part, day, time, sidecar, seq FROM events"
#: Of questions that have answers of many types; each is ordered by its first columns.
_QUESTIONS = (
    "SELECT part, event, count(*) AS n, min(time) AS a, max(time) AS b FROM events GROUP BY ALL",
    "SELECT day, cluster, count(DISTINCT run) AS n, sum(hold_ms) AS ms FROM events GROUP BY ALL",
    "WITH of AS (SELECT * FROM events WHERE part = 'move') SELECT count(*) AS n FROM of",
    "SELECT reason, count(*) AS n FROM quarantine GROUP BY ALL",
    "SELECT 1 AS a, 2 AS b -- a comment",
    *(f"SELECT * FROM {name}" for name in TABLES),
)


def _in_order(answer: Answer | None) -> list[str]:
    assert answer is not None
    return [
        str([*answer.columns]),
        *sorted(
            str([round(of, 6) if isinstance(of, float) else str(of) for of in row])
            for row in answer.rows
        ),
    ]


@pytest.fixture(scope="module")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder of a few lines, one of which is none."""
    folder = tmp_path_factory.mktemp("stored")
    (folder / "a.jsonl").write_text(
        as_text([move(0, 0, 1, 2, 5), error(1, 1), success(2, 2)]) + "not a line\n"
    )
    run(spark, str(folder), str(folder / "out"))
    return folder / "out"


@pytest.fixture
def small(stored: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(stored, tmp_path / "small"))


def test_the_question_of_the_page_has_an_answer(made: Made) -> None:
    page = Path(__file__).parents[3] / "docs" / "pipeline.md"
    asked = re.search(r"leader-hints-report query .*?'(SELECT .*?)'", page.read_text(), re.DOTALL)
    assert asked is not None
    answer = by_duckdb.ask(str(made.out), asked[1])
    assert answer is not None
    assert answer.columns == ["software", "topic", "reason", "errors"]
    assert answer.rows


@pytest.mark.parametrize("sql", _QUESTIONS)
def test_duckdb_answers_as_spark_does(spark: SparkSession, made: Made, sql: str) -> None:
    by_spark_ = by_spark.ask(spark, str(made.out), sql)

    assert _in_order(by_duckdb.ask(str(made.out), sql)) == _in_order(by_spark_)
    assert by_spark_.columns


def test_instants_are_in_utc_whatever_the_zone_is(spark: SparkSession, small: Path) -> None:
    sql = "SELECT time FROM events WHERE event = 'error'"

    for answer in (by_duckdb.ask(str(small), sql), by_spark.ask(spark, str(small), sql)):
        assert answer == Answer(["time"], [("2026-01-02T03:04:06.000000Z",)])


def test_only_what_the_log_of_batches_names_counts(small: Path) -> None:
    (batch,) = (small / "events").iterdir()
    before = by_duckdb.ask(str(small), _EVENTS)
    shutil.copytree(batch, small / "events" / "batch=torn")

    assert by_duckdb.ask(str(small), _EVENTS) == before
    assert before is not None
    assert len(before.rows) == 3
    assert by_duckdb.ask(str(small), "SELECT reason, line FROM quarantine") == Answer(
        ["reason", "line"], [("not_json", "not a line")]
    )


def test_events_that_were_put_together_count_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_events, "FEW", 1)
    # Tables would be made of the same rows.
    monkeypatch.setattr(folder, "planned", lambda *_: nullcontext({}))
    store = Store(spark, str(tmp_path))
    for number in range(3):
        store.take(Batch(str(number), {}), frame(spark, [error(number, number)]))
    store.refresh()

    assert len([*tmp_path.glob("events/batch=*")]) == 1
    answer = by_duckdb.ask(str(tmp_path), "SELECT count(*), count(DISTINCT seq) FROM events")
    assert answer is not None
    assert [*answer.rows] == [(3, 3)]


def test_files_of_earlier_versions_lack_columns(small: Path) -> None:
    (file,) = (small / "events").glob("batch=*/part=move/day=*/*.parquet")
    kept = str(file.rename(file.with_suffix(".old")))
    with duckdb.connect() as database:
        older = "COPY (SELECT * EXCLUDE (leader) FROM read_parquet($old)) TO $new (FORMAT parquet)"
        database.execute(older, {"old": kept, "new": str(file)})

    answer = by_duckdb.ask(str(small), "SELECT epoch, leader FROM events WHERE part = 'move'")
    assert answer == Answer(["epoch", "leader"], [(5, None)])


def test_what_an_earlier_version_stored_is_left_to_spark(small: Path) -> None:
    (log,) = (small / "manifest").glob("*.jsonl")
    log.write_text(log.read_text().replace('"rules": 2', '"rules": 1'))

    assert by_duckdb.ask(str(small), _EVENTS) is None


@pytest.mark.parametrize("path", ["hdfs://host/out", "/no/such/folder", "/tmp/{a}"])
def test_what_is_not_a_folder_of_this_machine_is_left_to_spark(path: str) -> None:
    assert by_duckdb.ask(path, "SELECT 1") is None


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT nothing FROM events", "nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELEC 1", "SELEC"),
    ],
)
def test_a_mistake_is_named_in_a_line_or_two(
    spark: SparkSession, small: Path, sql: str, words: str
) -> None:
    with pytest.raises(PipelineError, match=words):
        by_duckdb.ask(str(small), sql)
    with pytest.raises(PipelineError, match=words) as of_spark:
        by_spark.ask(spark, str(small), sql)
    assert "\n" not in str(of_spark.value)


def test_a_file_that_is_gone_is_named(small: Path) -> None:
    """A run may put events together meanwhile."""
    (file,) = (small / "events").glob("batch=*/part=move/day=*/*.parquet")
    file.unlink()
    with pytest.raises(PipelineError, match="part=move") as gone:
        by_duckdb.ask(str(small), _EVENTS)
    assert "\n" not in str(gone.value)
    (log,) = (small / "manifest").glob("*.jsonl")
    log.unlink()
    log.mkdir()
    with pytest.raises(PipelineError, match=f"--tables {small}: {log}: "):
        by_duckdb.ask(str(small), _EVENTS)


def test_what_is_no_question_is_refused(spark: SparkSession, small: Path) -> None:
    for sql in ("CREATE TABLE a (b INT)", f"COPY events TO '{small}/copy'"):
        with pytest.raises(PipelineError):
            by_duckdb.ask(str(small), sql)
        with pytest.raises(PipelineError):
            by_spark.ask(spark, str(small), sql)
    assert not (small / "copy").exists()


def test_spark_refuses_a_folder_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="there is no such folder"):
        by_spark.ask(spark, str(tmp_path / "none"), "SELECT 1")


def test_the_command_answers_in_each_format_and_from_standard_input(small: Path) -> None:
    sql = "SELECT event, count(*) AS n FROM events GROUP BY ALL ORDER BY 1;\n"
    written = {
        form: CliRunner().invoke(
            cli, ["query", "--tables", str(small), "--format", form, "-"], input=sql
        )
        for form in ("table", "csv", "json")
    }

    assert written["table"].output.splitlines()[2:] == [
        "error          1",
        "leader_change  1",
        "recovery       1",
    ]
    assert written["csv"].output.splitlines()[0] == "event,n"
    assert '{"event": "error", "n": 1}' in written["json"].output
    assert {result.exit_code for result in written.values()} == {0}
