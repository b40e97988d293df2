"""Recoveries: from a client's first error at a partition to its first success, across sidecars.

A client leaves the broker that refused it and comes back at another one, whose sidecar reports a
success without knowing the error. So errors and successes of a client, API and partition are put
in the order of their corrected times, wherever they were seen, and read from the first to the last:

    error error success   success   error ... error error success
    |- an episode ----|  (no error)      a pause: two episodes

One shuffle and one sort find all episodes, however many errors one has: what an episode's first
error was is carried along, and read off where the episode ends. The same pass says how long the
client waited after each error, which is charged to the broker that answered.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from leader_hints_report.journal.events import day_of
from leader_hints_report.tables.clock_pairs import epoch_after, released_at
from leader_hints_report.tables.columns import RECOVERIES, UNKNOWN_CLUSTER
from leader_hints_report.tables.skew import ahead_us

#: Seconds after an error within which the next error or success belongs to it; the proxy waits as
#: long (proxy/leader_hints/core/hints/recovery.py).
PATIENCE_S: Final = 30
KEY: Final = ("cluster", "client_id", "api", "topic", "partition")
_MICROS: Final = 1_000_000
#: Clocks of which nothing is known are taken to be right to so many milliseconds.
_WRONG_MS: Final = 1000.0
#: The client and partition of a row.
_PLACE: Final = ("place", "place_too")
_ORDER: Final = (*_PLACE, "at", "success", "run", "seq")
#: A row's columns besides its key.
_PAYLOAD: Final = (
    *("sidecar", "node", "hinted", "observed", "reason", "settling", "hold_ms", "leader", "epoch"),
    *("epoch_before", "software", "software_version", "uses", "day"),
)


def arrived_at(event: Column, time: Column, hold_ms: Column) -> Column:
    """When the broker answered, microseconds since 1970. An error's time is behind its hold."""
    held = F.when(event == "error", F.round(hold_ms * 1000).cast("long")).otherwise(0)
    return F.unix_micros(time) - held


def errors_in_order(events: DataFrame, corrections: DataFrame) -> DataFrame:
    """All errors of clients, and the successes that end an episode: ``at``, microseconds since
    1970, ``success``, ``cluster``, ``node``, ``hinted``.

    ``twin``: it came twice and is counted with the other one. ``waited_us``: until the client's
    next error, or its success. ``episode``: what the table of recoveries says, where one ends.
    ``corrections``: of :func:`leader_hints_report.tables.skew.corrections`.
    """
    rows = events.transform(_encounters, corrections).transform(_beside)
    success, payload = F.col("success"), F.col("payload")
    begins = ~success & (F.col("success_before") | F.col("paused"))
    ends_well = success & ~F.col("success_before") & ~F.col("paused")
    # An error behind an error goes on with it, unless there was a pause.
    gives_up = ~success & (F.col("success_next").isNull() | F.col("paused_next"))
    counted = (~success & ~F.col("twin")).cast("int")
    before = _places_in_order().rowsBetween(Window.unboundedPreceding, Window.currentRow)
    waited = F.when(F.col("paused_next"), 0).otherwise(F.col("next_at") - F.col("at"))
    rows = rows.select(
        *_ORDER,
        "payload",
        "twin",
        F.coalesce(waited, F.lit(0)).alias("waited_us"),
        begins.alias("begins"),
        (ends_well | gives_up).alias("ends"),
        F.sum(counted).over(before).alias("errors"),
        F.sum(counted * _hinted(payload).cast("int")).over(before).alias("hints"),
        F.sum(counted * _would_hint(payload).cast("int")).over(before).alias("would_hints"),
    ).where(~success | F.col("ends"))
    first = F.struct("at", "run", "errors", "hints", "would_hints", "payload")
    first = F.last(F.when(F.col("begins"), first), ignorenulls=True).over(before)
    return rows.withColumn("first", first).select(
        "at",
        "success",
        payload["cluster"].alias("cluster"),
        payload["node"].alias("node"),
        _hinted(payload).alias("hinted"),
        "twin",
        "waited_us",
        F.when(F.col("ends"), _episode()).alias("episode"),
    )


def recoveries(errors: DataFrame) -> DataFrame:
    """The table of that name, from :func:`errors_in_order`."""
    return errors.where(F.col("episode").isNotNull()).select("episode.*")


def _places_in_order() -> WindowSpec:
    return Window.partitionBy(*_PLACE).orderBy("at", "success", "run", "seq")


def _beside(rows: DataFrame) -> DataFrame:
    """Rows of :func:`_encounters`, and what stands beside each: whether it is a line that came
    twice, a success, or a pause."""
    in_order = _places_in_order()
    same = (F.lag("run").over(in_order) == F.col("run")) & (
        F.lag("seq").over(in_order) == F.col("seq")
    )
    pause = F.lit(PATIENCE_S * _MICROS)
    # A line that came twice stands beside its twin. An error's twin is not counted; that of a
    # success follows a success, so it ends nothing.
    return rows.withColumns(
        {
            "twin": F.coalesce(same, F.lit(False)),
            "success_before": F.coalesce(F.lag("success").over(in_order), F.lit(True)),
            "paused": F.coalesce(F.col("at") - F.lag("at").over(in_order) > pause, F.lit(False)),
            "success_next": F.lead("success").over(in_order),
            "paused_next": F.lead("at").over(in_order) - F.col("at") > pause,
            "next_at": F.lead("at").over(in_order),
        }
    )


