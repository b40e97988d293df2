"""Where journals come from: files of JSON lines or Parquet, or a topic.

Tested in ``tests/pipeline/test_streaming.py``.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final, NamedTuple

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal import events
from leader_hints_report.journal.files import File, Files
from leader_hints_report.store.batches import Batch

_KAFKA: Final = "kafka://"
#: Finished files only: a sidecar still writes to ``.jsonl.open``.
_JSON: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".jsonl.bz2")
_JSON_PATTERN: Final = "*.{jsonl,jsonl.gz,jsonl.zst,jsonl.bz2}"
#: How much older than the newest file one may be that comes to a stream; Spark remembers the names
#: of files for so long, and leaves out older ones.
_OLDEST_FILE: Final = "90d"
#: Collectors remove files. What was to be read of one is missing by its numbers, and a stream that
#: was killed before it had read it would never go on.
_GONE: Final = {"ignoreMissingFiles": True}
_CONNECTOR: Final = ("spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13")


class Topic(NamedTuple):
    """``bootstrap``: HOST:PORT, several with commas."""

    bootstrap: str
    name: str


def topic_of(journal: str) -> Topic | None:
    """The topic of ``kafka://HOST:PORT,.../TOPIC``; ``None``: it is a path.

    :raises PipelineError: it begins so but names no brokers or no topic.
    """
    if not journal.startswith(_KAFKA):
        return None
    bootstrap, _, name = journal.removeprefix(_KAFKA).partition("/")
    if not bootstrap or not name or "/" in name:
        raise PipelineError(f"{journal} is no kafka://HOST:PORT,.../TOPIC")
    return Topic(bootstrap, name)


def packages(journal: str) -> tuple[str, ...]:
    """The jars that a source needs: Spark's connector to Kafka, of the very version of PySpark."""
    if topic_of(journal) is None:
        return ()
    return tuple(f"org.apache.spark:{name}:{pyspark.__version__}" for name in _CONNECTOR)


def new_files(session: SparkSession, journal: str, batches: list[Batch]) -> list[File]:
    """The finished journal files that are in no batch yet.

    A file that is in one and has another size now was not finished, or is another one: its whole
    content is taken in again, and what it had before is recognised.
    """
    found = [file for file in Files(session).found(journal) if _is_json(file)]
    known = {
        (path, size) for batch in batches for path, size in batch.inputs.get("files", {}).items()
    }
    return [file for file in found if (file.path, file.size) not in known]


def files_batch(files: list[File]) -> Batch:
    """The batch of some files; the same for the same files."""
    inputs = {"files": {file.path: file.size for file in files}}
    return Batch(_digest(inputs), inputs)


def read_files(session: SparkSession, files: list[File]) -> DataFrame:
    """Judge the lines of files: see :func:`leader_hints_report.journal.events.read`."""
    lines = session.read.options(**_GONE).text([file.path for file in files])
    return events.read(
        lines.select(
            F.col("_metadata.file_path").alias("source"),
            F.col("value").alias("line"),
        )
    )


def stream(
    session: SparkSession,
    journal: str,
    kafka: Mapping[str, str],
    at_once: int | None = None,
    *,
    skip_lost: bool = False,
) -> DataFrame:
    """The lines of a journal as they come, ``source`` and ``line``; what is there comes first.

    ``kafka``: further properties of the client, by their Kafka names. ``at_once``: how many files
    or records a micro-batch has at most. ``skip_lost``: go on where records are gone that were to
    be read; else the stream ends.

    :raises PipelineError: there is no such folder.
    """
    topic = topic_of(journal)
    if topic is None:
        Files(session).require(journal)
        of_files = session.readStream.options(**_GONE, pathGlobFilter=_JSON_PATTERN)
        if at_once is not None:
            of_files = of_files.option("maxFilesPerTrigger", at_once)
        return (
            of_files.option("recursiveFileLookup", True)
            .option("maxFileAge", _OLDEST_FILE)
            .text(journal)
            .select(F.col("_metadata.file_path").alias("source"), F.col("value").alias("line"))
        )
    reader = session.readStream.format("kafka")
    for name, value in kafka.items():
        reader = reader.option(f"kafka.{name}", value)
    if at_once is not None:
        reader = reader.option("maxOffsetsPerTrigger", at_once)
    records = (
        reader.option("kafka.bootstrap.servers", topic.bootstrap)
        .option("subscribe", topic.name)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", not skip_lost)
        .load()
    )
    source = F.concat_ws("/", F.lit(journal), F.col("partition"), F.col("offset"))
    return records.select(source.alias("source"), F.col("value").cast("string").alias("line"))


def checkpoint_of(topic: Topic) -> str:
    """The name of the checkpoint for how far batch runs have read a topic."""
    brokers = sorted(topic.bootstrap.split(","))
    return f"batch-{_digest([brokers, topic.name])}"


def _is_json(file: File) -> bool:
    return file.path.endswith(_JSON)


def _digest(inputs: object) -> str:
    text = json.dumps(inputs, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]
