"""The tables of a generated fleet say what is known of it."""

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from leader_hints_report.batch import run
from leader_hints_report.errors import PipelineError
from leader_hints_report.generator.fleet import Fleet
from leader_hints_report.generator.generation import generate
from leader_hints_report.journal.format import COLUMNS
from leader_hints_report.report.period import Period, Tables
from leader_hints_report.report.readiness import readiness
from leader_hints_report.store.folder import Store
from leader_hints_report.tables.hints import CANNOT
from tests.observe.journal_lines import checked
from tests.pipeline.fleets import FLEET, Made

_MOVE = ["cluster", "topic", "partition", "epoch", "leader", "leader_before", "moved", "sidecars"]
_RECOVERY = [
    "cluster", "client_id", "software", "software_version", "api", "topic", "partition", "epoch",
    "errors", "hinted", "would_hint", "would_hints", "observed", "reason", "settling", "uses",
    "node_from", "node_to",
]  # fmt: skip

_READ = [
    "cluster", "topic", "client_id", "rack", "same_bytes", "crossing_bytes", "avoidable_bytes",
    "named",
]  # fmt: skip

#: Of these no table is made.
_UNREAD = {"address", "action", "hint", "recovery_ms"}


def _answers(spark: SparkSession, made: Made, name: str) -> DataFrame:
    return spark.read.parquet(str(made.folder / "answers" / name))


