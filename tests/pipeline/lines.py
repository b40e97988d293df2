"""Journal lines as tests write them: what is not said is filled in."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from leader_hints_report.journal import events as stored

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Event = dict[str, Any]


def at(seconds: float, begin: datetime = BEGIN) -> datetime:
    """So many seconds after the beginning."""
    return begin + timedelta(seconds=seconds)


def text(time: datetime) -> str:
    """An instant as the journal has it."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def event(
    kind: str, seconds: float, seq: int, *, sidecar: str = "a", run: str | None = None, **more: Any
) -> Event:
    """An event; its run is its sidecar's only one."""
    return {
        "version": 1,
        "event": kind,
        "time": text(at(seconds)),
        "sidecar": sidecar,
        "run": run or f"run-{sidecar}",
        "seq": seq,
        **more,
    }


def _on_a_link(more: Event) -> Event:
    return {
        "route": "broker",
        "link": 1,
        "client_id": "app",
        "software": "librdkafka",
        "software_version": "2.5.3",
        "cluster": "c",
        **more,
    }


def error(seconds: float, seq: int, *, sidecar: str = "a", **more: Any) -> Event:
    """An error without a hint and without a hold."""
    columns = {
        "api": "Produce",
        "topic": "t",
        "partition": 0,
        "api_version": 10,
        "error": 6,
        "hinted": False,
        "observed": False,
        "hold_ms": 0.0,
        **more,
    }
    return event("error", seconds, seq, sidecar=sidecar, **_on_a_link(columns))


def success(seconds: float, seq: int, *, sidecar: str = "a", **more: Any) -> Event:
    """A recovery event."""
    columns = {"api": "Produce", "topic": "t", "partition": 0, "hinted": False, **more}
    return event("recovery", seconds, seq, sidecar=sidecar, **_on_a_link(columns))


def client(
    seconds: float, seq: int, uses: str, *, sidecar: str = "a", **more: Any
) -> Event:  # fmt: skip
    """A client that named its software; ``uses``: the hints that its sidecar knows it to use."""
    columns = {
        "route": "broker",
        "link": 1,
        "client_id": "app",
        "software": "librdkafka",
        "software_version": "2.5.3",
        "cluster": "c",
        "uses": uses,
        **more,
    }
    return event("client", seconds, seq, sidecar=sidecar, **columns)


def move(
    seconds: float, seq: int, before: int, leader: int, epoch: int, *, sidecar: str = "a",
    **more: Any,
) -> Event:  # fmt: skip
    """A leader_change event, from the epoch before."""
    columns = {
        "cluster": "c",
        "topic": "t",
        "partition": 0,
        "leader_before": before,
        "epoch_before": epoch - 1,
        "leader": leader,
        "epoch": epoch,
        **more,
    }
    return event("leader_change", seconds, seq, sidecar=sidecar, **columns)


def latency(seconds: float, seq: int, ms: float, *, sidecar: str = "a", **more: Any) -> Event:
    """A sampled latency."""
    columns = {"api": "Produce", "api_version": 10, "latency_ms": ms, **more}
    return event("latency", seconds, seq, sidecar=sidecar, **_on_a_link(columns))


def read(seconds: float, seq: int, size: int, *, sidecar: str = "a", **more: Any) -> Event:
    """What a consumer in rack `x` read."""
    columns = {"topic": "t", "rack": "x", "bytes": size, "avoidable_bytes": 0, **more}
    return event("read", seconds, seq, sidecar=sidecar, **_on_a_link(columns))


def replica(seconds: float, seq: int, *, sidecar: str = "a", **more: Any) -> Event:
    """A replica that was named to a consumer in rack `x`."""
    columns = {
        "topic": "t",
        "partition": 0,
        "replica": 2,
        "rack": "x",
        "returned": False,
        "observed": False,
        **more,
    }
    return event("replica", seconds, seq, sidecar=sidecar, **_on_a_link(columns))


def as_text(events: Iterable[Event]) -> str:
    """Lines of a file."""
    return "".join(json.dumps(one) + "\n" for one in events)


def frame(spark: SparkSession, events: Iterable[Event | str]) -> DataFrame:
    """Rows as they are stored, from events or raw lines."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in events]
    # One literal, taken apart by Spark: createDataFrame would start Python workers.
    raw = spark.sql(
        "SELECT 'file' AS source, explode(split(:text, '\\n')) AS line",
        args={"text": "\n".join(lines)},
    )
    return stored.read(raw)
