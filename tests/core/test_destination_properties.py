"""Routes, brokers and addresses that change at random, and looks at what is there.

``Destinations`` is compared with the simplest model. And whatever came before: once the world
rests, what is known of addresses and routes is what is true. No belief outlasts those who look.
"""

from collections.abc import Iterable
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.destination import Destinations, Look, NodeAddress, own_address
from leader_hints.core.events import AdvertisedPast, AdvertisedRight, RouteCrossed
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route

_NODES = (1, 2, 3)
#: Two listeners; on each a broker has two addresses, one after the other.
_LISTENERS = [
    [{node: Endpoint(name, 10 * node + number, None) for node in _NODES} for number in (0, 1)]
    for name in "ab"
]
_PLACES = [
    (node, endpoint)
    for listener in _LISTENERS
    for endpoints in listener
    for node, endpoint in endpoints.items()
]
_EVENTS = {"crossed": RouteCrossed, "past": AdvertisedPast, "": AdvertisedRight}


class _Elsewhere(int):
    """A node that is not behind this process, but on this machine; ``past``: without a proxy."""

    past = False


class _Past(_Elsewhere):
    past = True


#: Where an address leads: to a route, by its name; to a node elsewhere; to no address of this
#: machine ("away"); or to nobody.
_Target = str | _Elsewhere | None
_NAMES = st.sampled_from(("r0", "r1", "r2"))
_TARGETS = st.one_of(
    _NAMES,
    _NAMES,
    st.just("away"),
    st.sampled_from(_NODES).map(_Elsewhere),
    st.sampled_from(_NODES).map(_Past),
    st.none(),
)
_LISTED = st.one_of(st.just({*_NODES}), st.sets(st.sampled_from(_NODES)))


class _Round(NamedTuple):
    """``silent``: no broker proves anything; ``lie``: the view is outdated, and all brokers but the
    routes' own prove to be this node; ``hints`` are switched on."""

    silent: bool = False
    lie: int | None = None
    hints: bool = True


_ROUNDS = st.lists(
    st.sampled_from(
        [_Round()] * 6 + [_Round(silent=True), _Round(hints=False)] + [_Round(lie=2), _Round(lie=3)]
    ),
    max_size=3,
)


