"""Who decides about error responses of links, as the pump sees it.

Tested in ``tests/net/pump/test_pump.py``.
"""

from collections.abc import Sequence
from typing import Protocol

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.events import Event
from leader_hints.core.link.held import Held


class Waiting(Protocol):
    """Whether something is waited for."""

    def is_set(self) -> bool:
        """Whether it is, now."""


class Holds(Protocol):
    """A hold timer, or in a worker process what asks the one of the parent."""

    @property
    def waiting(self) -> Waiting:
        """Set while a response is held: its decision must not wait for a long turn."""

    def submit(self, held: Held) -> list[LeaderHint | None] | None:
        """Take an error response; return its hints, or ``None`` while it is held."""

    def forget(self, link: int) -> None:
        """Drop what is held for a link that is gone."""

    def emit(self, events: Sequence[Event]) -> None:
        """Take events of links, behind those of former responses."""
