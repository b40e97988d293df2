"""Advice: what happened, what it cost, what was not measured, and what to do first.

It goes by the listings alone, so it can be checked by the JSON.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import hypot
from typing import Final, NamedTuple

from leader_hints_report.report import listings
from leader_hints_report.report.format import count, milliseconds, price, rate, show, size
from leader_hints_report.report.listings import Kind, Listing, Numbers, Row
from leader_hints_report.report.period import AFTER, ALL, BEFORE
from leader_hints_report.report.upgrades import ON_FETCH_ALONE, uses_hints
from leader_hints_report.text import escape, shorten

#: Software that the box shows, steps that it names.
_MOST_SOFTWARE: Final = 5
_MOST_STEPS: Final = 5
#: Journals that lack more than this share of their events are to be seen to first.
_MUCH_MISSING: Final = 0.01
_LONGEST_NAME: Final = 60
#: Clients that never back off twice for old Metadata, so that to wait for it only costs them: see
#: docs/benchmarks.md, "The stall of clients without hints".
_SETTLING_DOES_NOT_HELP: Final = frozenset({"sarama"})

#: What an operator does about hints that were missed, by the reason.
_ABOUT_MISSES: Final = {
    "hold_expired": "The new leader was not known in time. See whether elections are slow; where "
    "they are not, raise hold.deadline_ms.",
    "link_hold_spent": "Clients' holds were used up. Raise hold.link_ms_per_second.",
    "leader_not_ready": "The new leader did not confirm in time. See whether its broker is slow.",
    "no_leader": "Partitions had no leader. See why replicas were out of sync.",
    "no_endpoint": "Where the new leader listens was not known. See the routes of the sidecars.",
    "not_authorized": "Brokers hide the topics from the sidecars. Allow their principal DESCRIBE.",
    "hints_off": "Hints are off for these routes. Set hints: on.",
    "budget": "Too much was held at once. Raise the sidecars' memory limits.",
    "no_fresher_view": "No sidecar knew of a newer leader. See whether clients reach all brokers "
    "through sidecars.",
}


class Cost(NamedTuple):
    """What a client's software lost a day, and what would gain how much of it, in words."""

    software: str
    clients: str
    lost: str
    gain: str


class Step(NamedTuple):
    """Something to do; ``gain_ms``: what it would save a day, ``None`` where that is not known."""

    gain_ms: float | None
    what: str
    why: str


class Advice(NamedTuple):
    """The box at the top of the page; ``steps``: what gains most comes first."""

    happened: list[str]
    cost: list[str]
    costs: list[Cost]
    unmeasured: list[str]
    steps: list[Step]


def advise(numbers: Numbers) -> Advice:
    """Make the box of the listings."""
    rows = numbers.rows(listings.COST)
    cost = rows[0] if rows else None
    software = numbers.rows(listings.SOFTWARE)
    steps = sorted(_steps(numbers, cost), key=lambda step: -(step.gain_ms or 0))
    steps += _rack_steps(numbers)
    repair = list(_repairs(numbers))
    return Advice(
        list(_happened(numbers, cost)),
        [*_cost(numbers, cost), *_crossing(numbers)],
        [_cost_of(row) for row in software[:_MOST_SOFTWARE]],
        list(_unmeasured(numbers, cost)),
        [*repair, *steps][:_MOST_STEPS],
    )


