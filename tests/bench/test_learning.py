"""What the brokers' logs say of when each of them learnt of a move."""

from bench.learning import Floor, floor_in

_LINE = (
    "{at} INFO [Broker id={node}] {role} {topic}-0 with topic id Some(x) "
    "starts at leader epoch {epoch} from offset 7\n"
)


def _log(node: int, *learnt: tuple[str, str, int], topic: str = "t") -> str:
    return "".join(
        _LINE.format(at=at, node=node, role=role, topic=topic, epoch=epoch)
        for at, role, epoch in learnt
    )


def _floor(*logs: str) -> Floor:
    """Return it in whole milliseconds."""
    floor = floor_in(logs, "t")
    return Floor([*map(round, floor.produce)], [*map(round, floor.consume)])


def test_nobody_can_be_served_between_two_leaders() -> None:
    one = _log(1, ("10:00:00.000", "Leader", 3), ("10:00:01.000", "Follower", 4))
    two = _log(2, ("10:00:00.000", "Follower", 3), ("10:00:01.250", "Leader", 4))
    three = _log(3, ("10:00:00.100", "Follower", 3), ("10:00:01.050", "Follower", 4))
    assert _floor(one, two, three) == Floor([250], [250])


def test_consumers_wait_as_soon_as_a_follower_has_left() -> None:
    one = _log(1, ("10:00:00.000", "Leader", 3), ("10:00:01.000", "Follower", 4))
    two = _log(2, ("10:00:00.000", "Follower", 3), ("10:00:00.950", "Leader", 4))
    three = _log(3, ("10:00:00.000", "Follower", 3), ("10:00:00.750", "Follower", 4))
    assert _floor(one, two, three) == Floor([0], [200])


def test_a_move_over_midnight_is_short() -> None:
    one = _log(1, ("23:59:59.000", "Leader", 3), ("23:59:59.900", "Follower", 4))
    two = _log(2, ("23:59:59.000", "Follower", 3), ("00:00:00.100", "Leader", 4))
    assert _floor(one, two) == Floor([200], [200])


def test_a_leader_that_stays_and_other_topics_are_no_move() -> None:
    one = _log(1, ("10:00:00.000", "Leader", 3), ("10:00:01.000", "Leader", 4))
    two = _log(2, ("10:00:00.000", "Follower", 3), ("10:00:01.000", "Follower", 4))
    other = _log(1, ("10:00:02.000", "Follower", 5), topic="u")
    assert _floor(one, two, other) == Floor()


def test_rounds_are_pooled() -> None:
    floor = Floor([1.0], [2.0])
    floor.add(Floor([3.0], [4.0]))
    assert floor == Floor([1.0, 3.0], [2.0, 4.0])
