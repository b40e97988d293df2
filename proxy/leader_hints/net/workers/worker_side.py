"""What a worker has in place of the parts that decide.

Tested in ``tests/net/workers/test_sides.py``.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from leader_hints.core.clock import Clock
from leader_hints.core.cluster.unknown_ids import MOST_IDS
from leader_hints.core.events import ClientSeen, Event, HintMissed, LatencySampled
from leader_hints.core.hints.recovery import Client
from leader_hints.core.route import Route
from leader_hints.core.versions.asked_versions import NOWHERE, AskedVersions, Origin
from leader_hints.core.workers.awaited import AwaitedSuccesses
from leader_hints.core.workers.messages import (
    BrokerKnown,
    BrokerMet,
    ClientFailed,
    ClientServed,
    ErrorsReported,
    EventsLost,
    FromWorker,
    Happened,
    HintsDecided,
    IdsDoubted,
    IdsLacking,
    IdsLackNames,
    IdWithheld,
    LeadersCame,
    MetadataPassed,
    MetadataTaken,
    ModeSet,
    NameSynthesized,
    TopicForgotten,
    TopicRecreated,
    TopicsAdded,
    TopicsHide,
    ToWorker,
    VersionAsked,
)
from leader_hints.net.workers.relayed_holds import RelayedHolds
from leader_hints.net.workers.told_state import ToldState
from leader_hints.net.workers.waiting_events import WaitingEvents

#: Events of which there may be as many as clients make, and which the journal has.
_MANY = (ClientSeen, HintMissed, LatencySampled)
#: Metadata responses that went by and may wait for the process that decides. It reads each for up
#: to 4 ms, and what is sent later waits behind it. Where leaders move all clients ask at once.
_MOST_PASSED = 4


class WorkerSide:
    """Joins them. ``holds``, ``events``: see there; ``recovery``: what links report of errors and
    successes.

    ``routes``: by name. ``send``: to the process that decides; ``crowded``: whether that reads too
    little, so that what can be left out is; ``behind``: whether it has not read all, so that what
    any request may cause is. ``longest``: see
    :class:`leader_hints.net.workers.relayed_holds.RelayedHolds`. ``take_later``: takes what is to
    be done in steps, between other work.
    """

    def __init__(
        self,
        routes: Mapping[str, Route],
        send: Callable[[FromWorker], None],
        crowded: Callable[[], bool],
        behind: Callable[[], bool],
        longest: float,
        take_later: Callable[[Iterator[None]], None],
        clock: Clock,
    ) -> None:
        self._routes = routes
        self._sends = send
        self._crowded = crowded
        self._behind = behind
        self._lost = 0
        #: Metadata responses that were sent, and not read yet.
        self._passed = 0
        self.events = WaitingEvents(self._send_now, behind, self._lose)
        self.holds = RelayedHolds(self._send, longest, crowded, self._lose)
        self.recovery = AwaitedSuccesses(
            [*routes.values()], clock, self._tell_failed, self._tell_served
        )
        self._state = state = ToldState(routes, self._send, take_later, clock)
        for route in routes.values():
            route.asked = _TellsAsked(route.name, self._send, behind)
            route.broker.met = partial(self._tell_met, route)
        self._takers: Mapping[type[ToWorker], Callable[..., None]] = {
            BrokerKnown: state.broker,
            ModeSet: state.mode,
            TopicsAdded: state.topics_added,
            TopicForgotten: state.topic_forgotten,
            TopicRecreated: state.topic_recreated,
            NameSynthesized: state.synthesized,
            TopicsHide: state.hide,
            IdsLackNames: state.lack_names,
            IdWithheld: state.withheld,
            LeadersCame: self._moved,
            HintsDecided: self.holds.decided,
            ErrorsReported: self.holds.reported,
            MetadataTaken: self._metadata_taken,
            ClientFailed: self._failed_elsewhere,
            ClientServed: self._served_elsewhere,
        }

    def takes(self, message: ToWorker) -> bool:
        """Take a message if it is for one of these parts; return whether it is."""
        take = self._takers.get(type(message))
        if take is None:
            return False
        take(message)
        return True

    def emit(self, event: Event) -> None:
        """Tell an event."""
        self._send(Happened(event))

    def snoop(self, route: Route, version: int, payload: bytes) -> None:
        """Send Metadata that went by, unless too much of it waits."""
        if self._passed < _MOST_PASSED and not self._crowded():
            self._passed += 1
            self._send(MetadataPassed(route.name, version, payload))

    def _metadata_taken(self, _: MetadataTaken) -> None:
        self._passed -= 1

    def lack(self, route: Route, ids: Collection[bytes], address: str) -> None:
        """Send ids that have no names. Those that are left out are used again."""
        if self._behind():
            return
        # One request may have tens of thousands, and a message is made and read in one step.
        self._send(IdsLacking(route.name, tuple(islice(ids, MOST_IDS)), address))

    def doubt(self, route: Route) -> None:
        """Tell that a client has no id for a topic."""
        self._send(IdsDoubted(route.name))

    def _send(self, message: FromWorker) -> None:
        if isinstance(message, Happened) and isinstance(message.event, _MANY):
            self.events.take(message)
        # What clients recover from is reported alone, and can be left out.
        elif not (isinstance(message, ClientFailed | ClientServed) and self._crowded()):
            self._send_now(message)

    def _send_now(self, message: FromWorker) -> None:
        if self._lost and not self._crowded():
            lost, self._lost = self._lost, 0
            self._sends(EventsLost(lost))
        self._sends(message)

    def _lose(self, events: int) -> None:
        self._lost += events

    def _tell_met(self, route: Route, maxima: Mapping[int, int]) -> None:
        self._send(BrokerMet(route.name, dict(maxima)))

    def _tell_failed(
        self, route: Route, client_id: str, api: str, failed: Sequence[tuple[str, int]]
    ) -> None:
        self._send(ClientFailed(route.name, client_id, api, tuple(failed)))

    def _tell_served(
        self, route: Route, client: Client, api: str, topic: str, partition: int
    ) -> None:
        link, client_id, software = client
        self._send(ClientServed(route.name, link, client_id, software, api, topic, partition))

    def _failed_elsewhere(self, told: ClientFailed) -> None:
        route = self._routes[told.route]
        self.recovery.failed_anywhere(route, told.client_id, told.api, told.failed)

    def _served_elsewhere(self, told: ClientServed) -> None:
        route = self._routes[told.route]
        self.recovery.served_elsewhere(route, told.client_id, told.api, told.topic, told.partition)

    def _moved(self, told: LeadersCame) -> None:
        self._state.moved(told)
        self.recovery.moved(told.cluster, told.moves)


class _TellsAsked(AskedVersions):
    """Tells which versions clients ask.

    Anybody whom a broker serves may ask what is noted each time. So where the process that decides
    has not read all they are left out, and links note again what they have noted.
    """

    def __init__(
        self, route: str, send: Callable[[FromWorker], None], behind: Callable[[], bool]
    ) -> None:
        super().__init__()
        self._route = route
        self._send = send
        self._behind = behind
        self._left_out = False

    def note(
        self, software: str, client_id: str, key: int, version: int, origin: Origin = NOWHERE
    ) -> None:
        """See there."""
        if self._behind():
            self._left_out = True
            return
        told = VersionAsked(self._route, self.day, software, client_id, key, version, origin)
        self._send(told)

    def begin_day(self, day: str) -> bool:
        """See there."""
        began = super().begin_day(day)
        if self._left_out and not self._behind():
            self._left_out, began = False, True
        return began
