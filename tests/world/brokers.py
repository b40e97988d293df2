"""Brokers as processes on the network: they hear records late, hang, restart and answer bytes."""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from tests.world import wire
from tests.world.model.broker import Broker, Error
from tests.world.model.learning import metadata_first
from tests.world.model.releases import (
    API_VERSIONS,
    DESCRIBE_QUORUM,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    Release,
)
from tests.world.model.sessions import Asked, Begun, Place, Sessions
from tests.world.model.truth import Image, Leader, Topic, Truth
from tests.world.network import End, Network
from tests.world.wire import Endpoint, Hints, Request

#: How the principals of the proxies' own connections begin.
PROXY = "proxy"
#: Seconds until an answer is sent.
_SERVICE = 0.0005
_NO_NAMES: Final[Mapping[bytes, str]] = {}
#: Versions that have room for hints and their endpoints.
_HINTS_FROM = {PRODUCE: 10, FETCH: 16}


class Refusal(NamedTuple):
    """What a broker knew when it answered that it does not lead, or not at this epoch.

    ``incarnation``: of the topic that its client means. ``known``: the epoch of the leader by its
    replica, or by its Metadata where that is older; -1: none. ``native``: it gives hints itself.
    """

    at: float
    node: int
    incarnation: int
    known: int
    client_epoch: int
    native: bool = False


#: By client and correlation id, by name and partition.
Refusals = dict[tuple[str, int], dict[tuple[str, int], Refusal]]


#: By client and correlation id, by name and partition: incarnation, and the leader that served it.
#: What a follower serves is not here.
Services = dict[tuple[str, int], dict[tuple[str, int], tuple[int, Leader]]]


class Failure(NamedTuple):
    """When a broker answered with an error, and which epoch the client gave."""

    at: float
    node: int
    client_epoch: int


#: By client and correlation id, by place.
Failures = dict[tuple[str, int], dict[Place, Failure]]


class Question(NamedTuple):
    """A request of a proxy's own; ``by`` which process; ``whole``: Metadata of all topics."""

    at: float
    by: str
    key: int
    whole: bool


