"""Where the address leads that a broker advertises, as far as that is proved.

A client that looks for a node connects to the address that the node advertises. Where another
broker answers there, each of its requests for a partition fails, and a hint to that node only has
it ask the same broker again. Where the node answers but no proxy is there, clients get no hints.

A broker is identified by the partitions that it leads
(:mod:`leader_hints.core.cluster.broker_identity`), but here only its own answers count: that all
others are ruled out proves too little to take a route out of service. Each finding must be made
twice in a row, since brokers restart and leaders move during a look.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.list_offsets import Partition
from leader_hints.core.cluster.broker_identity import Probe
from leader_hints.core.events import AdvertisedPast, AdvertisedRight, Event, RouteCrossed
from leader_hints.core.route import Route

#: Seconds until an address is looked at again: to find once more what was found, and at the latest.
_SOON, _LATEST = 2.0, 60.0


class Verdict(StrEnum):
    """``UNKNOWN``: nothing is proved, so what was proved before holds. ``RIGHT``: the node answers
    at its address. ``CROSSED``: another does. ``PAST``: the node does, but no proxy is there."""

    UNKNOWN = "unknown"
    RIGHT = "right"
    CROSSED = "crossed"
    PAST = "past"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look found at the address that ``node`` advertises (``endpoint``).

    ``arrived``: the route of this process where a connection came out, ``None`` where at none.
    ``own``, ``found``: the nodes that the route's own broker, and the broker at the address, have
    proved to be; ``None`` where they have not. ``unraised``: what is there offers clients that use
    hints no more than the route's broker offers itself; ``None`` where that proves nothing.
    """

    node: int
    endpoint: Endpoint
    arrived: Route | None = None
    own: int | None = None
    found: int | None = None
    unraised: bool | None = None


@dataclass(frozen=True, slots=True)
class _Crossing:
    """``routes``: whose clients meet the wrong broker."""

    cluster: str
    node: int
    endpoint: Endpoint
    found: int
    routes: tuple[Route, ...]

    def stands(self, routes: Iterable[Route]) -> bool:
        return any(self.concerns(route) for route in routes)

    def concerns(self, route: Route) -> bool:
        """Whether clients of ``route`` get this address for this node."""
        same = route.broker.view is not None and route.broker.view.cluster_id == self.cluster
        return same and route.broker.endpoints.get(self.node) == self.endpoint


def proved(asked: Probe, errors: Mapping[Partition, int]) -> int | None:
    """Return the node that a broker is, by its answer for what it leads; ``None``: not proved.

    ``asked``: one partition of each leader. ``errors``: the broker's answer.
    """
    leads = {asked[of].node for of, error in errors.items() if error == ErrorCode.NONE}
    return next(iter(leads)) if len(leads) == 1 else None


class _Looks:
    """Of the looks from one route, by node, and ``None`` for its own: the ``last`` verdict that
    proved something; the seconds until the next look where the last one proved nothing, but might
    have (``unproved``)."""

    __slots__ = ("last", "unproved")

    def __init__(self) -> None:
        self.last: dict[int | None, Verdict] = {}
        self.unproved: dict[int | None, float] = {}

    def keep(self, nodes: Collection[int]) -> None:
        """Forget all other nodes but the route's own."""
        for looks in (self.last, self.unproved):
            for gone in [node for node in looks if node is not None and node not in nodes]:
                del looks[gone]


