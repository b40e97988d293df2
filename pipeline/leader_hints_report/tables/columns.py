"""The tables that are written: columns, types, units and meanings.

Each is Parquet under ``tables/NAME/day=YYYY-MM-DD/cluster=ID/``; ``day`` and ``cluster`` are part
of the path and come back as columns. A day is one in UTC. Times are instants. Where the cluster of
an event is not known it is ``unknown``. What is absent is null.

Tested in ``tests/pipeline/report/test_gathering.py``.
"""

from typing import Final, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

UNKNOWN_CLUSTER: Final = "unknown"

_TYPES: Final[dict[str, DataType]] = {
    "string": StringType(),
    "int": IntegerType(),
    "long": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "time": TimestampType(),
    "date": DateType(),
    "strings": ArrayType(StringType()),
    "ints": ArrayType(IntegerType()),
}


class Column(NamedTuple):
    """One column. ``type``: a key of the table of types above; ``meaning`` has the unit."""

    name: str
    type: str
    meaning: str


class Table(NamedTuple):
    """One table. ``columns`` are those that all have not; ``one``: what a row stands for."""

    name: str
    one: str
    columns: tuple[Column, ...]

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """The columns, ``day`` and ``cluster`` behind the others."""
        return self.columns + _EVERYWHERE

    @property
    def schema(self) -> StructType:
        """What Spark calls it."""
        return StructType([StructField(c.name, _TYPES[c.type]) for c in self.all_columns])


_EVERYWHERE: Final = (
    Column("day", "date", "The day, UTC."),
    Column("cluster", "string", "Kafka's id of the cluster, or `unknown`."),
)
_CLIENT_SOFTWARE: Final = (
    Column("software", "string", "The client's software as it names itself; empty: not named."),
    Column("software_version", "string", "The version of that software."),
)
_PARTITION: Final = (
    Column("topic", "string", "The topic's name."),
    Column("partition", "int", "The partition's number."),
)
_USES: Final = Column(
    "uses",
    "string",
    "The hints that the client uses, as the journal's column of that name; null: not reported.",
)
_WITHOUT: Final = "without a hint on the first error"
_WITH: Final = "with a hint on the first error"

