"""The columns of the journal, as a table, and the JSON Schema that is made of it.

All events share one flat set of columns, so that a reader needs one struct of nullable columns. A
column that does not apply to an event, or is not known, is left out of its line.

How it may change: columns and kinds of events may be added at any time under the same version, and
readers ignore what they do not know. The version rises only where a reader of the former one would
go wrong: a column that is taken away, or means something else, or has another type or unit.
"""

from typing import Any, Final, Literal, NamedTuple, get_args

#: The version of the format that is written.
VERSION: Final = 1

Kind = Literal[
    "start",
    "stop",
    "mode",
    "client",
    "asked",
    "error",
    "recovery",
    "leader_change",
    "latency",
    "replica",
    "read",
    "fault",
    "gap",
]
Type = Literal["string", "integer", "number", "boolean"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ON_A_LINK: Final[tuple[Kind, ...]] = (
    "client",
    "error",
    "recovery",
    "latency",
    "replica",
    "read",
)
_OF_A_CLIENT: Final[tuple[Kind, ...]] = (*_ON_A_LINK, "asked")

KIND_MEANINGS: Final[dict[Kind, str]] = {
    "start": "a sidecar begins; always the first of its run",
    "stop": "a sidecar ends in order; always the last of its run",
    "mode": "an operator changed the hints mode of a route",
    "client": "a client named its software, and its broker has served it; once for each link",
    "asked": "which versions of which APIs a client has asked since the run began, and was "
    "answered; clients with the same software and client id are one. Written when there is more "
    "than before, and once a day; the lines of a client add up",
    "error": "a client got NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH for a partition",
    "recovery": "a partition answers a client again: its first success after an error, or after a "
    "leader came to this broker",
    "leader_change": "a partition has a new leader epoch: its leader moved, or, if leader and "
    "leader_before are the same, only the epoch rose",
    "latency": "an ordinary exchange that was sampled (setting journal.sample_latencies)",
    "replica": "a consumer that names its rack was sent to another replica of a partition (setting "
    "closest_replica)",
    "read": "what a consumer that names its rack has read of a topic on a link, every five minutes "
    "and at the link's end (setting closest_replica)",
    "fault": "a requested fault was applied (leader-hints local --allow-faults)",
    "gap": "events were dropped, since the journal could not be written fast enough or at all",
}


class Column(NamedTuple):
    """One column. ``always`` and ``sometimes``: the kinds of events that have it; the
    second leave it out where it is not known or does not apply."""

    name: str
    type: Type
    meaning: str
    always: tuple[Kind, ...] = ()
    sometimes: tuple[Kind, ...] = ()
    more: dict[str, Any] = {}  # noqa: RUF012 - read only


_NAT: Final = {"minimum": 0}

COLUMNS: Final[tuple[Column, ...]] = (
    Column("version", "integer", "Version of this format.", KINDS, (), {"const": VERSION}),
    # No enum: a reader of this version takes later kinds of events too.
    Column("event", "string", "The kind of event.", KINDS),
    Column(
        "time",
        "string",
        "When it happened by the sidecar's clock, RFC 3339 in UTC with microseconds. For an error: "
        "when its response was forwarded to the client, after the hold.",
        KINDS,
        (),
        {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"},
    ),
    Column(
        "sidecar",
        "string",
        "Which proxy: the setting journal.sidecar, by default the host's name.",
        KINDS,
    ),
    Column("run", "string", "One run of the sidecar's process, unique in the world.", KINDS),
    Column(
        "seq",
        "integer",
        "Number of the event in its run, from 0. (run, seq) is unique: a second line with the same "
        "pair is the same event, delivered twice. A number is missing only where a gap event names "
        "it, or where the process was killed.",
        KINDS,
        (),
        _NAT,
    ),
    Column(
        "cluster",
        "string",
        "Kafka's id of the cluster.",
        ("leader_change",),
        _OF_A_CLIENT,
    ),
    Column(
        "route",
        "string",
        "The route's name: which broker of this sidecar.",
        ("mode", "fault", *_OF_A_CLIENT),
    ),
    Column(
        "node",
        "integer",
        "Node id of the broker behind the route, the one that answered.",
        (),
        _OF_A_CLIENT,
    ),
    Column(
        "link",
        "integer",
        "Number of the client's connection, unique in its run.",
        _ON_A_LINK,
        (),
        _NAT,
    ),
    Column(
        "client_id",
        "string",
        "The client's id, empty where it gives none; cut after 256 characters.",
        _OF_A_CLIENT,
        ("fault",),
    ),
    Column(
        "software",
        "string",
        "The client's software as it names itself (KIP-511), such as apache-kafka-java; empty if "
        "it does not. Of a start event: the proxy's.",
        ("start", *_OF_A_CLIENT),
    ),
    Column(
        "address",
        "string",
        "HOST:PORT from which the client connected; by its header where the PROXY protocol is on.",
        (),
        ("client",),
    ),
    Column(
        "software_version",
        "string",
        "The version of that software; empty if the client does not name it.",
        ("start", *_OF_A_CLIENT),
    ),
    Column(
        "asked",
        "string",
        "API key, oldest and newest version of each API, with commas between, such as "
        "0:3-9,1:4-11. A client that asks more than 24 APIs has several lines.",
        ("asked",),
        (),
        {"pattern": r"^\d+:\d+-\d+(,\d+:\d+-\d+)*$"},
    ),
    Column(
        "addresses",
        "string",
        "Hosts from which the client connected, with commas between; beyond the first five: "
        "(others).",
        (),
        ("asked",),
    ),
    Column(
        "principals",
        "string",
        "Subjects of the client's certificates (setting client_tls.ca), with semicolons between; "
        "beyond the first five: (others). SASL is not read.",
        (),
        ("asked",),
    ),
    Column(
        "uses",
        "string",
        "The hints that the software is known to use, with commas between: produce, fetch, "
        "fetch_without_endpoints; none; or unknown, if its name is not known. With none and "
        "unknown the client is offered its broker's own versions.",
        (),
        ("client",),
    ),
    Column(
        "hints",
        "string",
        "The hints mode of the sidecar at its start, or of a route from now on: on, observe or "
        "off.",
        ("start", "mode"),
        (),
        {"enum": ["on", "observe", "off"]},
    ),
    Column(
        "api",
        "string",
        "The API of the exchange. Of a fault: only of one to Produce or Fetch.",
        ("error", "recovery", "latency"),
        ("fault",),
        {"enum": ["Produce", "Fetch"]},
    ),
    Column(
        "api_version",
        "integer",
        "The version that the client used.",
        ("error", "latency"),
        (),
        _NAT,
    ),
    Column(
        "topic",
        "string",
        "The topic's name. Of an error whose topic id has no known name: the id in hexadecimal.",
        ("error", "recovery", "replica", "read", "leader_change"),
        ("fault",),
    ),
    Column(
        "partition",
        "integer",
        "The partition's number.",
        ("error", "recovery", "replica", "leader_change"),
        ("fault",),
    ),
    Column(
        "error",
        "integer",
        "Kafka's error code: 6 NOT_LEADER_OR_FOLLOWER, 74 FENCED_LEADER_EPOCH.",
        ("error",),
        ("fault",),
    ),
    Column(
        "action",
        "string",
        "What the fault did: error, delay, throttle, cut, drop, refuse or stale_metadata.",
        ("fault",),
    ),
    Column(
        "hint",
        "string",
        "Which hint an error that was made carried: none, right, equal, stale or unreachable.",
        (),
        ("fault",),
    ),
    Column(
        "leader_before",
        "integer",
        "Node id of the leader before the change, -1: none. Of an error: the node that the "
        "client took for the leader and that answered it.",
        ("leader_change",),
        ("error",),
    ),
    Column(
        "epoch_before",
        "integer",
        "Leader epoch before the change. Of an error: the one that the client used, absent where "
        "it used none.",
        ("leader_change",),
        ("error",),
    ),
    Column(
        "leader",
        "integer",
        "Node id of the leader after the change, -1: none. Of an error: the hinted leader, "
        "absent where no hint was given.",
        ("leader_change",),
        ("error",),
    ),
    Column(
        "epoch",
        "integer",
        "Leader epoch after the change. Of an error: the hinted epoch, absent where no hint was "
        "given. Of a recovery: the one that was known for the partition then.",
        ("leader_change",),
        ("error", "recovery"),
    ),
    Column(
        "hinted",
        "boolean",
        "Of an error: whether it was answered with a hint. Of a recovery: whether the error before "
        "it was.",
        ("error", "recovery"),
    ),
    Column(
        "observed",
        "boolean",
        "The sidecar only counts: hinted, reason, settling and hold_ms say what hints would have "
        "done, and replica which one would have been named.",
        ("error", "replica"),
    ),
    Column("replica", "integer", "Node id of the replica that was named.", ("replica",)),
    Column("rack", "string", "The consumer's rack, as it names it.", ("replica", "read")),
    Column("broker_rack", "string", "The rack of the broker behind the route.", (), ("read",)),
    Column(
        "bytes",
        "integer",
        "Bytes of Fetch responses to the consumer. Where they have several topics, by the records "
        "in those responses that were looked at.",
        ("read",),
        (),
        _NAT,
    ),
    Column(
        "avoidable_bytes",
        "integer",
        "Of these, where closest_replica is only observed: records that an in-sync replica in the "
        "consumer's rack has, too.",
        ("read",),
        (),
        _NAT,
    ),
    Column(
        "returned",
        "boolean",
        "The replica that was named is the leader, since the broker behind the route is not in "
        "sync any more.",
        ("replica",),
    ),
    Column(
        "reason",
        "string",
        "Of an error: why no hint was given, as in the metric hints_missed; absent with a hint. Of "
        "a gap: why events were dropped, in words.",
        ("gap",),
        ("error",),
    ),
    Column(
        "settling",
        "string",
        "Of an error without a hint that was to wait for settled Metadata (setting hold.settle): "
        "settled, or why not, as in the metric errors_settled; absent where it was not to wait.",
        (),
        ("error",),
    ),
    Column(
        "hold_ms",
        "number",
        "How long the error response was kept back, milliseconds.",
        ("error",),
        (),
        _NAT,
    ),
    Column(
        "recovery_ms",
        "number",
        "From the first error of (client id, api, partition) in this process to this success, "
        "milliseconds; absent where the client met no error here.",
        (),
        ("recovery",),
        _NAT,
    ),
    Column(
        "latency_ms",
        "number",
        "From the request's passing to the beginning of its response, milliseconds. A Fetch "
        "includes the broker's wait for records.",
        ("latency",),
        (),
        _NAT,
    ),
    Column("dropped", "integer", "How many events were dropped.", ("gap",), (), {"minimum": 1}),
    Column("first_seq", "integer", "seq of the first that was dropped.", ("gap",), (), _NAT),
    Column(
        "last_seq",
        "integer",
        "seq of the last that was dropped: all from first_seq to here were.",
        ("gap",),
        (),
        _NAT,
    ),
)


def schema() -> dict[str, Any]:
    """The JSON Schema of a line. It lets columns and kinds of events pass that it does not know."""
    kinds = "; ".join(f"{kind}: {meaning}" for kind, meaning in KIND_MEANINGS.items())
    return {
        "$schema": _DIALECT,
        "title": "An event in the journal of leader-hints",
        "description": "One line of JSON. A column that does not apply to an event, or is not "
        "known, is left out. Columns and kinds of events may be added under the same version: "
        "ignore what you do not know. The version rises only where that is not enough.",
        "type": "object",
        "properties": {column.name: _property(column, kinds) for column in COLUMNS},
        "required": [column.name for column in COLUMNS if column.always == KINDS],
        "allOf": [
            {
                "if": {"properties": {"event": {"const": kind}}},
                "then": {"required": _required(kind)},
            }
            for kind in KINDS
            if _required(kind)
        ],
    }


def _property(column: Column, kinds: str) -> dict[str, Any]:
    described = column.meaning
    if column.name == "event":
        described = f"{column.meaning} {kinds}."
    elif column.always != KINDS:
        described = f"{column.meaning} {_whose(column)}"
    return {"description": described, "type": column.type, **column.more}


def _whose(column: Column) -> str:
    parts = []
    if column.always:
        parts.append(f"Always in: {', '.join(column.always)}.")
    if column.sometimes:
        parts.append(f"Where known in: {', '.join(column.sometimes)}.")
    return " ".join(parts)


def _required(kind: Kind) -> list[str]:
    return [c.name for c in COLUMNS if kind in c.always and c.always != KINDS]
