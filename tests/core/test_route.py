from collections.abc import Callable

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster import broker_identity
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route, RouteConfig
from leader_hints.core.versions.plan import PASS, READ_ONLY, Plan, plan_for
from tests.core.links import Driven
from tests.core.samples import (
    BROKER_3_6,
    USES_HINTS,
    produce_request,
    request,
    versions_answer,
)

_RAISED = plan_for(BROKER_3_6)
_NATIVE = Plan(reads=False, native=True)


@pytest.mark.parametrize(
    ("mode", "known", "link"),
    [
        (Mode.ON, _RAISED, _RAISED),
        (Mode.ON, _NATIVE, _NATIVE),
        (Mode.ON, PASS, PASS),
        (Mode.ON, None, READ_ONLY),
        (Mode.OBSERVE, _RAISED, READ_ONLY),
        (Mode.OBSERVE, _NATIVE, _NATIVE),
        (Mode.OBSERVE, None, READ_ONLY),
        (Mode.OFF, _RAISED, PASS),
        (Mode.OFF, None, PASS),
    ],
)
def test_what_a_new_link_does_about_versions(mode: Mode, known: Plan | None, link: Plan) -> None:
    assert Route("r", mode, broker=BrokerState(plan=known)).link_plan == link


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.OFF])
def test_versions_that_were_raised_are_lowered_whatever_the_mode(mode: Mode) -> None:
    route = Route("r", Mode.ON, broker=BrokerState(plan=_RAISED))
    route.switch(mode)
    assert route.link_plan == _RAISED
    route.broker.plan = None
    assert route.link_plan == READ_ONLY


@pytest.mark.parametrize("mode", [Mode.ON, Mode.OBSERVE, Mode.OFF])
def test_a_broker_that_restarts_is_sent_what_it_took_until_it_says_more(mode: Mode) -> None:
    route = Route("r", Mode.ON, broker=BrokerState(plan=_RAISED))
    route.switch(mode)
    route.broker.lose()
    route.broker.lose()
    assert route.broker.plan is None
    assert route.link_plan == _RAISED
    route.broker.plan = _NATIVE
    route.broker.lose()
    # What comes back in its place may be older: its answer must be seen.
    assert route.link_plan == READ_ONLY


def test_links_are_lowered_by_what_another_one_s_broker_has_answered() -> None:
    """Clients share what one link was offered; the proxy's own connection may be late."""
    route = Route("r", Mode.ON)
    old, asking = Driven(route), Driven(route)
    asking.up(request(18, 3, 1, **USES_HINTS))
    asking.down(versions_answer(3, 1, BROKER_3_6))
    later = Driven(route)
    for link in (old, later):
        link.up(produce_request(10, 1))
        assert link.to_broker == produce_request(9, 1)


def test_so_are_links_with_synthetic_ids_where_an_older_broker_comes_back() -> None:
    """The proxy's own connection may be late, or may not be authenticated any more."""
    before = {**BROKER_3_6, ApiKey.FETCH: 12, ApiKey.METADATA: 11}
    by_then = {**before, ApiKey.PRODUCE: 8, ApiKey.FETCH: 11, ApiKey.METADATA: 9}
    state = BrokerState(
        maxima=before,
        plan=plan_for(before),
        synthetic_plan=plan_for(before, synthetic=True),
        ids_everywhere=True,
    )
    route = Route("r", Mode.ON, RouteConfig(synthesize=True), broker=state)
    route.broker.lose()
    asking = Driven(route)
    asking.up(request(18, 3, 1, **USES_HINTS))
    asking.down(versions_answer(3, 1, by_then))
    later = Driven(route)
    later.up(produce_request(10, 1))
    assert later.to_broker == produce_request(8, 1)


def test_an_older_link_is_lowered_by_what_the_broker_has_answered_since() -> None:
    route = Route("r", Mode.ON)
    old = Driven(route)
    old.up(request(3, 9, 1))
    route.broker.plan = _RAISED
    old.to_broker.clear()
    old.up(produce_request(10, 2))
    assert old.to_broker == produce_request(9, 2)


def test_what_links_are_answered_does_not_outlive_the_broker_s_own_answer() -> None:
    route = Route("r", Mode.ON, broker=BrokerState(plan=_NATIVE))
    asking = Driven(route)
    asking.up(request(18, 3, 1, **USES_HINTS))
    asking.down(versions_answer(3, 1, BROKER_3_6))
    assert route.link_plan == _NATIVE
    assert route.broker.former_plan is None


def test_each_change_of_a_broker_s_place_is_counted() -> None:
    broker, view = BrokerState(), LeaderView("k")
    changes: list[Callable[[], None]] = [
        lambda: broker_identity.conclude(broker, {("t", 0): Leader(3, 5)}, {("t", 0): 0}),
        lambda: setattr(broker, "view", view),
        lambda: broker_identity.forget(broker),
        lambda: setattr(broker, "view", LeaderView("k")),
    ]
    for change in changes:
        before = BrokerState.placements
        change()
        assert BrokerState.placements == before + 1
    before = BrokerState.placements
    broker.node, broker.view, broker.reachable = None, broker.view, True
    assert BrokerState.placements == before


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.OFF])
def test_a_route_that_is_switched_on_raises_versions_on_new_links(mode: Mode) -> None:
    route = Route("r", mode, broker=BrokerState(plan=_RAISED))
    route.switch(Mode.ON)
    assert route.link_plan == _RAISED


def test_epochs_from_before_a_switch_are_not_relied_upon() -> None:
    route = Route("r", Mode.ON)
    before = route.sessions
    route.switch(Mode.OFF)
    assert route.sessions is not before
