"""Gathering: the rows of the listings, from the pipeline's tables."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.files import Files
from leader_hints_report.report import listings
from leader_hints_report.report.listings import Kind, Listing, Numbers, Row, Rows
from leader_hints_report.store import Store
from leader_hints_report.tables import columns

#: Fewest recoveries of each kind from which a saving is estimated, and how many stretches of time
#: they must be of at least. What moves leaders makes many of them slow or quick together, so for
#: the interval those of a stretch are one observation.
_LEAST: Final = 20
_LEAST_STRETCHES: Final = 10
_STRETCH_S: Final = 10
#: So many standard errors on both sides have the truth in 95 of 100 cases.
_CERTAIN: Final = 1.96
#: Ranks are right within one in so many: as good as exact for a page, in bounded memory.
_ACCURACY: Final = 10_000


#: What a client version is: the rows of a listing.
_CLIENT_VERSION: Final = ("software", "software_version", "api")

Gather = Callable[[Store], DataFrame]


def gather(session: SparkSession, folder: str, told: Callable[[str], None]) -> Numbers:
    """Make the rows of all listings; each costs one query.

    ``folder``: what `batch` or `stream` wrote. ``told``: is called with a word for each query.

    :raises PipelineError: there is no such folder.
    """
    if not Files(session).exists(folder):
        raise PipelineError(
            f"--tables {folder}: there is no such folder; give what was --out of "
            "`leader-hints-report batch`"
        )
    store = Store(session, folder)
    found = {}
    for listing in listings.LISTINGS:
        told(listing.title)
        found[listing.name] = _rows(listing, _GATHERED[listing](store))
    return Numbers(listings=found)


def _rows(listing: Listing, frame: DataFrame) -> Rows:
    names = [column.name for column in listing.columns]
    times = [column.name for column in listing.columns if column.kind is Kind.TIME]
    # As numbers, times do not depend on any time zone.
    instants = {name: F.unix_micros(name) for name in times}
    found = frame.withColumns(instants).select(*names).limit(listing.most + 1).collect()
    rows: list[Row] = [
        {**row.asDict(), **{name: _rfc3339(row[name]) for name in times}} for row in found
    ]
    return Rows(rows=tuple(rows[: listing.most]), more=len(rows) > listing.most)


def _rfc3339(micros: int) -> str:
    when = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _clusters(store: Store) -> DataFrame:
    moves = store.table(columns.LEADER_MOVES.name)
    of_moves = moves.groupBy("cluster").agg(
        F.min("day").cast("string").alias("first_day"),
        F.max("day").cast("string").alias("last_day"),
        F.count("*").alias("epochs"),
        F.count_if("moved").alias("moved"),
        F.max("sidecars").alias("sidecars"),
        _percentile("apart_corrected_ms", 0.5).alias("apart_p50_ms"),
    )
    of_clients = store.table(columns.RECOVERIES.name).groupBy("cluster").agg(*_costs())
    return of_moves.join(of_clients, "cluster", "full").orderBy(*_dearest("cluster"))


def _recovery(store: Store) -> DataFrame:
    recovery = F.col("recovery_ms")
    return (
        store.table(columns.RECOVERIES.name)
        .groupBy("api", "hinted")
        .agg(
            *_costs(),
            F.count_if(recovery.isNull()).alias("unseen"),
            F.mean(recovery).alias("mean_ms"),
            *(
                _percentile("recovery_ms", share).alias(name)
                for name, share in (
                    ("p50_ms", 0.5),
                    ("p90_ms", 0.9),
                    ("p99_ms", 0.99),
                    ("p999_ms", 0.999),
                )
            ),
            F.max(recovery).alias("max_ms"),
        )
        .orderBy("api", "hinted")
    )


def _curve(store: Store) -> DataFrame:
    shares = [percent / 100 for percent in range(101)]
    curve = F.percentile_approx("recovery_ms", shares, _ACCURACY)
    return (
        store.table(columns.RECOVERIES.name)
        .where(F.col("recovery_ms").isNotNull())
        .groupBy("api", "hinted")
        .agg(curve.alias("_curve"))
        .select("api", "hinted", F.posexplode("_curve").alias("percent", "recovery_ms"))
        .orderBy("api", "hinted", "percent")
    )


def _incidents(store: Store) -> DataFrame:
    return store.table(columns.INCIDENTS.name).orderBy(*_dearest("began", "cluster"))


def _broker_hours(store: Store) -> DataFrame:
    summed = ("left", "joined", "errors", "hints", "lost_ms")
    return (
        store.table(columns.BROKER_HOURS.name)
        .groupBy("cluster", "node", "hour")
        .agg(*(F.sum(name).alias(name) for name in summed))
        .orderBy(*_dearest("cluster", "node", "hour"))
    )


def _coverage(store: Store) -> DataFrame:
    summed = ("errors", "given", "would_give", "episodes", "hinted", "used")
    errors = (
        store.table(columns.HINT_EFFECTIVENESS.name)
        .groupBy(*_CLIENT_VERSION)
        .agg(*(F.sum(name).alias(name) for name in summed))
    )
    of_kind = [
        figure
        for name, kind in (
            ("with", F.col("hinted")),
            ("without", ~F.col("hinted")),
            ("observed", F.col("would_hint")),
        )
        for figure in _recoveries_of(name, kind)
    ]
    met = store.table(columns.RECOVERIES.name)
    recoveries = met.groupBy(*_CLIENT_VERSION).agg(*of_kind)
    return (
        errors.join(recoveries, [*_CLIENT_VERSION], "left")
        .join(_saved(met), [*_CLIENT_VERSION], "left")
        .orderBy(F.desc("errors"), *_CLIENT_VERSION)
    )


def _saved(met: DataFrame) -> DataFrame:
    """What hints saved, by client version, with an interval; only of those where it can be said.

    Elections are slow where a hold expires, so such recoveries are longer than any with a hint
    would have been. Those that would have had a hint, and were only observed, are alike. Clusters
    are compared with themselves alone.
    """
    kinds = {"with": F.col("hinted"), "observed": F.col("would_hint")}
    kind = F.when(kinds["with"], "with").when(kinds["observed"], "observed")
    stretch = F.floor(F.unix_micros("first_error") / (_STRETCH_S * 1_000_000))
    of_cluster = (*_CLIENT_VERSION, "cluster")
    stretches = (
        met.where(kind.isNotNull() & F.col("recovery_ms").isNotNull())
        .groupBy(*of_cluster, kind.alias("kind"), stretch.alias("stretch"))
        .agg(F.count("*").alias("n"), F.sum("recovery_ms").alias("took"))
    )
    means = stretches.groupBy(*of_cluster).agg(*(_mean_of(name).alias(name) for name in kinds))
    with_, observed = F.col("with"), F.col("observed")
    enough = reduce(
        lambda a, b: a & b,
        ((of["n"] >= _LEAST) & (of["stretches"] >= _LEAST_STRETCHES) for of in (with_, observed)),
    )
    saved = with_["n"] * (observed["mean"] - with_["mean"])
    variance = with_["n"] * with_["n"] * (observed["variance"] + with_["variance"])
    summed = (
        means.where(enough)
        .groupBy(*_CLIENT_VERSION)
        .agg(
            F.sum(saved).alias("saved_ms"),
            (_CERTAIN * F.sqrt(F.sum(variance))).alias("wide"),
        )
    )
    return summed.select(
        *_CLIENT_VERSION,
        "saved_ms",
        (F.col("saved_ms") - F.col("wide")).alias("saved_low_ms"),
        (F.col("saved_ms") + F.col("wide")).alias("saved_high_ms"),
    )


def _mean_of(kind: str) -> Column:
    """Of rows by ``stretch`` with ``n`` recoveries that ``took`` so long together: ``n``,
    ``stretches``, the ``mean`` recovery, and the ``variance`` of that mean.

    That of a ratio of sums, each stretch as one observation (Cochran, Sampling Techniques, 6.4).
    """
    of_kind = F.col("kind") == kind

    def total(of: Column) -> Column:
        return F.sum(F.when(of_kind, of))

    n, took = F.col("n"), F.col("took")
    count, stretches = total(n), total(F.lit(1))
    mean = total(took) / count
    squares = total(took * took) - 2 * mean * total(took * n) + mean * mean * total(n * n)
    # Rounding may leave less than nothing.
    spread = F.greatest(squares, F.lit(0.0)) * stretches / F.nullif(stretches - 1, F.lit(0))
    return F.struct(
        count.alias("n"),
        stretches.alias("stretches"),
        mean.alias("mean"),
        (spread / (count * count)).alias("variance"),
    )


def _recoveries_of(name: str, kind: Column) -> tuple[Column, ...]:
    recovery = F.when(kind, F.col("recovery_ms"))
    return (
        F.count(recovery).alias(f"{name}_n"),
        F.mean(recovery).alias(f"{name}_mean_ms"),
        _percentile(recovery, 0.5).alias(f"{name}_p50_ms"),
    )


def _misses(store: Store) -> DataFrame:
    summed = ("episodes", "errors", "lost_ms")
    return (
        store.table(columns.HINT_MISSES.name)
        .groupBy("reason")
        .agg(*(F.sum(name).alias(name) for name in summed))
        .orderBy(*_dearest("reason"))
    )


def _settled(store: Store) -> DataFrame:
    kind = ("settling", "observed")
    return (
        store.table(columns.RECOVERIES.name)
        .where(F.col("settling").isNotNull())
        .groupBy(*kind)
        .agg(
            *_costs(),
            _percentile("recovery_ms", 0.5).alias("p50_ms"),
            _percentile("recovery_ms", 0.95).alias("p95_ms"),
        )
        .orderBy(*_dearest(*kind))
    )


def _clients(store: Store) -> DataFrame:
    client = ("client_id", "software", "software_version", "cluster")
    summed = ("episodes", "errors", "lost_ms")
    return (
        store.table(columns.CLIENTS_WITHOUT_HINTS.name)
        .groupBy(*client)
        .agg(
            *(F.sum(name).alias(name) for name in summed),
            F.max("longest_ms").alias("longest_ms"),
        )
        .orderBy(*_dearest(*client))
    )


def _topics(store: Store) -> DataFrame:
    return (
        store.table(columns.RECOVERIES.name)
        .groupBy("cluster", "topic")
        .agg(*_costs(), F.max(_lost()).alias("longest_ms"))
        .orderBy(*_dearest("cluster", "topic"))
    )


def _latencies(store: Store) -> DataFrame:
    return (
        store.table(columns.LATENCIES.name)
        .withColumn("day", F.col("day").cast("string"))
        .orderBy(F.desc("samples"), "day", "cluster", "software", "software_version", "api")
    )


def _skew(store: Store) -> DataFrame:
    return (
        store.table(columns.CLOCK_SKEW.name)
        .withColumn("day", F.col("day").cast("string"))
        .orderBy(F.desc(F.abs("skew_ms")), "day", "cluster", "sidecar")
    )


def _journals(store: Store) -> DataFrame:
    summed = ("events", "duplicates", "missing", "told")
    return (
        store.table(columns.JOURNAL_RUNS.name)
        .groupBy("sidecar")
        .agg(
            F.count("*").alias("runs"),
            *(F.sum(name).alias(name) for name in summed),
        )
        .orderBy(F.desc("missing"), F.desc("duplicates"), "sidecar")
    )


def _quarantine(store: Store) -> DataFrame:
    return (
        store.quarantine()
        .groupBy("reason")
        .agg(F.count("*").alias("lines"))
        .orderBy(F.desc("lines"), "reason")
    )


_GATHERED: Final[dict[Listing, Gather]] = {
    listings.CLUSTERS: _clusters,
    listings.RECOVERY: _recovery,
    listings.CURVE: _curve,
    listings.INCIDENTS: _incidents,
    listings.BROKER_HOURS: _broker_hours,
    listings.COVERAGE: _coverage,
    listings.MISSES: _misses,
    listings.SETTLED: _settled,
    listings.CLIENTS: _clients,
    listings.TOPICS: _topics,
    listings.LATENCIES: _latencies,
    listings.SKEW: _skew,
    listings.JOURNALS: _journals,
    listings.QUARANTINE: _quarantine,
}


def _lost() -> Column:
    """What an episode cost. Tables of version 0.1 have it only where a success was seen."""
    return F.coalesce("lost_ms", "recovery_ms")


def _costs() -> tuple[Column, ...]:
    """What a group of recoveries cost."""
    return (
        F.count("*").alias("episodes"),
        F.sum("errors").alias("errors"),
        F.sum("hints").alias("hints"),
        F.sum(_lost()).alias("lost_ms"),
    )


def _dearest(*then: str) -> tuple[Column | str, ...]:
    """What lost the most time first; what lost the same in an order that stays."""
    return (F.desc_nulls_last("lost_ms"), *then)


def _percentile(of: Column | str, share: float) -> Column:
    return F.percentile_approx(of, share, _ACCURACY)
