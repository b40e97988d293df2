"""Samples: the latencies of single records, as benchmarks write them down; and runs made of them.

The format: files ``*.csv``, ``*.csv.gz`` or ``*.parquet`` in a folder or
below it, UTF-8, one row for each record that the producer was given, in any order and in any
number of files, with these columns (a CSV file names them in its first line, in this order):

- ``arm`` (string): what was measured, as tables are to show it;
- ``run`` (int): number of the run within the arm;
- ``sent_ms`` (double): when the record was given to the producer, milliseconds since 1970;
- ``latency_ms`` (double): from then to its acknowledgement; empty where the producer gave it up;
- ``bytes`` (int): the record's size as the benchmark counts it.
"""

from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, IntegerType, StringType, StructField, StructType

from leader_hints_report.errors import PipelineError
from leader_hints_report.kip951.run_figures import PERCENTILES, RunFigures
from leader_hints_report.text import escape

SCHEMA: Final = StructType(
    [
        StructField("arm", StringType()),
        StructField("run", IntegerType()),
        StructField("sent_ms", DoubleType()),
        StructField("latency_ms", DoubleType()),
        StructField("bytes", IntegerType()),
    ]
)

_CORRUPT: Final = "_corrupt"
_FILE: Final = "_file"
_HEADER: Final = ",".join(SCHEMA.names)
_MEGABYTE: Final = 1024 * 1024
_RUN: Final = ("arm", "run")


class SampleError(PipelineError):
    """What was given as samples is not, or has none."""


def read_samples(spark: SparkSession, path: str) -> DataFrame:
    """Read all samples at ``path``, a file or a folder; see the format above.

    The rows have besides ``_file``, where they stand, and ``_corrupt``, a line that is no sample.

    :raises SampleError: there is nothing at ``path``.
    """
    try:
        return _read_samples(spark, path)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise SampleError(f"samples {path!r}: there is no such file or folder") from None


def _read_samples(spark: SparkSession, path: str) -> DataFrame:
    # The first line is read as any other and detected by its content: so a line with other
    # columns, or the same in another order, is reported as it is.
    csv = (
        _reader(spark, "*.{csv,csv.gz}")
        .schema(StructType([*SCHEMA.fields, StructField(_CORRUPT, StringType())]))
        .option("columnNameOfCorruptRecord", _CORRUPT)
        .csv(path)
        .where(~F.col(_CORRUPT).eqNullSafe(_HEADER))
    )
    parquet = (
        _reader(spark, "*.parquet")
        .schema(SCHEMA)
        .parquet(path)
        .withColumn(_CORRUPT, F.lit(None).cast(StringType()))
    )
    return csv.unionByName(parquet).withColumn(_FILE, F.input_file_name())


def run_figures(samples: DataFrame) -> list[RunFigures]:
    """Work out the figures of each run, ordered by arm and run.

    Percentiles are exact and chosen as kafka-producer-perf-test does: of n latencies in ascending
    order the one at floor(share * n), counted from 0. That tool looks at 500,000 latencies at most;
    here all count.

    :raises SampleError: there are no samples, a row is none, or a run has no acknowledged record.
    """
    rows = _by_run(_by_latency(samples)).orderBy(*_RUN).collect()
    if not rows:
        raise SampleError("no samples: no row in any file *.csv, *.csv.gz or *.parquet")
    for row in rows:
        if row["_wrong"] is not None:
            raise SampleError(f"not a sample ({_HEADER}): {escape(row['_wrong'])}")
    for row in rows:
        if not row["records"]:
            raise SampleError(f"arm {row['arm']!r}, run {row['run']}: no record was acknowledged")
    return [RunFigures(**{name: row[name] for name in RunFigures.model_fields}) for row in rows]


def _reader(spark: SparkSession, names: str) -> DataFrameReader:
    return spark.read.option("recursiveFileLookup", True).option("pathGlobFilter", names)


def _by_latency(samples: DataFrame) -> DataFrame:
    """Put equal latencies of a run together. Tools tell them in milliseconds, so few rows are left
    to be put in order, however many records there were."""
    acknowledged = F.col("latency_ms").isNotNull()
    return samples.groupBy(*_RUN, "latency_ms").agg(
        F.count("latency_ms").alias("_count"),
        F.count_if(~acknowledged).alias("_failed"),
        F.sum(F.when(acknowledged, F.col("bytes"))).alias("_bytes"),
        F.min("sent_ms").alias("_first"),
        F.max(F.col("sent_ms") + F.col("latency_ms")).alias("_last"),
        F.min(F.when(_is_wrong(), _shown())).alias("_wrong"),
    )


def _by_run(by_latency: DataFrame) -> DataFrame:
    run = Window.partitionBy(*_RUN)
    # Nulls, which are failed records, come first and count nothing.
    ranked = by_latency.withColumn(
        "_up_to", F.sum("_count").over(run.orderBy("latency_ms"))
    ).withColumn("_all", F.sum("_count").over(run))
    # A run in which all is acknowledged within the clock's resolution took that long.
    elapsed_ms = F.greatest(F.max("_last") - F.min("_first"), F.lit(0.001))
    return ranked.groupBy(*_RUN).agg(
        F.sum("_count").alias("records"),
        F.sum("_failed").alias("failed"),
        (F.sum("_count") / elapsed_ms * 1000).alias("records_per_s"),
        (F.sum("_bytes") / _MEGABYTE / elapsed_ms * 1000).alias("mb_per_s"),
        (F.sum(F.col("latency_ms") * F.col("_count")) / F.sum("_count")).alias("avg_ms"),
        F.max("latency_ms").alias("max_ms"),
        *(_percentile(share).alias(name) for name, share in PERCENTILES.items()),
        F.min("_wrong").alias("_wrong"),
    )


def _percentile(share: float) -> Column:
    reached = F.col("_up_to") > F.floor(F.col("_all") * share)
    return F.min(F.when(reached, F.col("latency_ms")))


def _is_wrong() -> Column:
    """Whether a row is no sample."""
    wrong = F.col(_CORRUPT).isNotNull()
    for name in ("arm", "run", "sent_ms", "bytes"):
        wrong = wrong | F.col(name).isNull()
    for name in ("sent_ms", "latency_ms", "bytes"):
        number = F.col(name)
        # NaN is above all numbers in Spark, and so is infinity.
        odd = (number < 0) | (number >= float("inf"))
        wrong = wrong | F.coalesce(odd, F.lit(False))
    return wrong


def _shown() -> Column:
    """A wrong row and where it stands: the line itself where there is one."""
    row = F.coalesce(F.col(_CORRUPT), F.to_json(F.struct(*SCHEMA.names)))
    return F.concat_ws(": ", F.col(_FILE), row)
