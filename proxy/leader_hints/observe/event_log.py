"""Events as log lines."""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple

import structlog

from leader_hints.core import events
from leader_hints.core.events import Event
from leader_hints.observe.flood import Flood
from leader_hints.observe.leader_storm import LeaderStorm
from leader_hints.observe.logs import LEVELS


class _Line(NamedTuple):
    """``subsystem``: whose level decides whether it is written."""

    subsystem: str
    level: str


#: Subsystem and level of each event. Errors that clients recover from by themselves are at debug;
#: what an operator should fix is a warning.
LINES: Final[Mapping[type[Event], _Line]] = {
    events.Starting: _Line("routes", "info"),
    events.Listening: _Line("routes", "info"),
    events.BrokerMoved: _Line("routes", "info"),
    events.BrokerLeft: _Line("routes", "info"),
    events.BrokerWithoutPort: _Line("routes", "warning"),
    events.BrokerOfAnotherCluster: _Line("routes", "warning"),
    events.ClusterRestarted: _Line("routes", "warning"),
    events.ClusterNotRestarted: _Line("routes", "warning"),
    events.FaultDone: _Line("routes", "info"),
    events.RoutePlan: _Line("routes", "info"),
    events.UpstreamGivesHints: _Line("routes", "warning"),
    events.HintsSwitched: _Line("routes", "warning"),
    events.SwitchNotKept: _Line("routes", "warning"),
    events.UpstreamUnreachable: _Line("routes", "warning"),
    events.RouteCrossed: _Line("routes", "warning"),
    events.AdvertisedPast: _Line("routes", "warning"),
    events.AdvertisedRight: _Line("routes", "info"),
    events.RouteLoops: _Line("routes", "warning"),
    events.FilesReloaded: _Line("routes", "info"),
    events.SettingsReloaded: _Line("routes", "info"),
    events.SettingsRefused: _Line("routes", "warning"),
    events.CertificatesReloaded: _Line("routes", "info"),
    events.CertificatesRefused: _Line("routes", "warning"),
    events.LinkFailed: _Line("routes", "error"),
    events.TaskFailed: _Line("routes", "error"),
    events.BadBrokerBytes: _Line("routes", "warning"),
    events.NotUnderstood: _Line("routes", "warning"),
    events.LimitReached: _Line("routes", "warning"),
    events.DescriptorsShort: _Line("routes", "warning"),
    events.AcceptFailed: _Line("routes", "error"),
    events.EventLoopStalled: _Line("routes", "error"),
    events.Stopping: _Line("routes", "info"),
    events.Stopped: _Line("routes", "info"),
    events.TakeoverBegun: _Line("routes", "info"),
    events.TakeoverFailed: _Line("routes", "warning"),
    events.TakenOver: _Line("routes", "info"),
    events.WorkerBegan: _Line("routes", "info"),
    events.WorkerEnded: _Line("routes", "error"),
    events.BadClientBytes: _Line("clients", "warning"),
    events.ClientRefused: _Line("clients", "warning"),
    events.ClientSeen: _Line("clients", "debug"),
    events.HintGiven: _Line("hints", "debug"),
    events.HintMissed: _Line("hints", "debug"),
    events.Recovered: _Line("hints", "debug"),
    events.ReplicaNamed: _Line("hints", "debug"),
    events.LeaderMoved: _Line("leaders", "info"),
    events.EpochRose: _Line("leaders", "debug"),
    events.SubscriptionReady: _Line("subscription", "info"),
    events.SubscriptionLost: _Line("subscription", "warning"),
    events.TopicsHidden: _Line("subscription", "warning"),
    events.TopicIdsOffered: _Line("subscription", "info"),
    events.TopicIdsWithheld: _Line("subscription", "warning"),
    events.LatencySampled: _Line("journal", "debug"),
    events.ConsumerRead: _Line("journal", "debug"),
    events.ClientAsked: _Line("journal", "debug"),
    events.JournalWritten: _Line("journal", "info"),
    events.JournalFailing: _Line("journal", "warning"),
    events.JournalAbandoned: _Line("journal", "warning"),
    events.AdminListening: _Line("admin", "info"),
    events.AdminExposed: _Line("admin", "warning"),
    events.AdminFailed: _Line("admin", "error"),
}
#: Lines in a minute of what clients, brokers or the system can cause without end; of each route,
#: broker and limit. One line sums up the others.
_MOST: dict[type[Event], int] = {
    events.BadClientBytes: 10,
    events.ClientRefused: 10,
    events.BadBrokerBytes: 10,
    events.NotUnderstood: 10,
    events.LinkFailed: 10,
    events.RouteLoops: 3,
    events.UpstreamUnreachable: 10,
    events.RoutePlan: 10,
    events.SubscriptionReady: 10,
    events.SubscriptionLost: 10,
    events.TaskFailed: 10,
    events.LimitReached: 3,
    events.AcceptFailed: 1,
}
_FLOOD: Final = _Line("routes", "warning")
_STUCK: Final = _Line("routes", "error")
_STORM: Final = _Line("leaders", "info")
_SUMMARY: Final = _Line("summary", "info")