LEADER_MOVES: Final = Table(
    "leader_moves",
    "a leader epoch of a partition; day: of the first sight. What is seen again an hour after the "
    "last sight is another move: the topic was recreated.",
    (
        *_PARTITION,
        Column("epoch", "int", "The leader epoch that began."),
        Column("epoch_before", "int", "The one before, by the sidecar that knew the newest."),
        Column("leader", "int", "Node id of the leader from then on; -1: nobody."),
        Column("leader_before", "int", "Node id of the leader before; -1: nobody."),
        Column("moved", "boolean", "The leader is another one, and not only the epoch."),
        Column("first_seen", "time", "When the first sidecar saw it; skew taken away."),
        Column("last_seen", "time", "When the last sidecar saw it for the first time."),
        Column("sidecars", "int", "How many sidecars saw it."),
        Column(
            "apart_ms",
            "double",
            "From the first sight to the last, clocks as they were, milliseconds.",
        ),
        Column(
            "apart_corrected_ms",
            "double",
            "The same after each clock's estimated skew was taken away, milliseconds.",
        ),
        Column("incident", "string", "The incident that it belongs to."),
    ),
)
RECOVERIES: Final = Table(
    "recoveries",
    "an episode: a client's errors at a partition and the success that ended them, at whichever "
    "sidecar; day: of the first error",
    (
        Column("client_id", "string", "The client's id, empty where it gives none."),
        *_CLIENT_SOFTWARE,
        Column("api", "string", "Produce or Fetch."),
        *_PARTITION,
        Column(
            "first_error",
            "time",
            "When the broker answered the first error, before it was held; skew taken away.",
        ),
        Column("recovered", "time", "The first success after it; null: none was seen."),
        Column("recovery_ms", "double", "From first_error to recovered, milliseconds."),
        Column(
            "lost_ms",
            "double",
            "recovery_ms; where no success was seen, from the first error to the last: the client "
            "was without its leader for at least so long.",
        ),
        Column(
            "uncertain_ms",
            "double",
            "recovery_ms may be wrong by so much, for two clocks were read; 0: one clock, null: "
            "the two could not be compared, or not on the same day.",
        ),
        Column("errors", "int", "How many errors it met."),
        Column("hints", "int", "How many of these had a hint."),
        Column(
            "would_hints",
            "int",
            "How many would have had one: mode observe.",
        ),
        Column("hinted", "boolean", "The first error was answered with a hint."),
        Column("would_hint", "boolean", "It was only counted, and would have been."),
        Column(
            "used",
            "boolean",
            "The hint was used: one error, and the success came from the hinted leader.",
        ),
        Column(
            "reason",
            "string",
            "Why the first error got no hint; null with a hint. `not_usable_by_client` also where "
            "the client does not use the one that it got.",
        ),
        Column(
            "settling",
            "string",
            "What came of the first error where it was to wait for settled Metadata: `settled`, or "
            "why not. Null: it was not to wait.",
        ),
        Column(
            "observed",
            "boolean",
            "hinted and settling say what would have come: the sidecar only counted.",
        ),
        Column("hold_ms", "double", "How long the first error was held, milliseconds."),
        Column("node_from", "int", "The broker that answered the first error."),
        Column("node_to", "int", "The broker that served it again."),
        Column("sidecar_from", "string", "The sidecar of the first error."),
        Column("sidecar_to", "string", "The sidecar of the success."),
        Column("epoch_before", "int", "The leader epoch that the client used at the first error."),
        Column("epoch", "int", "The leader epoch at the success."),
        _USES,
    ),
)
INCIDENTS: Final = Table(
    "incidents",
    "moves of a cluster without a pause of five minutes between them; day: of the first",
    (
        Column("incident", "string", "Its name: cluster and time of the first move."),
        Column("kind", "string", "roll, reassignment, failure or other."),
        Column("rule", "string", "The rule that determined the kind, in words."),
        Column("began", "time", "The first move."),
        Column("ended", "time", "The last move."),
        Column("seconds", "double", "From the first to the last."),
        Column("moves", "int", "How many leader epochs began."),
        Column("moved", "int", "How many of them changed the leader."),
        Column("kept", "int", "How many of them kept the leader."),
        Column("returned", "int", "How many partitions came back to the leader they began with."),
        Column("leaderless", "int", "How many moves left a partition without a leader."),
        Column("partitions", "int", "How many partitions had moves."),
        Column("brokers_left", "ints", "Brokers that partitions went away from, by node id."),
        Column("brokers_joined", "ints", "Brokers that partitions went to, by node id."),
        Column(
            "errors",
            "long",
            "Errors of episodes that began before one minute after its last move, and were not "
            "over before its first. Null: it is a failure, and no error was seen. A broker that is "
            "down answers nobody, so what clients lost was not measured.",
        ),
        Column("clients", "long", "How many client ids met them; null as `errors`."),
        Column("lost_ms", "double", "What these clients lost, milliseconds; null as `errors`."),
    ),
)
HINT_EFFECTIVENESS: Final = Table(
    "hint_effectiveness",
    "clients of one software, version, API and topic",
    (
        *_CLIENT_SOFTWARE,
        Column("api", "string", "Produce or Fetch."),
        Column("topic", "string", "The topic's name."),
        Column("errors", "long", "Errors that they met."),
        Column("given", "long", "Hints that were given."),
        Column("would_give", "long", "Errors that would have had a hint: mode observe."),
        Column("episodes", "long", "First errors, one for each client and partition."),
        Column("hinted", "long", "How many of the episodes began with a hint."),
        Column("used", "long", "How many of these hints were used at once."),
        Column("recovered", "long", "How many episodes ended with a success that was seen."),
        Column("with_n", "long", f"Recoveries {_WITH}."),
        Column("with_mean_ms", "double", f"Mean recovery {_WITH}, milliseconds."),
        Column("with_p50_ms", "double", f"Median recovery {_WITH}, milliseconds."),
        Column("with_p95_ms", "double", f"95th percentile {_WITH}, milliseconds."),
        Column("with_p99_ms", "double", f"99th percentile {_WITH}, milliseconds."),
        Column("without_n", "long", f"Recoveries {_WITHOUT}."),
        Column("without_mean_ms", "double", f"Mean recovery {_WITHOUT}, milliseconds."),
        Column("without_p50_ms", "double", f"Median recovery {_WITHOUT}, milliseconds."),
        Column("without_p95_ms", "double", f"95th percentile {_WITHOUT}, milliseconds."),
        Column("without_p99_ms", "double", f"99th percentile {_WITHOUT}, milliseconds."),
    ),
)
HINT_MISSES: Final = Table(
    "hint_misses",
    "a reason why episodes of clients of one software, version, API and topic began without a hint",
    (
        *_CLIENT_SOFTWARE,
        Column("api", "string", "Produce or Fetch."),
        Column("topic", "string", "The topic's name."),
        Column(
            "reason",
            "string",
            "As in the metric hints_missed; `observed`: a hint was only counted.",
        ),
        Column("episodes", "long", "How many began so."),
        Column("errors", "long", "How many errors they met."),
        Column("lost_ms", "double", "What they lost, milliseconds."),
    ),
)
LATENCIES: Final = Table(
    "latencies",
    "sampled latencies of clients of one software, version and API",
    (
        *_CLIENT_SOFTWARE,
        Column("api", "string", "Produce or Fetch."),
        Column("samples", "long", "How many."),
        Column("mean_ms", "double", "Mean, milliseconds."),
        Column("max_ms", "double", "Longest, milliseconds."),
        *(
            Column(f"{name}_{how}", "double", f"{percent} percentile, {words}, milliseconds.")
            for how, words in (("ms", "exact"), ("approx_ms", "within 0.5 % of the exact one"))
            for name, percent in (
                ("p50", "50th"),
                ("p95", "95th"),
                ("p99", "99th"),
                ("p999", "99.9th"),
            )
        ),
    ),
)
CLIENTS_WITHOUT_HINTS: Final = Table(
    "clients_without_hints",
    "a client id whose errors could get no hint since its software is not known to use any",
    (
        Column("rank", "int", "1: it lost the most time of its cluster on that day."),
        Column("client_id", "string", "The client's id, empty where it gives none."),
        *_CLIENT_SOFTWARE,
        Column("episodes", "long", "How many recoveries it had to wait for."),
        Column("errors", "long", "How many errors it met."),
        Column("lost_ms", "double", "What it lost, milliseconds."),
        Column("longest_ms", "double", "The most that it lost at once, milliseconds."),
        _USES,
    ),
)
CLOCK_SKEW: Final = Table(
    "clock_skew",
    "a sidecar, and how far its clock is from the middle of those of its cluster",
    (
        Column("sidecar", "string", "The sidecar."),
        Column("moves", "long", "How many moves it saw that others saw too."),
        Column(
            "skew_ms",
            "double",
            "Its clock is ahead by so much, milliseconds; null: it could not be compared.",
        ),
        Column("bound_ms", "double", "That may be wrong by so much, milliseconds."),
        Column(
            "corrected",
            "boolean",
            "It could be compared, so times of other tables had the skew taken away.",
        ),
    ),
)
BROKER_HOURS: Final = Table(
    "broker_hours",
    "a broker in an hour of the day, where there was something",
    (
        Column("node", "int", "Node id of the broker."),
        Column("hour", "int", "0 to 23, UTC."),
        Column("left", "long", "Leaderships that went away from it."),
        Column("joined", "long", "Leaderships that came to it."),
        Column("errors", "long", "Errors that it answered."),
        Column("hints", "long", "How many of them had a hint."),
        Column(
            "lost_ms",
            "double",
            "What clients lost after its errors, each up to their next error at any broker, or to "
            "their success, milliseconds.",
        ),
    ),
)
RACK_READS: Final = Table(
    "rack_reads",
    "what a client that names its rack read of a topic, in its rack and elsewhere",
    (
        Column("topic", "string", "The topic's name."),
        Column("client_id", "string", "The client's id."),
        Column("rack", "string", "The client's rack, as it names it."),
        Column("same_bytes", "long", "Bytes of Fetch responses of brokers in that rack."),
        Column("crossing_bytes", "long", "Those of brokers elsewhere, or of no known rack."),
        Column(
            "avoidable_bytes",
            "long",
            "Of crossing_bytes, where it was only observed: records that an in-sync replica in the "
            "client's rack had, too.",
        ),
        Column("named", "long", "How often a replica in its rack was named to it."),
        Column("returned", "long", "How often a follower that fell behind sent it away."),
    ),
)
JOURNAL_RUNS: Final = Table(
    "journal_runs",
    "a run of a sidecar on a day: whether its journal is whole",
    (
        Column("sidecar", "string", "The sidecar."),
        Column("run", "string", "The run of its process."),
        Column("first_seq", "long", "The least number of an event on that day."),
        Column("last_seq", "long", "The largest."),
        Column("events", "long", "Different events."),
        Column("duplicates", "long", "Lines that repeat an event."),
        Column("missing", "long", "Numbers without an event, from the last of an earlier day on."),
        Column("reported", "long", "How many of the missing gap events report."),
        Column("began", "boolean", "Its start event is there."),
        Column("stopped", "boolean", "Its stop event is there."),
        Column("told", "long", "The former name of `reported`, with the same value; deprecated."),
    ),
)

