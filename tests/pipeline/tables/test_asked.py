"""What clients asked, from the journals' lines."""

from typing import Any

from pyspark.sql import SparkSession

from leader_hints_report.tables.asked import asked_versions
from leader_hints_report.tables.columns import ASKED_VERSIONS
from leader_hints_report.tables.plan import typed
from tests.pipeline.lines import Event, event, frame


def _asked(seconds: float, seq: int, asked: str, *, sidecar: str = "a", **more: Any) -> Event:
    columns = {
        "route": "r",
        "client_id": "c",
        "software": "lib",
        "software_version": "1",
        "cluster": "k",
        "asked": asked,
        **more,
    }
    return event("asked", seconds, seq, sidecar=sidecar, **columns)


def test_what_sidecars_report_of_a_client_is_put_together(spark: SparkSession) -> None:
    line = _asked(1, 1, "0:3-7,1:11-11", addresses="192.0.2.1,192.0.2.2", principals="CN=a,O=x")
    named = {**_asked(3, 3, "", client_id="named"), "event": "client", "link": 1}
    del named["asked"]
    stored = frame(
        spark,
        [
            line,
            line,  # It came twice.
            _asked(2, 2, "0:2-9", addresses="192.0.2.2", principals="CN=b; (others)"),
            _asked(2, 1, "0:9-9", sidecar="b", addresses="192.0.2.3"),
            named,
            _asked(90_000, 4, "1:4-4", cluster=None),
        ],
    )
    rows = typed("asked_versions", asked_versions(stored))
    assert rows.columns == ASKED_VERSIONS.schema.fieldNames()
    found = rows.orderBy("day", "client_id", "api_key").collect()
    names = ("cluster", "client_id", "api_key", "oldest", "newest", "sidecars")
    assert [tuple(row[name] for name in names) for row in found] == [
        ("k", "c", 0, 2, 9, 2),
        ("k", "c", 1, 11, 11, 1),
        ("k", "named", None, None, None, 1),
        ("unknown", "c", 1, 4, 4, 1),
    ]
    assert found[0]["addresses"] == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    assert found[0]["principals"] == ["(others)", "CN=a,O=x", "CN=b"]
    assert found[2]["addresses"] == []


def test_what_is_no_version_is_no_version(spark: SparkSession) -> None:
    texts = ["", ",", "x", "0:3", "0:-1-3", "99999999999:1-1", "0:1-99999999999", "1:4-11,junk"]
    stored = frame(spark, [_asked(1, seq, text) for seq, text in enumerate(texts)])
    rows = asked_versions(stored).where("api_key IS NOT NULL").collect()
    assert [(row["api_key"], row["oldest"], row["newest"]) for row in rows] == [(1, 4, 11)]
