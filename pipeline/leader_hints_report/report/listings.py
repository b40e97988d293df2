"""Listings: the tables of the report, what their columns mean, and how long they may get.

Tested in ``tests/pipeline/report/test_page.py``.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

Value = str | int | float | bool | None
Row = dict[str, Value]


class Kind(StrEnum):
    """What a value is, so how it is shown."""

    TEXT = "text"
    DAY = "day in UTC"
    COUNT = "count"
    RATE = "count a day"
    MS = "milliseconds"
    SECONDS = "seconds"
    TIME = "time, RFC 3339 in UTC"
    YES = "true or false"
    BYTES = "bytes"
    PRICE = "in the currency of price_per_gb"
    SHARE = "share, 0 to 1"


class Column(NamedTuple):
    """One column of a listing. ``former``: an earlier name, for programs that read it alone."""

    name: str
    head: str
    kind: Kind
    meaning: str
    former: bool = False


class Listing(NamedTuple):
    """One table of the report. ``most``: rows it has at most; those that cost most come first."""

    name: str
    title: str
    columns: tuple[Column, ...]
    most: int

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns that people read."""
        return tuple(column for column in self.columns if not column.former)


class Rows(BaseModel):
    """The rows of one listing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: tuple[Row, ...] = Field(description="By column; in the order of the listing.")
    more: bool = Field(default=False, description="The tables have more rows than are here.")


class Numbers(BaseModel):
    """The whole content of the report."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = Field(default=1, description="Of this form. Within one, names are only added.")
    listings: dict[str, Rows] = Field(description="By the name of the listing.")
    first_day: str | None = Field(default=None, description="No earlier day was asked for.")
    last_day: str | None = Field(default=None, description="No later day was asked for.")
    change_day: str | None = Field(
        default=None, description="The first day of those that are compared with the days before."
    )
    price_per_gb: float | None = Field(
        default=None, description="What a GB (a billion bytes) between racks costs; null: not said."
    )

    def rows(self, listing: Listing) -> tuple[Row, ...]:
        """The rows of a listing; none where it is not there."""
        return self.listings[listing.name].rows if listing.name in self.listings else ()

    @property
    def empty(self) -> bool:
        """Nothing at all was seen."""
        return not any(rows.rows for rows in self.listings.values())


#: Kinds of episodes and errors without a hint.
MISSED: Final = "missed"
TAKES_NONE: Final = "could take none"
OBSERVED: Final = "observed"

_SOFTWARE: Final = (
    Column("software", "client", Kind.TEXT, "The client's software as it names itself."),
    Column("software_version", "version", Kind.TEXT, "The version of that software."),
)
_USES: Final = Column(
    "uses",
    "uses hints",
    Kind.TEXT,
    "The hints that sidecars know the client to use, or `none`, or `unknown`; several, with "
    "semicolons between, where they differ; empty: journals do not say.",
)
_API: Final = Column("api", "API", Kind.TEXT, "Produce or Fetch.")
_CLUSTER: Final = Column("cluster", "cluster", Kind.TEXT, "Kafka's id of the cluster.")
_ERRORS: Final = Column(
    "errors", "errors", Kind.COUNT, "NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH answers."
)
_EPISODES: Final = Column(
    "episodes", "episodes", Kind.COUNT, "Times that a client lost a partition, first errors."
)
_LOST: Final = Column(
    "lost_ms",
    "time lost",
    Kind.MS,
    "From first error to first success, or where none was seen to the last error; the sum.",
)

_UNSEEN: Final = Column(
    "unseen", "end not seen", Kind.COUNT, "Episodes whose success was not seen."
)

