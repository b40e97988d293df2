"""Wakes held responses when the view has moved or their time is over."""

import math
from collections import deque
from collections.abc import Callable, Sequence

import trio

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.events import Event
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.scheduling_delay import SchedulingDelay
from leader_hints.core.link.held import Held
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route

#: Events that are emitted in one turn, of which each costs some 50 us; a response may bring
#: thousands, and many may come in one step. And those that may wait for their turn.
_AT_ONCE = 200
_MOST_PENDING = 20_000

Settle = Callable[[list[tuple[Held, list[LeaderHint | None]]]], None]


class HoldTimer:
    """Gives the hold queue its clock.

    ``settle`` takes the responses that may go on. ``waiting``: set while a response is held, so
    that the subscription can wait for it.

    Where other tasks have much to do it gets its turn late, and no response may be held for longer
    than was promised. So it lets go as much earlier as it came late in the last second, as far as
    :meth:`leader_hints.core.hints.hold_queue.HoldQueue.review` goes along.
    """

    def __init__(self, queue: HoldQueue, emit: Callable[[Event], None]) -> None:
        self.queue = queue
        self.settle: Settle = lambda decided: None
        self.waiting = trio.Event()
        self._emit = emit
        self._pending: deque[Event] = deque()
        #: How many events may be emitted before :meth:`run` has its next turn.
        self._room = _AT_ONCE
        self._changed = trio.Event()
        self._news = False
        #: Since when :meth:`run` is to have its next turn.
        self._called_at = math.inf
        self._delay = SchedulingDelay()

    @property
    def reporting(self) -> bool:
        """Whether events wait for their turn, or will come of responses that went on."""
        return bool(self._pending or self.queue.report)

    def submit(self, held: Held) -> list[LeaderHint | None] | None:
        """See :meth:`leader_hints.core.hints.hold_queue.HoldQueue.submit`."""
        hints = self.queue.submit(held, trio.current_time())
        self._news |= self.queue.unfinished
        self._emit_decisions()
        if self.queue.busy:
            self.waiting.set()
        return hints

    def news(self) -> None:
        """Have :meth:`run` review what is held: the view may have moved.

        Answers of many brokers come at once, and one review does for all of them.
        """
        self._news = True
        self._call()

    def review(self) -> None:
        """Let go what the view's news, or the time, allow."""
        self._room = _AT_ONCE
        now = trio.current_time()
        decided = self.queue.review(now, self._delay.most(now))
        self._news = self.queue.unfinished
        if decided:
            # Before it is reported: that takes 10 ms where as much is decided as goes in one turn.
            self.settle(decided)
        self._emit_decisions()
        self._rest()

    def switch(self, route: Route, mode: Mode) -> None:
        """Change the mode of ``route``; what is held of it goes on at once."""
        route.switch(mode)
        decided = self.queue.switched(route, trio.current_time())
        self._news |= self.queue.unfinished
        self.settle(decided)
        self._emit_decisions()
        self._rest()

    def forget(self, link: int) -> None:
        """See :meth:`leader_hints.core.hints.hold_queue.HoldQueue.forget`."""
        self.queue.forget(link)
        if self.queue.unfinished:
            self.news()
        self._rest()

    async def run(self) -> None:
        """Review at each deadline, and when there is news, until cancelled."""
        while True:
            self._changed, self._called_at = trio.Event(), math.inf
            if self._news:
                # So much is due that others get their turn before the rest.
                self._call()
            deadline = self.queue.next_deadline(self._delay.most(trio.current_time()))
            due = math.inf if deadline is None else deadline
            with trio.move_on_at(due):
                await self._changed.wait()
            self._room, now = _AT_ONCE, trio.current_time()
            self._delay.came(min(due, self._called_at), now)
            if self._news or now >= due:
                self.review()

    def _call(self) -> None:
        """Have :meth:`run` take its turn."""
        self._called_at = min(self._called_at, trio.current_time())
        self._changed.set()

    def _rest(self) -> None:
        """Have nobody wait on, where nothing is held any more."""
        if self.waiting.is_set() and not self.queue.busy:
            # Only one that is set may be replaced: others would be waited for in vain.
            self.waiting = trio.Event()

    def _emit_decisions(self) -> None:
        self._call()
        events, self.queue.events = self.queue.events, []
        self.emit(events)

    def emit(self, events: Sequence[Event]) -> None:
        """Emit events: some now, the rest in turns of :meth:`run`.

        Where too many wait already, as many go as come.
        """
        self._pending += events
        waiting = len(self._pending)
        going = min(waiting, max(self._room, waiting - _MOST_PENDING))
        self._room = max(self._room - going, 0)
        for _ in range(going):
            self._emit(self._pending.popleft())
        self._news |= bool(self._pending)
        if not self._room:
            self._call()
