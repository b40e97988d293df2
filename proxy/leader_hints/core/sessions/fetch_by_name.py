"""Fetch by topic ids in front of a broker that knows topics by name only (KIP-516).

A client that asks by id gets the topic of that id or an error; a broker that is asked by name
gives the topic that has the name now. So the name is looked up for each request, and looked at
again for each response. What cannot be named is answered as a broker that has ids would
answer: UNKNOWN_TOPIC_ID for a partition of a full fetch, and for a fetch session whose topics
are no longer what they were FETCH_SESSION_ID_NOT_FOUND, upon which clients begin a new one.
"""

import struct
from collections import OrderedDict
from collections.abc import Collection, Iterator

from leader_hints.apis.fetch_older import Names, Refused
from leader_hints.apis.fetch_request import FINAL_EPOCH, FetchRequest
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.sessions.fetch_sessions import CAPACITY
from leader_hints.wire.steps import ENTRIES_AT_ONCE, Steps

#: Brokers draw session ids from 1 on, so this one is answered FETCH_SESSION_ID_NOT_FOUND.
_NO_SESSION = -1
_INT32 = struct.Struct(">i")
#: Topics that are remembered of all sessions of a route together: some 50 MB.
MOST_TOPICS = 500_000
#: Names and ids of a session that are looked up in one step.
_NAMES_AT_ONCE = 400
#: Partitions of ids without a name that are noted in one step.
_NUMBERS_AT_ONCE = 4000
#: Bytes of memory that an id takes with its name.
_NAMED_MEMORY = 192
#: An id that has no name, and how many of its partitions follow.
_UNKNOWN = struct.Struct(">16si")


class _Session:
    """Ids by name as a client asked for them, last found right when ``view`` had ``forgotten``.

    ``counted``: how many of them are counted in what all sessions have.
    """

    __slots__ = ("counted", "forgotten", "ids")

    def __init__(self, ids: dict[str, bytes], forgotten: int) -> None:
        self.ids = ids
        self.forgotten = forgotten
        self.counted = 0


class FetchByName:
    """What a response needs to know: ids by name, and what was not asked for at the broker.

    ``unknown``: the latter as bytes. A client may ask for millions of partitions before it has
    authenticated, and what is kept of them must be smaller than its request.
    """

    __slots__ = ("_session", "_unknown")

    def __init__(self, session: _Session, unknown: bytes) -> None:
        self._session = session
        self._unknown = unknown

    def size(self, *, named: bool) -> int:
        """Return how many bytes of memory it takes, roughly; with the ids that are ``named``.

        Those of a session that is kept are counted there.
        """
        ids = len(self._session.ids) - self._session.counted if named else 0
        return len(self._unknown) + _NAMED_MEMORY * ids

    def _refused(self) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        at = 0
        while at < len(self._unknown):
            topic_id, count = _UNKNOWN.unpack_from(self._unknown, at)
            at += _UNKNOWN.size
            yield topic_id, struct.unpack_from(f">{count}i", self._unknown, at)
            at += count * _INT32.size

    def names(self, view: LeaderView) -> Steps[Names]:
        """Return the names as they are now, in steps."""
        ids = self._session.ids
        unknown: list[Refused] = []
        if self._unknown:
            for refused in self._refused():
                unknown.append(refused)
                if not len(unknown) % _NAMES_AT_ONCE:
                    yield
        stale: Collection[str] = ()
        if self._session.forgotten != view.topics.forgotten:
            stale = yield from _stale(ids, view)
        return Names(ids, stale, unknown)

    def opened(self, sessions: "FetchSessionsByName", session_id: int) -> None:
        """Remember the session that the broker has opened for this request."""
        sessions.keep(session_id, self._session)


