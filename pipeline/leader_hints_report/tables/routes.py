"""Routes whose broker a sidecar did not know yet: its first events name neither cluster nor node.

A success that names its cluster would never meet an error that does not. What a route leads to is
known as soon as its broker has answered, and is the same for the whole run. So later events of the
run say it.

Tested in ``tests/pipeline/tables/test_routes.py``.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_ROUTE: Final = ("run", "route")


def learned_later(encounters: DataFrame, words_: DataFrame) -> DataFrame:
    """What is said later of routes that began without cluster or node: few rows, ``run``,
    ``route``, ``later_cluster`` and ``later_node``, null where that is not known.

    ``encounters``: errors and successes. ``words_``: of
    :func:`leader_hints_report.journal.runs.words`; the other events of a run tell its cluster, if
    all are of one.
    """
    known = encounters.select(*_ROUTE, "cluster", "node").distinct()
    of_routes = known.groupBy(*_ROUTE).agg(
        F.max(F.col("cluster").isNull() | F.col("node").isNull()).alias("lacks"),
        _only("cluster").alias("of_route"),
        _only("node").alias("later_node"),
    )
    of_runs = words_.groupBy("run").agg(_only("cluster").alias("of_run"))
    return (
        of_routes.where("lacks")
        .join(of_runs, "run", "left")
        .select(*_ROUTE, F.coalesce("of_route", "of_run").alias("later_cluster"), "later_node")
    )


def completed(encounters: DataFrame, later: DataFrame) -> DataFrame:
    """Errors and successes with what :func:`learned_later` says of their routes."""
    known = encounters.join(F.broadcast(later), [*_ROUTE], "left")
    return known.withColumns(
        {name: F.coalesce(name, f"later_{name}") for name in ("cluster", "node")}
    ).drop("later_cluster", "later_node")


def _only(name: str) -> Column:
    """The only value of a group; null where there are several, or none."""
    return F.when(F.min(name) == F.max(name), F.min(name))
