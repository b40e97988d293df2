"""Drives a link as the pump does, without sockets."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.events import NotUnderstood
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.ahead import Ahead
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.flow import Flow, Pieces
from leader_hints.core.link.held import Held
from leader_hints.core.link.link import Link
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.plan import plan_for
from tests.core.samples import BROKER_3_6

#: What a held response gets; ``None`` while it stays held.
Decide = Callable[[Held], Sequence[LeaderHint | None] | None]

_GARBAGE = 0xA5


def route(mode: Mode = Mode.ON) -> Route:
    """Return a route in front of a broker of 3.6 whose versions are known."""
    return Route("route", mode, broker=BrokerState(plan=plan_for(BROKER_3_6)))


def keep(held: Held) -> None:
    """Keep every response until :meth:`Driven.release`."""


def chunks(data: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    """Cut ``data`` at positions; those beyond its end are left out."""
    at = 0
    for cut in [*sorted(cuts), len(data)]:
        if at < cut <= len(data):
            yield data[at:cut]
            at = cut


class Driven:
    """A link, and what came out at its two ends.

    ``to_broker`` and ``to_client``: all bytes so far. As with the pump, nothing is received
    from the broker while a response is held, and the shared buffer is another link's as soon
    as a step ends: here it is overwritten, so that a piece that outlives its step shows.
    ``before``: how many bytes each flow had taken before what it received last.

    With ``looks_from`` bytes that the broker has sent are looked at before they are received, and
    so many are waited for as the system would have ``room`` for.
    """

    def __init__(
        self,
        route: Route,
        *,
        decide: Decide = keep,
        budget: Budget | None = None,
        buffer_size: int = 4096,
        largest_request: int = 1 << 20,
        requests_in_flight: int = 1000,
        recovery: Recovery | None = None,
        address: str = "",
        principal: str = "",
        looks_from: int | None = None,
        room: int = 1 << 20,
    ) -> None:
        self.budget = budget or Budget(1 << 20, 1 << 22)
        self.decide = decide
        self.to_broker = bytearray()
        self.to_client = bytearray()
        self._shared = memoryview(bytearray(buffer_size))
        #: What the link has not received yet of what the broker has sent.
        self._unread = memoryview(b"")
        self._times = 0
        self.link = Link(
            route,
            1,
            self._shared,
            self.budget,
            recovery or Recovery([route]),
            largest_request=largest_request,
            requests_in_flight=requests_in_flight,
            address=address,
            principal=principal,
        )
        if looks_from is not None:
            self.link.responses.looks_from = looks_from
        self._room = room
        self._ended = False
        #: So many bytes of the broker are waited for.
        self._awaited = 0
        self._taken: dict[Flow, int] = {self.link.requests: 0, self.link.responses: 0}
        self.before = dict(self._taken)

    @property
    def held(self) -> Held | None:
        """The response that is held now."""
        return self.link.responses.held

    @property
    def not_understood(self) -> list[NotUnderstood]:
        """What was reported of messages that could not be read."""
        return [e for e in self.link.state.events if isinstance(e, NotUnderstood)]

    def up(self, data: bytes, cuts: Iterable[int] = ()) -> None:
        """Let the client send ``data`` in chunks."""
        for chunk in chunks(data, cuts):
            left = memoryview(chunk)
            while left and self.link.requests.fault is None:
                left = self._receive(self.link.requests, left, self.to_broker)

    def up_while_taken(self, data: bytes) -> bytes:
        """Let the client, which has all of ``data`` to send, do so; return what is not taken."""
        left = memoryview(data)
        while left and not self.link.crowded:
            left = self._receive(self.link.requests, left, self.to_broker)
        return bytes(left)

    def down(self, data: bytes, cuts: Iterable[int] = ()) -> None:
        """Let the broker send ``data`` in chunks."""
        for chunk in chunks(data, cuts):
            self._unread = memoryview(b"".join((self._unread, chunk)))
            self._read_broker()

    def release(self, hints: Sequence[LeaderHint | None]) -> None:
        """Let the held response go on."""
        assert self.held is not None
        self.held.give_back()  # What failed counts as reported.
        self._send(self.link.responses, self.link.responses.release(hints), self.to_client)
        self._resume(self.link.responses, self.to_client)
        self._read_broker()

    def end(self) -> None:
        """Let both ends say that they have no more to say, but for one that a fault has ended."""
        self._ended = True
        self._read_broker()
        for flow, out in (
            (self.link.requests, self.to_broker),
            (self.link.responses, self.to_client),
        ):
            if flow.fault is None:
                self._send(flow, flow.ended(), out)

    def _read_broker(self) -> None:
        responses = self.link.responses
        while True:
            while responses.held is not None:
                hints = self.decide(responses.held)
                if hints is None:
                    return
                responses.held.give_back()
                self._send(responses, responses.release(hints), self.to_client)
                self._resume(responses, self.to_client)
            if not self._unread or responses.fault is not None:
                return
            if responses.ahead is not None:
                if len(self._unread) < self._awaited and not self._ended:
                    return
                self._look(responses.ahead)
                continue
            self._unread = self._receive(responses, self._unread, self.to_client)

    def _look(self, ahead: Ahead) -> None:
        """Look at what is ahead of what has been received of the broker."""
        responses, (distance, least, most) = self.link.responses, ahead
        there = self._unread[distance : distance + most]
        self._send(responses, responses.looked(bytes(there)), self.to_client)
        self._resume(responses, self.to_client)
        waits = responses.ahead is ahead
        self._awaited = min(distance + least, self._room) if waits else 0

    def _receive(self, flow: Flow, data: memoryview, out: bytearray) -> memoryview:
        """Receive as much as there is room for; return the rest.

        Every other time bytes that go on whatever they are do so unseen, as where the pump has
        the system move them.
        """
        self._times += 1
        moved = min(flow.passing, len(data)) if self._times % 2 else 0
        if moved > 0:
            flow.passed(moved)
            self._taken[flow] += moved
            out += data[:moved]
            return data[moved:]
        buffer = flow.buffer()
        assert len(buffer) > 0
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        self.before[flow] = self._taken[flow]
        self._taken[flow] += size
        self._send(flow, flow.received(size), out)
        self._resume(flow, out)
        return data[size:]

    def _resume(self, flow: Flow, out: bytearray) -> None:
        """Let a flow have as many turns as it needs."""
        while flow.unfinished and flow.fault is None:
            self._send(flow, flow.resume(), out)

    def _send(self, flow: Flow, pieces: Pieces, out: bytearray) -> None:
        for piece in pieces:
            out += piece
        if pieces:
            flow.flushed()
        self._shared[:] = bytes([_GARBAGE]) * len(self._shared)
