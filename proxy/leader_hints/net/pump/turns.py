"""For how long sockets are served before other tasks get their turn."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from leader_hints.net.pump.holds import Holds

#: Seconds of a turn. To be woken by Trio costs more than to relay a small message, so a turn is
#: long where no other task waits for its own.
_TURN = 0.015
#: The same where one does: while a response is held, since its hint comes through Trio, and while
#: a client's connection is being made.
_SHORT_TURN = 0.0005
#: Seconds that the next bytes are waited for within a long turn.
_MOMENT = 0.01


class Turns:
    """Decides when a turn ends. ``called``: in this turn another task's descriptor was ready."""

    __slots__ = ("_hold_timer", "_urgent", "called")

    def __init__(self, hold_timer: Holds) -> None:
        self._hold_timer = hold_timer
        self._urgent = 0
        self.called = False

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """Have turns short meanwhile: another task has something to do that must not wait."""
        self._urgent += 1
        try:
            yield
        finally:
            self._urgent -= 1

    def begin(self) -> float:
        """Return when a turn begins: now."""
        self.called = False
        return monotonic()

    def is_over(self, begun: float) -> bool:
        """Whether a turn that has begun then has taken long enough."""
        awaited = self._urgent or self._hold_timer.waiting.is_set()
        return monotonic() - begun >= (_SHORT_TURN if awaited else _TURN)

    @property
    def wait(self) -> float:
        """Seconds that the next bytes may be waited for."""
        awaited = self._urgent or self._hold_timer.waiting.is_set()
        return 0.0 if awaited else _MOMENT
