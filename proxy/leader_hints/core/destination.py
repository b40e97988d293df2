"""Where the address leads that a broker advertises, as far as that is proved.

A client that looks for a node connects to the address that the node advertises. Where another
broker answers there, each of its requests for a partition fails, and a hint to that node only has
it ask the same broker again. Where the node answers but no proxy is there, clients get no hints.

A broker is identified by the partitions that it leads
(:mod:`leader_hints.core.cluster.broker_identity`), but here only its own answers count: that all
others are ruled out proves too little to take a route out of service. Each finding must be made
twice in a row, since brokers restart and leaders move during a look.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import starmap
from typing import NamedTuple

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.list_offsets import Partition
from leader_hints.core.cluster.broker_identity import Probe
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import AdvertisedPast, AdvertisedRight, Event, RouteCrossed
from leader_hints.core.route import Route

#: Seconds until an address is looked at again: to find once more what was found, and at the latest.
_SOON, _LATEST = 2.0, 60.0
#: Seconds between two looks that count as two: several routes may look at one address at once.
_APART = 1.0


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


class NodeAddress(NamedTuple):
    """Where a node of a cluster is advertised, whichever route looks there."""

    view: LeaderView
    node: int
    endpoint: Endpoint

    @property
    def text(self) -> str:
        return f"{self.endpoint.host}:{self.endpoint.port}"


@dataclass(frozen=True, slots=True)
class _Finding:
    """What looks have shown of an address that is not known to be right.

    ``last``: the last verdict that proved something, ``at``: when it was; ``proved``: the last one
    that was made twice in a row. ``found``: the node that answers there, ``leads_to``: the route
    where connections come out, "" where at none; both of ``proved``. ``own``: some look came from a
    route whose broker was taken for the node. ``unproved``: the seconds until the next look where
    the last one proved nothing, but might have.
    """

    last: Verdict = Verdict.UNKNOWN
    proved: Verdict = Verdict.UNKNOWN
    found: int | None = None
    leads_to: str = ""
    own: bool = False
    unproved: float = 0.0
    at: float = 0.0

    @property
    def crossed(self) -> bool:
        return self.proved is Verdict.CROSSED

    @property
    def pause(self) -> float:
        return _SOON if self.last is not self.proved else self.unproved or _LATEST

    @property
    def conclusion(self) -> tuple[object, ...]:
        """What is reported of it."""
        known = self.proved is not Verdict.UNKNOWN
        return (self.proved, self.found, self.leads_to, self.own) if known else ()

    def after(self, look: Look, verdict: Verdict, now: float) -> "_Finding":
        """Return what is known after one more look."""
        if verdict is Verdict.UNKNOWN:
            # A look that shows nothing, as while a broker restarts, leaves a suspicion as it is.
            if not self.own and look.arrived is None:
                return self
            return replace(self, unproved=min(2 * (self.unproved or _SOON / 2), _LATEST))
        if verdict is Verdict.RIGHT:
            # With hints switched off nothing is raised anywhere: what was found before holds.
            untold = look.found is not None and look.arrived is None and look.unraised is None
            if untold and self.proved is Verdict.PAST:
                return replace(self, last=self.proved, unproved=0.0)
            return _NOTHING
        if verdict is not self.last:
            return replace(self, last=verdict, unproved=0.0, at=now)
        if now < self.at + _APART:
            return self
        leads_to = look.arrived.name if look.arrived is not None else ""
        return _Finding(verdict, verdict, look.found, leads_to, self.own, at=now)


_NOTHING = _Finding()


def proved(asked: Probe, errors: Mapping[Partition, int]) -> int | None:
    """Return the node that a broker is, by its answer for what it leads; ``None``: not proved.

    ``asked``: one partition of each leader. ``errors``: the broker's answer.
    """
    leads = {asked[of].node for of, error in errors.items() if error == ErrorCode.NONE}
    return next(iter(leads)) if len(leads) == 1 else None


class Destinations:
    """Judges looks, and notes on ``routes``, and the views of their clusters, what they prove.

    What is proved belongs to an address, whichever route has looked. Which routes it concerns
    follows from what their brokers are taken for now, and is noted again in each round.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = {route.name: route for route in routes}
        #: The one that was looked at last comes last.
        self._findings: dict[NodeAddress, _Finding] = {}
        #: The crossed ones by the route to which they lead, in the order in which they were found.
        self._led: dict[str, dict[NodeAddress, _Finding]] = {route.name: {} for route in routes}

    def pause(self, route: Route) -> float:
        """Return the seconds until ``route`` is to be looked at again where nothing changes.

        What was found once is looked for again soon, and so is what a look did not prove; but after
        each further look that proves nothing the pause is doubled.
        """
        addresses = [own_address(route)]
        if self.looks_around(route):
            addresses += self.unsettled(route)
        return min(self._of(address).pause for address in addresses)

    def looks_around(self, route: Route) -> bool:
        """Whether ``route`` is the one that looks at the brokers that are behind no route.

        It is the first one of the cluster whose broker is known: no look is made from others.
        """
        routes = (of for of in self._routes.values() if of.broker.view is route.broker.view)
        return next((of for of in routes if of.broker.node is not None), None) is route

    def unsettled(self, route: Route) -> list[NodeAddress]:
        """Return what is advertised in its cluster for brokers that are behind no route, and is not
        known to be right; first what was not looked at for longest."""
        view = route.broker.view
        return [of for of, finding in self._findings.items() if of.view is view and not finding.own]

    def take(self, route: Route, look: Look, now: float) -> list[Event]:
        """Take a look from ``route`` at its own broker's address, or at another broker's."""
        view, own = route.broker.view, look.node == route.broker.node
        if view is None:
            return []
        address = NodeAddress(view, look.node, look.endpoint)
        former = self._of(address)
        known = replace(former, own=former.own or own)
        verdict = _judge(route, look) if own else _judge_other(look)
        if look.found is not None and not _is_taken_for(look.arrived, view, look.found):
            # Either what is known of leaders is outdated, or what is known of the broker. Both are
            # corrected within seconds, so the pause does not grow.
            known, verdict = replace(known, unproved=0.0), Verdict.UNKNOWN
        finding = known.after(look, verdict, now)
        self._keep(address, finding)
        self._note(route)
        if finding.conclusion == former.conclusion:
            return []
        # Of another broker's address that route is named to which it leads.
        name = route.name if own else finding.leads_to or former.leads_to or route.name
        at, to, found = address.text, finding.leads_to, finding.found
        if finding.crossed and found is not None:
            return [RouteCrossed(route=name, node=look.node, address=at, leads_to=to, found=found)]
        event = AdvertisedPast if finding.proved is Verdict.PAST else AdvertisedRight
        return [event(route=name, node=look.node, address=at)]

    def forgetting(self) -> Iterator[None]:
        """Forget what holds no longer, and note what follows for each route.

        In steps, between which looks may be taken: there may be hundreds of routes and crossings.
        """
        for address in [*self._findings]:
            if not self._holds(address, self._of(address)):
                self._keep(address, _NOTHING)
            yield
        for route in self._routes.values():
            self._note(route)
            yield

    def _holds(self, address: NodeAddress, finding: _Finding) -> bool:
        """Whether some route still looks at an address that it advertises, and the broker to which
        the address leads is still taken for the one that was found."""
        view, node, endpoint = address
        arrived = self._routes.get(finding.leads_to)
        return _is_taken_for(arrived, view, finding.found) and any(
            (broker.node == node if finding.own else broker.node is not None)
            and broker.view is view
            and broker.endpoints.get(node) == endpoint
            for broker in (route.broker for route in self._routes.values())
        )

    def _of(self, address: NodeAddress | None) -> _Finding:
        return _NOTHING if address is None else self._findings.get(address, _NOTHING)

    def _keep(self, address: NodeAddress, finding: _Finding) -> None:
        """Keep what is known of an address now, and note what follows."""
        former = self._findings.pop(address, _NOTHING)
        if finding != _NOTHING:
            self._findings[address] = finding
        view, place = address.view, (address.node, address.endpoint)
        if finding.crossed is not former.crossed:
            view.misled = view.misled | {place} if finding.crossed else view.misled - {place}
        for name in {former.leads_to, finding.leads_to} - {""}:
            if name == finding.leads_to:
                self._led[name][address] = finding
            else:
                del self._led[name][address]
            self._note(self._routes[name])

    def _note(self, route: Route) -> None:
        address = own_address(route)
        own = self._of(address)
        # Of its own broker's address first, whichever was found first.
        crossed = {address: own} if address is not None and own.crossed else self._led[route.name]
        route.advertised.crossed = next(starmap(_reason, crossed.items()), "")
        route.advertised.past = own.proved is Verdict.PAST


def own_address(route: Route) -> NodeAddress | None:
    """Return where the route's own broker is advertised, as far as that is known."""
    broker = route.broker
    if broker.view is None or broker.node is None or broker.node not in broker.endpoints:
        return None
    return NodeAddress(broker.view, broker.node, broker.endpoints[broker.node])


def _is_taken_for(arrived: Route | None, view: LeaderView, found: int | None) -> bool:
    """Whether the broker of the route ``arrived``, if it is of the cluster, is taken for what was
    found there."""
    return arrived is None or arrived.broker.view is not view or arrived.broker.node == found


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


def _reason(address: NodeAddress, finding: _Finding) -> str:
    advertised = f"node {address.node} advertises {address.text}"
    return f"crossed: {advertised}, where node {finding.found} answers"