def test_lines_are_as_the_proxy_writes_them(made: Made) -> None:
    files = sorted((made.folder / "journal").rglob("*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    good = [line for line in lines if line.endswith(b"}")]
    assert len(lines) - len(good) == FLEET.sidecars  # One torn line each.
    assert abs(len(good) - FLEET.events) < 0.02 * FLEET.events
    for line in good:
        checked(line)


def test_there_is_each_column_that_tables_read(made: Made) -> None:
    lines = [
        json.loads(line)
        for file in sorted((made.folder / "journal").rglob("*.jsonl"))
        for line in file.read_bytes().splitlines()
        if line.endswith(b"}")
    ]
    assert {name for line in lines for name in line} == set(COLUMNS) - _UNREAD
    errors = [line for line in lines if line["event"] == "error"]
    answers = {(line["hinted"], line["observed"]) for line in errors}
    assert answers == {(hinted, observed) for hinted in (True, False) for observed in (True, False)}
    assert {line.get("settling") for line in errors} == {None, "settled", "metadata_behind"}
    assert {"epoch_before" in line for line in errors} == {True, False}


def test_one_partition_has_half_of_all_events(made: Made) -> None:
    events = made.store.events()
    met = events.where("topic = 'topic-00' AND partition = 0").count()
    assert met == pytest.approx(0.5 * FLEET.events, rel=0.2)


def test_each_move_and_recovery_and_byte_is_found(spark: SparkSession, made: Made) -> None:
    of_tables = {"leader_moves": _MOVE, "recoveries": _RECOVERY, "rack_reads": _READ}
    for name, columns in of_tables.items():
        told = made.store.table(name).select(*columns).collect()
        expected = _answers(spark, made, name).select(*columns).collect()
        assert len(told) == len(expected) > 0
        assert set(told) == set(expected)


def test_recoveries_take_as_long_as_they_took(spark: SparkSession, made: Made) -> None:
    """As right as clocks are known: within the bound that is reported."""
    key = ["cluster", "client_id", "api", "topic", "partition", "epoch"]
    expected = {
        tuple(row[name] for name in key): row["recovery_ms"]
        for row in _answers(spark, made, "recoveries").collect()
    }
    for row in made.store.table("recoveries").collect():
        truth = expected[tuple(row[name] for name in key)]
        assert row["recovery_ms"] == pytest.approx(truth, abs=row["uncertain_ms"])


def test_incidents_are_distinguished(spark: SparkSession, made: Made) -> None:
    told = made.store.table("incidents").orderBy("began").select("kind", "moves").collect()
    expected = _answers(spark, made, "incidents").orderBy("began").select("kind", "moves").collect()
    assert told == expected


def test_clocks_are_known_within_their_bound(spark: SparkSession, made: Made) -> None:
    """Only differences can be known: all are relative to the middle."""
    truth = {r["sidecar"]: r["skew_ms"] for r in _answers(spark, made, "clock_skew").collect()}
    rows = {row["sidecar"]: row for row in made.store.table("clock_skew").collect()}
    for one in truth:
        for other in truth:
            told = rows[one]["skew_ms"] - rows[other]["skew_ms"]
            bound = rows[one]["bound_ms"] + rows[other]["bound_ms"]
            assert told == pytest.approx(truth[one] - truth[other], abs=bound)


def test_journals_are_whole_but_for_what_was_reported(made: Made) -> None:
    rows = made.store.table("journal_runs").collect()
    twice = sum(row["duplicates"] for row in rows)
    assert sum(row["events"] for row in rows) + twice == made.taken.events
    assert sum(row["missing"] for row in rows) >= 0
    assert sum(row["reported"] for row in rows) == 7 * FLEET.sidecars
    assert {row["sidecar"] for row in rows if row["stopped"]} == {
        f"sidecar-000-{n}" for n in range(6)
    }
    assert made.taken.bad == FLEET.sidecars
    assert {row["reason"] for row in made.store.quarantine().collect()} == {"not_json"}


def test_latencies_are_counted_once(made: Made) -> None:
    files = (made.folder / "journal").rglob("*.jsonl")
    lines = {
        line for file in files for line in file.read_text().splitlines() if '"latency"' in line
    }
    assert sum(row["samples"] for row in made.store.table("latencies").collect()) == len(lines)


def test_hints_sum_up_to_what_clients_met(made: Made) -> None:
    met = made.store.table("recoveries").collect()
    told = made.store.table("hint_effectiveness").collect()
    missed = made.store.table("hint_misses").collect()
    without = made.store.table("clients_without_hints").collect()
    hours = made.store.table("broker_hours").collect()
    for name in ("errors", "hinted", "used"):
        assert sum(row[name] for row in told) == sum(row[name] for row in met)
    would_give = sum(row["would_give"] for row in told)
    assert would_give == sum(row["would_hints"] for row in met)
    assert would_give > sum(row["would_hint"] for row in met) > 0
    assert sum(row["episodes"] for row in told) == len(met)
    assert sum(row["episodes"] for row in missed) == sum(not row["hinted"] for row in met)
    cannot = [row for row in met if row["reason"] in CANNOT]
    assert {row["reason"] for row in cannot} == set(CANNOT)
    assert sum(row["lost_ms"] for row in without) == pytest.approx(
        sum(row["recovery_ms"] for row in cannot)
    )
    losses = [row["lost_ms"] for row in sorted(without, key=lambda row: row["rank"])]
    assert losses == sorted(losses, reverse=True)
    for name in ("errors", "hints", "lost_ms"):
        assert sum(row[name] for row in hours) == pytest.approx(sum(row[name] for row in met))


def test_a_refresh_takes_few_jobs(spark: SparkSession, made: Made) -> None:
    """What each costs for the driver, not its events, is most of the work on small days."""
    jobs = spark.sparkContext._jsc.sc().statusStore()

    def ids_and_tasks() -> dict[int, int]:
        all_ = jobs.jobsList(None)
        found = (all_.apply(number) for number in range(all_.size()))
        return {job.jobId(): job.numCompletedTasks() for job in found}

    before = ids_and_tasks()
    # Other tests change settings of theirs, such as the parts of a shuffle, which each cost a task.
    fresh = spark.newSession()
    assert fresh.conf.get("spark.sql.shuffle.partitions") == "2"
    Store(fresh, made.out).refresh(rebuild=True)
    tasks = [of for number, of in ids_and_tasks().items() if number not in before]
    # It depends on what is cached first.
    assert len(tasks) <= 72
    assert sum(tasks) <= 106


def test_a_second_run_changes_nothing(spark: SparkSession, made: Made) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(made.out).rglob("*.parquet")}
    again = run(spark, str(made.folder / "journal"), made.out)
    assert (again.batches, again.days) == (0, [])
    assert {path: path.stat().st_mtime_ns for path in Path(made.out).rglob("*.parquet")} == before


@pytest.mark.parametrize("wrong", [Fleet(5, 1, 100, 1), Fleet(7, 1, 100, 1), Fleet(6, 0, 100, 1)])
def test_a_fleet_that_cannot_be_is_refused(
    spark: SparkSession, wrong: Fleet, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match=r"is needed|at least"):
        generate(spark, wrong, str(tmp_path))


def test_clients_are_ready_or_refused_by_what_they_ask(spark: SparkSession, made: Made) -> None:
    found = readiness(Tables(made.store, Period()))
    told = {row["software"]: row for row in found.rows if row["software_version"] != "2.8.2"}
    assert len(found.rows) == 4
    assert [row["clients"] for row in found.rows] == [5] * 4
    assert told["sarama"]["refused"] == "OffsetCommit 1: 4.0 takes 2 and newer"
    assert told["apache-kafka-java"]["verdict"] == told["librdkafka"]["verdict"] == "will be served"
    assert str(told["apache-kafka-java"]["principals"]).startswith("CN=asks-0,O=Example; CN=asks-1")
