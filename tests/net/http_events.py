"""How much of HTTP is taken before others get their turn."""

from typing import Any

import h11
import pytest
import trio


class HttpEvents(trio.abc.Instrument):
    """Counts events of HTTP that are taken at most: ``in_step``, in one step of any task;
    ``in_round``, by all tasks in one round of the event loop. ``clock``: where each one takes
    10 us, however busy the machine is.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.in_step = self.in_round = 0
        self._step = self._round = self._all = 0
        taken = h11.Connection.next_event

        def next_event(http: h11.Connection) -> Any:
            self._step += 1
            self._round += 1
            self._all += 1
            self.in_step = max(self.in_step, self._step)
            self.in_round = max(self.in_round, self._round)
            return taken(http)

        monkeypatch.setattr(h11.Connection, "next_event", next_event)

    def clock(self) -> float:
        return self._all * 1e-5

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._step = 0

    def before_io_wait(self, timeout: float) -> None:
        self._round = 0
