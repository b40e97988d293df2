"""Fetch sessions: with which leader epochs a client last asked for each partition (KIP-227)."""

from collections import OrderedDict

from proxy.apis.fetch import Topic
from proxy.apis.fetch_request import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    Asked,
    Changes,
    FetchRequest,
    read_changes,
    read_session,
)

#: A client that did not say its epoch, or said it in a session that is not known.
UNKNOWN_EPOCH = -1
#: Sessions remembered for a route; brokers keep 1000 (max.incremental.fetch.session.cache.slots)
#: and evict without a word, so the least recently used of ours goes first too.
CAPACITY = 2000


class FetchSessions:
    """The sessions of one route, by session id.

    They belong to the route and not to the link: Java keeps a session across an idle
    disconnect. An incremental request names only what changed, so the rest is remembered.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._sessions: OrderedDict[int, Asked] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def answered(self, request: bytes, session_id: int, error: int) -> None:
        """Follow a request that was answered with ``session_id`` and a top-level ``error``.

        :raises WireError: the request is not well formed.
        """
        asked_id, epoch, empty = read_session(memoryview(request))
        if error or epoch == FINAL_EPOCH:
            # After an error the client begins anew with a full fetch; the final epoch ends a
            # session, and with id 0 asks for none.
            self._sessions.pop(asked_id, None)
        elif epoch == INITIAL_EPOCH:
            self._sessions.pop(asked_id, None)
            if session_id:
                self._open(session_id, read_changes(memoryview(request)).asked)
        elif asked_id in self._sessions:
            self._sessions.move_to_end(asked_id)
            if not empty:
                self._change(self._sessions[asked_id], read_changes(memoryview(request)))

    def _open(self, session_id: int, asked: Asked) -> None:
        self._sessions[session_id] = asked
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > self._capacity:
            self._sessions.popitem(last=False)

    def _change(self, session: Asked, changes: Changes) -> None:
        session.update(changes.asked)
        for topic, partitions in changes.forgotten:
            for partition in partitions:
                session.pop((topic, partition), None)

    def epoch(self, request: FetchRequest, topic: Topic, partition: int) -> int:
        """Return the epoch that the client used for a partition, -1 where it is not known."""
        asked = request.asked.get((topic, partition))
        if asked is None:
            session = self._sessions.get(request.session_id, {})
            asked = session.get((topic, partition), UNKNOWN_EPOCH)
        return asked

    def asks_one(self, request: FetchRequest) -> bool:
        """Whether no more than one partition is asked for, with those of its session.

        False where the session is not known.
        """
        if sum(len(partitions) for _, partitions in request.topics) > 1:
            return False
        keys = set(request.asked)
        if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            session = self._sessions.get(request.session_id)
            if session is None or len(session) > 1:
                return False
            keys |= session.keys()
        return len(keys) <= 1
