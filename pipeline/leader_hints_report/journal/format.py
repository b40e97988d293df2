"""The journal's format as a reader sees it: one flat set of columns, as docs/journal.schema.json.

A test holds this table against that file. Columns that are added there later are ignored here.
"""

import hashlib
import json
from datetime import date
from typing import Final

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

#: The newest version of the format that is understood.
VERSION: Final = 1

_STRING: Final = StringType()
_INT: Final = IntegerType()
_LONG: Final = LongType()
_DOUBLE: Final = DoubleType()

COLUMNS: Final[dict[str, DataType]] = {
    "version": _INT,
    "event": _STRING,
    "time": _STRING,
    "sidecar": _STRING,
    "run": _STRING,
    "seq": _LONG,
    "cluster": _STRING,
    "route": _STRING,
    "node": _INT,
    "link": _LONG,
    "client_id": _STRING,
    "software": _STRING,
    "address": _STRING,
    "software_version": _STRING,
    "asked": _STRING,
    "addresses": _STRING,
    "principals": _STRING,
    "uses": _STRING,
    "hints": _STRING,
    "api": _STRING,
    "api_version": _INT,
    "topic": _STRING,
    "partition": _INT,
    "error": _INT,
    "action": _STRING,
    "hint": _STRING,
    "leader_before": _INT,
    "epoch_before": _INT,
    "leader": _INT,
    "epoch": _INT,
    "hinted": BooleanType(),
    "observed": BooleanType(),
    "replica": _INT,
    "rack": _STRING,
    "broker_rack": _STRING,
    "bytes": _LONG,
    "avoidable_bytes": _LONG,
    "returned": BooleanType(),
    "reason": _STRING,
    "settling": _STRING,
    "hold_ms": _DOUBLE,
    "recovery_ms": _DOUBLE,
    "latency_ms": _DOUBLE,
    "dropped": _LONG,
    "first_seq": _LONG,
    "last_seq": _LONG,
}

#: Columns that each event has, and those that each kind has besides.
ALWAYS: Final = ("version", "event", "time", "sidecar", "run", "seq")
_CLIENT: Final = ("route", "link", "client_id", "software", "software_version")
REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "start": ("software", "software_version", "hints"),
    "mode": ("route", "hints"),
    "client": _CLIENT,
    "asked": ("route", "client_id", "software", "software_version", "asked"),
    "error": (
        *_CLIENT,
        "api",
        "api_version",
        "topic",
        "partition",
        "error",
        "hinted",
        "observed",
        "hold_ms",
    ),
    "recovery": (*_CLIENT, "api", "topic", "partition", "hinted"),
    "leader_change": (
        "cluster",
        "topic",
        "partition",
        "leader_before",
        "epoch_before",
        "leader",
        "epoch",
    ),
    "replica": (*_CLIENT, "topic", "partition", "observed", "replica", "rack", "returned"),
    "read": (*_CLIENT, "topic", "rack", "bytes", "avoidable_bytes"),
    "latency": (*_CLIENT, "api", "api_version", "latency_ms"),
    "fault": ("route", "action"),
    "gap": ("reason", "dropped", "first_seq", "last_seq"),
}
_OF_BROKER: Final = ("cluster", "node")
#: Columns that a kind has where they are known. Lines of a kind with others are read too.
SOMETIMES: Final[dict[str, tuple[str, ...]]] = {
    "client": (*_OF_BROKER, "address", "uses"),
    "asked": (*_OF_BROKER, "addresses", "principals"),
    "error": (
        *_OF_BROKER,
        "leader_before",
        "epoch_before",
        "leader",
        "epoch",
        "reason",
        "settling",
    ),
    "recovery": (*_OF_BROKER, "epoch", "recovery_ms"),
    "replica": _OF_BROKER,
    "read": (*_OF_BROKER, "broker_rack"),
    "latency": _OF_BROKER,
    "fault": ("client_id", "api", "topic", "partition", "error", "hint"),
}

#: The kinds of events that are understood.
KINDS: Final = (*REQUIRED, "stop")
#: Another one where more of a line is understood: lines that were not, as a whole, are read again.
FORMAT: Final = hashlib.sha256(
    json.dumps([VERSION, {name: of.simpleString() for name, of in COLUMNS.items()}, KINDS]).encode()
).hexdigest()[:20]

_DAY_MS: Final = 86_400_000
#: More events than any run has, and few enough to be added up.
_MOST: Final = 2**48
#: Least and largest values; others would be impossible, and some of them end a computation. A hold
#: of no more than a day begins on its day or on the one before.
RANGES: Final[dict[str, tuple[float, float]]] = {
    "seq": (0, _MOST),
    "hold_ms": (0, _DAY_MS),
    "recovery_ms": (0, 366 * _DAY_MS),
    "latency_ms": (0, 366 * _DAY_MS),
    "bytes": (0, _MOST),
    "avoidable_bytes": (0, _MOST),
    "dropped": (1, _MOST),
    "first_seq": (0, _MOST),
    "last_seq": (0, _MOST),
}
#: The first and the last day that an event may be of.
DAYS: Final = (date(1900, 1, 1), date(2199, 12, 31))

#: Takes what a line has in excess of, or against, the columns: the line itself.
BAD: Final = "_bad"
LINE_SCHEMA: Final = StructType(
    [StructField(name, of) for name, of in COLUMNS.items()] + [StructField(BAD, _STRING)]
)
#: An event: the columns, its time as an instant.
EVENT_SCHEMA: Final = StructType(
    [StructField(name, TimestampType() if name == "time" else of) for name, of in COLUMNS.items()]
)
