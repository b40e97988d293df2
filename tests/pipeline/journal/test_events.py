"""Lines that are events, and lines that are none."""

import json
import re
from datetime import date
from math import inf, nan
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from leader_hints_report.journal.events import quarantined, read
from tests.pipeline.lines import as_text, error, event, frame, latency, move, success

_GOOD = latency(0, 1, 2.5)
_GAP = event("gap", 0, 1, reason="full", dropped=1, first_seq=0, last_seq=0)


def _without(name: str) -> str:
    return json.dumps({key: value for key, value in _GOOD.items() if key != name})


BAD = {
    "not_json": [
        json.dumps(_GOOD)[:-9],
        "[1]",
        "nonsense",
        "5",
        '"text"',
        "\x00\x00\x00",
        json.dumps(error(0, 1))[:3] + json.dumps(_GOOD),
    ],
    "wrong_type": [
        json.dumps(_GOOD | {"seq": "one"}),
        json.dumps(_GOOD | {"latency_ms": "long"}),
        json.dumps(_GOOD | {"link": 2**70}),
    ],
    "newer_version": [json.dumps(_GOOD | {"version": 2})],
    "missing_column": [_without("run"), _without("latency_ms"), "{}", _without("client_id")],
    "negative_seq": [json.dumps(_GOOD | {"seq": -1})],
    "bad_time": [
        json.dumps(_GOOD | {"time": time})
        for time in (
            "2026-01-02",
            "2026-01-02T03:04:05.000006",
            "2026-13-02T03:04:05.000006Z",
            "2026-01-02T03:04:05.000006+01:00Z",
            "0001-01-02T03:04:05.000006Z",
            "1899-12-31T23:59:59.999999Z",
            "2200-01-01T00:00:00.000000Z",
            "9999-12-31T23:59:59.999999Z",
        )
    ],
    "out_of_range": [
        json.dumps(_GOOD | {"seq": 2**63 - 1}),
        *(json.dumps(_GOOD | {"latency_ms": ms}) for ms in (-0.001, 1e300, nan, inf)),
        *(json.dumps(error(0, 1, hold_ms=ms)) for ms in (-0.001, 86_400_000.001, 1e300, nan)),
        json.dumps(error(0, 1, hold_ms=1)).replace("1}", '"NaN"}'),
        json.dumps(success(0, 1, recovery_ms=-inf)),
        *(json.dumps(_GAP | bad) for bad in ({"dropped": 0}, {"last_seq": 2**63 - 1})),
    ],
}


def test_lines_that_are_no_events_are_kept_with_the_reason(spark: SparkSession) -> None:
    lines = [line for some in BAD.values() for line in some]
    rows = quarantined(frame(spark, [_GOOD, "", "  ", *lines])).collect()
    expected = {(line, reason) for reason, some in BAD.items() for line in some}
    assert {(row["line"], row["reason"]) for row in rows} == expected
    assert {row["source"] for row in rows} == {"file"}


def test_the_least_and_the_largest_values_pass(spark: SparkSession) -> None:
    events = [
        _GOOD | {"seq": 2**48, "latency_ms": 0},
        error(0, 0, hold_ms=86_400_000.0),
        error(0, 1, hold_ms=-0.0),
        _GOOD | {"time": "1900-01-01T00:00:00.000000Z"},
        _GOOD | {"time": "2199-12-31T23:59:59.999999Z"},
    ]
    rows = frame(spark, events).collect()
    assert [row["fault"] for row in rows] == [None] * len(events)


def test_an_event_has_its_columns_its_instant_and_its_place(spark: SparkSession) -> None:
    events = [
        error(0, 1, epoch_before=4, hold_ms=12),
        move(0, 2, 1, 2, 5),
        _GOOD | {"seq": 3, "new_column": {"of": "later"}},
        event("kind_of_later", 0, 4),
    ]
    rows = (
        frame(spark, events)
        .orderBy("seq")
        .selectExpr(
            "event", "unix_micros(time) as at", "hold_ms", "part", "day", "line", "fault", "topic"
        )
    )
    one, two, three, four = rows.collect()
    # 2026-01-02T03:04:05Z, whatever the session's zone is.
    assert {row["at"] for row in (one, two, three, four)} == {1_767_323_045_000_000}
    assert (one["hold_ms"], one["topic"]) == (12.0, "t")
    assert [row["part"] for row in (one, two, three, four)] == [
        "encounter", "move", "latency", "rest",
    ]  # fmt: skip
    assert all(row["day"] == date(2026, 1, 2) for row in (one, two, three, four))
    assert all(row["fault"] is None for row in (one, two, three, four))
    # What a later version understands more of is kept as it came.
    assert [row["line"] for row in (one, two, three, four)] == [
        None, None, *(json.dumps(line) for line in events[2:]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("time", "day"),
    [
        ("2026-01-02T00:00:00.000000Z", date(2026, 1, 2)),
        ("2026-01-01T23:59:59.999999Z", date(2026, 1, 1)),
        ("1969-12-31T23:59:59.999999Z", date(1969, 12, 31)),
    ],
)
def test_a_day_is_one_in_utc(spark: SparkSession, time: str, day: date) -> None:
    assert frame(spark, [_GOOD | {"time": time}]).head()["day"] == day  # type: ignore[index]


def test_hostile_texts_pass_unchanged(spark: SparkSession) -> None:
    hostile = "<script>alert('\u202e\u0000\\')</script>\n\r\t\u2028\U0001f600"
    row = frame(spark, [_GOOD | {"client_id": hostile, "cluster": "../../x=1/y"}]).head()
    assert row is not None
    assert (row["client_id"], row["cluster"]) == (hostile, "../../x=1/y")


def test_java_compiles_what_lines_are_judged_by(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its compilers leave out methods of more than 8000 bytes, which it then interprets."""
    # Of a file, since Spark works out rows that it knows without any code for them.
    (tmp_path / "a.jsonl").write_text(as_text([_GOOD]))
    session = spark.newSession()
    # As outside of tests.
    session.conf.set("spark.sql.codegen.wholeStage", True)
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    lines = session.read.text(str(tmp_path)).select(F.lit("file").alias("source"), "value")
    read(lines.withColumnRenamed("value", "line")).explain("codegen")
    sizes = re.findall(r"maxMethodCodeSize:(\d+)", capsys.readouterr().out)
    assert sizes
    assert max(int(size) for size in sizes) < 8000