class Looks(RuleBasedStateMachine):
    """``behind``: which node is behind each route; ``targets``: where addresses lead.

    The model, by address: ``last``, the last verdict and since when; ``proved``: what was found
    twice, the node and the route there; ``own``: looks came from a route taken for the node.
    """

    @initialize(leads=st.lists(_TARGETS, min_size=len(_PLACES), max_size=len(_PLACES)))
    def begin(self, leads: list[_Target]) -> None:
        self.views = [LeaderView("k"), LeaderView("l")]
        self.routes = {name: Route(name, Mode.ON) for name in ("r0", "r1", "r2")}
        self.listener = {name: _LISTENERS[name == "r2"] for name in self.routes}
        self.behind = dict(zip(self.routes, (2, 2, 1), strict=True))
        for name, route in self.routes.items():
            route.broker = BrokerState(
                view=self.views[0], endpoints=self.listener[name][0], node=self.behind[name]
            )
        self.targets = dict(zip(_PLACES, leads, strict=True))
        self.destinations = Destinations([*self.routes.values()])
        self.now = 0.0
        self.last: dict[NodeAddress, tuple[str, float]] = {}
        self.proved: dict[NodeAddress, tuple[str, int | None, str]] = {}
        self.own: set[NodeAddress] = set()

    # What changes.

    @rule(name=_NAMES, node=st.sampled_from(_NODES), rounds=_ROUNDS)
    def another_broker_is_behind(self, name: str, node: int, rounds: list[_Round]) -> None:
        self.behind[name] = node
        self._look_around(rounds)

    @rule(name=_NAMES, node=st.sampled_from((None, *_NODES)), rounds=_ROUNDS)
    def a_broker_is_taken_for(self, name: str, node: int | None, rounds: list[_Round]) -> None:
        self.routes[name].broker.node = node
        self._look_around(rounds)

    @rule(name=_NAMES, which=st.integers(0, 1), nodes=_LISTED, rounds=_ROUNDS)
    def brokers_are_listed(
        self, name: str, which: int, nodes: set[int], rounds: list[_Round]
    ) -> None:
        listed = self.listener[name][which]
        self.routes[name].broker.endpoints = {node: listed[node] for node in nodes}
        self._look_around(rounds)

    @rule(name=_NAMES, view=st.sampled_from((0, 0, 1)), rounds=_ROUNDS)
    def a_route_is_of_a_cluster(self, name: str, view: int, rounds: list[_Round]) -> None:
        self.routes[name].broker.view = self.views[view]
        self._look_around(rounds)

    @rule(place=st.sampled_from(_PLACES), where=_TARGETS, rounds=_ROUNDS)
    def an_address_leads(
        self, place: tuple[int, Endpoint], where: _Target, rounds: list[_Round]
    ) -> None:
        self.targets[place] = where
        self._look_around(rounds)

    # Who looks, and what is found.

    def _look_around(self, rounds: Iterable[_Round]) -> None:
        self._forget()
        for of in rounds:
            for route in self.routes.values():
                for at in self._addresses(route):
                    self._look(route, at, of)
            self.now += 2.0
            self._forget()

    def _addresses(self, route: Route) -> list[NodeAddress]:
        """At which a route looks in one round."""
        view = route.broker.view
        if route.broker.node is None or view is None:
            return []
        own = own_address(route)
        looked_at = {own: None} if own is not None else {}
        if self.destinations.looks_around(route):
            behind = {of.broker.node for of in self.routes.values() if of.broker.view is view}
            listed = route.broker.endpoints.items()
            looked_at |= dict.fromkeys(self.destinations.unsettled(route))
            looked_at |= {NodeAddress(view, *of): None for of in listed if of[0] not in behind}
        return [*looked_at]

    def _look(self, route: Route, at: NodeAddress, of: _Round) -> None:
        target, own = self.targets.get((at.node, at.endpoint)), at.node == route.broker.node
        arrived, found, unraised = self.routes.get(str(target)), None, None
        if (
            arrived is not None
            and not (own and arrived is route)
            and arrived.broker.view is at.view
        ):
            found = self.behind[arrived.name]
        elif isinstance(target, _Elsewhere) and own:
            found, unraised = int(target), target.past if of.hints else None
        look = Look(
            node=at.node,
            endpoint=at.endpoint,
            arrived=arrived,
            away=target == "away" and not own,
            own=self.behind[route.name] if own and not of.silent else None,
            found=None if of.silent or found is None else of.lie or found,
            unraised=unraised,
        )
        before = self.proved.get(at), at in self.own
        events = self.destinations.take(route, look, self.now)
        self._note(at, look, self._verdict(route, look, own=own), own=own)
        after = self.proved.get(at), at in self.own
        known = before[0] or after[0]
        assert [type(event) for event in events] == (
            [_EVENTS[after[0][0] if after[0] else ""]] if known and before != after else []
        )

    def _verdict(self, route: Route, look: Look, *, own: bool) -> str:
        if look.away or (own and look.arrived is route):
            return "right"
        if look.found is None or (look.own != look.node if own else look.arrived is None):
            return ""
        # Other clusters' routes prove nothing here.
        if look.arrived is not None and look.arrived.broker.node != look.found:
            return ""
        if look.found != look.node:
            return "crossed"
        return "past" if look.unraised else "right"

    def _note(self, at: NodeAddress, look: Look, verdict: str, *, own: bool) -> None:
        if verdict == "right":
            # Without hints nobody can tell whether a proxy is there.
            untold = look.found is not None and look.arrived is None and look.unraised is None
            if untold and self.proved.get(at, ("",))[0] == "past":
                self.last[at] = "past", self.last[at][1]
            else:
                self._drop(at)
            return
        if own:
            self.own.add(at)
        last, since = self.last.get(at, ("", 0.0))
        if not verdict or (last == verdict and self.now < since + 1):
            return
        self.last[at] = verdict, self.now
        if last == verdict:
            self.proved[at] = verdict, look.found, look.arrived.name if look.arrived else ""

    def _drop(self, at: NodeAddress) -> None:
        self.last.pop(at, None)
        self.proved.pop(at, None)
        self.own.discard(at)

    def _forget(self) -> None:
        for _ in self.destinations.forgetting():
            pass
        for at in {*self.last, *self.own}:
            looks = any(
                route.broker.view is at.view
                and route.broker.endpoints.get(at.node) == at.endpoint
                and (route.broker.node == at.node if at in self.own else route.broker.node)
                for route in self.routes.values()
            )
            _, found, name = self.proved.get(at, ("", None, ""))
            there = self.routes[name].broker if name else None
            if not looks or (there and there.view is at.view and there.node != found):
                self._drop(at)
        self._compare()

    # What is compared.

    @invariant()
    def no_hint_names_what_is_crossed(self) -> None:
        crossed = {at for at, (verdict, *_) in self.proved.items() if verdict == "crossed"}
        for view in self.views:
            assert view.misled == {at[1:] for at in crossed if at.view is view}

    def _compare(self) -> None:
        for name, route in self.routes.items():
            own = own_address(route)
            verdict = self.proved[own][0] if own in self.proved else ""
            led = any(leads_to == name for _, _, leads_to in self.proved.values())
            assert bool(route.advertised.crossed) == (verdict == "crossed" or led)
            assert route.advertised.past == (verdict == "past")
            pause = self.destinations.pause(route)
            assert pause == 2.0 or not self._suspected(own)
            assert 2.0 <= pause <= 60.0

    def _suspected(self, at: NodeAddress | None) -> bool:
        return at in self.last and self.last[at][0] != self.proved.get(at, ("",))[0]

    @rule()
    def the_world_rests(self) -> None:
        """All brokers are known and listed, and each address leads to somebody."""
        view = self.views[0]
        for name, route in self.routes.items():
            route.broker.view, route.broker.node = view, self.behind[name]
            route.broker.endpoints = self.listener[name][0]
        own = {own_address(route): None for route in self.routes.values()}
        for node, endpoint in _PLACES:
            target = self.targets.get((node, endpoint))
            if NodeAddress(view, node, endpoint) not in own and target not in self.routes:
                self.targets[node, endpoint] = "away"
            elif target in (None, "away"):
                self.targets[node, endpoint] = _Elsewhere(node)
        self._look_around([_Round()] * 3)
        truth = {
            place: target
            for place, target in self.targets.items()
            if (self.behind[target] if isinstance(target, str) and target != "away" else target)
            not in (place[0], "away")
        }
        (looks,) = (of for of in self.routes.values() if self.destinations.looks_around(of))
        looked_at = {*own, *self._addresses(looks)}
        assert view.misled <= truth.keys()
        assert {at[1:] for at in looked_at if at and at[1:] in truth} <= view.misled
        assert self.views[1].misled == frozenset()
        for name, route in self.routes.items():
            own_place = self.behind[name], route.broker.endpoints[self.behind[name]]
            led = any(self.targets[place] == name for place in view.misled)
            assert bool(route.advertised.crossed) == (own_place in view.misled or led)
            there = self.targets[own_place]
            past = isinstance(there, _Past) and there == self.behind[name]
            assert route.advertised.past == past


TestLooks = Looks.TestCase
TestLooks.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
