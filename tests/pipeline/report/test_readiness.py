"""Clients and what becomes of them, from the table of what they asked."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from leader_hints.apis.oldest_versions import NEWEST_RELEASE, RELEASES
from leader_hints_report.report.listings import READINESS, Rows
from leader_hints_report.report.period import Period, Tables
from leader_hints_report.report.readiness import readiness
from leader_hints_report.store.folder import Store
from leader_hints_report.tables import columns

_DAY = date(2026, 3, 29)
_PRODUCE, _FETCH, _METADATA, _OFFSET_COMMIT = 0, 1, 3, 8


def _asks(
    client_id: str, api_key: int | None, oldest: int | None, newest: int | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "client_id": client_id,
        "software": "apache-kafka-java",
        "software_version": "3.6.2",
        "api_key": api_key,
        "oldest": oldest,
        "newest": oldest if newest is None else newest,
        "addresses": [],
        "principals": [],
        "sidecars": 1,
        "day": _DAY,
        "cluster": "c1",
        **more,
    }


def _found(spark: SparkSession, folder: Path, *rows: dict[str, Any]) -> Rows:
    table = columns.ASKED_VERSIONS
    names = [column.name for column in table.all_columns]
    values = [tuple(row.get(name) for name in names) for row in rows]
    frame = spark.createDataFrame(values, table.schema)
    frame.write.partitionBy("day", "cluster").parquet(str(folder / "tables" / table.name))
    return readiness(Tables(Store(spark, str(folder)), Period()))


def test_clients_that_ask_the_same_have_one_row(spark: SparkSession, tmp_path: Path) -> None:
    later = _DAY + timedelta(days=1)
    old: dict[str, Any] = {"software": "sarama", "software_version": "1.19.0"}
    rows = _found(
        spark,
        tmp_path,
        *(
            _asks(f"orders-{number:02}", key, oldest, 12, addresses=[f"192.0.2.{number}"])
            for number in range(25)
            for key, oldest in ((_PRODUCE, 9), (_METADATA, 9))
        ),
        # On one day it only named itself.
        _asks("reads", None, None),
        _asks("reads", _FETCH, 12, 15, day=later, principals=["CN=a,O=x", "CN=b"]),
        _asks("reads", _FETCH, 11, 13),
        _asks("admin", _METADATA, 12),
        _asks("silent", None, None),
        _asks("billing", _PRODUCE, 2, 7, **old),
        _asks("billing", _OFFSET_COMMIT, 1, **old, cluster="c2"),
    )
    assert not rows.more
    assert all(row.keys() == {column.name for column in READINESS.columns} for row in rows.rows)
    shown = [(row["verdict"], row["clients"], row["asks"]) for row in rows.rows]
    assert shown[:2] == [
        ("will be refused", 1, "Produce 2-7"),
        ("will be refused", 1, "OffsetCommit 1"),
    ]
    assert sorted(map(str, shown[2:4])) == [
        "('seen in part', 1, '')",
        "('seen in part', 1, 'Metadata 12')",
    ]
    assert shown[4:] == [
        ("will be served", 25, "Produce 9-12, Metadata 9-12"),
        ("will be served", 1, "Fetch 11-15"),
    ]
    refused, orders, reads = rows.rows[0], rows.rows[4], rows.rows[5]
    assert refused["refused"] == "Produce 2: 4.0 takes 3 and newer"
    assert str(refused["remedy"]).startswith("upgrade sarama to 1.30.1 or newer")
    assert [refused[name] for name in ("in_3_7", "in_4_0", "in_4_1", "hints")] == [
        "will be served",
        "will be refused",
        "will be refused",
        "",
    ]
    assert str(orders["client_ids"]).endswith("orders-19 and 5 more")
    assert str(orders["addresses"]).endswith(" and 5 more")
    assert orders["hints"] == "from 3.7 on"
    assert reads["principals"] == "CN=a,O=x; CN=b"
    assert [row["last_day"] for row in (orders, reads)] == ["2026-03-29", "2026-03-30"]


def test_what_is_refused_is_never_beyond_the_limit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "leader_hints_report.report.readiness.READINESS", READINESS._replace(most=2)
    )
    many = [_asks(f"c{number}", _PRODUCE, 9, 9 + number % 3) for number in range(30)]
    rows = _found(spark, tmp_path, *many, _asks("one", _FETCH, 3))
    assert rows.more
    assert [row["verdict"] for row in rows.rows] == ["will be refused", "will be served"]


def test_there_is_nothing_without_the_table(spark: SparkSession, tmp_path: Path) -> None:
    """An earlier version made the tables, or no sidecar's."""
    assert readiness(Tables(Store(spark, str(tmp_path)), Period())) == Rows(rows=())


def test_the_columns_are_those_of_the_releases_that_are_known() -> None:
    heads = {c.name: c.head for c in READINESS.columns if c.name.startswith("in_")}
    assert [*heads] == [f"in_{release.replace('.', '_')}" for release in RELEASES]
    assert [head.partition(" ")[0] for head in heads.values()] == [*RELEASES]
    assert [*heads.values()][-1].endswith(NEWEST_RELEASE)
