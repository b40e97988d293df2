"""Records that a stream was to read, and that were gone, by what Spark reports."""

import json
from typing import Any
from unittest.mock import Mock

import pytest

from leader_hints_report.lost_records import LostRecords, lost_records, why_it_ended

_OUT_OF_RANGE = """[STREAM_FAILED] Query terminated with exception: Traceback (most recent call):
org.apache.spark.sql.kafka010.KafkaIllegalStateException: Some data may have been lost because they
Caused by: org.apache.kafka.clients.consumer.OffsetOutOfRangeException: Fetch position
FetchPosition{offset=2, offsetEpoch=Optional.empty} is out of range for partition journal-1"""


def _progress(
    start: dict[str, int] | None, end: dict[str, int], rows: int, **more: Any
) -> dict[str, Any]:
    source = {
        "description": "KafkaV2[Subscribe[journal]]",
        "startOffset": "None" if start is None else json.dumps({"journal": start}),
        "endOffset": json.dumps({"journal": end}),
        "numInputRows": rows,
    }
    return {"sources": [source], "timestamp": "2026-01-02T03:04:05.000Z", **more}


@pytest.mark.parametrize(
    ("start", "end", "rows", "lost"),
    [
        ({"0": 2, "1": 2}, {"0": 6, "1": 5}, 2, 5),
        ({"0": 2, "1": 2}, {"0": 6, "1": 5}, 7, 0),
        # The first ones: what the topic had before nobody was to read.
        (None, {"0": 6, "1": 5}, 2, 0),
        # A new partition, and a topic that was created again.
        ({"0": 2}, {"0": 6, "1": 5}, 2, 0),
        ({"0": 20}, {"0": 1}, 1, 0),
    ],
)
def test_offsets_without_a_record_are_lost(
    start: dict[str, int] | None, end: dict[str, int], rows: int, lost: int
) -> None:
    assert lost_records(_progress(start, end, rows)) == lost


def test_files_have_no_offsets() -> None:
    source = {"description": "FileStreamSource[file:/journal]", "startOffset": '{"logOffset":0}'}
    assert lost_records({"sources": [source]}) == 0


def test_each_micro_batch_is_looked_at_once() -> None:
    lost: list[int] = []
    all_ = [
        _progress({"0": 0}, {"0": number}, 0, timestamp=f"2026-01-02T03:04:0{number}.000Z")
        for number in range(1, 5)
    ]
    query = Mock(lastProgress=None, recentProgress=[])
    records = LostRecords(query, lost.append)
    records.look()
    for known in (all_[:1], all_[:3], all_[:3], all_[1:]):
        query.lastProgress, query.recentProgress = known[-1], known
        records.look()
    assert lost == [1, 2, 3, 4]


def test_it_says_where_records_are_gone_and_what_to_do() -> None:
    said = why_it_ended(_OUT_OF_RANGE.replace("position\n", "position "))
    assert said is not None
    assert "removed before they were read (partition journal-1, offset 2)" in said
    assert said.endswith("give --skip-lost")
    assert "offset" not in str(why_it_ended("[KAFKA_DATA_LOSS.START_OFFSET_RESET] it is lower"))
    assert why_it_ended("[STREAM_FAILED] No space left on device") is None
