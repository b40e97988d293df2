"""The events of a fleet's journals: starts and gaps, what clients ask, moves, errors, recoveries,
latencies.

Tested in ``tests/pipeline/generator/test_generation.py``.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from leader_hints_report.generator.fleet import (
    BEGIN,
    BROKERS,
    SECOND,
    SOFTWARE,
    Fleet,
    chance,
    observes,
    sidecar_name,
    skew_us,
)

_GAP: Final = 7
#: Clients of each software, at each sidecar.
_ASKING: Final = 5
#: What they ask, in the order of the software. sarama's is what its default asks.
_ASKED: Final = (
    "0:10-10,1:16-16,3:12-12,8:9-9,9:8-8,10:4-4,11:9-9,12:4-4,14:5-5",
    "0:10-10,1:16-16,3:12-12,8:9-9,9:7-7,10:2-2,11:5-5,12:3-3,14:3-3",
    "0:8-8,1:12-12,3:9-9,8:8-8,9:7-7,10:3-3,11:7-7,12:4-4,14:5-5",
    "0:7-7,1:10-10,3:5-5,8:1-1,9:1-1,10:0-0,11:1-1,12:1-1,14:1-1",
)


def starts(session: SparkSession, fleet: Fleet) -> DataFrame:
    """Start and stop of each sidecar, and a gap in between."""
    end = BEGIN + fleet.hours * 3600 * SECOND
    each = session.range(fleet.sidecars).select(
        sidecar_name(F.floor(F.col("id") / BROKERS), F.col("id") % BROKERS).alias("sidecar"),
        F.when(observes(fleet, F.col("id") % BROKERS), "observe").otherwise("on").alias("hints"),
    )
    start = each.select(
        "sidecar",
        F.lit("start").alias("event"),
        F.lit(BEGIN - SECOND).alias("at"),
        F.lit("leader-hints").alias("software"),
        F.lit("0.1.0").alias("software_version"),
        "hints",
    )
    stop = each.select("sidecar", F.lit("stop").alias("event"), F.lit(end + SECOND).alias("at"))
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


def clients(session: SparkSession, fleet: Fleet) -> DataFrame:
    """A client of each software at each sidecar, as it names itself at the beginning."""
    kinds = F.array(
        *(
            F.struct(F.lit(n).alias("name"), F.lit(v).alias("version"), F.lit(u).alias("uses"))
            for n, v, u in SOFTWARE
        )
    )
    each = session.range(fleet.sidecars * len(SOFTWARE)).select(
        F.floor(F.col("id") / len(SOFTWARE)).alias("of"),
        (F.col("id") % len(SOFTWARE)).cast("int").alias("kind"),
    )
    of = F.element_at(kinds, F.col("kind") + 1)
    return each.select(
        F.lit("client").alias("event"),
        F.lit(BEGIN + SECOND // 2).alias("at"),
        F.format_string("asks-%d-0", "kind").alias("client_id"),
        F.col("kind").cast("long").alias("link"),
        of["name"].alias("software"),
        of["version"].alias("software_version"),
        of["uses"].alias("uses"),
        *_sidecar_of("of"),
    )


def _sidecar_of(number: str) -> list[Column]:
    """The sidecar with a number in the fleet, and its broker."""
    cluster, broker = F.floor(F.col(number) / BROKERS), F.col(number) % BROKERS
    return [
        sidecar_name(cluster, broker).alias("sidecar"),
        F.format_string("cluster-%03d", cluster.cast("int")).alias("cluster"),
        F.format_string("broker-%d", (broker + 1).cast("int")).alias("route"),
        (broker + 1).cast("int").alias("node"),
    ]


def asks(session: SparkSession, fleet: Fleet) -> DataFrame:
    """What clients ask, a second after the beginning."""
    names = ("name", "version", "asked")
    kinds = [
        F.struct(*(F.lit(text).alias(name) for name, text in zip(names, texts, strict=True)))
        for texts in ((name, version, _ASKED[n]) for n, (name, version, _) in enumerate(SOFTWARE))
    ]
    each = session.range(fleet.sidecars * len(SOFTWARE) * _ASKING).select(
        F.floor(F.col("id") / (len(SOFTWARE) * _ASKING)).alias("of"),
        (F.col("id") % len(SOFTWARE)).cast("int").alias("kind"),
        (F.col("id") / len(SOFTWARE)).cast("int").alias("number"),
    )
    of, client = F.element_at(F.array(*kinds), F.col("kind") + 1), F.col("number") % _ASKING
    return each.select(
        *_sidecar_of("of"),
        F.lit("asked").alias("event"),
        F.lit(BEGIN + SECOND).alias("at"),
        F.format_string("asks-%d-%d", "kind", client).alias("client_id"),
        of["name"].alias("software"),
        of["version"].alias("software_version"),
        of["asked"].alias("asked"),
        F.format_string("192.0.2.%d", client).alias("addresses"),
        F.when(F.col("kind") == 0, F.format_string("CN=asks-%d,O=Example", client)).alias(
            "principals"
        ),
    )


def sights(moves: DataFrame, fleet: Fleet) -> DataFrame:
    """Each move as each sidecar of the cluster sees it, up to 40 ms late."""
    seen = moves.withColumn(
        "broker", F.explode(F.sequence(F.lit(0), F.lit(BROKERS - 1)))
    ).withColumn("sidecar", sidecar_name(F.col("cluster_number"), F.col("broker")))
    late = chance(fleet.seed, "late", "cluster", "topic", "partition", "epoch", "broker") * 40_000
    return seen.select(
        "sidecar",
        F.lit("leader_change").alias("event"),
        (F.col("at") + F.round(late).cast("long") + skew_us(fleet, "sidecar")).alias("at"),
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


def errors(episodes: DataFrame) -> DataFrame:
    """Each error of an episode, 40 ms apart, at the sidecar that the leader left."""
    each = episodes.withColumn("try", F.explode(F.sequence(F.lit(0), F.col("errors") - 1)))
    hinted = F.col("hinted") | F.col("would_hint") | F.col("in_vain")
    # Shorter than the time to the next error.
    hold_us = F.when(hinted, 3_000).when(F.col("settling").isNotNull(), 20_000).otherwise(0)
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
        # Requests to Produce name no epoch.
        F.when(F.col("api") == "Fetch", F.col("epoch") - 1).alias("epoch_before"),
        F.when(hinted, F.col("after") + 1).alias("leader"),
        F.when(hinted, F.col("epoch")).alias("epoch"),
        hinted.alias("hinted"),
        "observed",
        F.when(~F.col("in_vain"), F.col("reason")).alias("reason"),
        "settling",
        (hold_us / 1000).cast("double").alias("hold_ms"),
    )


def successes(episodes: DataFrame) -> DataFrame:
    """The end of each episode, at the sidecar of the new leader."""
    return episodes.select(
        F.col("sidecar_to").alias("sidecar"),
        F.lit("recovery").alias("event"),
        (F.col("start") + F.col("recovery_us") + F.col("skew_to")).alias("at"),
        *_of_client("after"),
        "epoch",
        F.lit(False).alias("hinted"),
    )


def latencies(session: SparkSession, fleet: Fleet, count: int) -> DataFrame:
    """Sampled exchanges: most take some milliseconds, one in ten waits for records."""
    rows = session.range(count).withColumns(
        {
            "cluster_number": F.floor(F.col("id") % fleet.sidecars / BROKERS),
            "broker": F.col("id") % fleet.sidecars % BROKERS,
            "spread": chance(fleet.seed, "spread", "id"),
            "client": F.floor(chance(fleet.seed, "client", "id") * 1000),
            "when": chance(fleet.seed, "when", "id"),
        }
    )
    fetch = F.col("client") % 2 == 0
    software = F.array(
        *(F.struct(F.lit(n).alias("name"), F.lit(v).alias("version")) for n, v, _ in SOFTWARE)
    )
    of = F.element_at(software, (F.col("client") % len(SOFTWARE)).cast("int") + 1)
    wait = F.when(fetch & (F.col("id") % 10 == 0), 500.0).otherwise(0.0)
    length = fleet.hours * 3600 * SECOND
    return rows.select(
        sidecar_name(F.col("cluster_number"), F.col("broker")).alias("sidecar"),
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