class FetchSessionsByName:
    """The fetch sessions of one route that were asked for by id, by session id.

    Those used longest ago are forgotten where they are more than ``capacity``, or have more than
    ``most_topics`` together; their clients begin new ones.
    """

    def __init__(self, capacity: int = CAPACITY, most_topics: int = MOST_TOPICS) -> None:
        self._capacity = capacity
        self._most_topics = most_topics
        self._topics = 0
        self._sessions: OrderedDict[int, _Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def down(
        self, request: FetchRequest, view: LeaderView
    ) -> Steps[tuple[FetchRequest, FetchByName]]:
        """Return a request with names for its ids, and what its response needs, in steps."""
        if request.session_epoch > 0:
            return (yield from self._incremental(request, view))
        self._drop(request.session_id)
        # Before the first name is looked up: a later one may be of another time.
        session = _Session({}, view.topics.forgotten)
        ids = session.ids
        topics = []
        unknown: list[bytes] = []
        room = _NUMBERS_AT_ONCE
        for number, (topic_id, partitions) in enumerate(request.topics, 1):
            assert isinstance(topic_id, bytes)
            if not number % ENTRIES_AT_ONCE:
                yield
            name = view.topics.name(topic_id)
            if name is None:
                unknown.append(_UNKNOWN.pack(topic_id, len(partitions)))
                for begin in range(0, len(partitions), _NUMBERS_AT_ONCE):
                    some = partitions[begin : begin + _NUMBERS_AT_ONCE]
                    if len(some) > room:
                        yield
                        room = _NUMBERS_AT_ONCE
                    room -= len(some)
                    unknown.append(b"".join([raw[: _INT32.size] for raw in some]))
            else:
                ids[name] = topic_id
                topics.append((name, partitions))
        request = request._replace(topics=tuple(topics), forgotten=())
        if unknown:
            # A session would lack them, and an error is never waited for.
            request = request._replace(session_epoch=FINAL_EPOCH, max_wait=0)
        return request, FetchByName(session, b"".join(unknown))

    def _incremental(
        self, request: FetchRequest, view: LeaderView
    ) -> Steps[tuple[FetchRequest, FetchByName]]:
        session = self._sessions.get(request.session_id)
        named = None
        if session is not None:
            named = yield from self._named(request, session, view)
        if session is None or named is None:
            self._drop(request.session_id)
            lost = request._replace(session_id=_NO_SESSION, topics=(), forgotten=())
            return lost, FetchByName(_Session({}, view.topics.forgotten), b"")
        self.keep(request.session_id, session)
        return named, FetchByName(session, b"")

    def _named(
        self, request: FetchRequest, session: _Session, view: LeaderView
    ) -> Steps[FetchRequest | None]:
        """Return the request by names; ``None`` where a topic is not what it was."""
        forgotten_before = view.topics.forgotten
        if session.forgotten != forgotten_before:
            if (yield from _stale(session.ids, view)):
                return None
            session.forgotten = forgotten_before
        topics = []
        for number, (topic_id, partitions) in enumerate(request.topics, 1):
            assert isinstance(topic_id, bytes)
            if not number % ENTRIES_AT_ONCE:
                yield
            name = view.topics.name(topic_id)
            if name is None or session.ids.setdefault(name, topic_id) != topic_id:
                return None
            topics.append((name, partitions))
        forgotten = []
        for number, (topic_id, numbers) in enumerate(request.forgotten, 1):
            if not number % ENTRIES_AT_ONCE:
                yield
            name = view.topics.name(topic_id)
            if name is None:
                return None
            forgotten.append((name, numbers))
        return request._replace(topics=tuple(topics), forgotten=tuple(forgotten))

    def keep(self, session_id: int, session: _Session) -> None:
        """Remember a session that the broker has opened, as the one used last."""
        self._drop(session_id)
        self._sessions[session_id] = session
        session.counted = len(session.ids)
        self._topics += session.counted
        if session.counted > self._most_topics and len(self._sessions) > 1:
            # Without this one, all others have room: its client begins it again.
            self._drop(session_id)
        while len(self._sessions) > self._capacity or (
            self._topics > self._most_topics and len(self._sessions) > 1
        ):
            self._drop(next(iter(self._sessions)))

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._topics -= session.counted


def _stale(ids: dict[str, bytes], view: LeaderView) -> Steps[set[str]]:
    stale = set()
    # Others may ask in the same session meanwhile, and only add to it. A tuple for each of 100,000
    # would be 20 ms of this step.
    for number, name in enumerate(tuple(ids), 1):
        if view.topics.name(ids[name]) != name:
            stale.add(name)
        if not number % _NAMES_AT_ONCE:
            yield
    return stale