def _happened(numbers: Numbers, cost: Row | None) -> Iterator[str]:
    days = numbers.rows(listings.DAYS)
    incidents = numbers.rows(listings.INCIDENTS)
    kinds = [escape(str(row["kind"])) for row in incidents]
    by_kind = ", ".join(f"{kind} {count(number)}" for kind, number in Counter(kinds).most_common())
    more = " or more" if _has_more(numbers, listings.INCIDENTS) else ""
    yield (
        f"{_counted(_sum(days, 'moved'), 'leader move')} in "
        f"{_counted(len(incidents), 'incident')}{more} on {_counted(len(days), 'day')}"
        + (f" ({by_kind})." if by_kind else ".")
    )
    if cost is None:
        yield "No client was seen to lose a partition."
        return
    yield (
        f"Clients lost a partition {_counted(_number(cost['episodes']), 'time')}, with "
        f"{_counted(_number(cost['errors']), 'error')}."
    )
    parts = [
        f"{count(_number(cost[name]))} {words}"
        for name, words in (
            ("hinted", "began with a hint"),
            ("observed", "would have begun with a hint, and were only observed"),
            ("missed", "missed a hint"),
            ("cannot", "could take none"),
        )
        if cost[name]
    ]
    yield f"Of these, {'; '.join(parts)}."


def _cost(numbers: Numbers, cost: Row | None) -> Iterator[str]:
    if cost is None:
        yield "Nothing that was measured."
        return
    lost = _with_interval(cost, "lost_day_ms", "lost_low_ms", "lost_high_ms")
    yield f"Clients waited {lost} a day for their leaders, all of them together."
    yield from _compared(numbers)
    saved = [row for row in numbers.rows(listings.COVERAGE) if row["saved_ms"] is not None]
    days = _number(cost["days"])
    if saved and days:
        middle, low, high = (
            milliseconds(_sum(saved, name) / days)
            for name in ("saved_ms", "saved_low_ms", "saved_high_ms")
        )
        yield f"Hints saved about {middle} a day ({low} to {high})."


def _compared(numbers: Numbers) -> Iterator[str]:
    """What a day cost before a change and after it, where a day was given."""
    if numbers.change_day is None:
        return
    rows = {row["part"]: row for row in numbers.rows(listings.BEFORE_AFTER)}
    if rows.keys() != {BEFORE, AFTER}:
        missing = "from then on" if BEFORE in rows else "before it"
        yield f"{numbers.change_day} cannot be compared: there are no journals {missing}."
        return
    names = ("lost_day_ms", "lost_low_ms", "lost_high_ms")
    before, after = (_with_interval(rows[part], *names) for part in (BEFORE, AFTER))
    value, _, high = names
    less = _number(rows[BEFORE][value]) - _number(rows[AFTER][value])
    # Of two independent intervals.
    wide = hypot(*(_number(row[high]) - _number(row[value]) for row in rows.values()))
    change = "That is no clear change."
    if abs(less) > wide:
        ends = (milliseconds(abs(less) - wide), milliseconds(abs(less) + wide))
        more = "less" if less > 0 else "more"
        change = f"That is {milliseconds(abs(less))} {more} ({ends[0]} to {ends[1]})."
    yield f"Before {numbers.change_day} they waited {before} a day, from then on {after}. {change}"


def _crossing(numbers: Numbers) -> Iterator[str]:
    """What crossed racks a day, and before and after a change, where a day was given."""
    rows = {row["part"]: row for row in numbers.rows(listings.RACKS_A_DAY)}
    if not rows:
        return
    share = show(Kind.SHARE, rows[ALL]["crossing_share"])
    yield f"Between racks consumers read {_of_racks(rows[ALL])} a day, {share} of what they read."
    if rows.keys() == {ALL, BEFORE, AFTER}:
        before, after = (_of_racks(rows[part]) for part in (BEFORE, AFTER))
        yield f"Before {numbers.change_day} that was {before} a day, from then on {after}."


def _rack_steps(numbers: Numbers) -> Iterator[Step]:
    for row in numbers.rows(listings.RACKS_A_DAY):
        if row["part"] == ALL and row["avoidable_bytes"]:
            saves = _of_racks(row, "avoidable")
            yield Step(
                None,
                "Have consumers read in their rack where that is only observed "
                "(closest_replica: on)",
                f"It would have kept {saves} a day from crossing racks.",
            )


