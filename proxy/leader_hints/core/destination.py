"""Where the address leads that a broker advertises, as far as that is proved.

A client that looks for a node connects to the address that the node advertises. Where another
broker answers there, each of its requests for a partition fails, and a hint to that node only has
it ask the same broker again. Where the node answers but no proxy is there, clients get no hints.

A broker is identified by the partitions that it leads
(:mod:`leader_hints.core.cluster.broker_identity`), but here only its own answers count: that all
others are ruled out proves too little to take a route out of service. Each finding must be made
twice in a row, since brokers restart and leaders move during a look.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.list_offsets import Partition
from leader_hints.core.cluster.broker_identity import Probe
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import AdvertisedPast, AdvertisedRight, Event, RouteCrossed
from leader_hints.core.route import Route

#: By the name of the route from which it was found, and the node, or ``None`` for the route's own.
_Key = tuple[str, int | None]

#: Seconds until an address is looked at again: to find once more what was found, and at the latest.
_SOON, _LATEST = 2.0, 60.0


class Verdict(StrEnum):
    """``UNKNOWN``: nothing is proved, so what was proved before holds. ``RIGHT``: the node answers
    at its address, or that is not here and another's. ``CROSSED``: another node answers. ``PAST``:
    the node does, but no proxy is there."""

    UNKNOWN = "unknown"
    RIGHT = "right"
    CROSSED = "crossed"
    PAST = "past"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look found at the address that ``node`` advertises (``endpoint``).

    ``arrived``: the route of this process where a connection came out, ``None`` where at none.
    ``away``: it leads to no address of this machine, which only another broker's is asked.
    ``own``, ``found``: the nodes that the route's own broker, and the broker at the address, have
    proved to be; ``None`` where they have not. ``unraised``: what is there offers clients that use
    hints no more than the route's broker offers itself; ``None`` where that proves nothing.
    """

    node: int
    endpoint: Endpoint
    arrived: Route | None = None
    away: bool = False
    own: int | None = None
    found: int | None = None
    unraised: bool | None = None


