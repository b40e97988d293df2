"""One broker that is asked for Metadata, over and over, on a connection of the proxy's own."""

import contextlib
import math
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

import trio

from leader_hints.address import Address
from leader_hints.apis import api_versions, list_offsets, metadata
from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.list_offsets import Partition
from leader_hints.apis.metadata import Brokers, ClusterMetadata
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster import broker_identity
from leader_hints.core.cluster.broker_identity import Probe
from leader_hints.core.cluster.doubts import Reporter, Source
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.poll_plan import PollPlan
from leader_hints.core.route import Route
from leader_hints.core.versions.plan import plan_for
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.broker_connection import BrokerConnection
from leader_hints.net.brokers.connector import Connector
from leader_hints.net.metadata.identity_looks import IdentityLooks
from leader_hints.net.metadata.peer_address import PeerAddress
from leader_hints.net.metadata.pending_questions import PendingQuestions
from leader_hints.net.metadata.reconnect_pause import ReconnectPause
from leader_hints.wire.errors import WireError
from leader_hints.wire.reader import Reader

#: A broker that lacks v3 answers UNSUPPORTED_VERSION, and is asked again.
_API_VERSIONS_TRIED = (3, 0)
#: The version of ApiVersions in which clients name themselves (KIP-511).
_WITH_NAMES = 3
#: No configuration takes hints from it.
_UNKNOWN = ClientSoftware("unknown", "0")
#: First pause until the broker's node id is looked for again; it doubles.
_IDENTIFY_SECONDS = 0.25
#: For how long a broker must have refused to be a node. What restarts knows what it leads by then,
#: and is listed: KRaft brokers answered up to 0.4 s before.
_REFUSED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PollerSettings:
    """Times in seconds; see :class:`leader_hints.settings.subscription.SubscriptionSettings`.

    ``in_sync``: the replicas in sync are of interest, too.
    """

    client: ClientSoftware
    poll: float
    answer: float
    connect: float
    reconnect_min: float
    reconnect_max: float
    slice_partitions: int
    in_sync: bool = False


class Cause(StrEnum):
    """Why a broker was asked: all that is known is due, a response is held, a client uses a topic
    id that is not known, or it is asked whether it leads."""

    POLL = "poll"
    HOLD = "hold"
    UNKNOWN_TOPIC_ID = "unknown_topic_id"
    LEADERSHIP = "leadership"


class Listener(Protocol):
    """Takes what a poller learns."""

    async def turn(self) -> None:
        """Wait until the poller may begin to connect, or act upon the end of its connection."""

    def opened(self, poller: "BrokerPoller", maxima: dict[int, int]) -> None:
        """The broker takes these versions (maximum by API key), which it tells anybody."""

    def answered(self, poller: "BrokerPoller") -> None:
        """It answers what it does not tell anybody. Said once of each connection that was opened
        with ``connected``."""

    def hints_behind(self, poller: "BrokerPoller") -> None:
        """It is not a broker that gives the hints, but another proxy."""

    def identified(self, poller: "BrokerPoller") -> None:
        """It is better known now which node is behind the poller's route, or which are not."""

    def lost(self, poller: "BrokerPoller", reason: str) -> None:
        """The connection ended, or could not be made."""

    def failed(self, error: Exception) -> None:
        """A defect of the proxy has ended a piece of the work."""

    async def learn(
        self,
        poller: "BrokerPoller",
        answer: ClusterMetadata,
        asked_at: float,
        *,
        poll: bool,
        whole: bool,
    ) -> set[str] | None:
        """Take an answer, about all topics if it is ``whole``; return the names of its topics.

        ``None``: the broker knows nothing, not even of topics that there are none.
        """

    async def forget(
        self, poller: "BrokerPoller", view: LeaderView, present: Collection[str]
    ) -> None:
        """Take note that these are all the topics that a poll of everything has found."""

    async def probe(self, poller: "BrokerPoller", view: LeaderView) -> Probe:
        """Return what to ask the broker to find out which node it is."""

    def leadership(
        self,
        poller: "BrokerPoller",
        epochs: Mapping[Partition, int],
        errors: Mapping[Partition, int],
        asked_at: float,
    ) -> None:
        """Take the broker's answer whether it leads partitions at these epochs, as error codes."""

    def refreshed(self, cause: Cause, seconds: float) -> None:
        """The broker has answered, in that time."""

    def view(self, poller: "BrokerPoller") -> LeaderView | None:
        """Return the view of the poller's cluster."""

    def listed(self, poller: "BrokerPoller") -> Brokers:
        """Return the brokers that another one behind none of our routes has listed last."""

    def sample(self, poller: "BrokerPoller") -> Collection[str]:
        """Return the topics that a poll of a broker behind none of our routes asks for."""


