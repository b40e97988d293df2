"""Wakes held responses when the view has moved or their time is over."""

import math
from collections.abc import Callable

import trio

from proxy.apis.leader_hint import LeaderHint
from proxy.core.desk import Desk
from proxy.core.events import Event
from proxy.core.held import Held
from proxy.core.mode import Mode
from proxy.core.route import Route

#: The largest share of the deadline that a hold is cut short by, however late the keeper came, and
#: for how many seconds it is remembered that it did.
_MOST_AHEAD = 0.25
_REMEMBERED = 1.0

Settle = Callable[[list[tuple[Held, list[LeaderHint | None]]]], None]


class HoldKeeper:
    """Gives the desk its clock.

    ``settle`` takes the responses that may go on. ``waiting``: set while a response is held, so
    that the subscription can wait for it.

    Where other tasks have much to do it gets its turn late, and no response may be held for longer
    than was promised. So it lets go as much earlier as it came late in the last second.
    """

    def __init__(self, desk: Desk, emit: Callable[[Event], None]) -> None:
        self.desk = desk
        self.settle: Settle = lambda decided: None
        self.waiting = trio.Event()
        self._emit = emit
        self._changed = trio.Event()
        self._news = False
        #: When there was news first that is not reviewed yet.
        self._news_at = math.inf
        self._ahead = 0.0
        self._ahead_until = -math.inf

    def submit(self, held: Held) -> list[LeaderHint | None] | None:
        """See :meth:`proxy.core.desk.Desk.submit`."""
        hints = self.desk.submit(held, trio.current_time())
        self._tell()
        if self.desk.busy:
            self.waiting.set()
        return hints

    def news(self) -> None:
        """Have :meth:`run` review what is held: the view may have moved.

        Answers of many brokers come at once, and one review does for all of them.
        """
        self._news = True
        self._news_at = min(self._news_at, trio.current_time())
        self._changed.set()

    def review(self) -> None:
        """Let go what the view's news, or the time, allow."""
        decided = self.desk.review(trio.current_time(), self._ahead)
        self._news = self.desk.unfinished
        self._news_at = trio.current_time() if self._news else math.inf
        self._tell()
        self._rest()
        if decided:
            self.settle(decided)

    def switch(self, route: Route, mode: Mode) -> None:
        """Change the mode of ``route``; what is held of it goes on at once."""
        route.switch(mode)
        decided = self.desk.switched(route, trio.current_time())
        self._tell()
        self._rest()
        self.settle(decided)

    def forget(self, link: int) -> None:
        """See :meth:`proxy.core.desk.Desk.forget`."""
        self.desk.forget(link)
        self._rest()

    async def run(self) -> None:
        """Review at each deadline, and when there is news, until cancelled."""
        while True:
            self._changed = trio.Event()
            if self._news:
                # So much is due that others get their turn before the rest.
                self._changed.set()
            if trio.current_time() >= self._ahead_until:
                self._ahead = 0.0
            deadline = self.desk.next_deadline(self._ahead)
            due = math.inf if deadline is None else deadline
            with trio.move_on_at(due) as scope:
                await self._changed.wait()
            if scope.cancelled_caught or self._news:
                self._came(min(due, self._news_at))
                self.review()

    def _came(self, due: float) -> None:
        """Note how late the turn comes that was due then."""
        now = trio.current_time()
        if now - due > self._ahead:
            self._ahead = min(now - due, _MOST_AHEAD * self.desk.rules.deadline)
            self._ahead_until = now + _REMEMBERED

    def _rest(self) -> None:
        """Have nobody wait on, where nothing is held any more."""
        if self.waiting.is_set() and not self.desk.busy:
            # Only one that is set may be replaced: others would be waited for in vain.
            self.waiting = trio.Event()

    def _tell(self) -> None:
        self._changed.set()
        events, self.desk.events = self.desk.events, []
        for event in events:
            self._emit(event)
