"""Synthetic journals of a fleet, with the answers that the tables must give.

Clusters of six brokers, a sidecar before each, go through rolls, reassignments, failures and the
elections after them, one each half hour. Clients of several softwares meet errors at the brokers
that were left and recover at those that were joined. Sidecars' clocks are wrong by a few
milliseconds; some lines come twice, some were dropped and told as gaps, some are torn.

All of it follows from the seed. It is made by Spark, so that it may be large.
"""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.files import Files
from leader_hints_report.journal.format import COLUMNS, VERSION

#: The first instant: 2026-01-01, in microseconds since 1970.
BEGIN: Final = 1_767_225_600_000_000
_SECOND: Final = 1_000_000
_BROKERS: Final = 6
_SLOT_S: Final = 1800
#: What happens in one half hour after the other. An election brings partitions back to the broker
#: that failed; to the pipeline it is of no kind of its own.
KINDS: Final = ("roll", "reassignment", "failure", "election")
#: Epochs that one incident may use.
_EPOCHS: Final = 4
_CLIENTS: Final = 8
#: Software, version, and whether it can use hints.
_SOFTWARE: Final = (
    ("apache-kafka-java", "3.9.1", True),
    ("librdkafka", "2.5.3", True),
    ("apache-kafka-java", "2.8.2", False),
    ("sarama", "1.43.0", False),
)
#: Events of moves for each partition and four slots, about: what sets the number of partitions.
_EVENTS_A_PARTITION: Final = 66
#: The share of events that are not latencies, about.
_MOVES_SHARE: Final = 0.4
_GAP: Final = 7
_ONE_IN_TWICE: Final = 500
_TORN: Final = '{"version":1,"event":"recov'


@dataclass(frozen=True)
class Fleet:
    """What to make. ``hot``: the share of events that one partition has besides its own."""

    sidecars: int
    hours: int
    events: int
    seed: int
    skew_ms: float = 20.0
    hot: float = 0.0

    @property
    def clusters(self) -> int:
        """How many clusters its sidecars make."""
        return self.sidecars // _BROKERS

    @property
    def slots(self) -> int:
        """How many incidents each cluster has."""
        return self.hours * 3600 // _SLOT_S

    @property
    def partitions(self) -> int:
        """How many partitions each cluster has."""
        cycles = self.clusters * self.slots / len(KINDS)
        return max(2 * _BROKERS, int(self.events * _MOVES_SHARE / cycles / _EVENTS_A_PARTITION))

    @property
    def hot_clients(self) -> int:
        """How many clients more the hot partition has."""
        moves = self.slots / len(KINDS) * 2.5
        return int(self.events * self.hot / moves / 2.7)


def generate(session: SparkSession, fleet: Fleet, out: str) -> None:
    """Write journals to ``out``/journal and answers to ``out``/answers/NAME, Parquet.

    :raises PipelineError: the fleet cannot be made.
    """
    if fleet.sidecars < _BROKERS or fleet.sidecars % _BROKERS:
        raise PipelineError(f"--sidecars: a multiple of {_BROKERS} is needed, one for each broker")
    if fleet.hours < 1:
        raise PipelineError("--hours: at least 1 is needed")
    moves = _moves(session, fleet).persist()
    episodes = _episodes(moves, fleet).persist()
    few = [
        _starts(session, fleet),
        _sights(moves, fleet),
        _errors(episodes),
        _successes(episodes),
    ]
    known = sum(frame.count() for frame in few)
    few.append(_latencies(session, fleet, max(0, fleet.events - known)))
    rows = few[0]
    for frame in few[1:]:
        rows = rows.unionByName(frame, allowMissingColumns=True)
    _write(session, _numbered(rows), f"{out}/journal")
    _answers(moves, episodes, fleet, out)
    moves.unpersist()
    episodes.unpersist()


def _chance(seed: int, what: str, *of: str) -> Column:
    """A number in [0, 1) that follows from the seed, a word and columns."""
    mixed = F.xxhash64(F.lit(seed), F.lit(what), *(F.col(name) for name in of))
    return F.pmod(mixed, F.lit(1_000_003)) / 1_000_003


def _sidecar(cluster: Column, broker: Column) -> Column:
    return F.format_string("sidecar-%03d-%d", cluster.cast("int"), broker.cast("int"))


def _skew_us(fleet: Fleet, sidecar: str) -> Column:
    return F.round((_chance(fleet.seed, "skew", sidecar) * 2 - 1) * fleet.skew_ms * 1000).cast(
        "long"
    )


