"""SessionPartitions: what the fetch sessions of a route ask about, for faults (KIP-227).

An incremental Fetch names only what changed. A fault that chooses a topic must also be done to one
that names nothing, where its session has that topic.

Tested in ``tests/faults/test_request_faults.py``.
"""

from collections import OrderedDict
from collections.abc import Collection
from typing import Final

from leader_hints.apis.fetch_response import Topic

Partitions = Collection[tuple[Topic, int]]

#: Sessions that are remembered; brokers keep 1000, and the least recently used go first.
_CAPACITY: Final = 1000


class SessionPartitions:
    """Topic and partition of all that each session asks about, by its id."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[int, set[tuple[Topic, int]]] = OrderedDict()

    def begin(self, session: int, named: Partitions) -> None:
        """Remember a session that a broker has opened for a request in full."""
        self._sessions[session] = set(named)
        self._sessions.move_to_end(session)
        if len(self._sessions) > _CAPACITY:
            self._sessions.popitem(last=False)

    def change(self, session: int, named: Partitions, forgotten: Partitions) -> Partitions | None:
        """Return what an incremental request asks about; ``None``: the session is not known."""
        known = self._sessions.get(session)
        if known is None:
            return None
        known |= set(named)
        known -= set(forgotten)
        self._sessions.move_to_end(session)
        return tuple(known)
