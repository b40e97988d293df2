"""A client that uses topic ids which nobody has, as anybody may before it has authenticated.

Where ids are synthetic it gives none at all, as a client does that has learnt of the topic from a
broker without ids. Where brokers know of ids it also asks for Metadata in a way that they refuse.
"""

import random

from tests.world import wire
from tests.world.network import End, Network
from tests.world.wire import Endpoint

#: Seconds between two of its requests, and until it connects again.
_PERIOD = 0.01
_RECONNECT = 0.2
_SOFTWARE = "kgo", "v1.22.2"
_FETCH = 16
#: A version of Metadata in which brokers refuse topics by id; which of its requests are of that.
_METADATA = 10
_REFUSED_IN = 20
_NO_ID = bytes(16)


class Rogue:
    """``unnamed``: it gives no ids. ``refused``: it has brokers refuse requests."""

    def __init__(
        self, seed: int, network: Network, endpoint: Endpoint, *, unnamed: bool, refused: bool
    ) -> None:
        self._random = random.Random(f"{seed} rogue")
        self._network = network
        self._endpoint = endpoint
        self._unnamed = unnamed
        self._refused = refused
        self._correlation = 0
        self._running = False
        self._end: End | None = None

    def start(self) -> None:
        """Begin."""
        self._running = True
        self._connect()

    def stop(self) -> None:
        """End for good."""
        self._running = False
        if self._end is not None:
            self._end.close()

    def _connect(self) -> None:
        if not self._running:
            return
        self._end = self._network.connect(self._endpoint, "rogue")
        if self._end is None:
            self._network.schedule.after(_RECONNECT, self._connect)
            return
        self._end.ended = lambda: self._network.schedule.after(_RECONNECT, self._connect)
        self._end.send(wire.versions_request(self._next(), "rogue", *_SOFTWARE))
        self._network.schedule.after(_PERIOD, self._ask, self._end)

    def _ask(self, end: End) -> None:
        if end.open:
            topic_id = _NO_ID if self._unnamed else self._random.randbytes(16)
            end.send(wire.fetch_request(_FETCH, self._next(), "rogue", {(topic_id, 0): 0}))
            if self._refused and not self._correlation % _REFUSED_IN:
                end.send(wire.metadata_request(_METADATA, self._next(), "rogue", [None]))
            self._network.schedule.after(_PERIOD, self._ask, end)

    def _next(self) -> int:
        self._correlation += 1
        return self._correlation
