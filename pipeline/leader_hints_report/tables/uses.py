"""Which hints clients use, as their sidecars know it from the clients' names.

A hint to a client that does not use it is in vain: it counts as none, and the client could take
none. The same client may be known to one sidecar and not to another, by its settings.

Tested in ``tests/pipeline/tables/test_uses.py``.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from leader_hints_report.tables.hints import CANNOT, NOT_USABLE, REPLICA

#: Clients of one name and version in one run of a sidecar.
_CLIENT: Final = ("run", "software", "software_version")
#: From this version of Fetch on there are endpoints beside a hint.
ENDPOINTS_FROM: Final = 16


def client_uses(events: DataFrame) -> DataFrame:
    """What sidecars report that clients use: ``run``, ``software``, ``software_version`` and
    ``uses``, few rows."""
    reported = events.where((F.col("event") == "client") & F.col("uses").isNotNull())
    return reported.groupBy(*_CLIENT).agg(F.max("uses").alias("uses"))


def with_uses(encounters: DataFrame, uses: DataFrame) -> DataFrame:
    """Errors and successes with ``uses``, null where that is not reported. Errors that their client
    could not have used a hint for have none, and say so as ``reason``.

    ``uses``: of :func:`client_uses`.
    """
    known = encounters.drop("uses").join(F.broadcast(uses), [*_CLIENT], "left")
    in_vain = F.coalesce((F.col("event") == "error") & ~_usable(), F.lit(False))
    # Why no client could have used one is known better by the sidecar.
    reason = F.when(F.col("reason").isin(*CANNOT, REPLICA), F.col("reason")).otherwise(NOT_USABLE)
    return known.withColumns(
        {
            "hinted": F.col("hinted") & ~in_vain,
            "reason": F.when(in_vain, reason).otherwise(F.col("reason")),
        }
    )


def _usable() -> Column:
    """Whether the client uses hints where this error was; null where that is not known."""
    forms = F.split("uses", ",")

    def uses(form: str) -> Column:
        return F.array_contains(forms, form)

    # Sidecars that observe raise no versions: older ones stand for those with endpoints.
    endpoints = (F.col("api_version") >= ENDPOINTS_FROM) | F.col("observed")
    alone = F.col("api_version") < ENDPOINTS_FROM
    of_fetch = (endpoints & uses("fetch")) | (alone & uses("fetch_without_endpoints"))
    return F.when(F.col("api") == "Fetch", of_fetch).otherwise(uses("produce"))