class BrokerPoller:
    """The broker behind ``route``, or another of its cluster: then it is ``node``.

    ``connected``: it can be asked now. ``leaving``: what it still answers does not count, it is to
    be asked on a new connection. ``strays``: it is of another cluster than the node that it is
    taken for; with the next poll it is looked whether its address leads to that one again.
    ``brokers``: what the route's own broker has listed last.
    ``unanswered_since``: when the question was sent that it has not answered; infinity if there is
    none.

    Large because each reason to ask has its own note here.
    """

    def __init__(
        self,
        address: Address,
        settings: PollerSettings,
        listener: Listener,
        *,
        route: Route | None = None,
        node: int | None = None,
        connector: Connector,
    ) -> None:
        self.address = address
        self.route = route
        self.connected = False
        self.leaving = False
        self.strays = False
        self.unanswered_since = math.inf
        self._node = node
        self._settings = settings
        self._listener = listener
        self._connector = connector
        self._pause = ReconnectPause(settings.reconnect_min, settings.reconnect_max)
        self._pending = PendingQuestions()
        self._poll_plan = PollPlan(settings.slice_partitions)
        self._looks = IdentityLooks()
        self._peer = PeerAddress()
        self.brokers = metadata.NO_BROKERS
        #: What it takes: maxima by API key, as was reported; ``None`` if it was lost since.
        self._maxima: dict[int, int] | None = None
        #: Whether what it answers next is to be reported as the first.
        self._is_new = False

    @property
    def authenticates(self) -> bool:
        """Whether it is asked with credentials."""
        return self._connector.authenticates

    @property
    def node(self) -> int | None:
        """The broker's node id, where it is proved; of another of the cluster it was said."""
        return self.route.broker.proved_node if self.route is not None else self._node

    @property
    def source(self) -> Source:
        """As whose its answers count: the node's, or that of the route where it is not proved."""
        return Source(self.node, self.route.name if self.route is not None else "")

    @property
    def reporter(self) -> Reporter:
        """What distinguishes it from other brokers."""
        return self.source.name

    def refresh(
        self,
        topics: Iterable[str],
        epochs: Mapping[Partition, int] = MappingProxyType({}),
        *,
        everything: bool = False,
    ) -> None:
        """Have ``topics`` asked for as soon as no other request is under way.

        ``epochs``: the broker is asked whether it leads these partitions at these epochs.
        ``everything``: all topics, where one is wanted whose name is not known.
        """
        self._pending.add(topics, epochs, everything=everything)

    def identify(self) -> None:
        """Have the node id of the route's broker looked for now."""
        self._pending.add(identity=True)

    def leaders_moved(self, nodes: Set[int]) -> None:
        """Have it looked for soon where partitions have moved to ``nodes``.

        The broker may lead something by now, and that alone is a proof.
        """
        broker = self.route.broker if self.route is not None else None
        if broker is None or broker.proved_node is not None or not self.connected:
            return
        if not nodes <= broker.others:
            self._looks.want(trio.current_time())
            self._pending.wake()

    def connect_by(self, connector: Connector) -> None:
        """Have its next connection made so."""
        self._connector = connector

    def reconnect(self) -> None:
        """Have the broker asked on a new connection, which may lead elsewhere than this one."""
        self.leaving = True
        self._pending.wake()

    def reached(self, peer: str = "") -> None:
        """Have it connected to soon, where that failed: somebody else has reached the broker.

        ``peer``: the IP address where that was, "" if it is not known.
        """
        self._pause.end()
        if self._peer.has_moved(peer, trio.current_time()):
            self.reconnect()

    async def run(self) -> None:
        """Ask until cancelled; connect again whenever the connection is lost."""
        while True:
            connected, reason = False, None
            try:
                connection = await self._connect()
                connected = True
                async with contextlib.aclosing(connection):
                    await self._open(connection)
                    await self._serve(connection)
            except (BrokerError, WireError) as error:
                reason = str(error)
            except Exception as error:
                # A defect of the proxy must end one connection and not all of them.
                self._listener.failed(error)
                reason = "a defect of leader-hints; see its log"
            self.connected = False
            self._peer.connected("", trio.current_time())
            if reason is not None:
                self._maxima = None
                # In turn as well: all may be lost at once, as behind a firewall that restarts.
                await self._listener.turn()
                self._listener.lost(self, reason)
            elif self.leaving:
                # Responses may be held that wait for what it answers.
                continue
            await self._pause.wait(connected=connected)

    async def _connect(self) -> BrokerConnection:
        """Connect, in turn: a cluster may have a thousand brokers, which all come back at once."""
        await self._listener.turn()
        # The address may become another one from here on.
        self.leaving = False
        return await self._connector.connect(
            self.address, self._settings.connect, self._settings.client.name, self._settings.answer
        )

    async def _open(self, connection: BrokerConnection) -> None:
        maxima: dict[int, int] = {}
        for version in _API_VERSIONS_TRIED:
            maxima = await _ask_maxima(connection, self._settings.client, version)
            if maxima:
                break
        self.connected = maxima.get(ApiKey.METADATA, -1) >= metadata.OLDEST
        self._peer.connected(connection.peer, trio.current_time())
        self._poll_plan.reset()
        if self.route is not None:
            broker_identity.presume(self.route.broker, connection.peer)
        if (self.connected and not self.strays) or maxima != self._maxima:
            # Of one that is only watched nothing else can be news.
            self._maxima = maxima
            self._is_new = self.connected
            self._listener.opened(self, maxima)

    async def _serve(self, connection: BrokerConnection) -> None:
        if not self.connected:
            await self._watch(connection)
            return
        poll_at = -math.inf
        # When it is asked which node it is because of what it has answered between two polls.
        look_at = math.inf
        identify = _IDENTIFY_SECONDS
        while not self.leaving:
            if trio.current_time() >= poll_at:
                told = await self._poll(connection)
                if self.leaving:
                    # What has woken it is over.
                    break
                if self.strays:
                    await self._watch(connection)
                    return
                # It has answered, so it takes a second question for its versions, too.
                native = poll_at == -math.inf and plan_for(self._maxima or {}).native
                if native and await _is_proxy(connection, self._settings.client):
                    self._listener.hints_behind(self)
                pause, at_latest = self._settings.poll, math.inf
                if self.route is not None and not (await self._identify(connection) and told):
                    at_latest = _next_conclusion(self.route)
                    pause = min(pause, identify)
                    identify *= 2
                # Not sooner: a broker that breaks at each poll, or at the questions which node it
                # is, must not be tried without pause.
                self._pause.reset()
                poll_at = min(trio.current_time() + pause, at_latest)
            with trio.move_on_at(min(poll_at, look_at, self._looks.at)):
                await connection.wait(self._pending.due, self._listener.turn)
            if self._looks.take(trio.current_time()) or trio.current_time() >= look_at:
                look_at = math.inf
                self.identify()
            if not self.leaving and await self._refresh(connection) and self.route is not None:
                look_at = _next_conclusion(self.route)

    async def _watch(self, connection: BrokerConnection) -> None:
        """Keep to a broker whose word on leaders cannot be relied upon, until it goes or a poll is
        due.

        What comes back in its place may be a newer one, and so may what its address leads to by
        then. Its versions are asked for on a new connection: until it has authenticated a client, a
        broker answers that once on each, and ends it at the next (SaslServerAuthenticator).
        """
        poll_at = trio.current_time() + self._settings.poll
        while not self.leaving and trio.current_time() < poll_at:
            # Nothing that it is to be asked is of use.
            self._pending.take()
            with trio.move_on_at(poll_at):
                await connection.wait(self._pending.due, self._listener.turn)
        self._pause.reset()

    async def _refresh(self, connection: BrokerConnection) -> bool:
        """Ask what is to be asked; return whether it is still open which node the broker is.

        Only if that was asked.
        """
        asked = self._pending.take()
        if asked.epochs:
            asked_at = trio.current_time()
            errors = await self._ask_whether_it_leads(connection, asked.epochs)
            self._listener.leadership(self, asked.epochs, errors, asked_at)
        if asked.everything:
            await self._ask(connection, None, Cause.UNKNOWN_TOPIC_ID)
        elif asked.topics:
            await self._ask(connection, asked.topics, Cause.HOLD)
        return asked.identity and not await self._identify(connection)

    async def _poll(self, connection: BrokerConnection) -> bool:
        """Ask for everything: of a cluster's brokers only those behind routes are polled.

        Return whether the broker knows anything. One that has just been started may not, and is to
        be asked for everything again.
        """
        if self.route is None:
            await self._ask(connection, self._listener.sample(self), Cause.POLL)
            return True
        told = True
        self._poll_plan.begin(trio.current_time(), self._settings.poll)
        for topics in self._poll_plan.poll(self._listener.view(self), self.route.name):
            present = await self._ask(connection, topics, Cause.POLL)
            told &= present is not None
            known = self._listener.view(self)
            counts = topics is None and not self._poll_plan.repeats
            if counts and present is not None and known is not None:
                await self._listener.forget(self, known, present)
            # A response may be held by now, and a poll of many slices takes longer than it may be.
            await self._refresh(connection)
        if not told:
            self._poll_plan.reset()
        return told

    async def _ask(
        self, connection: BrokerConnection, topics: Collection[str] | None, cause: Cause
    ) -> set[str] | None:
        assert self._maxima is not None
        asked_at = trio.current_time()
        version = min(self._maxima[ApiKey.METADATA], metadata.NEWEST)
        body = metadata.write_request_body(version, topics)
        reader = await self._answer(connection, ApiKey.METADATA, version, body)
        self._listener.refreshed(cause, trio.current_time() - asked_at)
        # A thousand brokers list each other: all of them share one list.
        before = self.brokers if self.route is not None else self._listener.listed(self)
        in_sync = self._settings.in_sync
        answer = metadata.read_response(reader, version, before, in_sync=in_sync)
        # No poll reports anything of brokers that are behind no route.
        poll = cause is Cause.POLL and self.route is not None and not self._poll_plan.repeats
        whole = topics is None
        return await self._listener.learn(self, answer, asked_at, poll=poll, whole=whole)

    async def _ask_whether_it_leads(
        self, connection: BrokerConnection, epochs: Mapping[Partition, int]
    ) -> dict[Partition, int]:
        asked_at = trio.current_time()
        body = list_offsets.write_request_body(epochs)
        reader = await self._answer(connection, ApiKey.LIST_OFFSETS, list_offsets.VERSION, body)
        self._listener.refreshed(Cause.LEADERSHIP, trio.current_time() - asked_at)
        return list_offsets.read_errors(reader, epochs)

    async def _answer(
        self, connection: BrokerConnection, key: ApiKey, version: int, body: bytes
    ) -> Reader:
        self.unanswered_since = trio.current_time()
        try:
            reader = await connection.ask(key, version, body)
        finally:
            self.unanswered_since = math.inf
        if self._is_new:
            self._is_new = False
            self._listener.answered(self)
        return reader

    async def _identify(self, connection: BrokerConnection) -> bool:
        """Find out the node id of the route's broker; see
        :mod:`leader_hints.core.cluster.broker_identity`.

        Return whether that is settled.
        """
        route = self.route
        assert route is not None
        view = self._listener.view(self)
        asked = await self._listener.probe(self, view) if view is not None else {}
        if asked:
            epochs = {partition: leader.epoch for partition, leader in asked.items()}
            before = _identity(route.broker)
            errors = await self._ask_whether_it_leads(connection, epochs)
            broker_identity.conclude(
                route.broker, asked, errors, trio.current_time(), _REFUSED_SECONDS
            )
            if before != _identity(route.broker):
                self._listener.identified(self)
        return broker_identity.is_settled(route.broker)