class EventLog:
    """Writes a line for each event: its class in snake case, its fields as they are.

    ``levels``: the least level that is written, by subsystem. ``moves_per_second``: leader moves
    that get a line of their own; :meth:`tick` writes one for the others. ``clock``: in seconds.
    ``worker_of``: returns the number of the worker process that an event comes from, 0 for none.
    """

    def __init__(
        self,
        log: structlog.typing.FilteringBoundLogger,
        levels: Mapping[str, str],
        moves_per_second: int,
        clock: Callable[[], float],
    ) -> None:
        self._log = log
        self._storm = LeaderStorm()
        self._flood = Flood()
        self._clock = clock
        self.worker_of: Callable[[Event], int] | None = None
        self.configure(levels, moves_per_second)

    def configure(self, levels: Mapping[str, str], moves_per_second: int) -> None:
        """Write other lines from now on."""
        self._least = {subsystem: LEVELS[level] for subsystem, level in levels.items()}
        #: Of what is written.
        self._lines = {kind: line for kind, line in LINES.items() if self._written(line)}
        self._storm.most = moves_per_second

    def take(self, event: Event) -> None:
        """Write ``event``."""
        line = self._lines.get(type(event))
        if line is None:
            return
        if isinstance(event, events.LeaderMoved):
            now = self._clock()
            self._sum_up_moves(now)
            if self._storm.takes(event, now):
                return
        most = _MOST.get(type(event))
        if most is not None and self._flood.takes(_kind(event), most, self._clock()):
            return
        values = _values(event)
        if self.worker_of is not None and (worker := self.worker_of(event)):
            values["worker"] = worker
        self._write(line, name(event), values)

    def tick(self) -> None:
        """Write what is summed up of a time that is over; call it about every second."""
        for left_out in self._flood.over(self._clock()):
            self._write(_FLOOD, "more_of_the_same", left_out)
        self._sum_up_moves(self._clock())

    def _sum_up_moves(self, now: float) -> None:
        storm = self._storm.over(now)
        if storm is not None:
            self._write(_STORM, "more_leaders_moved", storm)

    def stuck(self, seconds: float, stack: str) -> None:
        """Write where the event loop stands still. Any thread may call this."""
        if self._written(_STUCK):
            self._write(_STUCK, "loop_stuck", {"seconds": round(seconds, 1), "stack": stack})

    def summary(self, values: Mapping[str, Any]) -> None:
        """Write the line of a minute."""
        if self._written(_SUMMARY):
            self._write(_SUMMARY, "summary", values)

    def _written(self, line: _Line) -> bool:
        return LEVELS[line.level] >= self._least[line.subsystem]

    def _write(self, line: _Line, event: str, values: Mapping[str, Any]) -> None:
        getattr(self._log, line.level)(event, **values)


def _kind(event: Any) -> tuple[str, str, str, str]:
    route, broker, limit = (getattr(event, field, "") for field in ("route", "broker", "limit"))
    return name(event), route, broker, limit


def name(event: Event) -> str:
    """Return the event's name, such as leader_moved."""
    return name_of(type(event))


def name_of(kind: type[Event]) -> str:
    """Return the name of a kind of events."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def _values(event: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        if field.name == "answered":
            values |= _values(value)
        else:
            values[field.name] = round(value, 3) if isinstance(value, float) else value
    return values
