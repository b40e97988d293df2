"""Works of the pipeline and how long they take. Sessions are those of the commands."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
from pyspark.sql import SparkSession

from bench.pipeline.queries import QUERIES
from bench.pipeline.stages import Stage, stages
from leader_hints_report.batch import run
from leader_hints_report.generator.fleet import Fleet
from leader_hints_report.journal.events import PART_OF, REST
from leader_hints_report.journal.format import COLUMNS
from leader_hints_report.journal.sources import stream
from leader_hints_report.query.by_duckdb import ask
from leader_hints_report.spark_session import begin
from leader_hints_report.store.folder import Store
from leader_hints_report.streaming import SETTINGS
from leader_hints_report.streaming import begin as begin_stream
from tests.harness.maven import BUILD, ROOT
from tests.harness.processes import cpu_seconds
from tests.pipeline.standalone import standalone_cluster

FOLDER: Final = BUILD / "bench" / "pipeline"
#: Ends the names of stages that make tables of stored events.
AGAIN: Final = " again"
#: The step in which lines are stored.
EVENTS: Final = "events"
_WARMING: Final = " warming up"
#: Micro-batches before those that count, and how many do: Java compiles what it meets often.
WARM_UP: Final = 3
COUNTED: Final = 7
#: How often each question is put: Java compiles what it meets often.
_ASKED: Final = 10
_DIGITS: Final = 3
#: Memory of a worker of a cluster, and of its executor.
_WORKER: Final = "3g"
_EXECUTOR: Final = "2g"


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _fresh(name: str) -> Path:
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _size(folder: Path, pattern: str) -> int:
    return sum(file.stat().st_size for file in folder.rglob(pattern))


def journal_of(fleet: Fleet, name: str, master: str) -> Path:
    """The folder of a fleet's journal; made unless it is there."""
    folder = FOLDER / name
    done = folder / "fleet.txt"
    if not done.exists() or done.read_text() != repr(fleet):
        shutil.rmtree(folder, ignore_errors=True)
        flags = {
            "sidecars": fleet.sidecars,
            "hours": fleet.hours,
            "events": fleet.events,
            "seed": fleet.seed,
            "hot": fleet.hot,
            "out": folder,
            "master": master,
        }
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        # In a process of its own: what is measured begins with a fresh Java.
        subprocess.run(
            [sys.executable, "-m", "leader_hints_report.cli", "generate", *arguments],
            cwd=ROOT,
            check=True,
        )
        done.write_text(repr(fleet))
    return folder / "journal"


@dataclass(frozen=True)
class Trial:
    """What all tables of a journal took.

    ``json_s``: seconds from JSON; ``stored_s``: from the Parquet that was stored, whose stages end
    with :data:`AGAIN`. ``json_bytes`` and ``stored_bytes``: the sizes of the two.
    """

    events: int
    json_s: float
    stored_s: float
    json_bytes: int
    stored_bytes: int


@dataclass(frozen=True)
class Cost:
    """CPU seconds of Java and Python: ``start_s``, until a session is there, with what Java did for
    other journals before; ``ingest_s``, with that, until lines are stored as rows; ``tables_s``, of
    all tables from stored events."""

    start_s: float
    ingest_s: float
    tables_s: float


def _cpu(session: SparkSession) -> float:
    """CPU seconds of this process and its Java so far."""
    java: Any = session.sparkContext._gateway
    return time.process_time() + cpu_seconds(java.proc.pid)


def whole(
    journal: Path,
    name: str,
    master: str,
    *,
    warm_up: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> tuple[Trial, Cost, list[Stage]]:
    """Make all tables from JSON, and then from the stored events; return also Spark's stages.

    ``warm_up``: a journal that the same Java works through first, which counts for nothing.
    ``settings``: Spark's, besides those that are set by default.
    """
    log = _fresh("log")
    before = time.process_time()
    log.mkdir(parents=True)
    session = begin(
        master,
        {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": log.as_uri(),
            **(settings or {}),
        },
    )
    if warm_up is not None:
        run(session, str(warm_up), str(_fresh("warm-out")), on_step=_naming(session, _WARMING))
    out = _fresh(f"{name}-out")
    start_cpu = _cpu(session)
    steps: dict[str, float] = {}
    start = time.perf_counter()
    taken = run(session, str(journal), str(out), on_step=_naming(session, "", steps))
    json_s = time.perf_counter() - start
    again = Store(session, str(out), _naming(session, AGAIN))
    again_cpu = _cpu(session)
    stored_s = _timed(lambda: again.refresh(rebuild=True))
    cost = Cost(
        start_s=start_cpu - before,
        ingest_s=min(at for step, at in steps.items() if step != EVENTS) - before,
        tables_s=_cpu(session) - again_cpu,
    )
    session.stop()
    (of_session,) = log.iterdir()
    with of_session.open(encoding="utf-8") as lines:
        done = [stage for stage in stages(lines) if not stage.name.endswith(_WARMING)]
    trial = Trial(
        events=taken.events,
        json_s=json_s,
        stored_s=stored_s,
        json_bytes=_size(journal, "*.jsonl"),
        stored_bytes=_size(out / "events", "*.parquet"),
    )
    return trial, cost, done


def on_cluster(journal: Path, name: str, workers: int) -> Trial:
    """The same on a cluster of Spark's own on this machine: a driver, a master, and workers of one
    core, which read lines by Spark. Each has a Java of its own, which has just been started."""
    folder = _fresh(f"{name}-cluster")
    folder.mkdir(parents=True)
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executor.memory": _EXECUTOR,
        # As docs/pipeline.md says; on one machine the commands set it by themselves.
        "spark.sql.shuffle.partitions": str(2 * workers),
    }
    with standalone_cluster(folder, workers, _WORKER) as cluster:
        trial, _, _ = whole(journal, name, cluster.master, settings=settings)
    return trial


