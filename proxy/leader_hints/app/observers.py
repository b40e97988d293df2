"""Observers of events, and reports of what failed.

Tested in ``tests/net/test_defects.py``.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVarTuple, Unpack

import trio

from leader_hints.core.events import Event, TaskFailed
from leader_hints.errors import places_of

_Ts = TypeVarTuple("_Ts")

Take = Callable[[Event], None]

#: Seconds before work begins again that a defect has ended.
_AGAIN = 1.0


class Observers:
    """Hands each event to all observers, in the order in which they were added.

    ``reporters``: observers to which the failure of an observer is reported; one of them may have
    failed itself.
    """

    def __init__(self, *reporters: Take) -> None:
        self._reporters = reporters
        self._takers: list[Take] = []

    def add(self, *takers: Take) -> None:
        """Hand events to these too."""
        self._takers += takers

    def emit(self, event: Event) -> None:
        """Hand an event to all observers; none that fails disturbs the others."""
        for take in self._takers:
            try:
                take(event)
            except Exception as error:
                self._report_failed_observer(error)

    def task_failed(self, task: str, error: Exception) -> None:
        """Report a defect that has ended a piece of work."""
        self.emit(TaskFailed(task=task, traceback=places_of(error)))

    def guarded(self, task: str, work: Callable[[Unpack[_Ts]], None]) -> Callable[..., None]:
        """Return ``work`` for callers that must not fail with it."""

        def guarded(*arguments: *_Ts) -> None:
            try:
                work(*arguments)
            except Exception as error:
                self.task_failed(task, error)

        return guarded

    async def keep_up(
        self,
        task: str,
        work: Callable[[], Awaitable[None]],
        after: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """Do ``work`` until cancelled: if a defect ends it, call ``after`` and begin again."""
        while True:
            try:
                await work()
                return
            except Exception as error:
                self.task_failed(task, error)
                after(error)
            await trio.sleep(_AGAIN)

    def _report_failed_observer(self, error: Exception) -> None:
        failed = TaskFailed(task="events", traceback=places_of(error))
        for take in self._reporters:
            with contextlib.suppress(Exception):
                take(failed)