ASKED_VERSIONS: Final = Table(
    "asked_versions",
    "an API that clients with the same id and software asked on that day; without an API: the "
    "client named its software, and nothing is known of what it asked",
    (
        Column("client_id", "string", "The client's id, empty where it gives none."),
        *_CLIENT_SOFTWARE,
        Column("api_key", "int", "Kafka's key of the API; null: see above."),
        Column("oldest", "int", "The oldest version that was asked."),
        Column("newest", "int", "The newest."),
        Column("addresses", "strings", "Hosts; `(others)`: a sidecar saw more than it names."),
        Column("principals", "strings", "Subjects of certificates, where sidecars ask for them."),
        Column("sidecars", "int", "How many sidecars reported it."),
    ),
)

#: All that have days and clusters, by name.
TABLES: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        LEADER_MOVES,
        RECOVERIES,
        INCIDENTS,
        HINT_EFFECTIVENESS,
        HINT_MISSES,
        LATENCIES,
        CLIENTS_WITHOUT_HINTS,
        CLOCK_SKEW,
        BROKER_HOURS,
        RACK_READS,
        JOURNAL_RUNS,
        ASKED_VERSIONS,
    )
}

#: Lines that were not understood; events are stored with them, see
#: :mod:`leader_hints_report.store`. Neither their day nor cluster is known.
QUARANTINE: Final = StructType(
    [
        StructField("source", StringType()),
        StructField("reason", StringType()),
        StructField("line", StringType()),
    ]
)
