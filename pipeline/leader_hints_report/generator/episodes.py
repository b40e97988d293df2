"""Episodes: what each client meets at a move, from its first error to its recovery.

Tested in ``tests/pipeline/generator/test_generation.py``.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from leader_hints_report.generator.fleet import (
    SOFTWARE,
    UNKNOWN,
    Fleet,
    chance,
    observes,
    sidecar_name,
    skew_us,
)

_CLIENTS: Final = 8
_FRESH: Final = 0.3
#: Clients with more luck than that get hints which they do not use, if their name is not known.
_IN_VAIN: Final = 0.85


def made_episodes(moves: DataFrame, fleet: Fleet) -> DataFrame:
    """What each client meets at a move."""
    episodes = _clients(moves, fleet)
    uses, observed = F.col("of")["uses"], observes(fleet, F.col("before"))
    can = ~uses.isin("none", UNKNOWN)
    in_vain = (uses == UNKNOWN) & (F.col("luck") > _IN_VAIN)
    could = can & (F.col("luck") > 0.1)
    episodes = episodes.withColumns({"hinted": could & ~observed, "would_hint": could & observed})
    # One that could use a hint and got none finds fresh Metadata at once, now and then.
    fresh = F.col("would_hint") & (F.col("tries") < _FRESH)
    quick = F.col("hinted") | fresh
    # A client with a hint needs one error; others ask two or three times, 40 ms apart.
    errors = F.when(quick, 1).otherwise(F.floor(F.col("tries") * 2) + 1).cast("int")
    episodes = episodes.withColumn("errors", errors)
    recovery = F.when(quick, 5_000 + F.col("pace") * 30_000).otherwise(
        F.col("errors") * 60_000 + F.col("pace") * 100_000
    )
    reason = (
        F.when(in_vain, "not_usable_by_client")
        .when(~can, "version_without_field")
        .when(~could, "hold_expired")
    )
    settling = F.when(F.col("luck") > 0.3, "settled").otherwise("metadata_behind")
    return episodes.select(
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
        "would_hint",
        observed.alias("observed"),
        reason.alias("reason"),
        uses.alias("uses"),
        in_vain.alias("in_vain"),
        F.when(~can & ~in_vain & (F.col("luck") > 0.2), settling).alias("settling"),
        F.round(recovery).cast("long").alias("recovery_us"),
        sidecar_name(F.col("cluster_number"), F.col("before")).alias("sidecar_from"),
        sidecar_name(F.col("cluster_number"), F.col("after")).alias("sidecar_to"),
        skew_us(fleet, "sidecar_from").alias("skew_from"),
        skew_us(fleet, "sidecar_to").alias("skew_to"),
    )


def _clients(moves: DataFrame, fleet: Fleet) -> DataFrame:
    """Each client at each move, with its software and its luck. A dead broker answers nobody, so
    there are none at failures."""
    episodes = moves.where((F.col("before") != F.col("after")) & (F.col("kind") != "failure"))
    hot = (F.col("cluster_number") == 0) & (F.col("number") == 0)
    clients = F.when(hot, _CLIENTS + fleet.hot_clients).otherwise(_CLIENTS)
    episodes = episodes.withColumn("client", F.explode(F.sequence(F.lit(1), clients)))
    episodes = episodes.withColumn(
        "client_id", F.format_string("app-%s-%d-%d", "topic", "partition", "client")
    )
    software = F.array(
        *(
            F.struct(F.lit(n).alias("name"), F.lit(v).alias("version"), F.lit(u).alias("uses"))
            for n, v, u in SOFTWARE
        )
    )
    which = F.floor(chance(fleet.seed, "software", "cluster", "client_id") * len(SOFTWARE))
    of = ("cluster", "topic", "partition", "epoch", "client_id")
    return episodes.withColumns(
        {
            "of": F.element_at(software, which.cast("int") + 1),
            "luck": chance(fleet.seed, "luck", *of),
            "tries": chance(fleet.seed, "tries", *of),
            "pace": chance(fleet.seed, "pace", *of),
            "api": F.when(F.col("client") % 2 == 0, "Fetch").otherwise("Produce"),
            "start": F.col("at") + F.round(chance(fleet.seed, "start", *of) * 200_000).cast("long"),
        }
    )
