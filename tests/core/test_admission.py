"""How many clients are let in."""

from leader_hints.core.admission import Admission
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route


def test_a_route_and_all_together_are_bounded() -> None:
    one, two = Route("one", Mode.ON), Route("two", Mode.ON)
    admission = Admission([one, two], per_route=2, total=3)
    one.traffic.links_open = 1
    assert admission.refusal(one) is None
    one.traffic.connecting = 1
    assert admission.refusal(one) == "connections_per_route"
    assert admission.refusal(two) is None
    two.traffic.connecting = 1
    assert admission.refusal(two) == "connections"
    one.traffic.connecting = 0
    assert admission.refusal(two) is None
