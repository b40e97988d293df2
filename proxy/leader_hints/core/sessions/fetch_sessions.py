"""Fetch sessions: with which leader epochs a client last asked for each partition (KIP-227)."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from leader_hints.apis.fetch_request import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SMALL,
    Asked,
    FetchRequest,
    read_changes,
    read_in_steps,
    read_session,
)
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.leader_hint import Failure
from leader_hints.wire.steps import Steps, together

_FULL = (INITIAL_EPOCH, FINAL_EPOCH)
#: The last session epoch; then they begin with 1 again.
_LAST_NUMBER: Final = 2**31 - 1
#: A client that did not say its epoch, or said it in a session that is not known.
UNKNOWN_EPOCH = -1
#: Sessions remembered for a route: as many as brokers keep
#: (max.incremental.fetch.session.cache.slots). They evict without a report, so the least
#: recently used goes first here too: those that a broker still has are used all the time.
CAPACITY = 1000
#: Weight of what is remembered, in all sessions of all routes, which have equal shares: each
#: partition and topic is one, which is some 50 to 150 bytes. A session that does not fit is not
#: followed: its epochs are not known, and no client notices.
MOST_WEIGHT = 400_000
#: Steps of reading a request that are done as one, and topics that are noted in one: the client
#: waits.
_READ_AT_ONCE = 4
_TOPICS_AT_ONCE = 1000
#: Weight of forgotten sessions that one step frees: half a millisecond. To free the most at once
#: would take twenty.
_FREED_AT_ONCE = 4000
#: Letters of a topic's name that weigh as much as a partition. Brokers take none longer than 249,
#: but keep any in a session.
_LETTERS = 64


class _Session:
    """Leader epochs by partition, by topic, and their ``weight``.

    ``several``: more than one partition has been asked for, or may have been. ``last``: the session
    epoch of the last request, 0 where that is not known.
    """

    __slots__ = ("epochs", "last", "several", "weight")

    def __init__(self) -> None:
        self.epochs: Asked = {}
        self.several = False
        self.last = 0
        self.weight = 0

    def ask(self, asked: Iterable[tuple[Topic, dict[int, int]]]) -> None:
        """Take the epochs with which partitions of topics were asked for."""
        session, weight = self.epochs, self.weight
        for topic, epochs in asked:
            if not epochs:
                # Brokers have no such topic in a session, and all of it may be looked through.
                continue
            known = session.get(topic)
            if known is None:
                session[topic] = epochs
                weight += _weight_of(topic) + len(epochs)
            else:
                before = len(known)
                known.update(epochs)
                weight += len(known) - before
        self.weight = weight

    def forget(self, forgotten: Iterable[tuple[Topic, tuple[int, ...]]]) -> None:
        """Have partitions of topics leave."""
        for topic, partitions in forgotten:
            known = self.epochs.get(topic)
            if known is None:
                continue
            before = len(known)
            for partition in partitions:
                known.pop(partition, None)
            self.weight += len(known) - before
            if not known:
                del self.epochs[topic]
                self.weight -= _weight_of(topic)


class FetchSessions:
    """The sessions of one route, by session id.

    They belong to the route and not to the link: Java keeps a session across an idle
    disconnect. An incremental request names only what changed, so the rest is remembered.

    ``moves``: a session may go on in another process, and come back. Its requests are numbered, so
    that is noticed, and what was known of it before is over.
    """

    def __init__(
        self,
        capacity: int = CAPACITY,
        most_weight: int = MOST_WEIGHT,
        *,
        moves: bool = False,
    ) -> None:
        self._moves = moves
        self._capacity = capacity
        self._most_weight = most_weight
        self._sessions: OrderedDict[int, _Session] = OrderedDict()
        #: The epochs of sessions that were forgotten, until they are freed.
        self._forgotten: list[Asked] = []
        #: Of all sessions.
        self.weight = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def answered(self, request: bytes, session_id: int, error: int) -> Steps[None] | None:
        """Follow a request that was answered with ``session_id`` and a top-level ``error``.

        Return the steps that follow a large one. Until they are done its session is not known.

        :raises WireError: the request is not well formed; the steps do, too.
        """
        self._free_some()
        asked_id, epoch, empty = read_session(memoryview(request))
        if error or epoch in _FULL:
            # After an error the client begins again with a full fetch; the final epoch ends a
            # session, and with id 0 asks for none.
            self._forget(asked_id)
            opened = session_id and epoch == INITIAL_EPOCH and not error
            return self._follow(session_id, _Session(), request) if opened else None
        if self._moves:
            self._follow_number(asked_id, epoch)
        if empty:
            if asked_id in self._sessions:
                self._sessions.move_to_end(asked_id)
            return None
        session = self._take(asked_id)
        if session is None:
            # It is older than this process, or was forgotten. What the client says of it now is
            # known again: a newer epoch than the view's, say. What it has besides is not.
            session = _Session()
            session.several = True
            session.last = epoch
        return self._follow(asked_id, session, request)

    def missed(self, session_id: int) -> None:
        """Forget a session of which a request, or its answer, was not read.

        It may have changed epochs, and hints are not to be older than what the client knows.
        """
        self._forget(session_id)

    def empty(self) -> "FetchSessions":
        """Return others that are bounded in the same way, and know of no session."""
        others = FetchSessions(self._capacity, self._most_weight, moves=self._moves)
        epochs = (session.epochs for session in self._sessions.values())
        others._forgotten = [*self._forgotten, *epochs]
        return others

    def sweep(self) -> Iterator[None]:
        """Free what was forgotten, in steps; call it about every second."""
        while self._forgotten:
            self._free_some()
            yield

    def _free_some(self) -> None:
        left = _FREED_AT_ONCE
        while self._forgotten and left > 0:
            epochs = self._forgotten[-1]
            if epochs:
                left -= 1 + len(epochs.popitem()[1])
            else:
                self._forgotten.pop()
                left -= 1

    def _follow_number(self, session_id: int, number: int) -> None:
        """Forget a session some of whose requests went elsewhere."""
        session = self._sessions.get(session_id)
        if session is None:
            return
        if number == _after(session.last):
            session.last = number
        else:
            self._forget(session_id)

    def _forget(self, session_id: int) -> None:
        """Know nothing of a session any more."""
        session = self._take(session_id)
        if session is not None:
            self._forgotten.append(session.epochs)

    def _take(self, session_id: int) -> _Session | None:
        """Take a session out, if it is known."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.weight -= session.weight
        return session

    def _follow(self, session_id: int, session: _Session, request: bytes) -> Steps[None] | None:
        """Note what a request changes in a session that is not in, and put it in."""
        if len(request) > SMALL:
            return self._follow_in_steps(session_id, session, request)
        changes = read_changes(memoryview(request))
        session.ask(changes.asked.items())
        session.forget(changes.forgotten)
        self._put(session_id, session)
        return None

    def _follow_in_steps(self, session_id: int, session: _Session, request: bytes) -> Steps[None]:
        try:
            # The step in which its response was read may have been a long one.
            yield
            read = yield from together(read_in_steps(memoryview(request)), _READ_AT_ONCE)
            asked = yield from read.asked()
            topics = iter(asked.items())
            while some := tuple(islice(topics, _TOPICS_AT_ONCE)):
                yield
                self._free_some()
                session.ask(some)
            for begin in range(0, len(read.forgotten), _TOPICS_AT_ONCE):
                yield
                self._free_some()
                session.forget(read.forgotten[begin : begin + _TOPICS_AT_ONCE])
        except BaseException:
            # It cannot be read, or its link has ended.
            self._forgotten.append(session.epochs)
            raise
        self._put(session_id, session)

    def _put(self, session_id: int, session: _Session) -> None:
        """Put a session in as the one used last; those unused longest make room."""
        self._forget(session_id)
        if session.weight > self._most_weight:
            # Without this one, all others have room.
            self._forgotten.append(session.epochs)
            return
        self._sessions[session_id] = session
        self.weight += session.weight
        while len(self._sessions) > self._capacity or self.weight > self._most_weight:
            self._forget(next(iter(self._sessions)))

    def epochs(
        self, asked: Asked, session_id: int, places: Iterable[Failure | tuple[Topic, int]]
    ) -> list[int]:
        """Return the epoch that the client used for each partition, -1 where it is not known.

        ``asked``: by its last request.
        """
        nothing: Asked = {}
        none: dict[int, int] = {}
        known = self._sessions.get(session_id)
        session = nothing if known is None else known.epochs
        epochs = []
        for topic, partition, *_ in places:
            epoch = asked.get(topic, none).get(partition)
            if epoch is None:
                epoch = session.get(topic, none).get(partition, UNKNOWN_EPOCH)
            epochs.append(epoch)
        return epochs

    def asks_one(self, request: FetchRequest) -> bool:
        """Whether no more than one partition is asked for, with those of its session.

        False where the session is not known from its beginning, and once it has had more: requests
        may follow before the one that has added some is answered.
        """
        few = request.few_places
        keys = few or set()
        if request.session_epoch not in _FULL:
            session = self._sessions.get(request.session_id)
            if session is None or session.several:
                return False
            if self._moves and request.session_epoch != _after(session.last):
                return False
            keys.update(islice(_places(session.epochs), 2))
            session.several = few is None or len(keys) > 1
        return few is not None and len(keys) <= 1


def _places(asked: Asked) -> Iterator[tuple[Topic, int]]:
    return ((topic, partition) for topic, epochs in asked.items() for partition in epochs)


def _after(number: int) -> int:
    """Return the session epoch that follows; 0 is that of a first request (FetchMetadata)."""
    return 1 if number == _LAST_NUMBER else number + 1


def _weight_of(topic: Topic) -> int:
    return 1 + len(topic) // _LETTERS
