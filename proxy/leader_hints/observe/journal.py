"""Events as lines of the journal; pure. :mod:`leader_hints.observe.journal_schema` has the
columns.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final

from leader_hints.core.events import (
    ClientAsked,
    ClientSeen,
    ConsumerRead,
    EpochRose,
    ErrorAnswered,
    Event,
    FaultDone,
    HintGiven,
    HintMissed,
    HintsSwitched,
    LatencySampled,
    LeaderMoved,
    Recovered,
    ReplicaNamed,
)
from leader_hints.core.route import Route
from leader_hints.core.versions.asked_versions import OTHERS
from leader_hints.observe.journal_schema import VERSION, Kind

#: Client id of a journal's own Kafka client: this and the run.
CLIENT_ID_PREFIX: Final = "leader-hints-journal-"
#: Between principals.
_BETWEEN: Final = "; "
#: A client id can have 32,767 characters, and the name of its software more.
_LONGEST_TEXT: Final = 256
_EPOCH: Final = datetime(1970, 1, 1)  # UTC; without a zone, which would be written in digits
#: One for all lines: json.dumps() makes one each time, which costs more than a line.
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
#: The columns of a leader change, named as in its events.
_MOVED: Final = tuple(field.name for field in fields(LeaderMoved))
_ROSE: Final = tuple(field.name for field in fields(EpochRose))

_HINTED_APIS: Final = ("Produce", "Fetch")

Row = dict[str, Any]


@dataclass(slots=True)
class JournalCounters:
    """``written``: events that the sink took; ``dropped``: events that never will be written."""

    written: int = 0
    dropped: int = 0


class Journal:
    """Numbers events and makes lines of them.

    ``routes``: where cluster and node of a route are looked up. ``run``: unique for each run of the
    process. ``now``: microseconds since 1970, UTC.
    """

    def __init__(
        self, routes: Sequence[Route], sidecar: str, run: str, now: Callable[[], int]
    ) -> None:
        self._routes = {route.name: route for route in routes}
        self._sidecar = sidecar
        self._run = run
        self._now = now
        self._next = 0

    def follow(self, route: Route) -> None:
        """Have one more route of the process looked up."""
        self._routes[route.name] = route

    def row(self, event: Event) -> Row | None:
        """Return the columns of ``event`` that not all have; ``None``: it is not for the journal.

        Traffic of journals is left out, this one's and other sidecars': written through a route
        each line would make lines of its own, and two journals would answer each other for ever.
        """
        row = self._row(event)
        if row is None or row.get("client_id", "").startswith(CLIENT_ID_PREFIX):
            return None
        return row

    def line(self, row: Row) -> bytes:
        """Number a row and return its line, without its end."""
        columns = {
            "version": VERSION,
            "event": row["event"],
            "time": _rfc3339(self._now()),
            "sidecar": self._sidecar,
            "run": self._run,
            "seq": self.skip(),
        }
        return encode(columns | row)

    @property
    def next_number(self) -> int:
        """The number of the next line."""
        return self._next

    def skip(self, numbers: int = 1) -> int:
        """Use up so many numbers, and return the first of them."""
        number = self._next
        self._next += numbers
        return number

    def start(self, software: str, version: str, hints: str) -> bytes:
        """Return the line that begins the run."""
        return self.line(_row("start", software=software, software_version=version, hints=hints))

    def stop(self) -> bytes:
        """Return the line that ends the run."""
        return self.line(_row("stop"))

    def gap(self, first: int, last: int, reason: str) -> bytes:
        """Return the line for the dropped events ``first`` to ``last``."""
        dropped = last - first + 1
        return self.line(
            _row("gap", dropped=dropped, first_seq=first, last_seq=last, reason=reason)
        )

    def _row(self, event: Event) -> Row | None:
        match event:
            case HintGiven():
                row = self._error(event.answered)
                return row | {"hinted": True, "leader": event.leader, "epoch": event.epoch}
            case HintMissed():
                row = self._error(event.answered) | {"hinted": False, "reason": event.reason}
                return row | {"settling": event.settling} if event.settling else row
            case LeaderMoved():
                return _row("leader_change", **{name: getattr(event, name) for name in _MOVED})
            case EpochRose():
                row = _row("leader_change", **{name: getattr(event, name) for name in _ROSE})
                return row | {"leader_before": event.leader}
            case HintsSwitched():
                return _row("mode", route=event.route, hints=event.hints)
            case ClientSeen():
                row = self._on_a_link("client", event, f"{event.software}/{event.version}")
                row["uses"] = "unknown" if event.uses is None else ",".join(event.uses) or "none"
                return row | {"address": event.address} if event.address else row
            case ClientAsked():
                return self._asked(event)
            case Recovered():
                return self._recovery(event)
            case LatencySampled():
                return self._on_a_link("latency", event, event.software) | {
                    "api": event.api,
                    "api_version": event.version,
                    "latency_ms": round(event.latency_ms, 3),
                }
            case ReplicaNamed():
                return self._on_a_link("replica", event, event.software) | {
                    "topic": event.topic,
                    "partition": event.partition,
                    "replica": event.replica,
                    "rack": event.rack,
                    "returned": event.returned,
                    "observed": event.observed,
                }
            case ConsumerRead():
                row = self._on_a_link("read", event, event.software) | {
                    "topic": event.topic,
                    "rack": event.rack,
                    "bytes": event.bytes,
                    "avoidable_bytes": event.avoidable_bytes,
                }
                return row | {"broker_rack": event.broker_rack} if event.broker_rack else row
            case FaultDone():
                return _fault(event)
            case _:
                return None

    def _asked(self, event: ClientAsked) -> Row:
        row = _row(
            "asked",
            route=event.route,
            client_id=event.client_id,
            **_software(event.software),
            asked=",".join(f"{key}:{oldest}-{newest}" for key, oldest, newest in event.asked),
        )
        if event.addresses:
            row["addresses"] = ",".join(event.addresses)
        if event.principals:
            row["principals"] = _fitting(event.principals)
        return row | self._broker(event.route)

    def _recovery(self, event: Recovered) -> Row:
        row = self._on_a_link("recovery", event, event.software)
        row |= {
            "api": event.api,
            "topic": event.topic,
            "partition": event.partition,
            "hinted": event.hinted,
        }
        if event.epoch >= 0:
            row["epoch"] = event.epoch
        if event.recovery_ms is not None:
            row["recovery_ms"] = round(event.recovery_ms, 3)
        return row

    def _error(self, answered: ErrorAnswered) -> Row:
        row = self._on_a_link("error", answered, answered.software)
        row |= {
            "api": answered.api,
            "api_version": answered.version,
            "topic": answered.topic,
            "partition": answered.partition,
            "error": answered.error,
            "observed": answered.observed,
            "hold_ms": round(answered.hold_ms, 3),
        }
        if answered.client_epoch >= 0:
            row["epoch_before"] = answered.client_epoch
        if "node" in row:
            row["leader_before"] = row["node"]
        return row

    def _on_a_link(
        self,
        kind: Kind,
        of: ErrorAnswered | ClientSeen | Recovered | LatencySampled | ReplicaNamed | ConsumerRead,
        software: str,
    ) -> Row:
        row = _row(
            kind, route=of.route, link=of.link, client_id=of.client_id, **_software(software)
        )
        return row | self._broker(of.route)

    def _broker(self, route_name: str) -> Row:
        """Return what is known of the broker behind a route."""
        row: Row = {}
        route = self._routes.get(route_name)
        if route is not None and route.broker.view is not None:
            row["cluster"] = route.broker.view.cluster_id
        if route is not None and route.broker.node is not None:
            row["node"] = route.broker.node
        return row


def _software(text: str) -> Row:
    """Return what a client says of itself, name/version, as two columns."""
    name, _, version = text.partition("/")
    return {"software": name, "software_version": version}


def _fitting(principals: Sequence[str]) -> str:
    """Return as many as have room, each on its own: they have commas."""
    texts = [principals[0]]
    for principal in principals[1:]:
        if len(_BETWEEN.join([*texts, principal, OTHERS])) > _LONGEST_TEXT:
            return _BETWEEN.join([*texts, OTHERS])
        texts.append(principal)
    return _BETWEEN.join(texts)


def _fault(event: FaultDone) -> Row:
    row = _row("fault", route=event.route, action=event.action)
    if event.api:
        row["client_id"] = event.client_id
    if event.api in _HINTED_APIS:
        row["api"] = event.api
    if event.error:
        row |= {
            "topic": event.topic,
            "partition": event.partition,
            "error": event.error,
            "hint": event.hint,
        }
    return row


def _row(event: Kind, **columns: Any) -> Row:
    return {"event": event, **columns}


def _rfc3339(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds") + "Z"


def encode(row: Row) -> bytes:
    """Return a row as one line of printable ASCII, whatever its texts hold."""
    safe = {key: _text(value) if isinstance(value, str) else value for key, value in row.items()}
    # The encoder escapes all other control characters but leaves DEL alone.
    return _ENCODER.encode(safe).replace("\x7f", "\\u007f").encode("ascii")


def _text(text: str) -> str:
    """Cut a text, and replace what no Unicode text can hold: half a surrogate pair."""
    text = text[:_LONGEST_TEXT]
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
