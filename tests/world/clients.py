"""Clients as small state machines: which hints they take, when they ask for Metadata, how they back
off.

What each kind does is a row of ``KINDS``; docs/clients.md has the reports that it is taken from.
"""

import math
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tests.world import wire
from tests.world.model.broker import Error
from tests.world.model.releases import FETCH, JOIN_GROUP, METADATA, PRODUCE, RELEASES
from tests.world.model.sessions import INITIAL, Place
from tests.world.model.truth import NO_LEADER, Leader
from tests.world.network import End, Network
from tests.world.wire import Answer, Endpoint, Result

#: Seconds: between successes of one partition, until an answer must have come, until a refused
#: address is tried again, and between refreshes of Metadata without a reason.
_PERIOD = 0.15
_PATIENCE = 2.0
_RECONNECT = 0.1
_METADATA_AGE = 2.0
#: Seconds for which a Fetch may wait.
LONG_POLL = 0.5
_WAIT = int(LONG_POLL * 1000)
HINTED = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)
#: Newest version of Fetch that only leaders answer (KIP-392), and how brokers of 2.4 are known.
_LEADERS_ALONE = 10
_JOIN_GROUP_OF_2_4 = RELEASES["2.4"].maxima[JOIN_GROUP]


class Kind(NamedTuple):
    """What a client does.

    ``produce`` and ``fetch``: its newest versions. ``newer_only``: a hint at the epoch that it
    knows is ignored; ``moves_only``: if it names the same leader. ``needs_endpoints``: so is one
    without the leader's address. ``errors``: with which it takes hints. ``takes``: for which APIs.
    ``skips``: for which it does not back off then. ``backoff``: seconds until it tries a partition
    again, or asks for Metadata again. ``rewinds``: the how many-th Metadata in a row with a lower
    epoch counts. ``keeps_leader``: Metadata without a leader changes nothing. ``forgets_epoch``:
    it forgets the epoch where Metadata has neither leader nor epoch. ``spins``: errors of a Fetch
    after which it asks for the partition again without a pause. ``drops_ids``: it goes on without
    the id of a topic when Metadata has none. ``sessions``: it has fetch sessions.
    """

    name: str
    version: str
    produce: int
    fetch: int
    takes: frozenset[int]
    skips: frozenset[int]
    newer_only: bool = True
    moves_only: bool = False
    needs_endpoints: bool = False
    errors: tuple[int, ...] = HINTED
    backoff: float = 0.1
    rewinds: float = math.inf
    keeps_leader: bool = False
    forgets_epoch: bool = False
    spins: tuple[int, ...] = ()
    drops_ids: bool = True
    sessions: bool = True


_BOTH = frozenset({PRODUCE, FETCH})
_NONE: frozenset[int] = frozenset()
KINDS: Final = {
    # ProducerBatch and Fetcher: Metadata.updatePartitionLeadership takes newer epochs alone.
    # Metadata.updatePartitionLeadership takes newer epochs alone, in Sender and AbstractFetch;
    # updateLatestMetadata ignores lower epochs, and forgets the epoch where a broker gives none.
    # FetchCollector asks for Metadata upon an id that is unknown or inconsistent, and fetches on.
    "java": Kind(
        "apache-kafka-java",
        "3.9.1",
        10,
        16,
        _BOTH,
        _BOTH,
        spins=(Error.UNKNOWN_TOPIC_ID, Error.INCONSISTENT_TOPIC_ID),
        forgets_epoch=True,
    ),
    # rd_kafka_metadata_update_op takes hints and rd_kafka_toppar_leader_update Metadata if their
    # epoch is not lower; retry.backoff.ms on Produce in any case.
    "librdkafka": Kind(
        "librdkafka",
        "2.16.1",
        10,
        16,
        _BOTH,
        frozenset({FETCH}),
        newer_only=False,
        needs_endpoints=True,
        sessions=False,
    ),
    # kip951move.maybeAddFetchPartition and doMove: NOT_LEADER alone, not lower, and another leader
    # where the epoch is equal. mergeTopicPartitions: a lower epoch in Metadata counts after it was
    # ignored five times, and what has no leader stays as it was. A consumer keeps to the id of a
    # topic until the application adds it again (source.go): here it does so at once.
    "franz-go": Kind(
        "kgo",
        "v1.22.2",
        10,
        16,
        _BOTH,
        _BOTH,
        newer_only=False,
        needs_endpoints=True,
        errors=(Error.NOT_LEADER_OR_FOLLOWER,),
        moves_only=True,
        rewinds=6,
        keeps_leader=True,
        drops_ids=False,
    ),
    # ClusterMetadata.update_partition_leader takes newer epochs alone, update_metadata any.
    "kafka-python": Kind("kafka-python", "3.0.12", 9, 12, frozenset({FETCH}), _BOTH, rewinds=1),
    # As aiokafka and sarama: it knows of no hints, and believes all Metadata.
    "unhinted": Kind("sarama", "1.43.0", 8, 11, _NONE, _NONE, rewinds=1, sessions=False),
}


