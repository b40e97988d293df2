"""Clocks that are compared by errors and successes: cause and effect at two sidecars.

A client that is refused at one sidecar succeeds at another one after that, whatever their clocks
say. Which success follows which error is known by the leader epoch: a hint has the one at which
the client succeeds, and a Fetch request the one before. So the time from error to success, by both
clocks, is an upper bound of how far the second clock is ahead of the first. Where leaders move back
there are bounds in both directions, and they are as far apart as two quick recoveries last.

Tested in ``tests/pipeline/tables/test_skew.py``.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

#: Fewest pairs in one direction: some may be wrong, where several processes share a client id.
ENOUGH: Final = 3
#: Pairs that are further from the middle one are none: a recreated topic had the same epoch, or
#: the clock was put forward or back by so much.
_FURTHEST_S: Final = 60
#: This share of the pairs may be wrong; the least time would be that of a wrong one.
_WRONG: Final = 0.1
#: Microseconds: more than any clock is wrong.
_UNKNOWN: Final = 1e18
_MICROS: Final = 1_000_000
_DAY: Final = ("day", "cluster")
#: A client at a leader epoch of a partition on a day, and its 128 bits of hash, which are moved in
#: place of the words.
_MET: Final = (*_DAY, "client_id", "api", "topic", "partition", "after")
_PLACE: Final = ("place", "place_too")


def epoch_after() -> Column:
    """The leader epoch at which a client goes on after an error, or went on with a success; null
    where it is not known."""
    of_error = F.coalesce("epoch", F.col("epoch_before") + 1)
    return F.when(F.col("event") == "error", of_error).otherwise(F.col("epoch"))


def released_at() -> Column:
    """When an error went on to the client, microseconds since 1970: nothing is held that is only
    observed."""
    held = F.when(F.col("observed"), F.round(F.col("hold_ms") * 1000).cast("long")).otherwise(0)
    return F.unix_micros("time") - held


def clocks_by_pairs(events: DataFrame) -> DataFrame:
    """How far clocks are ahead of the one that can be compared best, from errors and successes.

    Rows by day and cluster: ``sidecar``; ``ahead_us`` and ``within_us``, null where the two cannot
    be compared; ``best``: whether it is that clock.
    """
    net = _two_steps(_net(_bounds(_pairs(events))))
    numbers = F.sequence(F.lit(0), F.size("names") - 1)
    # Of each clock, how far all are ahead of it.
    both = F.transform(
        numbers,
        lambda base: F.transform(
            numbers,
            lambda other: F.struct(
                _bound(base, other).alias("forth"), _bound(other, base).alias("back")
            ),
        ),
    )
    clocks = F.transform(both, lambda row: F.transform(row, _difference))
    best = F.array_min(F.transform("clocks", _worth))["number"]
    compared = (
        net.select(*_DAY, "names", clocks.alias("clocks"))
        .withColumn("base", best)
        .withColumn("clock", F.get("clocks", "base"))
        .withColumn("several", F.size(_comparable(F.col("clock"))) > 1)
        # Of an inner one Spark would work out the whole array twice, to leave out empty ones.
        .select(
            *_DAY, "names", "base", "several", F.posexplode_outer("clock").alias("number", "of")
        )
    )

    def of(name: str) -> Column:
        return F.when(F.col("several"), F.col("of")[name])

    return compared.select(
        *_DAY,
        F.get("names", F.col("number")).alias("sidecar"),
        of("ahead").alias("ahead_us"),
        of("within").alias("within_us"),
        (F.col("several") & (F.col("number") == F.col("base"))).alias("best"),
    )


def _pairs(events: DataFrame) -> DataFrame:
    """The time from the last error at one sidecar to the first success at another, by their clocks,
    of a client at one leader epoch of a partition: columns ``one``, ``other`` and ``took``."""
    errors = events.where(F.col("event") == "error").transform(_met)
    successes = events.where(F.col("event") == "recovery").transform(_met)
    failed, served = F.max(released_at()).alias("failed"), F.min(F.unix_micros("time"))
    # By code that is generated for it, within memory: lists of a group's sidecars take twice the
    # time, and Spark cannot put a table of hashes on disk.
    last = errors.groupBy(*_DAY, *_PLACE, F.col("sidecar").alias("one")).agg(failed).hint("merge")
    first = successes.groupBy(*_PLACE, F.col("sidecar").alias("other")).agg(served.alias("served"))
    return (
        last.join(first, [*_PLACE])
        .where(F.col("one") != F.col("other"))
        .select(*_DAY, "one", "other", (F.col("served") - F.col("failed")).alias("took"))
    )


def _met(events: DataFrame) -> DataFrame:
    """Rows of events whose leader epoch is known, by it and by client and partition."""
    known = events.withColumn("after", epoch_after())
    places = (F.xxhash64(F.lit(number), *_MET).alias(name) for number, name in enumerate(_PLACE))
    rows = known.where(F.col("after").isNotNull() & F.col("cluster").isNotNull()).select(
        *_DAY, "sidecar", *places, "event", "time", "observed", "hold_ms"
    )
    # Here, so that neither the grouping nor the join needs a shuffle of its own.
    return rows.repartition(*_PLACE)


def _bounds(pairs: DataFrame) -> DataFrame:
    """``bound``: the clock ``other`` is no more than so much ahead of ``one``; ``usual``: that and
    what a recovery takes, both in microseconds."""
    shares = F.percentile("took", F.array(F.lit(_WRONG), F.lit(0.5)))
    middle = F.percentile("took", F.lit(0.5)).over(Window.partitionBy(*_DAY, "one", "other"))
    near = F.abs(F.col("took") - F.col("middle")) <= _FURTHEST_S * _MICROS
    return (
        pairs.withColumn("middle", middle)
        .where(near)
        .groupBy(*_DAY, "one", "other")
        .agg(F.count("*").alias("pairs"), shares.alias("shares"))
        .where(F.col("pairs") >= ENOUGH)
        .select(
            *_DAY,
            "one",
            "other",
            F.col("shares")[0].alias("bound"),
            F.col("shares")[1].alias("usual"),
        )
    )


def _net(bounds: DataFrame) -> DataFrame:
    """One row for a day and cluster: ``names`` of sidecars, and ``net``, the bounds from each of
    them to each."""
    bound = F.struct("bound", "usual")
    # Few rows, and neither of the two groupings needs a shuffle of its own.
    of_one = (
        bounds.repartition(*_DAY)
        .groupBy(*_DAY, "one")
        .agg(F.map_from_entries(F.collect_list(F.struct("other", bound))).alias("others"))
    )
    whole = of_one.groupBy(*_DAY).agg(
        F.map_from_entries(F.collect_list(F.struct("one", "others"))).alias("all")
    )
    others = F.flatten(F.transform(F.map_values("all"), F.map_keys))
    names = F.array_sort(F.array_distinct(F.concat(F.map_keys("all"), others)))
    same, unknown = (
        F.struct(F.lit(of).alias("bound"), F.lit(of).alias("usual")) for of in (0.0, _UNKNOWN)
    )

    def of(one: Column, other: Column) -> Column:
        known = F.try_element_at(F.try_element_at(F.col("all"), one), other)
        return F.when(one == other, same).otherwise(F.coalesce(known, unknown))

    return whole.withColumn("names", names).withColumn(
        "net",
        F.transform("names", lambda one: F.transform("names", lambda other: of(one, other))),
    )


def _two_steps(net: DataFrame) -> DataFrame:
    """Bounds that follow from two: who is ahead of a third clock, and how far that is ahead.

    Where the third clock was put back there is a circle of bounds that is less than nothing: what
    was true of it at different times says nothing of others. No more than two, since longer ways
    would go around it.
    """
    numbers = F.sequence(F.lit(0), F.size("names") - 1)

    def way(one: Column, via: Column, other: Column) -> Column:
        to, on = _bound(one, via), _bound(via, other)
        consistent = (to["bound"] + _bound(via, one)["bound"] >= 0) & (
            on["bound"] + _bound(other, via)["bound"] >= 0
        )
        direct = (via == one) | (via == other)
        both = F.struct(*((to[name] + on[name]).alias(name) for name in ("bound", "usual")))
        return F.when(direct | consistent, both)

    ways = F.transform(
        numbers,
        lambda one: F.transform(
            numbers,
            lambda other: F.array_min(F.transform(numbers, lambda via: way(one, via, other))),
        ),
    )
    return net.withColumn("net", ways)


def _bound(one: Column, other: Column) -> Column:
    return F.get(F.get(F.col("net"), one), other)


def _difference(both: Column) -> Column:
    """How far a clock is ahead, from its bounds: ``forth`` from the base to it, and ``back``.

    Most clocks are set by others. So one that may be right is taken to be.
    """
    forth, back = both["forth"], both["back"]
    most, least = forth["bound"], -back["bound"]
    # The clock was put forward or back between: it is wrong by half of that on either side.
    usual = F.greatest(forth["usual"] + back["usual"], F.lit(0.0))
    within = F.abs(most - least) + F.when(most < least, usual).otherwise(0)
    right = (most >= 0) & (least <= 0)
    known = F.greatest(most, -least) < _UNKNOWN / 2
    return F.struct(
        F.when(known, F.when(right, 0.0).otherwise((most + least) / 2)).alias("ahead"),
        F.when(known, F.when(right, F.greatest(most, -least)).otherwise(within / 2)).alias(
            "within"
        ),
    )


def _comparable(clock: Column) -> Column:
    """The clocks that this one can be compared with, and itself."""
    return F.filter(clock, lambda one: one["within"].isNotNull())


def _worth(clock: Column, number: Column) -> Column:
    """The least of these is of the clock that most others can be compared with, and best."""
    known = _comparable(clock)
    within = F.aggregate(known, F.lit(0.0), lambda a, one: a + one["within"])
    return F.struct((-F.size(known)).alias("known"), within.alias("within"), number.alias("number"))