def _naming(
    session: SparkSession, suffix: str, begun: dict[str, float] | None = None
) -> Callable[[str], None]:
    """Names Spark's jobs by the step that they are of. ``begun`` gets the CPU seconds at which each
    began."""

    def on_step(step: str) -> None:
        if begun is not None:
            begun.setdefault(step, _cpu(session))
        session.sparkContext.setJobDescription(step + suffix)

    return on_step


@dataclass(frozen=True)
class Alone:
    """CPU seconds that DuckDB alone takes to store the rows of a journal, of good lines."""

    seconds: float


def duckdb_alone(journal: Path, cores: int) -> Alone:
    """Store the rows of a journal of good lines by DuckDB, by part and day as the pipeline does."""
    types = {"int": "INTEGER", "bigint": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN"}
    columns = {name: types.get(of.simpleString(), "VARCHAR") for name, of in COLUMNS.items()}
    kinds = " ".join(f"WHEN '{kind}' THEN '{part}'" for kind, part in PART_OF.items())
    before = time.process_time()
    with duckdb.connect(config={"threads": cores, "preserve_insertion_order": False}) as database:
        database.execute(
            f"""
            COPY (
                SELECT * REPLACE (CAST(time AS TIMESTAMPTZ) AS time),
                    CASE event {kinds} ELSE '{REST}' END AS part, CAST(time[1:10] AS DATE) AS day
                FROM read_json(
                    '{journal}/*/*.jsonl', format = 'nd', columns = {columns},
                    hive_partitioning = false
                )
            ) TO '{_fresh("duckdb-out")}' (
                FORMAT parquet, COMPRESSION zstd, PARTITION_BY (part, day)
            )
            """
        )
    return Alone(time.process_time() - before)


@dataclass(frozen=True)
class Query:
    """Seconds that a question took, each way at its best: as the command `query` answers it on one
    machine, by Spark, and by DuckDB alone, which knows which files to read."""

    command_s: float
    spark_s: float
    duckdb_s: float


def against_duckdb(name: str, master: str, cores: int) -> dict[str, Query]:
    """Seconds that each query takes, at its best of ten, on the events that the trial of that name
    stored.

    :raises ValueError: their answers differ.
    """
    session = begin(master, {})
    out = FOLDER / f"{name}-out"
    Store(session, str(out)).events().createOrReplaceTempView("events")
    database = duckdb.connect()
    database.execute(f"SET threads = {cores}")
    # Spark's name for what DuckDB has too.
    database.execute("CREATE MACRO unix_micros(instant) AS epoch_us(instant)")
    database.execute(
        f"CREATE VIEW events AS SELECT * FROM read_parquet('{out}/events/*/*/*/*.parquet', "
        "hive_partitioning = true)"
    )
    times = {}
    for query in QUERIES:
        of_spark, by_spark = _best(lambda sql: session.sql(sql).collect(), query.sql)
        of_duckdb, by_duckdb = _best(lambda sql: database.execute(sql).fetchall(), query.sql)
        of_command, by_command = _best(lambda sql: ask(str(out), sql, cores), query.sql)
        if not (_plain(of_spark) == _plain(of_duckdb) == _plain(of_command.rows)):
            raise ValueError(f"they answer differently: {query.name}")
        times[query.name] = Query(by_command, by_spark, by_duckdb)
    session.stop()
    return times


def _best(ask: Callable[[str], Any], sql: str) -> tuple[Any, float]:
    """The answer, and the seconds of the quickest of some."""
    answer: Any = None
    seconds = []
    for _ in range(_ASKED):
        start = time.perf_counter()
        answer = ask(sql)
        seconds.append(time.perf_counter() - start)
    return answer, min(seconds)


def _plain(rows: list[Any]) -> list[str]:
    """Rows as both would write them, in an order of their own."""
    return sorted(
        str([round(value, _DIGITS) if isinstance(value, float) else value for value in row])
        for row in rows
    )


def micro_batches(journal: Path, events: int, master: str) -> list[float]:
    """Seconds that each micro-batch of so many events took, behind the first ones."""
    lines = sorted(
        (line for file in sorted(journal.glob("sidecar=*/*.jsonl")) for line in _lines(file)),
        key=lambda line: json.loads(line)["time"],
    )
    session = begin(master, SETTINGS)
    folder = _fresh("micro-in")
    folder.mkdir(parents=True)
    store = Store(session, str(_fresh("micro-out")))
    query = begin_stream(store, stream(session, str(folder), {}), 0.1)
    seconds = []
    for number in range(WARM_UP + COUNTED):
        new = folder / f"{number}.new"
        new.write_bytes(b"\n".join(lines[number * events : (number + 1) * events]))
        new.rename(new.with_suffix(".jsonl"))
        query.processAllAvailable()
        seconds.append(_last(query.recentProgress))
    query.stop()
    session.stop()
    return seconds[WARM_UP:]


def _lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines()


def _last(progress: list[Any]) -> float:
    """Seconds of the last micro-batch that had rows."""
    last = next(one for one in reversed(progress) if one["numInputRows"])
    return float(last["durationMs"]["triggerExecution"] / 1000)