def _of_racks(row: Row, what: str = "crossing") -> str:
    """Bytes, and what they cost where that is known."""
    words = size(_number(row[f"{what}_bytes"]))
    cost = row[f"{what}_price"]
    return words if cost is None else f"{words} for {price(_number(cost))}"


def _cost_of(row: Row) -> Cost:
    gains = []
    if _number(row["gain_day_ms"]) > 0:
        gains.append(f"hints on: {milliseconds(_number(row['gain_day_ms']))}")
    if row["cannot"]:
        known = row["upgrade_day_ms"]
        saves = "not known" if known is None else milliseconds(_number(known))
        gains.append(f"{_upgrade(row)}: {saves}")
    return Cost(
        _name(row),
        count(_number(row["clients"])),
        _with_interval(row, "lost_day_ms", "lost_low_ms", "lost_high_ms"),
        "; ".join(gains),
    )


def _upgrade(row: Row) -> str:
    to = escape(str(row["upgrade_to"]))
    if to:
        return f"upgrade to {to}"
    # It uses them, but not in the versions of the protocol that it used there.
    return "in newer versions of the protocol" if _uses_hints(row) else "if it used hints"


def _uses_hints(row: Row) -> bool:
    """Whether a client's software uses hints: its sidecars know it better, by their settings."""
    if row["raised"]:
        return row["raised"] != "no"
    return uses_hints(str(row["software"]), str(row["software_version"]))


def _unmeasured(numbers: Numbers, cost: Row | None) -> Iterator[str]:
    failed = [row for row in numbers.rows(listings.INCIDENTS) if row["errors"] is None]
    if failed:
        yield (
            f"{_counted(len(failed), 'failure')} without a seen error: a broker that is down "
            "answers nobody, so what clients lost there is not in these figures."
        )
    if cost is not None and cost["unseen"]:
        yield (
            f"{_counted(_number(cost['unseen']), 'episode')} whose end was not seen: they count up "
            "to their last error, and were longer."
        )
    if cost is not None and cost["forecast_bare"]:
        yield (
            f"The time from a hint to the success, for {count(_number(cost['forecast_bare']))} of "
            f"{count(_number(cost['forecast_n']))} recoveries of the forecast: it is too high by "
            "that. Set journal.sample_latencies in the sidecars to have it."
        )
    missing = _sum(numbers.rows(listings.JOURNALS), "missing")
    if missing:
        share = f"{_share_missing(numbers):.2g} %"
        yield f"{_counted(missing, 'event')} that the journals lack ({share})."
    lines = _sum(numbers.rows(listings.QUARANTINE), "lines")
    if lines:
        yield f"{_counted(lines, 'line')} that were not understood."
    yield "Clients that do not go through a sidecar, and sidecars with hints: off."


def _repairs(numbers: Numbers) -> Iterator[Step]:
    """What makes all figures wrong comes before what they advise."""
    share = _share_missing(numbers)
    if share > 100 * _MUCH_MISSING:
        yield Step(
            None,
            "Find out why the journals lack events",
            f"{share:.2g} % are missing, so the figures are too low. The last part of this page "
            "names the sidecars.",
        )


def _steps(numbers: Numbers, cost: Row | None) -> Iterator[Step]:
    if cost is None:
        return
    rows = [row for row in numbers.rows(listings.SOFTWARE) if row["cannot"]]
    if _number(cost["gain_day_ms"]) > 0 and _still_observed(numbers):
        yield _forecast(cost, sum(_number(row["cannot"]) for row in rows if _uses_hints(row)))
    yield from (_upgrade_step(row) for row in rows if row["upgrade_to"])
    yield from _without_versions(
        [row for row in rows if not row["upgrade_to"] and not _uses_hints(row)]
    )
    days = _number(cost["days"])
    for row in numbers.rows(listings.MISSES):
        about = _ABOUT_MISSES.get(str(row["reason"]))
        if row["kind"] == listings.MISSED and about is not None and row["lost_ms"] and days:
            yield Step(
                None,
                f"See why hints were missed: {row['reason']}",
                f"{about} At most {milliseconds(_number(row['lost_ms']) / days)} a day.",
            )


