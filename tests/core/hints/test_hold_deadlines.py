"""Deadlines that come earlier the later reviews come, against a plain minimum."""

from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis.keys import ApiKey
from leader_hints.core.hints.held_response import HeldResponse
from leader_hints.core.hints.hold_deadlines import HoldDeadlines
from leader_hints.core.link.link_state import LinkState
from tests.core.hold_queues import failed, route

_TICKS = st.integers(0, 40)


def _response(number: int, since: int, length: int, confirm_at: int | None) -> HeldResponse:
    held = failed(LinkState(route(), number), {0: -1}, ApiKey.PRODUCE)
    response = HeldResponse(held, number, since, detached=False, deadline=since + length)
    if confirm_at is not None:
        response.confirm_at = confirm_at
    return response


@given(
    spans=st.lists(st.tuples(_TICKS, st.integers(1, 40), st.none() | _TICKS), max_size=8),
    turns=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 30)), max_size=12),
    lowered=st.lists(st.tuples(st.integers(0, 7), st.integers(1, 20)), max_size=4),
)
def test_each_response_is_due_when_its_own_time_has_come(
    spans: list[tuple[int, int, int | None]],
    turns: list[tuple[int, int]],
    lowered: list[tuple[int, int]],
) -> None:
    deadlines = HoldDeadlines()
    left = [_response(number, *span) for number, span in enumerate(spans)]
    for response in left:
        deadlines.enter(response)
    for number, by in lowered:
        if number < len(left):
            left[number].deadline = max(left[number].deadline - by, left[number].since + 1)
            deadlines.enter(left[number])
    now = 0.0
    for step, ahead in turns:
        now += step
        while (due := deadlines.due(now, ahead)) is not None:
            assert min(due.over_at(ahead), due.confirm_at) <= now
            deadlines.remove(due)
            left.remove(due)
        times = [min(response.over_at(ahead), response.confirm_at) for response in left]
        # Never too late, and never so early that the caller is kept busy.
        assert now < deadlines.next(ahead) <= min(times, default=float("inf"))
        exact = [min(response.deadline, response.confirm_at) for response in left]
        assert deadlines.next(0) == min(exact, default=float("inf"))
