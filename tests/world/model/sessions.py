"""The fetch sessions of one broker (KIP-227), as FetchManager.newContext has them."""

import random
from collections.abc import Collection, Mapping
from typing import NamedTuple

from tests.world.model.broker import Error

#: Epochs of requests for all partitions: that begins a session, that has none.
INITIAL, FINAL = 0, -1
#: A partition of a topic, given by name or id.
Place = tuple[str | bytes, int]


class Asked(NamedTuple):
    """A Fetch request. ``epochs``: the leader's, by partition; ``forgotten``: to be left out.

    ``wait``: seconds until it is answered at the latest.
    """

    session: int
    epoch: int
    epochs: Mapping[Place, int]
    forgotten: Collection[Place] = ()
    wait: float = 0.0


class Begun(NamedTuple):
    """What is to be answered to it. ``error``: to the whole. ``session``: its id, 0: none.

    ``partial``: what has not changed is left out. ``names``: of topics when they came to it.
    """

    error: Error
    session: int
    epochs: Mapping[Place, int]
    partial: bool = False
    names: Mapping[bytes, str] = {}


class _Session:
    def __init__(self, epochs: Mapping[Place, int], *, by_id: bool) -> None:
        self.epoch = 1
        self.epochs = dict(epochs)
        self.by_id = by_id
        self.names: dict[bytes, str] = {}


class Sessions:
    """``slots``: of how many sessions it keeps: others ask for all partitions again and again."""

    def __init__(self, draw: random.Random, slots: int) -> None:
        self._draw = draw
        self._slots = slots
        self._sessions: dict[int, _Session] = {}

    def evict(self) -> None:
        """Forget all: followers' sessions took their place, or the broker was started again."""
        self._sessions.clear()

    def begin(self, asked: Asked, names: Mapping[bytes, str], *, by_id: bool) -> Begun:
        """Take a request. ``names``: of topics by id, as the broker knows them now."""
        if asked.epoch in (INITIAL, FINAL):
            self._sessions.pop(asked.session, None)
            number = self._open(asked, by_id=by_id) if asked.epoch == INITIAL else 0
            if number:
                self._name(self._sessions[number], names)
            return Begun(Error.NONE, number, asked.epochs)
        session = self._sessions.get(asked.session)
        if session is None:
            return Begun(Error.FETCH_SESSION_ID_NOT_FOUND, 0, {})
        if session.epoch != asked.epoch:
            return Begun(Error.INVALID_FETCH_SESSION_EPOCH, 0, {})
        if session.by_id is not by_id:
            return Begun(Error.FETCH_SESSION_TOPIC_ID_ERROR, 0, {})
        session.epochs |= asked.epochs
        for place in asked.forgotten:
            session.epochs.pop(place, None)
        if not session.epochs:
            del self._sessions[asked.session]
            return Begun(Error.NONE, 0, {})
        session.epoch += 1
        self._name(session, names)
        return Begun(Error.NONE, asked.session, dict(session.epochs), True, session.names)

    def _open(self, asked: Asked, *, by_id: bool) -> int:
        if len(self._sessions) >= self._slots:
            return 0
        number = self._draw.randint(1, (1 << 31) - 1)
        self._sessions[number] = _Session(asked.epochs, by_id=by_id)
        return number

    def _name(self, session: _Session, names: Mapping[bytes, str]) -> None:
        """Name what has no name yet: a topic keeps the one that it had."""
        for topic, _ in session.epochs:
            if isinstance(topic, bytes) and topic in names:
                session.names.setdefault(topic, names[topic])
