"""All routes of a process, with their settings."""

from collections.abc import Iterator, Mapping

from leader_hints.address import Address
from leader_hints.core.mode import Mode
from leader_hints.core.replicas.racks import Racks
from leader_hints.core.route import Route, RouteConfig
from leader_hints.core.sessions.fetch_by_name import MOST_TOPICS, FetchSessionsByName
from leader_hints.core.sessions.fetch_sessions import MOST_WEIGHT, FetchSessions
from leader_hints.core.versions.address_rewriting import AddressRewriting
from leader_hints.core.versions.client_capabilities import client_table
from leader_hints.core.workers.shares import share
from leader_hints.net.journal.journal_opening import make_sampler
from leader_hints.net.tls.route_security import make_route
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings


class RouteTable:
    """The routes, in the order in which they were added.

    ``mode``: of routes that nothing has switched; ``switched``: of the others, by route name, also
    of such as may join later. ``routes``: the list itself, for parts that must see routes that are
    added later. ``bound``: the addresses of listeners that are open, by route name. ``left``: the
    names of routes whose brokers have left their cluster. ``refused``: why no client is joined to a
    route's broker, by route name.
    """

    def __init__(self, settings: Settings, workers: int = 1) -> None:
        """``workers``: how many processes have links of these routes."""
        self._settings = settings
        self._workers = workers
        self._sampler = make_sampler(settings.journal)
        self._clients = client_table(settings.client_uses)
        self._upstreams: dict[str, Address] = {}
        self.mode = Mode(settings.hints)
        self.switched: Mapping[str, Mode] = {}
        self.routes: list[Route] = []
        self._by_name: dict[str, Route] = {}
        self.bound: dict[str, str] = {}
        self.left: set[str] = set()
        self.refused: dict[str, str] = {}

    def add(
        self,
        settings: RouteSettings,
        rewriting: AddressRewriting | None = None,
        *,
        joins: bool = False,
    ) -> Route:
        """Make one more route; ``rewriting``: of the virtual cluster that it belongs to, ``joins``:
        which serves already.
        """
        on = Mode(self._settings.hints) is Mode.ON
        config = RouteConfig(
            synthesize=self._settings.topic_ids == "synthesize" and on,
            latencies=self._sampler,
            address_rewriting=rewriting,
            clients=self._clients,
            settle=self._settings.hold.settle,
            closest_replica=Mode(self._settings.closest_replica),
            racks=Racks(self._settings.racks_by_node),
        )
        route = make_route(settings, self._mode(settings.name, joins=joins), config)
        most_weight = MOST_WEIGHT // max(len(self._settings.routes), 1) // self._workers
        route.sessions = FetchSessions(most_weight=most_weight, moves=self._workers > 1)
        most_topics = share(MOST_TOPICS, self._workers)
        route.sessions_by_name = FetchSessionsByName(most_topics=most_topics)
        self.routes.append(route)
        self._by_name[route.name] = route
        self._upstreams[route.name] = settings.upstream
        return route

    def _mode(self, name: str, *, joins: bool) -> Mode:
        """Return what a route that is added does about hints."""
        if name in self.switched:
            return self.switched[name]
        # One that joins is switched as all the others are: it was not there when an operator
        # switched hints off for all.
        modes = {other.mode for other in self.routes} if joins else set()
        return modes.pop() if len(modes) == 1 else self.mode

    def move(self, route: Route, upstream: Address) -> None:
        """Note another address of a route's broker."""
        self._upstreams[route.name] = upstream

    def listens(self, route: Route, listen: str | None) -> None:
        """Note where a route takes clients now; "": nowhere, ``None``: its broker has left."""
        self.bound.pop(route.name, None)
        self.left.discard(route.name)
        if listen:
            self.bound[route.name] = listen
        elif listen is None:
            self.left.add(route.name)

    def refuses(self, route: Route, reason: str) -> None:
        """Note why no client is joined to a route's broker from now on; "": they are."""
        self.refused.pop(route.name, None)
        if reason:
            self.refused[route.name] = reason

    def upstream(self, route: Route) -> Address:
        """Return the address of a route's broker."""
        return self._upstreams[route.name]

    def with_upstreams(self) -> Iterator[tuple[Route, Address]]:
        """Iterate over the routes and the addresses of their brokers."""
        return ((route, self._upstreams[route.name]) for route in self.routes)

    def by_name(self, name: str) -> Route:
        """Return the route of that name."""
        return self._by_name[name]

    @property
    def links_open(self) -> int:
        """How many links all routes have."""
        return sum(route.traffic.links_open for route in self.routes)

    def joining(self) -> bool:
        """Whether some client of a route is being joined to its broker."""
        return any(route.traffic.connecting for route in self.routes)
