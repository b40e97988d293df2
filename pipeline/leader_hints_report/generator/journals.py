"""Events as numbered lines, in files that are named as the proxy's.

Tested in ``tests/pipeline/generator/test_generation.py``.
"""

from typing import Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from leader_hints_report.journal.files import Files
from leader_hints_report.journal.format import COLUMNS, VERSION

_ONE_IN_TWICE: Final = 500
_TORN: Final = '{"version":1,"event":"recov'


def numbered(rows: DataFrame) -> DataFrame:
    """Number events as their sidecars would: by their clocks, leaving out what was dropped."""
    run = F.md5("sidecar")
    tie = F.xxhash64("event", "client_id", "topic", "partition", "epoch", "api", "latency_ms")
    in_order = Window.partitionBy("sidecar").orderBy("at", tie)
    weight = F.coalesce("dropped", F.lit(0)) + 1
    seq = F.sum(weight).over(in_order) - 1
    time = F.date_format(
        F.convert_timezone(None, F.lit("UTC"), F.timestamp_micros("at")),
        "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
    )
    return rows.withColumns({"run": run, "seq": seq}).withColumns(
        {
            "version": F.lit(VERSION),
            "time": time,
            "first_seq": F.col("seq") - F.col("dropped"),
            "last_seq": F.when(F.col("dropped").isNotNull(), F.col("seq") - 1),
        }
    )


def write_journals(session: SparkSession, rows: DataFrame, out: str) -> None:
    """Write lines to files that are called as the proxy's; what comes twice has its own ones."""
    names = [name for name in COLUMNS if name in rows.columns]
    text = F.to_json(F.struct(*names))
    lines = rows.select("sidecar", text.alias("value"), "event", "seq")
    torn = lines.where(F.col("event") == "stop").withColumn("value", F.lit(_TORN))
    again = lines.where((F.col("event") == "latency") & (F.col("seq") % _ONE_IN_TWICE == 0))
    columns = ("sidecar", "value")
    files = Files(session)
    for frame, folder in (
        (lines, out),
        (again.select(*columns).union(torn.select(*columns)), f"{out}/again"),
    ):
        frame.select(*columns).write.mode("overwrite").partitionBy("sidecar").text(folder)
    for number, file in enumerate(files.found(out)):
        if file.path.endswith(".txt"):
            folder, _, _ = file.path.rpartition("/")
            sidecar = folder.rpartition("=")[2]
            files.rename(file.path, f"{folder}/{sidecar}_{number:06}.jsonl")
