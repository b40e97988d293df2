"""Fetch sessions: with which leader epochs a client last asked for each partition (KIP-227)."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice

from leader_hints.apis.fetch_request import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Asked,
    Changes,
    FetchRequest,
    read_changes,
    read_session,
)
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.leader_hint import Failure

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
#: Letters of a topic's name that weigh as much as a partition. Brokers take none longer than 249,
#: but keep any in a session.
_LETTERS = 64


class FetchSessions:
    """The sessions of one route, by session id.

    They belong to the route and not to the link: Java keeps a session across an idle
    disconnect. An incremental request names only what changed, so the rest is remembered.
    """

    def __init__(self, capacity: int = CAPACITY, most_weight: int = MOST_WEIGHT) -> None:
        self._capacity = capacity
        self._most_weight = most_weight
        self._sessions: OrderedDict[int, Asked] = OrderedDict()
        #: Ids of sessions in which more than one partition has been asked for, or may have been.
        self._several: set[int] = set()
        #: Of all sessions.
        self.weight = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def answered(self, request: bytes, session_id: int, error: int) -> None:
        """Follow a request that was answered with ``session_id`` and a top-level ``error``.

        :raises WireError: the request is not well formed.
        """
        asked_id, epoch, empty = read_session(memoryview(request))
        if error or epoch == FINAL_EPOCH:
            # After an error the client begins again with a full fetch; the final epoch ends a
            # session, and with id 0 asks for none.
            self._drop(asked_id)
        elif epoch == INITIAL_EPOCH:
            self._drop(asked_id)
            if session_id:
                self._open(session_id, read_changes(memoryview(request)).asked)
        elif asked_id in self._sessions:
            self._sessions.move_to_end(asked_id)
            if not empty:
                self._change(self._sessions[asked_id], read_changes(memoryview(request)))
        elif not empty and (asked := read_changes(memoryview(request)).asked):
            # It is older than this process, or was forgotten. What the client says of it now is
            # known again: a newer epoch than the view's, say.
            self._open(asked_id, asked)
            if asked_id in self._sessions:
                self._several.add(asked_id)

    def missed(self, session_id: int) -> None:
        """Forget a session of which a request, or its answer, was not read.

        It may have changed epochs, and hints are not to be older than what the client knows.
        """
        self._drop(session_id)

    def empty(self) -> "FetchSessions":
        """Return others that are bounded in the same way, and know of no session."""
        return FetchSessions(self._capacity, self._most_weight)

    def _open(self, session_id: int, asked: Asked) -> None:
        self._drop(session_id)
        self._sessions[session_id] = asked
        self.weight += _weight(asked)
        self._fit()

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        self._several.discard(session_id)
        if session is not None:
            self.weight -= _weight(session)

    def _fit(self) -> None:
        """Drop what was unused longest, until there is room for the rest."""
        while len(self._sessions) > self._capacity or self.weight > self._most_weight:
            self._drop(next(iter(self._sessions)))

    def _change(self, session: Asked, changes: Changes) -> None:
        for topic, epochs in changes.asked.items():
            known = session.get(topic)
            if known is None:
                known = session[topic] = {}
                self.weight += _weight_of(topic)
            before = len(known)
            known.update(epochs)
            self.weight += len(known) - before
        for topic, partitions in changes.forgotten:
            known = session.get(topic)
            if known is None:
                continue
            before = len(known)
            for partition in partitions:
                known.pop(partition, None)
            self.weight += len(known) - before
            if not known:
                del session[topic]
                self.weight -= _weight_of(topic)
        self._fit()

    def epochs(self, asked: Asked, session_id: int, failures: Iterable[Failure]) -> list[int]:
        """Return the epoch that the client used for each failure, -1 where it is not known.

        ``asked``: by its last request.
        """
        nothing: dict[int, int] = {}
        session = self._sessions.get(session_id, {})
        epochs = []
        for topic, partition, *_ in failures:
            epoch = asked.get(topic, nothing).get(partition)
            if epoch is None:
                epoch = session.get(topic, nothing).get(partition, UNKNOWN_EPOCH)
            epochs.append(epoch)
        return epochs

    def asks_one(self, request: FetchRequest) -> bool:
        """Whether no more than one partition is asked for, with those of its session.

        False where the session is not known from its beginning, and once it has had more: requests
        may follow before the one that has added some is answered.
        """
        few = request.few_places
        keys = few or set()
        if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            session_id = request.session_id
            session = self._sessions.get(session_id)
            if session is None or session_id in self._several:
                return False
            keys.update(islice(_places(session), 2))
            if few is None or len(keys) > 1:
                self._several.add(session_id)
        return few is not None and len(keys) <= 1


def _places(asked: Asked) -> Iterator[tuple[Topic, int]]:
    return ((topic, partition) for topic, epochs in asked.items() for partition in epochs)


def _weight(asked: Asked) -> int:
    return sum(_weight_of(topic) + len(epochs) for topic, epochs in asked.items())


def _weight_of(topic: Topic) -> int:
    return 1 + len(topic) // _LETTERS
