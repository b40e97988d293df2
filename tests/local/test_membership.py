"""Which brokers are of the cluster before which a virtual cluster is."""

from collections.abc import Mapping

from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.local.membership import Membership
from leader_hints.local.virtual_broker import VirtualBroker

_AT: Mapping[int, Endpoint] = {node: Endpoint("b", node, None) for node in (1, 2, 3)}


def _broker(
    cluster: str | None, listed: Mapping[int, Endpoint] = _AT, *, reachable: bool = True
) -> VirtualBroker:
    view = None if cluster is None else LeaderView(cluster)
    state = BrokerState(endpoints=listed, reachable=reachable, view=view)
    return VirtualBroker(Route("r", Mode.ON, broker=state), Address("b", 1))


def test_lists_of_brokers_that_can_be_asked_count_each_once() -> None:
    of = Membership(None)
    assert of.lists([_broker("k"), _broker("k"), _broker("k", {}, reachable=False)]) == [_AT]
    assert of.cluster == "k"
    other = {7: _AT[1]}
    assert of.lists([_broker("k"), _broker("k", other)]) == [_AT, other]


def test_a_broker_of_another_cluster_does_not_count_beside_one_of_this() -> None:
    of, other = Membership("k"), _broker("another", {7: _AT[1]})
    assert of.lists([other, other, _broker("k")]) == [_AT]
    assert (of.is_of_another(other), of.is_of_another(_broker("k"))) == (True, False)
    assert of.is_of_another(_broker("another", reachable=False)) is False


def test_half_of_the_brokers_do_not_make_the_cluster_another() -> None:
    """That one counted as much as the one that stayed, which was taken for gone."""
    of, other = Membership("k"), _broker("another", {7: _AT[1]})
    gone = _broker("k", reachable=False)
    assert of.lists([other, gone]) == []
    assert of.some_answer([other, gone]) is False
    assert of.lists([other, other, gone]) == [other.route.broker.endpoints]
    assert of.cluster == "another"


def test_brokers_that_have_left_have_no_say() -> None:
    of, other, left = Membership("k"), _broker("another"), _broker("another")
    left.left = True
    assert of.lists([left, _broker("k", reachable=False)]) == []
    gone = _broker("k", reachable=False)
    gone.left = True
    assert of.lists([other, gone, gone]) == [_AT]


def test_a_broker_that_has_not_told_its_cluster_is_of_none() -> None:
    """It was taken for one of the cluster without an id, and the others for another one's."""
    of, silent = Membership(None), _broker(None)
    assert of.lists([silent, _broker("k")]) == [_AT]
    assert of.cluster == "k"
    assert of.is_of_another(silent) is False
