"""All rules together: a route that is right."""

from leader_hints.check.rules import judge, must_fix
from tests.check.samples import BOUNDS, MACHINE, RIGHT, RUNNING, fine, found


def test_a_route_that_is_right() -> None:
    assert found(RIGHT) == found(RUNNING) == set()
    assert fine(RIGHT) >= {"versions_raised", "listen_free", "advertised_right"}
    assert fine(RUNNING) >= {"versions_raised", "listen_proxy", "advertised_right"}
    assert not must_fix(judge((RIGHT, RUNNING), MACHINE, BOUNDS))