def _identity(broker: BrokerState) -> tuple[int | None, bool, frozenset[int], frozenset[int]]:
    """Return what is known of which node a broker is."""
    return broker.node, broker.guessed, broker.others, broker.former_others


def _next_conclusion(route: Route) -> float:
    """Return when the broker of ``route`` is to be asked once more which node it is, to conclude
    something from what it has answered.
    """
    now = trio.current_time()
    return broker_identity.next_conclusion(route.broker, now, _REFUSED_SECONDS)


async def _ask_maxima(
    connection: BrokerConnection, client: ClientSoftware, version: int
) -> dict[int, int]:
    """Return what is offered to ``client`` by API key; nothing if the broker lacks ``version``."""
    body = api_versions.write_request_body(client) if version else b""
    reader = await connection.ask(ApiKey.API_VERSIONS, version, body)
    ranges = api_versions.read_ranges(reader, version)
    return {key: offered.maximum for key, offered in ranges.items()}


async def _is_proxy(connection: BrokerConnection, client: ClientSoftware) -> bool:
    """Whether hints are offered to ``client`` and not to one that nobody knows.

    A broker that gives hints offers all clients the same.
    """
    offered = await _ask_maxima(connection, _UNKNOWN, _WITH_NAMES)
    # A proxy knows the client of a connection by the last name that it gave.
    await _ask_maxima(connection, client, _WITH_NAMES)
    return not plan_for(offered).native
