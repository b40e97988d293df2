"""With which leader epochs the consumer of one response has asked.

A broker compares them with its own (KIP-320): what it has served, it has served at that epoch.

Tested in ``tests/core/replicas/test_placement.py``.
"""

from leader_hints.apis.fetch_request import Asked, read_asked
from leader_hints.apis.fetch_response import Topic
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH, FetchSessions
from leader_hints.wire.errors import WireError

#: Bytes of a request that is read: it has a thousand partitions, which take half a millisecond.
_LARGEST = 32_768


class AskedEpochs:
    """Reads the request once one of them is of interest: mostly none is."""

    __slots__ = ("_asked", "_exchange", "_session", "_sessions", "_view")

    def __init__(self, exchange: Exchange, sessions: FetchSessions, view: LeaderView) -> None:
        self._exchange = exchange
        self._sessions = sessions
        self._view = view
        self._session = 0
        self._asked: Asked | None = None

    def of(self, topic: Topic, partition: int) -> int:
        """Return the epoch of a partition in the response, -1 where it is not known."""
        if self._asked is None:
            self._asked = self._read()
        # The broker may name the topic in another way than the client.
        for alias in (topic, *self._view.topics.aliases(topic)):
            epochs = self._sessions.epochs(self._asked, self._session, [(alias, partition)])
            if epochs[0] != UNKNOWN_EPOCH:
                return epochs[0]
        return UNKNOWN_EPOCH

    def _read(self) -> Asked:
        request = self._exchange.request
        if request is None or len(request) > _LARGEST:
            return {}
        try:
            self._session, asked = read_asked(memoryview(request))
        except WireError:
            return {}
        return asked