class BrokerProcess:
    """One broker. ``asked``: the proxy's own requests; ``accepted``: when, and of whom, connections
    were. ``refusals``: see :class:`Refusal`.

    ``endpoints``: those of addresses, by number.
    """

    def __init__(
        self,
        model: Broker,
        truth: Truth,
        network: Network,
        endpoints: Mapping[int, Endpoint],
        *,
        kraft: bool,
        refusals: Refusals,
        sessions: Sessions,
        services: Services,
        failures: Failures,
    ) -> None:
        self.model = model
        self.asked: list[Question] = []
        self.accepted: list[tuple[float, str]] = []
        self.hidden: Collection[str] = ()
        self.refusals = refusals
        self.sessions = sessions
        self.services = services
        self.failures = failures
        self._truth = truth
        self._network = network
        self._endpoints = endpoints
        self._kraft = kraft
        self.running = True
        self.hung = False
        self._life = 0
        #: Of replicas and Metadata: how many records were heard; -1: none until all are sent again.
        self._heard = [0, 0]
        self._connections: list[_Connection] = []

    @property
    def node(self) -> int:
        return self.model.node

    @property
    def maxima(self) -> Mapping[int, int]:
        """What it takes, by API key."""
        maxima = self.model.release.maxima
        return {**maxima, DESCRIBE_QUORUM: 1} if self._kraft else maxima

    @property
    def now(self) -> float:
        return self._network.schedule.now

    # What it hears.

    def hear_all(self) -> None:
        """Hear at once all that was decided."""
        for metadata in (False, True):
            self._sync(self._life, metadata)

    def will_hear(self, number: int, first_after: float, then_after: float) -> None:
        """Learn of a record, and of those before it, so many seconds later: replicas and Metadata
        one after the other, see :mod:`tests.world.model.learning`.
        """
        for whole, after in ((False, first_after), (True, then_after)):
            self._network.schedule.after(after, self._hear, self._life, number, whole)

    def _hear(self, life: int, number: int, whole: bool) -> None:
        if life != self._life or min(self._heard) < 0:
            return
        first = metadata_first(self._truth.log[number][1], self.node, kraft=self._kraft)
        self._hear_until(number + 1, metadata=first)
        self._hear_until(number + whole, metadata=not first)
        self._look_again()

    def _hear_until(self, number: int, *, metadata: bool) -> None:
        for _, record in self._truth.log[self._heard[metadata] : number]:
            self.model.hear(record, metadata=metadata)
        self._heard[metadata] = max(self._heard[metadata], number)

    def _sync(self, life: int, metadata: bool) -> None:
        if life != self._life:
            return
        self._heard[metadata] = len(self._truth.log)
        if not metadata:
            self.model.replicas = self._truth.now.copy()
            # Nothing was heard since this was there.
            self._heard[True] = self._heard[False]
        self.model.metadata = self._truth.now.copy()
        self._look_again()

    def _look_again(self) -> None:
        for connection in self._connections:
            connection.look_again()

    # Its life.

    def accept(self, end: End) -> bool:
        """Take a connection."""
        if not self.running:
            return False
        self.accepted.append((self.now, end.principal))
        self._connections.append(_Connection(self, end))
        return True

    def reset(self) -> None:
        """End all connections."""
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.end.close()

    def stop(self) -> None:
        """End the process."""
        self.running = self.hung = False
        self._life += 1
        self.reset()

    def start(self, release: Release, replicas_after: float, metadata_after: float) -> None:
        """Begin again. With ZooKeeper it knows nothing until the controller has sent it all; with
        KRaft it knows what it knew, until it has caught up.
        """
        self.running = True
        self.model.release = release
        self.sessions.evict()
        if not self._kraft:
            self._heard = [-1, -1]
            self.model.replicas, self.model.metadata = Image(), Image()
        self.will_hear_all(replicas_after, metadata_after)

    def will_hear_all(self, replicas_after: float, metadata_after: float) -> None:
        """Learn of all that was decided so many seconds later."""
        for metadata, after in ((False, replicas_after), (True, metadata_after)):
            self._network.schedule.after(after, self._sync, self._life, metadata)

    def hang(self) -> None:
        """Answer nothing any more."""
        self.hung = True

    def go_on(self) -> None:
        """Answer what has come since it hung, and what comes."""
        self.hung = False
        for connection in [*self._connections]:
            connection.serve()

    def dropped(self, connection: "_Connection") -> None:
        """Forget a connection that the other side has ended."""
        if connection in self._connections:
            self._connections.remove(connection)

    # What it answers.

    def errors(
        self,
        request: Request,
        epochs: Mapping[Place, int],
        names: Mapping[bytes, str] = _NO_NAMES,
        *,
        forgetful: bool = False,
    ) -> dict[Place, Error]:
        """Return what comes of each partition of a Produce or Fetch request.

        ``names``: those of its session. ``forgetful``: its epochs are not looked at.
        """
        errors: dict[Place, Error] = {}
        refused: dict[tuple[str, int], Refusal] = {}
        served: dict[tuple[str, int], tuple[int, Leader]] = {}
        for place, epoch in epochs.items():
            topic, number = place
            name = self._name(topic, names)
            if name is None:
                errors[place] = Error.UNKNOWN_TOPIC_ID
                continue
            if request.key == PRODUCE:
                error = self.model.produce(name, number)
            elif isinstance(topic, bytes):
                error = self.model.fetch_by_id(topic, number, epoch, name)
            else:
                known_epoch = -1 if forgetful else epoch
                error = self.model.fetch(name, number, known_epoch, request.version)
            errors[place] = error
            if error is Error.NONE:
                if served_by := self._serves(name, number):
                    served[name, number] = served_by
                continue
            shown = self.model.metadata.topics.get(name)
            known = shown if isinstance(topic, bytes) else self.model.topic(name) or shown
            if error.hinted and known:
                own = self._known_epoch(known, number)
                native = self.model.release.hints
                refused[name, number] = Refusal(
                    self.now, self.node, known.number, own, epoch, native
                )
        failed = {
            place: Failure(self.now, self.node, epochs[place])
            for place, error in errors.items()
            if error
        }
        if failed:
            self.failures[request.client_id or "", request.correlation] = failed
        if served:
            self.services[request.client_id or "", request.correlation] = served
        if refused:
            self.refusals[request.client_id or "", request.correlation] = refused
        return errors

    def _serves(self, name: str, number: int) -> tuple[int, Leader] | None:
        """Return the incarnation by its replica and itself, if it is the leader by that."""
        replica = self.model.topic(name)
        if replica is None or replica.leaders[number].node != self.node:
            return None
        return replica.number, replica.leaders[number]

    def hints(self, request: Request, errors: Mapping[Place, Error]) -> Hints:
        """Return the hints that go with errors, if this broker gives any."""
        if request.version < _HINTS_FROM[request.key] or not self.model.release.hints:
            return Hints()
        leaders = {
            place: self.model.hint(name, place[1])
            for place, error in errors.items()
            if error.hinted and (name := self._name(place[0])) is not None
        }
        nodes = {leader.node for leader in leaders.values()}
        listed = self._listed()
        return Hints(leaders, {node: listed[node] for node in sorted(nodes & listed.keys())})

    def _listed(self) -> dict[int, Endpoint]:
        alive = self.model.metadata.alive
        return {node: self._endpoints[alive[node]] for node in sorted(alive)}

    def _name(self, topic: str | bytes, names: Mapping[bytes, str] = _NO_NAMES) -> str | None:
        if isinstance(topic, str):
            return topic
        return names.get(topic) or self.model.name_of(topic)

    def begin_fetch(self, asked: Asked, version: int) -> Begun:
        """Take a Fetch request into its session."""
        by_id = version >= wire.IDS_FROM
        known = self.model.metadata.topics.values() if by_id else ()
        names = {topic.id: topic.name for topic in known}
        return self.sessions.begin(asked, names, by_id=by_id)

    def _hidden_from(self, principal: str) -> Collection[str]:
        return self.hidden if is_proxy(principal) else ()

    def _known_epoch(self, topic: Topic, partition: int) -> int:
        shown = self.model.metadata.topics.get(topic.name)
        of = [t for t in (topic, shown) if t is not None and t.number == topic.number]
        return min(
            (t.leaders[partition].epoch for t in of if partition < len(t.leaders)), default=-1
        )

    def describe(self, request: Request, principal: str) -> bytes:
        """Answer Metadata. A topic without a name is refused, with the request, below v12."""
        hidden = self._hidden_from(principal)
        names = wire.read_metadata_request(request)
        if names and "" in names:
            return wire.metadata_response(request.correlation, request.version, None, {}, ())
        topics = self.model.describe(names, hidden)
        listed = self._listed()
        return wire.metadata_response(request.correlation, request.version, "k", listed, topics)

    def offsets(self, request: Request, principal: str) -> bytes:
        """Answer ListOffsets."""
        hidden = self._hidden_from(principal)
        errors = {
            place: Error.TOPIC_AUTHORIZATION_FAILED
            if place[0] in hidden
            else self.model.list_offsets(str(place[0]), place[1], epoch)
            for place, epoch in wire.read_offsets_request(request).items()
        }
        return wire.offsets_response(request.correlation, errors)


