"""A worker's error responses, which the process that decides judges.

That has the only hold queue and the only view: so all workers give the same hints, and bounds of
what is held hold for all of them together.

Tested in ``tests/net/workers/test_sides.py``.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import trio

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.events import Event
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.workers.messages import (
    MOST_ENTRIES,
    ErrorsCame,
    ErrorsReported,
    Failing,
    FromWorker,
    Happened,
    HintsDecided,
    LinkEnded,
    MoreErrors,
)

#: Seconds beyond the longest hold after which a response goes on although nothing was decided. The
#: process that decides has let go of it, or has a long step.
_MARGIN: Final = 0.1
#: Responses that go on so in one step: all links may have one.
_LET_GO_AT_ONCE: Final = 50
#: What a message costs that has no entries, in entries of a message.
_MESSAGE: Final = 10

_ERRORS: Final = (ErrorsCame, MoreErrors)
Settle = Callable[[list[tuple[Held, list[LeaderHint | None]]]], None]


class _Waiting:
    """A response that waits. ``latest``: when it goes on; ``hints``: those that have come."""

    __slots__ = ("held", "hints", "latest")

    def __init__(self, held: Held, latest: float) -> None:
        self.held = held
        self.latest = latest
        self.hints: list[LeaderHint | None] = []


class RelayedHolds:
    """See :class:`leader_hints.net.pump.holds.Holds`.

    ``send``: to the process that decides. ``longest``: seconds for which it holds a response at
    most. ``crowded``: whether it reads too little; then ``lose`` takes how many errors it is not
    told. ``settle``: takes the responses that may go on. ``waiting``: see there.
    """

    def __init__(
        self,
        send: Callable[[FromWorker], None],
        longest: float,
        crowded: Callable[[], bool],
        lose: Callable[[int], None],
    ) -> None:
        self.settle: Settle = lambda decided: None
        self.waiting = trio.Event()
        self._send = send
        self._crowded = crowded
        self._lose = lose
        self._longest = longest + _MARGIN
        self._numbers = 0
        #: Those that wait.
        self._held: dict[int, _Waiting] = {}
        #: Which one waits of a link: one at most, since nothing behind it is read meanwhile.
        self._of_link: dict[int, int] = {}
        #: Those whose failures are not reported yet.
        self._reserved: dict[int, Held] = {}
        #: When each goes on at the latest, in that order.
        self._latest: deque[tuple[float, int]] = deque()
        self._some = trio.Event()
        #: What takes several turns to be sent, and what is to come behind it.
        self._unsent: deque[Iterator[FromWorker]] = deque()
        self._sends = trio.Event()

    def submit(self, held: Held) -> list[LeaderHint | None] | None:
        """Have a response judged; return its hints if it does not wait for that."""
        failures = held.scanned.failures
        if self._crowded():
            # What is decided by then comes too late, and what waits is bounded: with more of it
            # this process would end.
            self._lose(len(failures))
            held.give_back()
            return [None] * len(failures)
        self._numbers += 1
        number = self._numbers
        waits = held.refusal is None and not held.observed
        self._reserved[number] = held
        self._tell(number, held)
        if not waits:
            return [None] * len(failures)
        latest = trio.current_time() + self._longest
        self._held[number] = _Waiting(held, latest)
        self._of_link[held.link.number] = number
        self._latest.append((latest, number))
        self.waiting.set()
        self._some.set()
        return None

    def forget(self, link: int) -> None:
        """Say that a link has ended: what is held of it is dropped there."""
        number = self._of_link.get(link)
        if number is not None:
            self._drop(number)
        self.send(LinkEnded(link))

    def emit(self, events: Sequence[Event]) -> None:
        """Send events of links; they come behind all that was said before."""
        for event in events:
            self.send(Happened(event))

    def send(self, message: FromWorker) -> None:
        """Send a message, behind all that was said of responses."""
        if self._unsent:
            self._unsent.append(iter((message,)))
        else:
            self._send(message)

    def send_some(self) -> bool:
        """Send some of what takes several turns; return whether there may be more."""
        left = MOST_ENTRIES
        while self._unsent and left > 0:
            message = next(self._unsent[0], None)
            if message is None:
                self._unsent.popleft()
                continue
            left -= len(message.failing) if isinstance(message, _ERRORS) else _MESSAGE
            self._send(message)
        return bool(self._unsent)

    def decided(self, message: HintsDecided) -> None:
        """Take the hints of a response, or some of them.

        What is read late was decided early, as when this process had been stopped: by what may not
        be known any more.
        """
        waiting = self._held.get(message.response)
        if waiting is None:
            return
        if trio.current_time() >= waiting.latest:
            self._go_on(message.response, [])
            return
        waiting.hints += message.hints
        if message.last:
            self._go_on(message.response, waiting.hints)

    def reported(self, message: ErrorsReported) -> None:
        """Take it that what failed in a response was reported."""
        held = self._reserved.pop(message.response, None)
        if held is not None:
            held.give_back()

    async def run(self) -> None:
        """Let responses go on whose time is over, and send what takes several turns, until
        cancelled.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send_rest)
            await self._let_late_go()

    async def _send_rest(self) -> None:
        while True:
            while self.send_some():
                await trio.lowlevel.checkpoint()
            self._sends = trio.Event()
            await self._sends.wait()

    async def _let_late_go(self) -> None:
        while True:
            while self._latest:
                await trio.sleep_until(self._latest[0][0])
                self._let_go()
            await self._some.wait()
            self._some = trio.Event()

    def _let_go(self) -> None:
        """Let responses go on without hints whose time is over: some of them."""
        left = _LET_GO_AT_ONCE
        while self._latest and left:
            at, number = self._latest[0]
            waits = number in self._held
            if waits and trio.current_time() < at:
                return
            self._latest.popleft()
            if waits:
                self._go_on(number, [])
                left -= 1

    def _go_on(self, number: int, hints: list[LeaderHint | None]) -> None:
        held = self._held[number].held
        self._drop(number)
        missing = len(held.scanned.failures) - len(hints)
        self.settle([(held, hints + [None] * missing)])

    def _drop(self, number: int) -> None:
        waiting = self._held.pop(number)
        del self._of_link[waiting.held.link.number]
        if not self._held:
            # Others may wait for the one that was set.
            self.waiting = trio.Event()

    def _tell(self, number: int, held: Held) -> None:
        link, failures = held.link, held.scanned.failures
        assert isinstance(link, LinkState)
        came = ErrorsCame(
            response=number,
            link=link.number,
            route=link.route.name,
            key=int(held.key),
            version=held.version,
            client_id=link.client.id or "",
            software=link.client.software,
            refused=held.refusal is not None,
            observed=held.observed,
            carries=held.scanned.carries,
            unhinted=held.unhinted or "",
            total=len(failures),
            failing=_failing(held, 0),
        )
        self.send(came)
        if len(failures) > MOST_ENTRIES:
            self._unsent.append(_rest(number, held))
            self._sends.set()


def _rest(number: int, held: Held) -> Iterator[FromWorker]:
    for begin in range(MOST_ENTRIES, len(held.scanned.failures), MOST_ENTRIES):
        yield MoreErrors(number, _failing(held, begin))


def _failing(held: Held, begin: int) -> tuple[Failing, ...]:
    end = begin + MOST_ENTRIES
    some = zip(held.scanned.failures[begin:end], held.epochs[begin:end], strict=True)
    return tuple(
        Failing(failure.topic, failure.partition, failure.error, epoch) for failure, epoch in some
    )