class Served(NamedTuple):
    """A success of one partition. ``request``: client and correlation id."""

    asked_at: float
    at: float
    request: tuple[str, int]


class Seen(NamedTuple):
    """An error as a client saw it.

    ``asked_at``: when it sent the request. ``request``: client and correlation id. ``hint``: who is
    said to lead, and ``endpoint``: where that is.
    """

    at: float
    asked_at: float
    api: int
    version: int
    request: tuple[str, int]
    place: Place
    name: str
    error: int
    hint: Leader | None
    endpoint: Endpoint | None


class Told(NamedTuple):
    """A hint that a client gets with an error of one partition between two times."""

    since: float
    until: float
    place: tuple[str, int]
    leader: Leader
    endpoint: Endpoint | None


class Waited(NamedTuple):
    """From when until when a partition has waited in vain: until its leader's connection was free,
    or for the answer to a Fetch until that connection was lost.
    """

    since: float
    until: float
    leader: Leader


class _Work:
    """A partition that a client writes to, or reads. ``again_at``: not before then.

    ``hinted_at``: when its leader was learnt from a hint, ``None``: from Metadata. ``waits``: since
    when it waits for its turn, and on which connection.
    """

    __slots__ = ("again_at", "busy", "hinted_at", "leader", "rewinds", "served", "waited", "waits")

    def __init__(self) -> None:
        self.served: list[Served] = []
        self.waited: list[Waited] = []
        self.waits: tuple[float, Leader, _Connection] | None = None
        self.forget()

    def forget(self) -> None:
        """Forget all but what was served."""
        self.leader: Leader | None = None
        self.hinted_at: float | None = None
        self.busy = False
        self.again_at = 0.0
        self.rewinds = 0

    def wait(self, now: float, connection: "_Connection") -> None:
        """Wait for a turn, or go on to."""
        assert self.leader is not None
        if self.waits is None or self.waits[1] != self.leader:
            self.wait_no_longer(now)
            self.waits = now, self.leader, connection

    def lost(self, since: float, now: float, epoch: int) -> None:
        """Take it that a Fetch gets no answer."""
        if self.leader is not None and self.leader.epoch == epoch:
            self.waited.append(Waited(since, now, self.leader))

    def wait_no_longer(self, now: float, connection: "_Connection | None" = None) -> None:
        """Wait for no turn any more; ``connection``: of that one, ``None``: of any."""
        if self.waits is not None and connection in (None, self.waits[2]):
            self.waited.append(Waited(self.waits[0], now, self.waits[1]))
            self.waits = None


@dataclass(slots=True)
class _Asked:
    """A request under way, sent ``at`` that time. ``epochs``: of the partitions it is about."""

    at: float
    key: int
    version: int
    correlation: int
    epochs: dict[Place, int]


class _Session:
    """A fetch session with one broker: which epochs it has for each partition, 0: of none.

    As Java's FetchSessionHandler and what others took from it.
    """

    def __init__(self) -> None:
        self.number, self.epoch = 0, INITIAL
        self.epochs: dict[Place, int] = {}
        self.moved: set[Place] = set()

    def ask(self, epochs: dict[Place, int], *, by_id: bool) -> tuple[dict[Place, int], list[Place]]:
        """Return what is to be asked for now, and forgotten."""
        if any(isinstance(topic, bytes) is not by_id for topic, _ in self.epochs):
            # The session is closed, and another one is attempted.
            self.epoch = INITIAL
        known, self.epochs = self.epochs, epochs
        moved, self.moved = self.moved, set()
        if self.epoch == INITIAL:
            return epochs, []
        changed = {
            place: epoch
            for place, epoch in epochs.items()
            if place in moved or known.get(place) != epoch
        }
        return changed, [place for place in known if place not in epochs]

    def take(self, answer: Answer) -> None:
        """Take an answer."""
        if answer.error == Error.FETCH_SESSION_ID_NOT_FOUND or not answer.session:
            self.number = 0
        if answer.error or not answer.session:
            self.epoch = INITIAL
            return
        self.number = answer.session
        self.epoch += 1
        # Where records came, the next offset is another one.
        self.moved |= {result.place for result in answer.results}

    def lost(self) -> None:
        """Have the session ended with the next request, and attempt another one."""
        self.epoch = INITIAL