def _without_versions(rows: Sequence[Row]) -> Iterator[Step]:
    """What to do for clients of which no version uses hints."""
    for what, others, why in (
        (
            "Try hold.settle for clients that have no version with hints",
            [row for row in rows if row["software"] not in _SETTLING_DOES_NOT_HELP],
            "In front of ZooKeeper it shortens their longest stalls, and no others. Producers that "
            "are not idempotent may change the order of more records. Or see whether another "
            "client library will do.",
        ),
        (
            "See whether another library will do for clients that nothing here helps",
            [row for row in rows if row["software"] in _SETTLING_DOES_NOT_HELP],
            "They have no version with hints, and errors that wait (hold.settle) only cost them.",
        ),
    ):
        if others:
            names = ", ".join(dict.fromkeys(_name(row) for row in others[:3]))
            lost = milliseconds(_sum(others, "lost_day_ms"))
            more = " and others" if len(others) > 3 else ""
            yield Step(None, what, f"{names}{more}: they lost {lost} a day. {why}")


def _still_observed(numbers: Numbers) -> bool:
    """Whether there were errors that were only observed on the last day that had errors."""
    last = next((row for row in numbers.rows(listings.DAYS) if row["episodes"]), None)
    return last is None or last["observed_ms"] is not None


def _forecast(cost: Row, in_old_versions: float) -> Step:
    saves = _with_interval(cost, "gain_day_ms", "gain_low_ms", "gain_high_ms")
    more = ""
    if in_old_versions:
        more = (
            f" Sidecars that observe raise no versions, so {_counted(in_old_versions, 'episode')} "
            "in old versions of the protocol may come on top."
        )
    return Step(
        _number(cost["gain_day_ms"]),
        "Turn hints on where they are only observed (hints: on)",
        f"Forecast: it would reach {rate(_number(cost['reach_day']))} first errors a day, and "
        f"save about {saves} a day.{more}",
    )


def _upgrade_step(row: Row) -> Step:
    what = f"Upgrade {_name(row)} to {escape(str(row['upgrade_to']))} or newer"
    if row["software"] in ON_FETCH_ALONE:
        what += ", for hints on Fetch alone"
    clients = _counted(_number(row["clients"]), "client id")
    if row["upgrade_day_ms"] is None:
        lost = milliseconds(_number(row["lost_day_ms"]))
        why = (
            f"{clients}. They lost {lost} a day. How much of it hints would save is not known: too "
            "few clients had one in their clusters."
        )
        return Step(None, what, why)
    saves = _with_interval(row, "upgrade_day_ms", "upgrade_low_ms", "upgrade_high_ms")
    return Step(
        _number(row["upgrade_day_ms"]), what, f"{clients}. It would save about {saves} a day."
    )


def _name(row: Row) -> str:
    name = f"{row['software']} {row['software_version']}".strip()
    return shorten(name, _LONGEST_NAME) if name else "clients without a name"


def _with_interval(row: Row, value: str, low: str, high: str) -> str:
    middle, least, most = (milliseconds(_number(row[name])) for name in (value, low, high))
    return f"{middle} ({least} to {most})"


def _share_missing(numbers: Numbers) -> float:
    rows = numbers.rows(listings.JOURNALS)
    missing = _sum(rows, "missing")
    return 100 * missing / (missing + _sum(rows, "events")) if missing else 0.0


def _has_more(numbers: Numbers, listing: Listing) -> bool:
    return listing.name in numbers.listings and numbers.listings[listing.name].more


def _counted(number: float, noun: str) -> str:
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _sum(rows: Sequence[Row], name: str) -> float:
    return sum(_number(row[name]) for row in rows)