class Destinations:
    """Judges looks, and notes on ``routes`` what they prove."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._looks = {route.name: _Looks() for route in routes}
        self._crossings: dict[tuple[str, int | None], _Crossing] = {}

    def pause(self, route: Route) -> float:
        """Return the seconds until ``route`` is to be looked at again where nothing changes.

        What was found once is looked for again soon, and so is what a look did not prove; but after
        each further look that proves nothing the pause is doubled.
        """
        looks = self._looks[route.name]
        nodes = looks.last.keys() | looks.unproved.keys()
        return min((self._pause_of(route, looks, node) for node in nodes), default=_LATEST)

    def _pause_of(self, route: Route, looks: _Looks, node: int | None) -> float:
        verdict = looks.last.get(node)
        if verdict is Verdict.CROSSED and (route.name, node) not in self._crossings:
            return _SOON
        if verdict is Verdict.PAST and not route.advertised.past:
            return _SOON
        return looks.unproved.get(node, _LATEST)

    def take(self, route: Route, look: Look) -> list[Event]:
        """Take a look from ``route`` at its own broker's address, or at another broker's."""
        own = look.node == route.broker.node
        node = None if own else look.node
        looks = self._looks[route.name]
        verdict = _judge(route, look) if own else _judge_other(look)
        events: list[Event] = []
        # A look that shows nothing, such as while a broker restarts, leaves a suspicion as it is.
        if verdict is Verdict.UNKNOWN:
            if own or look.arrived is not None:
                looks.unproved[node] = min(2 * looks.unproved.get(node, _SOON / 2), _LATEST)
        else:
            looks.unproved.pop(node, None)
            before, looks.last[node] = looks.last.get(node), verdict
            if verdict is Verdict.RIGHT or verdict is before:
                events += self._conclude(route, (route.name, node), look, verdict)
        self._note()
        return events

    def _conclude(
        self, route: Route, key: tuple[str, int | None], look: Look, verdict: Verdict
    ) -> list[Event]:
        own = key[1] is None
        was_crossed = self._crossings.pop(key, None)
        was_past = own and route.advertised.past
        if own:
            # With hints switched off nothing is raised anywhere: what was found before holds.
            untold = look.arrived is None and look.unraised is None
            route.advertised.past = verdict is Verdict.PAST or (was_past and untold)
        address = f"{look.endpoint.host}:{look.endpoint.port}"
        if verdict is Verdict.CROSSED and look.found is not None and route.broker.view is not None:
            blamed = {of.name: of for of in (route if own else None, look.arrived) if of}
            crossing = _Crossing(
                route.broker.view.cluster_id,
                look.node,
                look.endpoint,
                look.found,
                (*blamed.values(),),
            )
            self._crossings[key] = crossing
            if crossing == was_crossed:
                return []
            where = look.arrived.name if look.arrived is not None else ""
            return [
                RouteCrossed(
                    route=route.name if own else where,
                    node=look.node,
                    address=address,
                    leads_to=where,
                    found=look.found,
                )
            ]
        if verdict is Verdict.PAST:
            told = AdvertisedPast(route=route.name, node=look.node, address=address)
            return [] if was_past else [told]
        if was_crossed is None and route.advertised.past is was_past:
            return []
        return [AdvertisedRight(route=route.name, node=look.node, address=address)]

    def _note(self) -> None:
        """Note on all routes what is known now. What is advertised no longer is forgotten."""
        self._crossings = {
            key: crossing
            for key, crossing in self._crossings.items()
            if crossing.stands(self._routes)
        }
        crossings = self._crossings.values()
        for route in self._routes:
            self._looks[route.name].keep(route.broker.endpoints)
            route.advertised.misled = {c.node: c.endpoint for c in crossings if c.concerns(route)}
            route.advertised.crossed = next(
                (_reason(c) for c in crossings if route in c.routes), ""
            )


def _judge(route: Route, look: Look) -> Verdict:
    """Judge the address of the route's own broker."""
    if look.arrived is route:
        return Verdict.RIGHT
    if look.own != look.node or look.found is None:
        return Verdict.UNKNOWN
    if look.found != look.node:
        return Verdict.CROSSED
    return Verdict.PAST if look.arrived is None and look.unraised else Verdict.RIGHT


def _judge_other(look: Look) -> Verdict:
    """Judge another broker's address: only where it leads to one of this process's routes."""
    if look.arrived is None or look.found is None:
        return Verdict.UNKNOWN
    return Verdict.RIGHT if look.found == look.node else Verdict.CROSSED


def _reason(crossing: _Crossing) -> str:
    address = f"{crossing.endpoint.host}:{crossing.endpoint.port}"
    return (
        f"crossed: node {crossing.node} advertises {address}, where node {crossing.found} answers"
    )