def _moves(session: SparkSession, fleet: Fleet) -> DataFrame:
    """Every leader epoch: where, from whom to whom, and when (``at``, by the right time)."""
    number = F.col("number")
    start = BEGIN + (F.col("slot") * _SLOT_S + 60).cast("long") * _SECOND
    one = F.col("one")
    return (
        _places(session, fleet)
        .withColumn("one", F.explode(_steps(fleet)))
        .select(
            "cluster_number",
            F.format_string("cluster-%03d", "cluster_number").alias("cluster"),
            "slot",
            "kind",
            "number",
            F.format_string("topic-%02d", (number / 20).cast("int")).alias("topic"),
            (number % 20).cast("int").alias("partition"),
            (F.col("slot") * _EPOCHS + one["step"]).cast("int").alias("epoch"),
            one["before"].alias("before"),
            one["after"].alias("after"),
            (start + F.round(one["seconds"] * _SECOND)).cast("long").alias("at"),
        )
    )


def _places(session: SparkSession, fleet: Fleet) -> DataFrame:
    """Each partition in each slot: the event, its preferred leader, and the next leader."""
    slots = session.range(fleet.clusters * fleet.slots).select(
        (F.col("id") % fleet.clusters).cast("int").alias("cluster_number"),
        F.floor(F.col("id") / fleet.clusters).cast("int").alias("slot"),
    )
    kind = F.element_at(F.array(*(F.lit(name) for name in KINDS)), F.col("slot") % len(KINDS) + 1)
    # A reassignment moves each third partition for good, by one broker.
    shift = F.floor((F.col("slot") + len(KINDS) - 2) / len(KINDS)).cast("int")
    plan = slots.withColumns({"kind": kind, "shift": shift})
    number = F.col("number")
    each = session.range(fleet.partitions).withColumnRenamed("id", "number")
    moves = plan.crossJoin(each).withColumn(
        "home",
        F.pmod(number + F.when(number % 3 == 0, F.col("shift")).otherwise(0), F.lit(_BROKERS)),
    )
    place = ("cluster_number", "slot", "number")
    return moves.withColumns(
        {
            "next": F.pmod(
                F.col("home") + 1 + F.pmod(F.floor(number / _BROKERS), F.lit(_BROKERS - 1)),
                F.lit(_BROKERS),
            ),
            "jitter": _chance(fleet.seed, "jitter", *place) * 5,
            "failing": F.floor(F.col("slot") / len(KINDS)) % _BROKERS,
        }
    )


def _steps(fleet: Fleet) -> Column:
    """What a partition goes through in a slot: an array of moves, null where there is none."""
    number = F.col("number")
    home, after, jitter = F.col("home"), F.col("next"), F.col("jitter")

    def step(seconds: Column, number: int, before: Column, leader: Column) -> Column:
        return F.struct(
            seconds.cast("double").alias("seconds"),
            F.lit(number).alias("step"),
            before.cast("int").alias("before"),
            leader.cast("int").alias("after"),
        )

    return (
        F.when(
            F.col("kind") == "roll",
            F.array(
                step(home * 60 + jitter, 1, home, after),
                step(home * 60 + 40 + jitter, 2, after, home),
            ),
        )
        .when(
            (F.col("kind") == "reassignment") & (number % 3 == 0),
            F.array(
                step(number * 120 / fleet.partitions, 1, home, home),
                step(number * 120 / fleet.partitions + 1, 2, home, F.pmod(home + 1, F.lit(6))),
            ),
        )
        .when(
            (F.col("kind") == "failure") & (home == F.col("failing")),
            F.array(step(jitter, 1, home, after)),
        )
        .when(
            (F.col("kind") == "election") & (home == F.col("failing")),
            F.array(step(jitter, 1, after, home)),
        )
    )


def _episodes(moves: DataFrame, fleet: Fleet) -> DataFrame:
    """What each client meets at a move."""
    met = _clients(moves, fleet)
    hinted = F.col("of")["can"] & (F.col("luck") > 0.1)
    met = met.withColumn("hinted", hinted)
    # A client with a hint needs one error; others ask two or three times, 40 ms apart.
    errors = F.when(F.col("hinted"), 1).otherwise(F.floor(F.col("tries") * 2) + 1).cast("int")
    met = met.withColumn("errors", errors)
    recovery = F.when(F.col("hinted"), 5_000 + F.col("pace") * 30_000).otherwise(
        F.col("errors") * 60_000 + F.col("pace") * 100_000
    )
    reason = F.when(~F.col("of")["can"], "version_without_field").when(
        ~F.col("hinted"), "hold_expired"
    )
    return met.select(
        "cluster_number",
        "cluster",
        "slot",
        "client_id",
        F.col("of")["name"].alias("software"),
        F.col("of")["version"].alias("software_version"),
        "api",
        "topic",
        "partition",
        "epoch",
        "before",
        "after",
        "client",
        "start",
        "errors",
        "hinted",
        reason.alias("reason"),
        F.round(recovery).cast("long").alias("recovery_us"),
        _sidecar(F.col("cluster_number"), F.col("before")).alias("sidecar_from"),
        _sidecar(F.col("cluster_number"), F.col("after")).alias("sidecar_to"),
        _skew_us(fleet, "sidecar_from").alias("skew_from"),
        _skew_us(fleet, "sidecar_to").alias("skew_to"),
    )