def _encounters(events: DataFrame, corrections: DataFrame) -> DataFrame:
    """Errors and successes: what they are put in order by, and ``payload``, what else they say,
    which is one column, since rows are copied column by column from each window to the next.

    Clients and partitions are distinguished by 128 bits of hash in place of their words, runs by
    64.
    """
    event = F.col("event")
    raw = events.where(event.isin("error", "recovery")).withColumn(
        "cluster", F.coalesce("cluster", F.lit(UNKNOWN_CLUSTER))
    )
    known = raw.join(F.broadcast(corrections), ["day", "cluster"], "left")
    skew = ahead_us(F.col("skews"), F.col("sidecar"))
    bound = F.try_element_at("bounds", F.col("sidecar"))
    rows = known.select(
        *(F.xxhash64(F.lit(number), *KEY).alias(name) for number, name in enumerate(_PLACE)),
        (arrived_at(event, F.col("time"), F.col("hold_ms")) - skew).alias("at"),
        (released_at() - skew).alias("released"),
        epoch_after().alias("after"),
        (event == "recovery").alias("success"),
        F.xxhash64("run").alias("run"),
        "seq",
        F.struct(*KEY, *_PAYLOAD, bound.alias("bound_ms")).alias("payload"),
    )
    return rows.withColumn("at", _in_order_of_epochs()).drop("released", "after")


def _in_order_of_epochs() -> Column:
    """When a row happened: a success not before the error that it followed.

    That is an error right behind a success that ends none, of an epoch up to that of the success,
    or with a hint to where that came from: its sidecar may not know the epoch yet. If clocks may be
    wrong by so much, the success came at once.
    """
    in_order = _places_in_order()

    def other(of: Callable[[str], Column], name: str) -> Column:
        return of(name).over(in_order)

    def of_error(name: str) -> Column:
        # Not all that it says: that would be copied.
        return F.lead(F.col("payload")[name]).over(in_order)

    before_at = other(F.lag, "at")
    ends_none = F.coalesce(other(F.lag, "success"), F.lit(True)) | (
        F.col("at") - before_at > PATIENCE_S * _MICROS
    )
    follows = (
        F.col("success")
        & ends_none
        & ~other(F.lead, "success")
        & (other(F.lead, "run") != F.col("run"))
        & (
            F.coalesce(other(F.lead, "after") <= F.col("after"), F.lit(False))
            | (of_error("leader") == F.col("payload")["node"])
        )
    )
    known_ms = F.col("payload")["bound_ms"] + of_error("bound_ms")
    wrong_us = F.coalesce(known_ms, F.lit(_WRONG_MS)) * 1000
    released = other(F.lead, "released")
    return F.when(follows & (released - F.col("at") <= wrong_us), released).otherwise(F.col("at"))


def _hinted(payload: Column) -> Column:
    """Whether an error was answered with a hint, and not only counted."""
    return payload["hinted"] & ~payload["observed"]


def _would_hint(payload: Column) -> Column:
    """Whether an error would have been answered with a hint, and was only counted."""
    return payload["hinted"] & payload["observed"]


def _episode() -> Column:
    """A row of the table as a struct, where an episode ends."""
    first, success = F.col("first"), F.col("success")
    began, ended = first["payload"], F.col("payload")
    errors = F.col("errors") - first["errors"] + 1
    one_clock = F.col("run") == first["run"]
    # The clocks of one day are compared with each other.
    one_day = began["day"] == ended["day"]
    hinted, would_hint = _hinted(began), _would_hint(began)
    hints = F.col("hints") - first["hints"] + hinted.cast("int")
    would_hints = F.col("would_hints") - first["would_hints"] + would_hint.cast("int")
    columns = {
        **{name: ended[name] for name in KEY},
        "software": began["software"],
        "software_version": began["software_version"],
        "first_error": F.timestamp_micros(first["at"]),
        "recovered": F.when(success, F.timestamp_micros(F.col("at"))),
        "recovery_ms": F.when(success, (F.col("at") - first["at"]) / 1000),
        "lost_ms": (F.col("at") - first["at"]) / 1000,
        "uncertain_ms": F.when(
            success,
            F.when(one_clock, F.lit(0.0)).when(one_day, ended["bound_ms"] + began["bound_ms"]),
        ),
        "errors": errors.cast("int"),
        "hints": hints.cast("int"),
        "would_hints": would_hints.cast("int"),
        "hinted": hinted,
        "would_hint": would_hint,
        "used": F.coalesce(
            hinted & success & (errors == 1) & (ended["node"] == began["leader"]), F.lit(False)
        ),
        "reason": began["reason"],
        "settling": began["settling"],
        "observed": began["observed"],
        "hold_ms": began["hold_ms"],
        "node_from": began["node"],
        "node_to": F.when(success, ended["node"]),
        "sidecar_from": began["sidecar"],
        "sidecar_to": F.when(success, ended["sidecar"]),
        "epoch_before": began["epoch_before"],
        "epoch": F.when(success, ended["epoch"]),
        "uses": began["uses"],
        "day": day_of(F.timestamp_micros(first["at"])),
    }
    return F.struct(*(columns[name].alias(name) for name in RECOVERIES.schema.fieldNames()))