CLUSTERS: Final = Listing(
    "clusters",
    "Clusters",
    (
        _CLUSTER,
        Column("first_day", "from", Kind.DAY, "The first day of its leader moves."),
        Column("last_day", "to", Kind.DAY, "The last day of its leader moves."),
        Column("epochs", "epochs", Kind.COUNT, "Leader epochs that began."),
        Column("moved", "moves", Kind.COUNT, "How many of them changed the leader."),
        Column("sidecars", "seen by", Kind.COUNT, "The most sidecars that saw one move."),
        Column(
            "apart_p50_ms",
            "apart, median",
            Kind.MS,
            "From the first sidecar that saw a move to the last, clocks corrected.",
        ),
        _EPISODES,
        _ERRORS,
        Column("hints", "with hint", Kind.COUNT, "Errors that had a hint."),
        _LOST,
    ),
    200,
)
RECOVERY: Final = Listing(
    "recovery",
    "Recoveries",
    (
        _API,
        Column("hinted", "hint", Kind.YES, "The first error was answered with a hint."),
        _EPISODES,
        _UNSEEN,
        Column("mean_ms", "mean", Kind.MS, "Mean recovery."),
        Column("p50_ms", "50 %", Kind.MS, "Half of the recoveries took no longer."),
        Column("p90_ms", "90 %", Kind.MS, "Nine of ten took no longer."),
        Column("p99_ms", "99 %", Kind.MS, "99 of 100 took no longer."),
        Column("p999_ms", "99.9 %", Kind.MS, "999 of 1000 took no longer."),
        Column("max_ms", "longest", Kind.MS, "The longest."),
        _LOST,
    ),
    4,
)
CURVE: Final = Listing(
    "recovery_curve",
    "Recoveries, percentile by percentile",
    (
        _API,
        Column("hinted", "hint", Kind.YES, "The first error was answered with a hint."),
        Column("percent", "%", Kind.COUNT, "This share of the recoveries"),
        Column("recovery_ms", "took at most", Kind.MS, "took no longer than this."),
    ),
    4 * 101,
)
_DAYS: Final = Column("days", "days", Kind.COUNT, "Days of which there are journals.")
_LOST_A_DAY: Final = (
    Column("lost_day_ms", "lost a day", Kind.MS, "Time lost, by the days with journals."),
    Column(
        "lost_low_ms",
        "at least",
        Kind.MS,
        "Lower end of its 95 % confidence interval; the hours of these days are the observations.",
    ),
    Column("lost_high_ms", "at most", Kind.MS, "Upper end of that interval."),
)
_FORECAST: Final = (
    Column(
        "reach_day",
        "would reach a day",
        Kind.RATE,
        "First errors a day that were only observed, and would have had a hint.",
    ),
    Column(
        "gain_day_ms",
        "would save a day",
        Kind.MS,
        "Forecast: what turning hints on would save a day. How long these recoveries took, minus "
        "how long the response would have been held and the time from a hint to the success.",
    ),
    Column(
        "gain_low_ms",
        "would save at least",
        Kind.MS,
        "Lower end of its 95 % confidence interval, minus all holds that would have been in vain.",
    ),
    Column("gain_high_ms", "would save at most", Kind.MS, "Upper end of that interval."),
)
COST: Final = Listing(
    "cost",
    "Cost a day",
    (
        _DAYS,
        _EPISODES,
        Column("hinted", "began with hint", Kind.COUNT, "Episodes whose first error had a hint."),
        Column("observed", "observed", Kind.COUNT, "Episodes that would have begun with one."),
        Column("missed", "missed", Kind.COUNT, "Episodes that could have, and did not."),
        Column("cannot", "could take none", Kind.COUNT, "Episodes that could take no hint."),
        _ERRORS,
        _LOST,
        *_LOST_A_DAY,
        _UNSEEN,
        *_FORECAST,
        Column("forecast_n", "n forecast", Kind.COUNT, "Recoveries that the forecast is made of."),
        Column(
            "forecast_bare",
            "of these bare",
            Kind.COUNT,
            "Of these, how many have no known time from a hint to the success. It is taken as 0, "
            "so the forecast is too high for them.",
        ),
    ),
    1,
)
BEFORE_AFTER: Final = Listing(
    "before_after",
    "Cost a day before and after a change",
    (
        Column("part", "days", Kind.TEXT, "`before` the change, or `after`: from its day on."),
        _DAYS._replace(head="how many"),
        _EPISODES,
        _ERRORS,
        _LOST,
        *_LOST_A_DAY,
    ),
    2,
)
SOFTWARE: Final = Listing(
    "software",
    "Cost a day by client software",
    (
        *_SOFTWARE,
        _USES,
        Column(
            "raised",
            "raised",
            Kind.TEXT,
            "Whether sidecars with hints on offer it the versions that have them: yes, no, or in "
            "part, where they know it differently; empty: journals do not say.",
        ),
        Column("clients", "client ids", Kind.COUNT, "Different client ids that met errors."),
        _EPISODES,
        Column("cannot", "could take none", Kind.COUNT, "Episodes that could take no hint."),
        _ERRORS,
        *_LOST_A_DAY,
        _UNSEEN,
        *_FORECAST,
        Column(
            "upgrade_to",
            "upgrade to",
            Kind.TEXT,
            "The first version that uses hints; empty: it does, or no version is known to.",
        ),
        Column(
            "upgrade_day_ms",
            "upgrade saves a day",
            Kind.MS,
            "Estimate: what hints would save a day if this software used them. Its recoveries that "
            "could take no hint, against those with a hint of other clients in the same cluster "
            "and API, times the share of these that had one. Empty where there are not 20, from "
            "ten different times.",
        ),
        Column("upgrade_low_ms", "upgrade at least", Kind.MS, "Lower end of its 95 % interval."),
        Column("upgrade_high_ms", "upgrade at most", Kind.MS, "Upper end of that interval."),
    ),
    200,
)
DAYS: Final = Listing(
    "days",
    "Day by day",
    (
        Column("day", "day", Kind.DAY, "The day; those without a row have no journals."),
        Column("moved", "moves", Kind.COUNT, "Leader moves."),
        Column("incidents", "incidents", Kind.COUNT, "Incidents that began on it."),
        _EPISODES,
        _ERRORS,
        Column("hints", "with hint", Kind.COUNT, "Errors that had a hint."),
        _LOST,
        Column("hinted_ms", "after a hint", Kind.MS, "Time lost in episodes that began with one."),
        Column("observed_ms", "only observed", Kind.MS, "In those that would have."),
        Column("missed_ms", "missed", Kind.MS, "In those that could have, and did not."),
        Column("cannot_ms", "could take none", Kind.MS, "In those that could take no hint."),
    ),
    400,
)
HOURS: Final = Listing(
    "hours",
    "Hour by hour",
    (
        Column("day", "day", Kind.DAY, "The day."),
        Column("hour", "hour", Kind.COUNT, "Hour of that day, UTC."),
        _ERRORS,
        _LOST,
    ),
    24 * 400,
)
INCIDENTS: Final = Listing(
    "incidents",
    "Incidents",
    (
        _CLUSTER,
        Column("kind", "kind", Kind.TEXT, "roll, reassignment, failure or other."),
        Column("began", "began", Kind.TIME, "The first move."),
        Column("seconds", "took", Kind.SECONDS, "From the first move to the last."),
        Column("moves", "epochs", Kind.COUNT, "Leader epochs that began."),
        Column("partitions", "partitions", Kind.COUNT, "Partitions that had moves."),
        _ERRORS,
        Column("clients", "clients", Kind.COUNT, "Client ids that met errors."),
        _LOST,
        Column("brokers_left", "left", Kind.TEXT, "Node ids of brokers that leaders left."),
        Column("brokers_joined", "joined", Kind.TEXT, "Node ids of brokers that they came to."),
        Column("rule", "rule", Kind.TEXT, "The rule that determined the kind."),
    ),
    1000,
)
#: Incidents that the page has, and so those whose parts are gathered.
MOST_OPENED: Final = 50
#: Topics, clients and brokers of each that are.
MOST_PARTS: Final = 5
INCIDENT_PARTS: Final = Listing(
    "incident_parts",
    "Topics, clients and brokers of the incidents",
    (
        _CLUSTER,
        Column("began", "began", Kind.TIME, "The first move: with the cluster, which incident."),
        Column("part", "what", Kind.TEXT, "topic, client or broker (of the first error)."),
        Column("name", "name", Kind.TEXT, "The topic, client id with software, or node id."),
        _EPISODES,
        _ERRORS,
        _LOST,
    ),
    3 * MOST_OPENED * MOST_PARTS,
)
BROKER_HOURS: Final = Listing(
    "broker_hours",
    "Brokers and hours",
    (
        _CLUSTER,
        Column("node", "broker", Kind.COUNT, "Node id of the broker."),
        Column("hour", "hour", Kind.COUNT, "Hour of the day, UTC; all days together."),
        Column("left", "leaders left", Kind.COUNT, "Partitions that it stopped leading."),
        Column("joined", "leaders came", Kind.COUNT, "Partitions that it started to lead."),
        _ERRORS,
        Column("hints", "with hint", Kind.COUNT, "Errors that had a hint."),
        _LOST,
    ),
    24_000,
)
COVERAGE: Final = Listing(
    "coverage",
    "Hints by client version",
    (
        *_SOFTWARE,
        _API,
        _ERRORS,
        Column("given", "with hint", Kind.COUNT, "Errors that had a hint."),
        Column("would_give", "observed", Kind.COUNT, "Errors that would have had one: observe."),
        Column(
            "cannot",
            "could take none",
            Kind.COUNT,
            "Errors of episodes whose first error could take no hint, by the client's software.",
        ),
        _EPISODES,
        Column("hinted", "began with hint", Kind.COUNT, "Episodes whose first error had a hint."),
        Column("used", "hint used", Kind.COUNT, "Of these, the client went there immediately."),
        Column("with_n", "n with", Kind.COUNT, "Recoveries after a hint."),
        Column("with_mean_ms", "mean with", Kind.MS, "Mean recovery after a hint."),
        Column("with_p50_ms", "median with", Kind.MS, "Median recovery after a hint."),
        Column("without_n", "n without", Kind.COUNT, "Recoveries without one."),
        Column("without_mean_ms", "mean without", Kind.MS, "Mean recovery without one."),
        Column("without_p50_ms", "median without", Kind.MS, "Median recovery without one."),
        Column(
            "observed_n",
            "n observed",
            Kind.COUNT,
            "Of those without one, recoveries that would have begun with a hint: observe.",
        ),
        Column("observed_mean_ms", "mean observed", Kind.MS, "Mean recovery of these."),
        Column("observed_p50_ms", "median observed", Kind.MS, "Median recovery of these."),
        Column(
            "saved_ms",
            "saved, estimate",
            Kind.MS,
            "Recoveries after a hint, times how much shorter their mean is than the observed one; "
            "by cluster, then added up. Empty where no cluster has 20 of each, from ten different "
            "times.",
        ),
        Column("saved_low_ms", "at least", Kind.MS, "Lower end of its 95 % confidence interval."),
        Column("saved_high_ms", "at most", Kind.MS, "Upper end of that interval."),
    ),
    200,
)
MISSES: Final = Listing(
    "misses",
    "Why there was no hint",
    (
        Column(
            "kind",
            "kind",
            Kind.TEXT,
            "missed: the client could have used a hint, and got none; could take none: its "
            "software or its version of the protocol has no use for one; observed: a hint was only "
            "counted.",
        ),
        Column("reason", "reason", Kind.TEXT, "As in the metric hints_missed."),
        _EPISODES,
        _ERRORS,
        _LOST,
    ),
    50,
)
SETTLED: Final = Listing(
    "settled",
    "Errors that wait for settled Metadata",
    (
        Column("settling", "outcome", Kind.TEXT, "As in the metric errors_settled."),
        Column("observed", "only counted", Kind.YES, "In mode observe: it would have come so."),
        _EPISODES,
        _ERRORS,
        _LOST,
        Column("p50_ms", "50 %", Kind.MS, "Half of the recoveries took no longer."),
        Column("p95_ms", "95 %", Kind.MS, "95 of 100 recoveries took no longer."),
    ),
    50,
)
_AVOIDABLE: Final = Column(
    "avoidable_bytes",
    "avoidable",
    Kind.BYTES,
    "Of what crossed while closest_replica was only observed: records that a replica in the "
    "consumer's rack had, too. Turned on, it would save about these.",
)
RACKS_A_DAY: Final = Listing(
    "racks_a_day",
    "Bytes between racks a day",
    (
        Column("part", "days", Kind.TEXT, "`all`; with --compare those `before` and `after`."),
        _DAYS._replace(head="how many"),
        Column("read_bytes", "read a day", Kind.BYTES, "All that these consumers read."),
        Column("crossing_bytes", "crossed", Kind.BYTES, "Of it, from brokers in other racks."),
        Column("crossing_share", "share", Kind.SHARE, "The share of it that crossed."),
        Column("crossing_price", "costs a day", Kind.PRICE, "What crossed, by --price-per-gb."),
        _AVOIDABLE._replace(meaning=_AVOIDABLE.meaning + " A day."),
        Column("avoidable_price", "would save a day", Kind.PRICE, "That, by --price-per-gb."),
    ),
    3,
)
RACKS: Final = Listing(
    "racks",
    "Bytes between racks by topic and client",
    (
        _CLUSTER,
        Column("topic", "topic", Kind.TEXT, "The topic's name."),
        Column("client_id", "client id", Kind.TEXT, "The client's id."),
        Column("same_bytes", "in the rack", Kind.BYTES, "Read from brokers in the client's rack."),
        Column("crossing_bytes", "crossed", Kind.BYTES, "Read from brokers in other racks."),
        Column("crossing_price", "cost", Kind.PRICE, "What crossed, by --price-per-gb."),
        _AVOIDABLE,
        Column("avoidable_price", "would save", Kind.PRICE, "That, by --price-per-gb."),
        Column("before_bytes", "before", Kind.BYTES, "With --compare: crossed a day before it."),
        Column("after_bytes", "after", Kind.BYTES, "With --compare: crossed a day from then on."),
        Column("named", "named", Kind.COUNT, "How often a replica in its rack was named to it."),
        Column(
            "returned",
            "sent back",
            Kind.COUNT,
            "How often a follower that fell behind sent it away.",
        ),
    ),
    200,
)
CLIENTS: Final = Listing(
    "clients_without_hints",
    "Clients that cannot use hints",
    (
        Column("client_id", "client id", Kind.TEXT, "The client's id."),
        *_SOFTWARE,
        _USES,
        _CLUSTER,
        _EPISODES,
        _ERRORS,
        _LOST,
        Column("longest_ms", "longest", Kind.MS, "The most that it lost at once."),
    ),
    50,
)
TOPICS: Final = Listing(
    "topics",
    "Topics that lost the most time",
    (
        _CLUSTER,
        Column("topic", "topic", Kind.TEXT, "The topic's name."),
        _EPISODES,
        _ERRORS,
        Column("hints", "with hint", Kind.COUNT, "Errors that had a hint."),
        _LOST,
        Column("longest_ms", "longest", Kind.MS, "The most that a client lost at once."),
    ),
    50,
)
LATENCIES: Final = Listing(
    "latencies",
    "Latencies beside the moves",
    (
        Column("day", "day", Kind.DAY, "The day."),
        _CLUSTER,
        *_SOFTWARE,
        _API,
        Column("samples", "samples", Kind.COUNT, "How many exchanges were sampled."),
        Column("p50_ms", "50 %", Kind.MS, "Half of them took no longer."),
        Column("p95_ms", "95 %", Kind.MS, "95 of 100 took no longer."),
        Column("p99_ms", "99 %", Kind.MS, "99 of 100 took no longer."),
        Column("p999_ms", "99.9 %", Kind.MS, "999 of 1000 took no longer."),
        Column("max_ms", "longest", Kind.MS, "The longest."),
    ),
    100,
)
#: What becomes of a client.
VERDICTS: Final = ("will be refused", "seen in part", "will be served")
READINESS: Final = Listing(
    "readiness",
    "Clients, and what becomes of them",
    (
        Column(
            "verdict",
            "verdict",
            Kind.TEXT,
            "Of the newest brokers: will be refused; seen in part: nothing that was seen is "
            "refused, and more may come; or will be served.",
        ),
        *_SOFTWARE,
        Column("clients", "client ids", Kind.COUNT, "Clients that ask the same, by client id."),
        Column("last_day", "last", Kind.DAY, "The day on which one of them asked last."),
        Column(
            "refused",
            "refused, or lacking",
            Kind.TEXT,
            "What brokers refuse of it, from which release on, and what they take; or why the "
            "client was seen in part.",
        ),
        Column("remedy", "what to do", Kind.TEXT, "Where something will be refused."),
        Column(
            "hints",
            "hints",
            Kind.TEXT,
            "`uses them`, or the first version of the software that does; empty: none is known to.",
        ),
        Column("client_ids", "which", Kind.TEXT, "Up to 20 of them; none: it gives none."),
        Column("addresses", "addresses", Kind.TEXT, "Hosts that they came from, up to 20."),
        Column(
            "principals",
            "principals",
            Kind.TEXT,
            "Subjects of their certificates, where sidecars ask for them.",
        ),
        Column("asks", "asks", Kind.TEXT, "Oldest and newest version of each API."),
        Column("in_3_7", "3.7 to 3.9", Kind.TEXT, "The verdict of brokers of these releases."),
        Column("in_4_0", "4.0", Kind.TEXT, "The verdict of brokers of this release."),
        Column("in_4_1", "4.1 to 4.3", Kind.TEXT, "The verdict of brokers of these releases."),
        _CLUSTER,
    ),
    1000,
)
SKEW: Final = Listing(
    "clock_skew",
    "Clocks of the sidecars",
    (
        Column("day", "day", Kind.DAY, "The day."),
        _CLUSTER,
        Column("sidecar", "sidecar", Kind.TEXT, "The sidecar."),
        Column("moves", "moves", Kind.COUNT, "Moves that others saw too."),
        Column("skew_ms", "ahead by", Kind.MS, "Compared to its cluster's median; an estimate."),
        Column("bound_ms", "within", Kind.MS, "The estimate may be wrong by so much."),
        Column("corrected", "corrected", Kind.YES, "Times in the tables were corrected by it."),
    ),
    100,
)
JOURNALS: Final = Listing(
    "journals",
    "Completeness of the journals",
    (
        Column("sidecar", "sidecar", Kind.TEXT, "The sidecar."),
        Column("runs", "runs", Kind.COUNT, "Runs of its process, counted once on each day."),
        Column("events", "events", Kind.COUNT, "Different events."),
        Column("duplicates", "duplicates", Kind.COUNT, "Lines that repeat an event."),
        Column("missing", "missing", Kind.COUNT, "Numbers without an event."),
        Column("reported", "reported", Kind.COUNT, "How many of these its gap events report."),
        Column(
            "told",
            "reported",
            Kind.COUNT,
            "The former name of `reported`, with the same value; deprecated.",
            former=True,
        ),
    ),
    100,
)
QUARANTINE: Final = Listing(
    "quarantine",
    "Lines that were not understood",
    (
        Column("reason", "reason", Kind.TEXT, "Why not."),
        Column("lines", "lines", Kind.COUNT, "How many."),
    ),
    50,
)

LISTINGS: Final[tuple[Listing, ...]] = (
    COST,
    BEFORE_AFTER,
    SOFTWARE,
    DAYS,
    HOURS,
    CLUSTERS,
    RECOVERY,
    CURVE,
    INCIDENTS,
    INCIDENT_PARTS,
    BROKER_HOURS,
    COVERAGE,
    MISSES,
    SETTLED,
    CLIENTS,
    TOPICS,
    RACKS_A_DAY,
    RACKS,
    LATENCIES,
    READINESS,
    SKEW,
    JOURNALS,
    QUARANTINE,
)
