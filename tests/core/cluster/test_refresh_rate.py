from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.cluster.refresh_rate import RefreshRate


def test_a_burst_after_a_quiet_time_and_then_the_rate() -> None:
    rate = RefreshRate(20, 3)
    assert [rate.take(100.0) for _ in range(5)] == [True, True, True, False, False]
    assert not rate.take(100.04)
    assert rate.take(100.06)
    assert not rate.take(100.06)
    assert [rate.take(1000.0) for _ in range(4)] == [True, True, True, False]


@given(st.lists(st.floats(0, 0.3), max_size=80))
def test_never_more_than_the_rate_and_one_burst(pauses: list[float]) -> None:
    rate, now, taken = RefreshRate(20, 3), 50.0, 0
    for pause in pauses:
        now += pause
        taken += rate.take(now)
        assert taken <= 3 + 20 * (now - 50.0) + 1e-6
