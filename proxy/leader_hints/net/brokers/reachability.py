"""Which routes' brokers take no connection of clients, as far as clients have tried.

Tested in ``tests/app/test_process.py``.
"""

from collections.abc import Callable
from typing import Protocol

from leader_hints.address import Address
from leader_hints.core.events import Event, UpstreamUnreachable
from leader_hints.core.route import Route


class Reach(Protocol):
    """What becomes of attempts to connect clients to their brokers."""

    def is_down(self, route: Route) -> bool:
        """Whether the last attempts failed."""

    def serves(self, route: Route, peer: str) -> None:
        """Take it that a route's broker was connected to, at the IP address ``peer``."""

    def fails(self, route: Route, upstream: Address, error: str) -> None:
        """Take it that it was not, and why."""


class Reachability:
    """See :class:`Reach`.

    ``unreachable``: by route name why its broker took no connection, since the last that it took.
    ``reached``: called with the IP address when a route's broker was connected to, ``missed``: when
    it could not be, for the first time since.
    """

    def __init__(
        self,
        reached: Callable[[Route, str], None],
        missed: Callable[[Route], None],
        emit: Callable[[Event], None],
    ) -> None:
        self.unreachable: dict[str, str] = {}
        self._reached = reached
        self._missed = missed
        self._emit = emit

    def is_down(self, route: Route) -> bool:
        """See :class:`Reach`."""
        return route.name in self.unreachable

    def serves(self, route: Route, peer: str) -> None:
        """See :class:`Reach`."""
        self.unreachable.pop(route.name, None)
        self._reached(route, peer)

    def fails(self, route: Route, upstream: Address, error: str) -> None:
        """Report it once until a connection is made again: clients try many times a second."""
        if route.name in self.unreachable:
            return
        self.unreachable[route.name] = error
        self._missed(route)
        self._emit(UpstreamUnreachable(route=route.name, upstream=str(upstream), error=error))