class _Connection:
    """A client's connection: one request at a time."""

    def __init__(self, client: "Client", endpoint: Endpoint, end: End) -> None:
        self.endpoint = endpoint
        self.end = end
        self.maxima: dict[int, int] = {}
        self.asked: _Asked | None = None
        self._client = client
        self._buffer = bytearray()
        end.taken = self._taken
        end.ended = lambda: client.lost(self)

    def _taken(self, data: bytes) -> None:
        for payload in wire.frames(self._buffer, data):
            self._client.answered(self, payload)


class Client:
    """Writes to or reads all partitions of some topics, for as long as the world lasts.

    ``seen``: the errors that it saw. ``say``: takes a line for the time line. ``luck``: of what it
    draws itself: which broker it asks for Metadata, and where it is not 0, when it begins, and how
    far away brokers are: up to ``detour`` seconds further. ``delays``: seconds of which it draws
    how much later an error comes that a proxy might have held; ``late``: from when until when
    errors did. ``told``: hints that come with its errors where brokers give none.
    ``leaders_alone``: where it asks brokers of 2.4 as a proxy does for it, if it takes hints: by a
    Fetch that only leaders answer. ``turned``: when it began, was away, came back, and so on.
    """

    def __init__(
        self,
        name: str,
        kind: Kind,
        api: int,
        topics: list[str],
        network: Network,
        bootstrap: list[Endpoint],
        say: Callable[[str], None],
        luck: int = 0,
        detour: float = 0.0,
        delays: Sequence[float] = (),
        told: Sequence[Told] = (),
        leaders_alone: Collection[Endpoint] = (),
    ) -> None:
        self.name = name
        self.kind = kind
        self.api = api
        self.seen: list[Seen] = []
        self.late: list[tuple[float, float]] = []
        self.turned: list[float] = []
        self.work: dict[tuple[str, int], _Work] = {}
        self._topics = topics
        self._network = network
        self._bootstrap = bootstrap
        self._say = say
        self._luck = luck
        self._detour = detour
        self._delays = delays
        self._told = told
        self._leaders_alone = leaders_alone if FETCH in kind.takes else ()
        self._random = random.Random(f"{name} {luck}" if luck else name)
        self._correlation = 0
        self._rack = ""
        self._topic_ids: dict[str, bytes] = {}
        self._names: dict[bytes, str] = {}
        self._endpoints: dict[int, Endpoint] = {}
        self._connections: dict[Endpoint, _Connection] = {}
        self._sessions: dict[Endpoint, _Session] = {}
        self._refused: dict[Endpoint, float] = {}
        self._metadata_at = 0.0
        self._wants_metadata = True
        self._asks_metadata = False
        self._paused = True
        self._starts = 0

    def leader(self, name: str, partition: int) -> Leader | None:
        """Return a partition's leader, as this client knows."""
        work = self.work.get((name, partition))
        return work.leader if work is not None else None

    @property
    def now(self) -> float:
        return self._network.schedule.now

    def start(self) -> None:
        """Begin, or go on."""
        if self._paused:
            self._paused = False
            self.turned.append(self.now)
            self._starts += 1
            # By then all that a client does has its turn: a Fetch that waits takes longest.
            wait = self._random.random() * LONG_POLL if self._luck else 0.0
            self._network.schedule.after(wait, self._tick, self._starts)

    def pause(self) -> None:
        """Ask nothing until :meth:`start`."""
        if not self._paused:
            self.turned.append(self.now)
        self._paused = True
        for work in self.work.values():
            work.wait_no_longer(self.now)

    def begin_again(self) -> None:
        """Forget all that is known, as a process that is started again."""
        for connection in [*self._connections.values()]:
            connection.end.close()
            self.lost(connection)
        for work in self.work.values():
            work.forget()
        self._topic_ids, self._names, self._endpoints, self._refused = {}, {}, {}, {}
        self._sessions = {}
        self._metadata_at, self._wants_metadata = 0.0, True

    def _tick(self, start: int) -> None:
        if self._paused or start != self._starts:
            return
        self._act()
        self._network.schedule.after(_PERIOD, self._tick, start)

    def _act(self) -> None:
        if self._paused:
            return
        self._ask_for_metadata()
        now = self.now
        by_leader: dict[Endpoint, list[tuple[str, int]]] = {}
        for place, work in self.work.items():
            if work.busy or now < work.again_at or work.leader is None:
                continue
            endpoint = self._endpoints.get(self._reads_from(place, work.leader.node))
            if endpoint is None:
                self._wants_metadata = True
            else:
                by_leader.setdefault(endpoint, []).append(place)
        for endpoint, places in by_leader.items():
            connection = self._connection(endpoint)
            if connection is None or not connection.maxima:
                continue
            if connection.asked is None:
                self._send_work(connection, places)
                continue
            for place in places:
                self.work[place].wait(self.now, connection)

    def _reads_from(self, place: tuple[str, int], leader: int) -> int:
        """Return the node that is asked for a partition."""
        return leader

    def _takes(
        self, connection: _Connection, asked: _Asked, place: tuple[str, int], result: Result
    ) -> None:
        """Take what an answer says of a partition besides errors and hints."""

    # Connections.

    def _connection(self, endpoint: Endpoint) -> _Connection | None:
        connection = self._connections.get(endpoint)
        if connection is not None:
            return connection
        if self.now < self._refused.get(endpoint, 0.0):
            return None
        detour = self._random.random() * self._detour if self._luck else 0.0
        end = self._network.attempt(endpoint, self.name, detour)
        connection = self._connections[endpoint] = _Connection(self, endpoint, end)
        self._correlation += 1
        kind = self.kind
        asked = _Asked(self.now, 18, 3, self._correlation, {})
        request = wire.versions_request(self._correlation, self.name, kind.name, kind.version)
        self._ask(connection, asked, request)
        return connection

    def _ask(self, connection: _Connection, asked: _Asked, request: bytes) -> None:
        connection.asked = asked
        connection.end.send(request)
        self._network.schedule.after(_PATIENCE, self._expire, connection, asked)

    def _expire(self, connection: _Connection, asked: _Asked) -> None:
        if connection.asked is asked and connection.end.open:
            connection.end.close()
            self.lost(connection)

    def lost(self, connection: _Connection) -> None:
        """Go on without a connection that has ended."""
        if self._connections.get(connection.endpoint) is not connection:
            return
        del self._connections[connection.endpoint]
        self._refused[connection.endpoint] = self.now + _RECONNECT
        for work in self.work.values():
            work.wait_no_longer(self.now, connection)
        asked, connection.asked = connection.asked, None
        self._wants_metadata = True
        if asked is not None:
            if asked.key == FETCH and self.kind.sessions:
                self._session(connection).lost()
            if asked.key == METADATA:
                self._asks_metadata = False
            for place, epoch in asked.epochs.items():
                name = self._name(place)
                if asked.key == FETCH and name is not None:
                    self.work[name].lost(asked.at, self.now, epoch)
                self._back_off(name)

    def _back_off(self, place: tuple[str, int] | None) -> None:
        work = self.work.get(place) if place is not None else None
        if work is not None:
            work.busy = False
            work.again_at = self.now + self.kind.backoff
            self._network.schedule.after(self.kind.backoff, self._act)

    # Metadata.

    def _ask_for_metadata(self) -> None:
        if self._asks_metadata or self.now < self._metadata_at:
            return
        if not self._wants_metadata and self.now < self._metadata_at + _METADATA_AGE:
            return
        endpoints = [*self._endpoints.values()] or self._bootstrap
        self._random.shuffle(endpoints)
        for endpoint in endpoints:
            connection = self._connection(endpoint)
            if connection is not None and connection.maxima and connection.asked is None:
                version = min(connection.maxima[METADATA], 12)
                self._correlation += 1
                self._asks_metadata, self._wants_metadata = True, False
                asked = _Asked(self.now, METADATA, version, self._correlation, {})
                request = wire.metadata_request(version, self._correlation, self.name, self._topics)
                self._ask(connection, asked, request)
                return

    def _learn(self, version: int, payload: bytes) -> None:
        self._asks_metadata = False
        self._metadata_at = self.now + self.kind.backoff
        endpoints, topics = wire.read_metadata(version, payload)
        if not endpoints:
            self._wants_metadata = True
            return
        self._endpoints = endpoints
        for topic in topics:
            if topic.error or not topic.partitions:
                self._wants_metadata = True
                continue
            if topic.id == bytes(16) and self.kind.drops_ids:
                self._topic_ids.pop(topic.name, None)
            if topic.id != bytes(16):
                if self._topic_ids.get(topic.name, topic.id) != topic.id:
                    self._forget(topic.name)
                self._topic_ids[topic.name] = topic.id
                self._names[topic.id] = topic.name
            for partition in topic.partitions:
                self._lead((topic.name, partition.number), partition)

    def _forget(self, name: str) -> None:
        """Forget who led the partitions of a topic: it was recreated."""
        for (of, _), work in self.work.items():
            if of == name:
                work.leader = None

    def _lead(self, place: tuple[str, int], seen: wire.SeenPartition) -> None:
        work = self.work.setdefault(place, _Work())
        known, leader = work.leader, Leader(seen.leader, seen.epoch)
        if seen.error or seen.leader < 0:
            self._wants_metadata = True
            if self.kind.keeps_leader:
                return
            if seen.epoch < 0 and (self.kind.forgets_epoch or known is None):
                work.leader = None
                return
            epoch = known.epoch if seen.epoch < 0 and known is not None else seen.epoch
            leader = Leader(NO_LEADER, epoch)
        if known is not None and leader.epoch < known.epoch:
            work.rewinds += 1
            if work.rewinds < self.kind.rewinds:
                self._wants_metadata = True
                return
        work.rewinds = 0
        if known is None or known.epoch != leader.epoch:
            work.hinted_at = None
        work.leader = leader

    # Work.

    def _send_work(self, connection: _Connection, places: list[tuple[str, int]]) -> None:
        self._correlation += 1
        number, maxima = self._correlation, connection.maxima
        epochs: dict[Place, int] = {}
        newest = self.kind.produce if self.api == PRODUCE else self.kind.fetch
        version = min(maxima[self.api], newest)
        by_id = self.api == FETCH and version >= wire.IDS_FROM
        if by_id and not all(name in self._topic_ids for name, _ in places):
            version, by_id = wire.IDS_FROM - 1, False
        for name, partition in places:
            work = self.work[name, partition]
            work.wait_no_longer(self.now)
            work.busy = True
            assert work.leader is not None
            topic = self._topic_ids[name] if by_id else name
            epochs[topic, partition] = work.leader.epoch
        if self.api == PRODUCE:
            request = wire.produce_request(version, number, self.name, [*epochs])
        else:
            request = self._fetch_request(connection, version, number, epochs)
        self._ask(connection, _Asked(self.now, self.api, version, number, epochs), request)

    def _fetch_request(
        self, connection: _Connection, version: int, number: int, epochs: dict[Place, int]
    ) -> bytes:
        if not self.kind.sessions:
            return wire.fetch_request(
                version, number, self.name, epochs, wait=_WAIT, rack=self._rack
            )
        session = self._session(connection)
        asked, forgotten = session.ask(epochs, by_id=version >= wire.IDS_FROM)
        return wire.fetch_request(
            version,
            number,
            self.name,
            asked,
            session=(session.number, session.epoch),
            forgotten=forgotten,
            wait=_WAIT,
            rack=self._rack,
        )

    def _session(self, connection: _Connection) -> _Session:
        return self._sessions.setdefault(connection.endpoint, _Session())

    def _name(self, place: Place) -> tuple[str, int] | None:
        topic, partition = place
        name = self._names.get(topic) if isinstance(topic, bytes) else topic
        return (name, partition) if name is not None else None

    def answered(self, connection: _Connection, payload: bytes) -> None:
        """Take an answer: at once, or as late as if it had been held."""
        asked = connection.asked
        assert asked is not None, "an answer that nobody asked for"
        assert int.from_bytes(payload[:4]) == asked.correlation, "an answer to another request"
        if self._delays and asked.key == self.api:
            answer = wire.read_answer(asked.key, asked.version, payload)
            if any(result.error in HINTED for result in answer.results):
                until = self.now + self._random.choice(self._delays)
                self.late.append((self.now, until))
                self._network.schedule.at(until, self._go_on, connection, asked, payload)
                return
        self._go_on(connection, asked, payload)

    def _go_on(self, connection: _Connection, asked: _Asked, payload: bytes) -> None:
        if connection.asked is not asked:
            # The connection was lost meanwhile.
            return
        connection.asked = None
        if asked.key == METADATA:
            self._learn(asked.version, payload)
        elif asked.key == self.api:
            self._take(connection, asked, wire.read_answer(asked.key, asked.version, payload))
        else:
            connection.maxima = self._asked_by(connection.endpoint, wire.read_versions(payload))
        self._act()

    def _asked_by(self, endpoint: Endpoint, maxima: dict[int, int]) -> dict[int, int]:
        if endpoint in self._leaders_alone and maxima[JOIN_GROUP] == _JOIN_GROUP_OF_2_4:
            return {**maxima, FETCH: _LEADERS_ALONE}
        return maxima

    def _take(self, connection: _Connection, asked: _Asked, answer: Answer) -> None:
        session = self._session(connection) if asked.key == FETCH and self.kind.sessions else None
        partial = session is not None and session.epoch != INITIAL
        if session is not None:
            session.take(answer)
        self._take_unnamed(asked, answer, partial=partial)
        for result in answer.results:
            place = self._name(result.place)
            assert place is not None
            assert result.place in asked.epochs, "it was not asked for"
            work = self.work[place]
            work.busy = False
            self._takes(connection, asked, place, result)
            if not result.error:
                if result.preferred < 0 or result.records:
                    work.served.append(Served(asked.at, self.now, (self.name, asked.correlation)))
                work.again_at = self.now + (_PERIOD if self.api == PRODUCE else 0.0)
                continue
            self._wants_metadata = True
            hinted = self._see(asked, answer, result, place)
            if result.error not in self.kind.spins and not (hinted and self.api in self.kind.skips):
                self._back_off(place)

    def _take_unnamed(self, asked: _Asked, answer: Answer, *, partial: bool) -> None:
        """Take it that the broker serves what it does not name, and has nothing new of that."""
        named = {result.place for result in answer.results}
        for place in (place for place in asked.epochs if place not in named):
            assert partial or answer.error, "a partition is missing from the answer"
            name = self._name(place)
            assert name is not None
            work = self.work[name]
            work.busy = False
            if not answer.error:
                work.served.append(Served(asked.at, self.now, (self.name, asked.correlation)))

    def _see(self, asked: _Asked, answer: Answer, result: Result, place: tuple[str, int]) -> bool:
        """Take a hint, or not."""
        work, kind = self.work[place], self.kind
        leader, endpoints = self._hint(asked, answer, result, place)
        endpoint = endpoints.get(leader.node) if leader is not None else None
        request = self.name, asked.correlation
        self.seen.append(
            Seen(
                self.now,
                asked.at,
                self.api,
                asked.version,
                request,
                result.place,
                place[0],
                result.error,
                leader,
                endpoint,
            )
        )
        told = f", and told that {leader.node} leads at epoch {leader.epoch}" if leader else ""
        what = "write to" if self.api == PRODUCE else "read"
        error = Error(result.error).name
        self._say(f"{self.name} may not {what} {place[0]}-{place[1]}: {error}{told}")
        if leader is None or leader.node < 0:
            return False
        if self.api not in kind.takes or result.error not in kind.errors:
            return False
        if kind.needs_endpoints and leader.node not in endpoints:
            return False
        if work.leader is not None and leader.epoch < work.leader.epoch + kind.newer_only:
            return False
        if kind.moves_only and leader == work.leader:
            return False
        self._endpoints |= endpoints
        work.leader, work.hinted_at = leader, self.now
        return leader.node in self._endpoints

    def _hint(
        self, asked: _Asked, answer: Answer, result: Result, place: tuple[str, int]
    ) -> tuple[Leader | None, dict[int, Endpoint]]:
        """Return the hint of an error, and where brokers are: of the answer, or of ``told``."""
        if result.hint is not None:
            return Leader(*result.hint), answer.endpoints
        if result.error in HINTED:
            for told in reversed(self._told):
                news = told.leader.epoch > asked.epochs[result.place]
                if news and told.place == place and told.since <= self.now <= told.until:
                    at = {} if told.endpoint is None else {told.leader.node: told.endpoint}
                    return told.leader, at
        return None, {}