@dataclass(frozen=True, slots=True)
class _Crossing:
    """``view``: of the cluster. ``routes``: whose clients meet the wrong broker."""

    view: LeaderView
    node: int
    endpoint: Endpoint
    found: int
    routes: tuple[Route, ...]

    def concerns(self, route: Route) -> bool:
        """Whether clients of ``route`` get this address for this node."""
        same = route.broker.view is self.view
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
    """Judges looks, and notes on ``routes``, and the views of their clusters, what they prove."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._looks = {route.name: _Looks() for route in routes}
        self._crossings: dict[_Key, _Crossing] = {}
        #: The same by route, in which order they were found; and how often each address was found.
        self._of_route: dict[str, dict[_Key, _Crossing]] = {route.name: {} for route in routes}
        self._found: Counter[tuple[LeaderView, int, Endpoint]] = Counter()

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

    def crossed_from(self, route: Route) -> list[int]:
        """Return the other brokers at whose addresses another one was found.

        From ``route`` or from another one of its cluster, which looked at them before.
        """
        view = route.broker.view
        return [
            node
            for (_, node), crossing in self._crossings.items()
            if node is not None and crossing.view is view
        ]

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
        return events

    def forgetting(self) -> Iterator[None]:
        """Forget what is advertised no longer, in steps: there may be hundreds of crossings.

        So is what was found at the address of the node that a route's broker was taken for, if it
        is not taken for that any more: nobody would look there again.
        """
        for key, crossing in [*self._crossings.items()]:
            if not any(map(crossing.concerns, self._routes)):
                self._note(key, None)
            yield
        for route in self._routes:
            looks, own = self._looks[route.name], self._of_route[route.name].get((route.name, None))
            looks.keep(route.broker.endpoints)
            if own is not None and own.node != route.broker.node:
                looks.last.pop(None, None)
                self._note((route.name, None), None)
            yield

    def _conclude(self, route: Route, key: _Key, look: Look, verdict: Verdict) -> list[Event]:
        own = key[1] is None
        was_crossed, crossing = self._crossings.get(key), None
        was_past = own and route.advertised.past
        if own:
            # With hints switched off nothing is raised anywhere: what was found before holds.
            untold = look.arrived is None and look.unraised is None
            route.advertised.past = verdict is Verdict.PAST or (was_past and untold)
        address = f"{look.endpoint.host}:{look.endpoint.port}"
        if verdict is Verdict.CROSSED and look.found is not None and route.broker.view is not None:
            blamed = {of.name: of for of in (route if own else None, look.arrived) if of}
            crossing = _Crossing(
                route.broker.view, look.node, look.endpoint, look.found, (*blamed.values(),)
            )
        self._note(key, crossing)
        if crossing is None and self._found[route.broker.known, look.node, look.endpoint]:
            was_crossed = self._end_of_others(route, look) or was_crossed
        if crossing is not None:
            if crossing == was_crossed:
                return []
            where = look.arrived.name if look.arrived is not None else ""
            return [
                RouteCrossed(
                    route=route.name if own else where,
                    node=look.node,
                    address=address,
                    leads_to=where,
                    found=crossing.found,
                )
            ]
        if verdict is Verdict.PAST:
            told = AdvertisedPast(route=route.name, node=look.node, address=address)
            return [] if was_past else [told]
        if was_crossed is None and route.advertised.past is was_past:
            return []
        # Of another broker's address that route was named to which it led.
        name = route.name if own or was_crossed is None else was_crossed.routes[0].name
        return [AdvertisedRight(route=name, node=look.node, address=address)]

    def _end_of_others(self, route: Route, look: Look) -> _Crossing | None:
        """End what other routes have found at an address that is right; return one of it.

        They do not look there any more. Another one may have looked before the broker was known to
        be behind ``route``, or before the cluster of ``route`` was.
        """
        ended = None
        for of in self._routes:
            key = of.name, look.node
            found = self._crossings.get(key)
            if found and found.view is route.broker.view and found.endpoint == look.endpoint:
                ended = found
                self._looks[of.name].last.pop(look.node, None)
                self._note(key, None)
        return ended

    def _note(self, key: _Key, crossing: _Crossing | None) -> None:
        """Note what was found of ``key`` now. There may be hundreds of routes and crossings."""
        former = self._crossings.get(key)
        if crossing == former:
            return
        if former is not None:
            del self._crossings[key]
            for route in former.routes:
                del self._of_route[route.name][key]
                self._note_reason(route)
            self._note_address(former, -1)
        if crossing is not None:
            self._crossings[key] = crossing
            for route in crossing.routes:
                self._of_route[route.name][key] = crossing
                self._note_reason(route)
            self._note_address(crossing, 1)

    def _note_reason(self, route: Route) -> None:
        crossings = self._of_route[route.name]
        # Of its own broker's address first, whichever was found first.
        own = crossings.get((route.name, None))
        first = own or next(iter(crossings.values()), None)
        route.advertised.crossed = _reason(first) if first is not None else ""

    def _note_address(self, crossing: _Crossing, more: int) -> None:
        view, address = crossing.view, (crossing.node, crossing.endpoint)
        at = view, *address
        self._found[at] += more
        if self._found[at]:
            view.misled |= {address}
        else:
            del self._found[at]
            view.misled -= {address}


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
    """Judge another broker's address: only whether it leads to one of this process's routes."""
    if look.away:
        # What answers there is not asked: what was found here is over.
        return Verdict.RIGHT
    if look.arrived is None or look.found is None:
        return Verdict.UNKNOWN
    return Verdict.RIGHT if look.found == look.node else Verdict.CROSSED


def _reason(crossing: _Crossing) -> str:
    address = f"{crossing.endpoint.host}:{crossing.endpoint.port}"
    return (
        f"crossed: node {crossing.node} advertises {address}, where node {crossing.found} answers"
    )
