"""Clients as small state machines: which hints they take, when they ask for Metadata, how they back
off.

What each kind does is a row of ``KINDS``; docs/clients.md has the reports that it is taken from.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from tests.world import wire
from tests.world.model.broker import Error
from tests.world.model.releases import FETCH, METADATA, PRODUCE
from tests.world.model.truth import Leader
from tests.world.network import End, Network
from tests.world.wire import Answer, Endpoint, Place, Result

#: Seconds: between successes of one partition, until an answer must have come, until a refused
#: address is tried again, and between refreshes of Metadata without a reason.
_PERIOD = 0.15
#: Within so many seconds all that a client does has its turn: the longest is a Fetch that waits.
_LONGEST_TURN = 0.5
_PATIENCE = 2.0
_RECONNECT = 0.1
_METADATA_AGE = 2.0
_HINTED = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)


class Kind(NamedTuple):
    """What a client does.

    ``produce`` and ``fetch``: its newest versions. ``newer_only``: a hint at the epoch that it
    knows is ignored. ``needs_endpoints``: so is one without the leader's address. ``errors``: with
    which it takes hints. ``takes``: for which APIs. ``skips``: for which it does not back off then.
    ``backoff``: seconds until it tries a partition again, or asks for Metadata again. ``rewinds``:
    Metadata with a lower epoch is ignored so many times. ``spins``: errors of a Fetch after which
    it asks for the partition again without a pause. ``drops_ids``: it goes on without the id of a
    topic when Metadata has none.
    """

    name: str
    version: str
    produce: int
    fetch: int
    takes: frozenset[int]
    skips: frozenset[int]
    newer_only: bool = True
    needs_endpoints: bool = False
    errors: tuple[int, ...] = _HINTED
    backoff: float = 0.1
    rewinds: float = math.inf
    spins: tuple[int, ...] = ()
    drops_ids: bool = True


_BOTH = frozenset({PRODUCE, FETCH})
_NONE: frozenset[int] = frozenset()
KINDS: Final = {
    # ProducerBatch and Fetcher: Metadata.updatePartitionLeadership takes newer epochs alone.
    # AbstractFetch asks for Metadata upon UNKNOWN_TOPIC_ID, and fetches on.
    "java": Kind(
        "apache-kafka-java", "3.9.1", 10, 16, _BOTH, _BOTH, spins=(Error.UNKNOWN_TOPIC_ID,)
    ),
    # rd_kafka_handle_metadata_update_topic: not lower; retry.backoff.ms on Produce in any case.
    "librdkafka": Kind(
        "librdkafka",
        "2.16.1",
        10,
        16,
        _BOTH,
        frozenset({FETCH}),
        newer_only=False,
        needs_endpoints=True,
    ),
    # kgo: NOT_LEADER alone, not lower; a lower epoch in Metadata counts after five times.
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
        rewinds=5,
        drops_ids=False,
    ),
    "kafka-python": Kind("kafka-python", "3.0.12", 9, 12, frozenset({FETCH}), _BOTH),
    # As aiokafka and sarama: it knows of no hints.
    "unhinted": Kind("sarama", "1.43.0", 8, 11, _NONE, _NONE),
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


class _Work:
    """A partition that a client writes to, or reads. ``again_at``: not before then.

    ``hinted_at``: when its leader was learnt from a hint, ``None``: from Metadata.
    """

    __slots__ = ("again_at", "busy", "hinted_at", "leader", "rewinds", "served")

    def __init__(self) -> None:
        self.served: list[Served] = []
        self.forget()

    def forget(self) -> None:
        """Forget all but what was served."""
        self.leader: Leader | None = None
        self.hinted_at: float | None = None
        self.busy = False
        self.again_at = 0.0
        self.rewinds = 0


@dataclass(slots=True)
class _Asked:
    """A request under way, sent ``at`` that time. ``epochs``: of the partitions it is about."""

    at: float
    key: int
    version: int
    correlation: int
    epochs: dict[Place, int]


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
        self._buffer += data
        for payload in wire.frames(self._buffer):
            self._client.answered(self, payload)


class Client:
    """Writes to or reads all partitions of some topics, for as long as the world lasts.

    ``seen``: the errors that it saw. ``say``: takes a line for the time line. ``luck``: of what it
    draws itself: which broker it asks for Metadata, and where it is not 0, when it begins.
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
    ) -> None:
        self.name = name
        self.kind = kind
        self.api = api
        self.seen: list[Seen] = []
        self.work: dict[tuple[str, int], _Work] = {}
        self._topics = topics
        self._network = network
        self._bootstrap = bootstrap
        self._say = say
        self._luck = luck
        self._random = random.Random(f"{name} {luck}" if luck else name)
        self._correlation = 0
        self._topic_ids: dict[str, bytes] = {}
        self._names: dict[bytes, str] = {}
        self._endpoints: dict[int, Endpoint] = {}
        self._connections: dict[Endpoint, _Connection] = {}
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
            self._starts += 1
            wait = self._random.random() * _LONGEST_TURN if self._luck else 0.0
            self._network.schedule.after(wait, self._tick, self._starts)

    def pause(self) -> None:
        """Ask nothing until :meth:`start`."""
        self._paused = True

    def begin_again(self) -> None:
        """Forget all that is known, as a process that is started again."""
        for connection in [*self._connections.values()]:
            connection.end.close()
            self.lost(connection)
        for work in self.work.values():
            work.forget()
        self._topic_ids, self._names, self._endpoints, self._refused = {}, {}, {}, {}
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
        by_leader: dict[Endpoint, list[tuple[str, int]]] = {}
        for place, work in self.work.items():
            if work.busy or self.now < work.again_at or work.leader is None:
                continue
            endpoint = self._endpoints.get(work.leader.node)
            if endpoint is None:
                self._wants_metadata = True
            else:
                by_leader.setdefault(endpoint, []).append(place)
        for endpoint, places in by_leader.items():
            connection = self._connection(endpoint)
            if connection is not None and connection.asked is None and connection.maxima:
                self._send_work(connection, places)

    # Connections.

    def _connection(self, endpoint: Endpoint) -> _Connection | None:
        connection = self._connections.get(endpoint)
        if connection is not None:
            return connection
        if self.now < self._refused.get(endpoint, 0.0):
            return None
        end = self._network.connect(endpoint, self.name)
        if end is None:
            self._refused[endpoint] = self.now + _RECONNECT
            self._wants_metadata = True
            return None
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
        asked, connection.asked = connection.asked, None
        self._wants_metadata = True
        if asked is not None:
            if asked.key == METADATA:
                self._asks_metadata = False
            for place in asked.epochs:
                self._back_off(self._name(place))

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
        if seen.error or seen.leader < 0:
            self._wants_metadata = True
            return
        known = work.leader
        if known is not None and seen.epoch < known.epoch:
            work.rewinds += 1
            if work.rewinds < self.kind.rewinds:
                self._wants_metadata = True
                return
        work.rewinds = 0
        if work.leader is None or work.leader.epoch != seen.epoch:
            work.hinted_at = None
        work.leader = Leader(seen.leader, seen.epoch)

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
            work.busy = True
            assert work.leader is not None
            topic = self._topic_ids[name] if by_id else name
            epochs[topic, partition] = work.leader.epoch
        if self.api == PRODUCE:
            request = wire.produce_request(version, number, self.name, [*epochs])
        else:
            request = wire.fetch_request(version, number, self.name, epochs)
        self._ask(connection, _Asked(self.now, self.api, version, number, epochs), request)

    def _name(self, place: Place) -> tuple[str, int] | None:
        topic, partition = place
        name = self._names.get(topic) if isinstance(topic, bytes) else topic
        return (name, partition) if name is not None else None

    def answered(self, connection: _Connection, payload: bytes) -> None:
        """Take an answer."""
        asked, connection.asked = connection.asked, None
        assert asked is not None, "an answer that nobody asked for"
        assert int.from_bytes(payload[:4]) == asked.correlation, "an answer to another request"
        if asked.key == METADATA:
            self._learn(asked.version, payload)
        elif asked.key == self.api:
            self._take(asked, wire.read_answer(asked.key, asked.version, payload))
        else:
            connection.maxima = wire.read_versions(payload)
        self._act()

    def _take(self, asked: _Asked, answer: Answer) -> None:
        for result in answer.results:
            place = self._name(result.place)
            assert place is not None
            assert result.place in asked.epochs, "it was not asked for"
            work = self.work[place]
            work.busy = False
            if not result.error:
                work.served.append(Served(asked.at, self.now, (self.name, asked.correlation)))
                work.again_at = self.now + (_PERIOD if self.api == PRODUCE else 0.0)
                continue
            self._wants_metadata = True
            hinted = self._see(asked, answer, result, place)
            if result.error not in self.kind.spins and not (hinted and self.api in self.kind.skips):
                self._back_off(place)
        missing = asked.epochs.keys() - {result.place for result in answer.results}
        assert not missing, "a partition is missing from the answer"

    def _see(self, asked: _Asked, answer: Answer, result: Result, place: tuple[str, int]) -> bool:
        """Take a hint, or not."""
        work, kind = self.work[place], self.kind
        leader = Leader(*result.hint) if result.hint is not None else None
        endpoint = answer.endpoints.get(leader.node) if leader is not None else None
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
        if leader is None:
            return False
        if self.api not in kind.takes or result.error not in kind.errors:
            return False
        if kind.needs_endpoints and leader.node not in answer.endpoints:
            return False
        if work.leader is not None and leader.epoch < work.leader.epoch + kind.newer_only:
            return False
        self._endpoints |= answer.endpoints
        work.leader, work.hinted_at = leader, self.now
        return leader.node in self._endpoints
