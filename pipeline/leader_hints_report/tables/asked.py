"""Which versions of which APIs clients ask, by what proxies report of them.

Tested in ``tests/pipeline/tables/test_asked.py``.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from leader_hints_report.tables.columns import ASKED_VERSIONS, UNKNOWN_CLUSTER

_CLIENT: Final = ("day", "cluster", "client_id", "software", "software_version")
#: Of one API in the journal's text: key, oldest and newest version.
_FORM: Final = r"^(\d{1,4}):(\d{1,4})-(\d{1,4})$"


def asked_versions(events: DataFrame) -> DataFrame:
    """The table of that name, from events of clients and of what they asked.

    A client that only named itself has one row without an API. What is no version is left out.
    """
    of_clients = events.where(F.col("event").isin("client", "asked")).withColumn(
        "cluster", F.coalesce("cluster", F.lit(UNKNOWN_CLUSTER))
    )
    texts = F.split(F.coalesce("asked", F.lit("")), ",")
    grouped = (
        of_clients.withColumn("api", F.explode(texts))
        .select(*_CLIENT, "sidecar", "addresses", "principals", *_of_api("api"))
        .groupBy(*_CLIENT, "api_key")
        .agg(
            F.min("oldest").alias("oldest"),
            F.max("newest").alias("newest"),
            _all_of("addresses", ",").alias("addresses"),
            _all_of("principals", "; ").alias("principals"),
            F.size(F.collect_set("sidecar")).alias("sidecars"),
        )
    )
    return grouped.select(*ASKED_VERSIONS.schema.fieldNames())


def _of_api(text: str) -> list[Column]:
    return [
        F.nullif(F.regexp_extract(text, _FORM, group), F.lit("")).cast("int").alias(name)
        for group, name in enumerate(("api_key", "oldest", "newest"), 1)
    ]


def _all_of(name: str, between: str) -> Column:
    """All parts of a text that may be absent, each once."""
    return F.array_sort(F.array_distinct(F.flatten(F.collect_set(F.split(name, between)))))
