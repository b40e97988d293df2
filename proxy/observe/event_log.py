"""Events as log lines."""

import re
from dataclasses import fields
from typing import Any

import structlog

from proxy.core import events
from proxy.core.events import Event

#: Level of each event's line. Errors that clients recover from by themselves are for those
#: who look for them; what an operator should mend is a warning.
_LEVELS: dict[type[Event], str] = {
    events.Listening: "info",
    events.RoutePlan: "info",
    events.LeaderMoved: "info",
    events.SubscriptionReady: "info",
    events.TopicIdsOffered: "info",
    events.HintGiven: "debug",
    events.HintMissed: "debug",
    events.ClientSeen: "debug",
    events.Recovered: "debug",
    events.NotUnderstood: "warning",
    events.BadClientBytes: "warning",
    events.BadBrokerBytes: "warning",
    events.UpstreamUnreachable: "warning",
    events.SubscriptionLost: "warning",
    events.TopicIdsWithheld: "warning",
    events.LinkFailed: "error",
    events.LatencySampled: "debug",
    events.JournalFailing: "warning",
    events.JournalWritten: "info",
    events.JournalAbandoned: "warning",
}


class EventLog:
    """Writes a line for each event: its class in snake case, its fields as they are."""

    def __init__(self, log: structlog.typing.FilteringBoundLogger) -> None:
        self._log = log

    def take(self, event: Event) -> None:
        """Write ``event``."""
        getattr(self._log, _LEVELS[type(event)])(name(event), **_values(event))


def name(event: Event) -> str:
    """Return the event's name, such as leader_moved."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower()


def _values(event: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        if field.name == "answered":
            values |= _values(value)
        else:
            values[field.name] = round(value, 3) if isinstance(value, float) else value
    return values
