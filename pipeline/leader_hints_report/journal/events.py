"""Lines of the journal as events, and those that are none with the reason."""

from collections.abc import Callable
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StringType, StructField, StructType

from leader_hints_report.journal.format import (
    ALWAYS,
    BAD,
    COLUMNS,
    DAYS,
    EVENT_SCHEMA,
    KINDS,
    LINE_SCHEMA,
    RANGES,
    REQUIRED,
    VERSION,
)

#: Rows as they are stored.
STORED: Final = StructType(
    [
        *EVENT_SCHEMA.fields,
        *(StructField(name, StringType()) for name in ("source", "line", "fault", "part")),
        StructField("day", DateType()),
    ]
)
#: Parts into which events are stored, since tables ask for one or the other.
LATENCY: Final = "latency"
ENCOUNTER: Final = "encounter"
MOVE: Final = "move"
READ: Final = "read"
REST: Final = "rest"
BAD_PART: Final = "bad"
#: Up to version 0.1 a stream stored errors and successes as they came, and once more when they were
#: complete.
OPEN_PART: Final = "open"
OVER: Final = "over"
PART_OF: Final = {
    "latency": LATENCY,
    "error": ENCOUNTER,
    "recovery": ENCOUNTER,
    "leader_change": MOVE,
    "read": READ,
    "replica": READ,
}
#: A quarantined line is kept up to so many characters.
LONGEST_LINE: Final = 10_000
_NEWER: Final = "newer_version"
#: The fault of a line of which nothing can be read.
NOT_JSON: Final = "not_json"
_MODE: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
#: 2026-01-02T03:04:05.000006Z
_TIME_LENGTH: Final = 27
_MICROS_A_DAY: Final = 86_400_000_000


def parsed(line: Column) -> Column:
    """A struct of all columns, from a line of JSON."""
    return F.from_json(line, LINE_SCHEMA, _MODE)


def instant(time: Column) -> Column:
    """The instant of the journal's text for one; null where it is none of that form, or centuries
    away."""
    first, last = (day.isoformat() for day in DAYS)
    formed = (F.length(time) == _TIME_LENGTH) & time.endswith("Z")
    near = (time >= first) & (time <= f"{last}T23:59:59.999999Z")
    return F.when(formed & near, time.try_cast("timestamp"))


def possible(value_of: Callable[[str], Column]) -> Column:
    """Whether the values of an event's columns are in their ranges; absent ones are."""
    # NaN is larger than any number.
    inside = (
        F.coalesce(value_of(name).between(*bounds), F.lit(True)) for name, bounds in RANGES.items()
    )
    return reduce(lambda a, b: a & b, inside)


def fault(event: Column) -> Column:
    """Why a struct of :func:`parsed` is no event, in a word; null where it is one.

    Columns that a kind of event needs are asked for; kinds that are not known need none.
    """
    read_nothing = reduce(lambda a, b: a & b, (event[name].isNull() for name in ALWAYS))
    missing = reduce(lambda a, b: a | b, (event[name].isNull() for name in ALWAYS))
    for kind, names in REQUIRED.items():
        lacks = reduce(lambda a, b: a | b, (event[name].isNull() for name in names))
        missing = missing | ((event["event"] == kind) & lacks)
    return (
        F.when(event.isNull() | (event[BAD].isNotNull() & read_nothing), NOT_JSON)
        .when(event["version"] > VERSION, _NEWER)
        .when(event[BAD].isNotNull(), "wrong_type")
        .when(missing, "missing_column")
        .when(event["seq"] < 0, "negative_seq")
        .when(instant(event["time"]).isNull(), "bad_time")
        .when(~possible(lambda name: event[name]), "out_of_range")
    )


def day_of(time: Column) -> Column:
    """The day of an instant in UTC, whatever the session's time zone is."""
    return F.date_from_unix_date(F.floor(F.unix_micros(time) / _MICROS_A_DAY).cast("int"))


def part_of(event: Column) -> Column:
    """The part that a kind of event is stored in."""
    part = F.lit(REST)
    for kind, name in PART_OF.items():
        part = F.when(event == kind, name).otherwise(part)
    return part


def read(lines: DataFrame) -> DataFrame:
    """Judge ``lines``, columns ``source`` and ``line``; give rows as they are stored.

    A good line becomes an event in its part and day; a bad one goes to the part ``bad`` with its
    ``fault``, ``source`` and text. A line of a newer version, or a good one with a column or a kind
    that is not known, has its whole text kept, to be read again. Empty lines are left out. Nothing
    is filtered by the judgement, since Spark would read each line once for the filter and once more
    for what passes.
    """
    full = lines.where(F.trim("line") != "")
    # Judged where it is parsed, which Spark does once for a projection. Together with what follows
    # the judgement would be one generated method of over 8000 bytes, which Java never compiles.
    event = parsed(F.col("line"))
    judged = full.select("source", "line", event.alias("event"), fault(event).alias("fault"))
    event, is_bad = F.col("event"), F.col("fault").isNotNull()
    columns = {name: event[name] for name in COLUMNS} | {"time": instant(event["time"])}
    # Its characters are counted where it is cut, so only what is kept is cut.
    later = (F.col("fault") == _NEWER) | (~is_bad & _has_more(event))
    cut = F.when(is_bad, F.substring("line", 1, LONGEST_LINE))
    return judged.select(
        *(of.alias(name) for name, of in columns.items()),
        F.when(is_bad | later, F.col("source")).alias("source"),
        F.when(later, F.col("line")).otherwise(cut).alias("line"),
        "fault",
        F.when(is_bad, BAD_PART).otherwise(part_of(event["event"])).alias("part"),
        F.when(~is_bad, day_of(columns["time"])).alias("day"),
    )


def _has_more(event: Column) -> Column:
    """Whether a good line may say more than the struct of :func:`parsed` has of it.

    Names are counted, since to parse lines twice would cost as much again. A text may look like a
    name, and then its line is kept needlessly.
    """
    line = F.col("line")
    names = F.length(line) - F.length(F.replace(line, F.lit('":'), F.lit('"')))
    known = reduce(lambda a, b: a + b, (event[name].isNotNull().cast("int") for name in COLUMNS))
    return (names > known) | ~event["event"].isin(*KINDS)


def to_read_again(stored: DataFrame) -> DataFrame:
    """The stored rows of which a newer version of this program may understand more."""
    newer = F.col("fault").isNull() | (F.col("fault") == _NEWER)
    return stored.where(F.col("line").isNotNull() & newer)


def read_again(stored: DataFrame) -> DataFrame:
    """Stored rows, those of :func:`to_read_again` from their lines."""
    again = read(to_read_again(stored).select("source", "line"))
    newer = F.coalesce(F.col("fault") == _NEWER, F.lit(True))
    as_it_is = stored.where(F.col("line").isNull() | ~newer)
    return as_it_is.unionByName(again, allowMissingColumns=True)


def quarantined(stored: DataFrame) -> DataFrame:
    """The lines that are no events, as the table of them has them."""
    return stored.where(F.col("part") == BAD_PART).select(
        "source", F.col("fault").alias("reason"), "line"
    )