def _clients(moves: DataFrame, fleet: Fleet) -> DataFrame:
    """Each client at each move, with its software and its luck. A dead broker answers nobody, so
    there are none at failures."""
    met = moves.where((F.col("before") != F.col("after")) & (F.col("kind") != "failure"))
    hot = (F.col("cluster_number") == 0) & (F.col("number") == 0)
    clients = F.when(hot, _CLIENTS + fleet.hot_clients).otherwise(_CLIENTS)
    met = met.withColumn("client", F.explode(F.sequence(F.lit(1), clients)))
    met = met.withColumn(
        "client_id", F.format_string("app-%s-%d-%d", "topic", "partition", "client")
    )
    software = F.array(
        *(
            F.struct(F.lit(n).alias("name"), F.lit(v).alias("version"), F.lit(c).alias("can"))
            for n, v, c in _SOFTWARE
        )
    )
    which = F.floor(_chance(fleet.seed, "software", "cluster", "client_id") * len(_SOFTWARE))
    of = ("cluster", "topic", "partition", "epoch", "client_id")
    return met.withColumns(
        {
            "of": F.element_at(software, which.cast("int") + 1),
            "luck": _chance(fleet.seed, "luck", *of),
            "tries": _chance(fleet.seed, "tries", *of),
            "pace": _chance(fleet.seed, "pace", *of),
            "api": F.when(F.col("client") % 2 == 0, "Fetch").otherwise("Produce"),
            "start": F.col("at")
            + F.round(_chance(fleet.seed, "start", *of) * 200_000).cast("long"),
        }
    )


