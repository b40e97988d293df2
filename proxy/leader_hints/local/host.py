"""What a virtual cluster is made for, and what the process around it does for it.

Tested in ``tests/local/test_virtual_cluster.py``.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import trio

from leader_hints.address import Address
from leader_hints.core.events import Event
from leader_hints.core.route import Route
from leader_hints.core.versions.address_rewriting import AddressRewriting
from leader_hints.local.discovery import Discovered
from leader_hints.local.mock_pages import MockControl
from leader_hints.net.clients.listening import Handler
from leader_hints.settings.local import LocalSettings
from leader_hints.settings.route import RouteSettings

if TYPE_CHECKING:
    # It needs kio, which a process without faults must not load.
    from leader_hints.faults.injector import FaultInjector

#: Starts a cluster again if it has died; returns where its brokers are then, ``None`` if it lives.
#: Raises BrokerError where it does not start.
Renew = Callable[[], Mapping[int, Address] | None]
#: Asks the addresses of the settings for the cluster's brokers; raises BrokerError if none answers.
Seek = Callable[[], Awaitable[Discovered]]


class Found(NamedTuple):
    """What a virtual cluster is made for: its settings, and the brokers that there are by now.

    ``cluster``: its id, "" where that is not known. ``renew``: of a cluster that this process
    keeps. It blocks, and is called now and then. ``stage``: where faults are allowed. ``mock``:
    changes a mock cluster, where it is one. ``seek``: finds the brokers once more.
    """

    settings: LocalSettings
    brokers: Mapping[int, Address]
    renew: Renew | None = None
    stage: "FaultInjector | None" = None
    mock: MockControl | None = None
    cluster: str = ""
    seek: Seek | None = None


class Host(Protocol):
    """The process that has the routes of a virtual cluster."""

    def add(self, settings: RouteSettings, rewriting: AddressRewriting) -> Route:
        """Make a route, on whose links addresses are rewritten."""

    def move(self, route: Route, upstream: Address) -> None:
        """Take it that a route's broker is elsewhere."""

    def admits(self, routes: Sequence[str]) -> Sequence[str]:
        """Return which of some routes, by name, take a connection now."""

    async def join(self, route: Route, upstream: Address, client: trio.SocketStream) -> bool:
        """Connect a client to the broker of a route; false where that takes no connection."""

    async def accept(self, name: str, listener: trio.SocketListener, handler: Handler) -> None:
        """Take connections of a listener until cancelled, and then close it.

        ``name``: of its route. Connections of this very process are turned away.
        """

    def listens(self, route: Route, listen: str | None) -> None:
        """Note where a route takes clients from now on; "": nowhere, ``None``: its broker has left
        the cluster.
        """

    def refuses(self, route: Route, reason: str) -> None:
        """Note why no client is joined to a route's broker from now on; "": they are."""

    def emit(self, event: Event) -> None:
        """Report an event."""