def is_proxy(principal: str) -> bool:
    """Whether a proxy's own connection is meant."""
    return principal.startswith(PROXY)


class _Connection:
    """A connection to a broker, which answers one request after the other."""

    def __init__(self, broker: BrokerProcess, end: End) -> None:
        self.end = end
        self._broker = broker
        self._buffer = bytearray()
        self._requests: deque[Request] = deque()
        self._busy = False
        #: Looks whether a Fetch that waits must be answered now.
        self._waiting: Callable[[bool], None] | None = None
        end.taken = self._taken
        end.ended = lambda: broker.dropped(self)

    def _taken(self, data: bytes) -> None:
        self._requests += map(wire.read_request, wire.frames(self._buffer, data))
        self.serve()

    def serve(self) -> None:
        """Begin with the next request."""
        if self._requests and not self._busy and not self._broker.hung and self.end.open:
            self._busy = True
            request = self._requests.popleft()
            if is_proxy(self.end.principal):
                whole = request.key == METADATA and wire.asks_for_all(request)
                question = Question(self._broker.now, self.end.principal, request.key, whole)
                self._broker.asked.append(question)
            self._broker._network.schedule.after(_SERVICE, self._answer, request)

    def look_again(self) -> None:
        """Look at a Fetch that waits: something has changed."""
        if self._waiting is not None:
            self._waiting(False)

    def _answer(self, request: Request) -> None:
        broker, correlation = self._broker, request.correlation
        if request.key == API_VERSIONS:
            maxima = broker.maxima
            self._send(wire.versions_response(correlation, min(request.version, 3), maxima))
        elif request.key == METADATA:
            self._send(broker.describe(request, self.end.principal))
        elif request.key == LIST_OFFSETS:
            self._send(broker.offsets(request, self.end.principal))
        elif request.key == PRODUCE:
            places = wire.read_produce_request(request)
            errors = broker.errors(request, dict.fromkeys(places, -1))
            hints = broker.hints(request, errors)
            self._send(wire.produce_response(correlation, request.version, errors, hints))
        else:
            assert request.key == FETCH, request
            self._fetch(request, wire.read_fetch_request(request))

    def _fetch(self, request: Request, asked: Asked) -> None:
        broker = self._broker
        begun = broker.begin_fetch(asked, request.version)
        forgetful = begun.partial and broker.model.release.forgets_epochs
        errors: dict[Place, Error] = {}

        def look(over: bool) -> None:
            nonlocal errors
            if self._waiting is not look:
                return
            if not over:
                errors = broker.errors(request, begun.epochs, begun.names, forgetful=forgetful)
            # One of no partitions is answered at once (ReplicaManager.fetchMessages).
            if over or not errors or any(errors.values()):
                self._waiting = None
                self._send_fetched(request, begun, errors)

        self._waiting = look
        broker._network.schedule.after(asked.wait, look, True)
        look(False)

    def _send_fetched(self, request: Request, begun: Begun, errors: Mapping[Place, Error]) -> None:
        if begun.partial:
            # Without an error only what has records is named: every other partition, say.
            errors = {
                place: error
                for place, error in errors.items()
                if error or (request.correlation + place[1]) % 2
            }
        self._send(
            wire.fetch_response(
                request.correlation,
                request.version,
                errors,
                self._broker.hints(request, errors),
                error=begun.error,
                session=begun.session,
            )
        )

    def _send(self, data: bytes) -> None:
        if self._broker.hung:
            # It is sent when the process goes on; what it says was decided before.
            self._broker._network.schedule.after(0.01, self._send, data)
            return
        self.end.send(data)
        self._busy = False
        self.serve()