def _starts(session: SparkSession, fleet: Fleet) -> DataFrame:
    """Start and stop of each sidecar, and a gap in between."""
    end = BEGIN + fleet.hours * 3600 * _SECOND
    each = session.range(fleet.sidecars).select(
        _sidecar(F.floor(F.col("id") / _BROKERS), F.col("id") % _BROKERS).alias("sidecar")
    )
    start = each.select(
        "sidecar",
        F.lit("start").alias("event"),
        F.lit(BEGIN - _SECOND).alias("at"),
        F.lit("leader-hints").alias("software"),
        F.lit("0.1.0").alias("software_version"),
        F.lit("on").alias("hints"),
    )
    stop = each.select("sidecar", F.lit("stop").alias("event"), F.lit(end + _SECOND).alias("at"))
    gap = each.select(
        "sidecar",
        F.lit("gap").alias("event"),
        F.lit(BEGIN + (end - BEGIN) // 2).alias("at"),
        F.lit("it could not be written fast enough").alias("reason"),
        F.lit(_GAP).cast("long").alias("dropped"),
    )
    return start.unionByName(stop, allowMissingColumns=True).unionByName(
        gap, allowMissingColumns=True
    )


def _sights(moves: DataFrame, fleet: Fleet) -> DataFrame:
    """Each move as each sidecar of the cluster sees it, up to 40 ms late."""
    seen = moves.withColumn(
        "broker", F.explode(F.sequence(F.lit(0), F.lit(_BROKERS - 1)))
    ).withColumn("sidecar", _sidecar(F.col("cluster_number"), F.col("broker")))
    late = _chance(fleet.seed, "late", "cluster", "topic", "partition", "epoch", "broker") * 40_000
    return seen.select(
        "sidecar",
        F.lit("leader_change").alias("event"),
        (F.col("at") + F.round(late).cast("long") + _skew_us(fleet, "sidecar")).alias("at"),
        "cluster",
        "topic",
        "partition",
        (F.col("before") + 1).alias("leader_before"),
        (F.col("epoch") - 1).alias("epoch_before"),
        (F.col("after") + 1).alias("leader"),
        "epoch",
    )


def _of_client(broker: str) -> list[Column]:
    return [
        F.format_string("broker-%d", F.col(broker) + 1).alias("route"),
        F.col("client").cast("long").alias("link"),
        (F.col(broker) + 1).alias("node"),
        *(F.col(name) for name in ("cluster", "client_id", "software", "software_version", "api")),
        F.col("topic"),
        F.col("partition"),
    ]


def _errors(episodes: DataFrame) -> DataFrame:
    each = episodes.withColumn("try", F.explode(F.sequence(F.lit(0), F.col("errors") - 1)))
    hold_us = F.when(F.col("hinted"), 3_000).otherwise(0)
    at = F.col("start") + F.col("try").cast("long") * 40_000 + F.col("skew_from") + hold_us
    version = F.when(F.col("api") == "Fetch", 16).otherwise(10)
    return each.select(
        F.col("sidecar_from").alias("sidecar"),
        F.lit("error").alias("event"),
        at.alias("at"),
        *_of_client("before"),
        version.alias("api_version"),
        F.lit(6).alias("error"),
        (F.col("before") + 1).alias("leader_before"),
        (F.col("epoch") - 1).alias("epoch_before"),
        F.when(F.col("hinted"), F.col("after") + 1).alias("leader"),
        F.when(F.col("hinted"), F.col("epoch")).alias("epoch"),
        "hinted",
        F.lit(False).alias("observed"),
        "reason",
        (hold_us / 1000).cast("double").alias("hold_ms"),
    )


def _successes(episodes: DataFrame) -> DataFrame:
    return episodes.select(
        F.col("sidecar_to").alias("sidecar"),
        F.lit("recovery").alias("event"),
        (F.col("start") + F.col("recovery_us") + F.col("skew_to")).alias("at"),
        *_of_client("after"),
        "epoch",
        F.lit(False).alias("hinted"),
    )


def _latencies(session: SparkSession, fleet: Fleet, count: int) -> DataFrame:
    """Sampled exchanges: most take some milliseconds, one in ten waits for records."""
    rows = session.range(count).withColumns(
        {
            "cluster_number": F.floor(F.col("id") % fleet.sidecars / _BROKERS),
            "broker": F.col("id") % fleet.sidecars % _BROKERS,
            "spread": _chance(fleet.seed, "spread", "id"),
            "client": F.floor(_chance(fleet.seed, "client", "id") * 1000),
            "when": _chance(fleet.seed, "when", "id"),
        }
    )
    fetch = F.col("client") % 2 == 0
    software = F.array(
        *(F.struct(F.lit(n).alias("name"), F.lit(v).alias("version")) for n, v, _ in _SOFTWARE)
    )
    of = F.element_at(software, (F.col("client") % len(_SOFTWARE)).cast("int") + 1)
    wait = F.when(fetch & (F.col("id") % 10 == 0), 500.0).otherwise(0.0)
    length = fleet.hours * 3600 * _SECOND
    return rows.select(
        _sidecar(F.col("cluster_number"), F.col("broker")).alias("sidecar"),
        F.lit("latency").alias("event"),
        (BEGIN + F.floor(F.col("when") * length)).cast("long").alias("at"),
        F.format_string("cluster-%03d", F.col("cluster_number").cast("int")).alias("cluster"),
        F.format_string("broker-%d", (F.col("broker") + 1).cast("int")).alias("route"),
        (F.col("broker") + 1).cast("int").alias("node"),
        F.col("client").alias("link"),
        F.format_string("reader-%d", "client").alias("client_id"),
        of["name"].alias("software"),
        of["version"].alias("software_version"),
        F.when(fetch, "Fetch").otherwise("Produce").alias("api"),
        F.when(fetch, 16).otherwise(10).alias("api_version"),
        F.round(wait - F.log1p(-F.col("spread")) * 2.5 + 0.2, 3).alias("latency_ms"),
    )


def _numbered(rows: DataFrame) -> DataFrame:
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


def _write(session: SparkSession, rows: DataFrame, out: str) -> None:
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


def _answers(moves: DataFrame, episodes: DataFrame, fleet: Fleet, out: str) -> None:
    """The expected content of the tables, in their columns if they have such."""
    told = {
        "leader_moves": moves.select(
            "cluster",
            "topic",
            "partition",
            "epoch",
            (F.col("after") + 1).alias("leader"),
            (F.col("before") + 1).alias("leader_before"),
            (F.col("before") != F.col("after")).alias("moved"),
            F.lit(_BROKERS).alias("sidecars"),
        ),
        "recoveries": episodes.select(
            "cluster",
            "client_id",
            "software",
            "software_version",
            "api",
            "topic",
            "partition",
            "epoch",
            F.timestamp_micros("start").alias("first_error"),
            (F.col("recovery_us") / 1000).alias("recovery_ms"),
            "errors",
            "hinted",
            "reason",
            (F.col("before") + 1).alias("node_from"),
            (F.col("after") + 1).alias("node_to"),
        ),
        "incidents": moves.groupBy("cluster", "slot", "kind")
        .agg(F.timestamp_micros(F.min("at")).alias("began"), F.count("*").alias("moves"))
        .withColumn("kind", F.when(F.col("kind") == "election", "other").otherwise(F.col("kind"))),
        "clock_skew": episodes.select(F.col("sidecar_from").alias("sidecar"), "cluster")
        .distinct()
        .withColumn("skew_ms", _skew_us(fleet, "sidecar") / 1000),
    }
    for name, frame in told.items():
        frame.write.mode("overwrite").parquet(f"{out}/answers/{name}")
