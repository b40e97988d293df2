"""How late turns came in the last second."""

from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.hints.scheduling_delay import SchedulingDelay


def test_who_is_in_time_is_not_late() -> None:
    delay = SchedulingDelay()
    delay.came(due=5.0, now=5.0)
    delay.came(due=6.0, now=5.5)
    assert delay.most(6.0) == 0


def test_the_most_is_forgotten_after_a_second_and_what_was_less_is_not() -> None:
    delay = SchedulingDelay()
    delay.came(due=9.5, now=10.0)
    delay.came(due=10.25, now=10.5)
    assert delay.most(10.75) == 0.5
    assert delay.most(11.0) == 0.25
    assert delay.most(11.5) == 0


_TURNS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8)), max_size=30)


@given(_TURNS)
def test_it_is_the_most_of_all_turns_of_the_last_second(turns: list[tuple[int, int]]) -> None:
    """Sixteenths of a second, so that all sums are exact."""
    delay, now = SchedulingDelay(), 100.0
    known: list[tuple[float, float]] = []
    for after, late in turns:
        now += after / 16
        assert delay.most(now) == max((late for at, late in known if at > now - 1), default=0)
        delay.came(now - late / 16, now)
        known.append((now, late / 16))
