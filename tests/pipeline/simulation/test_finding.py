"""How a client finds the next leader, one rule after the other."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.finding import held_until, metadata_known, served
from leader_hints_report.simulation.parameters import Parameters

_QUIET = Parameters.model_validate({"busy_ms": 0.0, "rtt_ms": 2.0, "ask_ms": 1.0})
_TIMES = st.floats(0, 2000)


def _hold(
    mode: Mode,
    error: float,
    serves: float,
    shows: list[float],
    *,
    uses: bool,
    settles: bool = False,
) -> tuple[float, bool]:
    held = held_until(
        mode,
        np.array([error]),
        np.array([serves]),
        np.array(shows),
        np.array([uses]),
        np.array([settles]),
        np.array([3.0]),
        _QUIET,
        kraft=False,
    )
    return float(held.until[0]), bool(held.hinted[0])


def test_without_a_proxy_nothing_is_held() -> None:
    assert _hold(Mode.NO_PROXY, 5, 50, [40, 60], uses=True) == (5, False)
    assert _hold(Mode.NATIVE, 5, 50, [40, 60], uses=True) == (5, True)


def test_a_hint_waits_until_the_leader_serves() -> None:
    until, hinted = _hold(Mode.HINTS, 5, 50, [40, 60], uses=True)
    assert hinted
    assert 50 < until < 56


def test_no_hold_is_longer_than_the_bound() -> None:
    until, hinted = _hold(Mode.HINTS, 5, 500, [40, 60], uses=True)
    assert not hinted
    assert until == 5 + _QUIET.deadline_ms + _QUIET.proxy_ms


def test_an_error_is_settled_when_all_brokers_name_the_leader() -> None:
    until, hinted = _hold(Mode.SETTLED, 5, 10, [20, 60], uses=False, settles=True)
    assert not hinted
    assert 60 < until < 66
    assert _hold(Mode.HINTS, 5, 10, [20, 60], uses=False) == (5 + _QUIET.proxy_ms, False)
    # Of a producer without an id.
    assert _hold(Mode.SETTLED, 5, 10, [20, 60], uses=False) == (5 + _QUIET.proxy_ms, False)


def _known(
    error: float, shows: list[float], refresh: float, waits: float = 0
) -> tuple[float, float]:
    known = metadata_known(
        np.array([error]),
        np.array([waits]),
        np.array([refresh]),
        np.array(shows),
        np.zeros(1),
        _QUIET,
        np.random.default_rng(1),
    )
    return float(known.at[0]), float(known.asks[0])


def test_fresh_metadata_comes_with_the_first_answer() -> None:
    assert _known(10, [5, 5], 100) == (12, 1)
    assert _known(10, [5, 5], 100, waits=50) == (62, 1)


def test_stale_metadata_is_asked_for_again_after_the_refresh_back_off() -> None:
    at, asks = _known(10, [40, 40], 100)
    assert asks == 2
    assert 80 < at < 135


def test_a_long_wait_asks_as_often_as_that_takes() -> None:
    at, asks = _known(0, [18_000.0], 100)
    assert 18_000 <= at < 18_250
    assert 179 <= asks <= 182


def _served(
    told: float,
    known: float,
    serves: float,
    *,
    hinted: bool = False,
    skips: bool = True,
    fresh: bool = False,
    grows: bool = False,
    backoff: float = 100.0,
) -> tuple[float, float]:
    end = served(
        np.array([told]),
        np.array([hinted]),
        np.array([known]),
        np.array([serves]),
        np.array([backoff]),
        np.array([skips]),
        np.array([fresh]),
        np.array([grows]),
        _QUIET,
        np.random.default_rng(1),
    )
    return float(end.at[0]), float(end.errors[0])


def test_a_client_backs_off_once_or_as_often_as_metadata_is_stale() -> None:
    assert _served(10, 12, 5) == (112, 1)
    assert _served(10, 150, 5) == (10 + 100 + 102 + 2, 2)


def test_one_that_takes_fresh_metadata_goes_on_with_it() -> None:
    assert _served(10, 12, 5, fresh=True) == (14, 1)
    assert _served(10, 150, 5, fresh=True) == (152, 1)


def test_a_hint_saves_the_back_off_unless_the_client_has_one_for_it() -> None:
    assert _served(10, 150, 5, hinted=True) == (12, 1)
    assert _served(10, 150, 5, hinted=True, skips=False) == (112, 1)


def test_a_client_that_comes_too_early_is_refused() -> None:
    assert _served(10, 12, 60, hinted=True) == (114, 2)


def test_a_back_off_that_grows_doubles() -> None:
    assert _served(10, 12, 60, hinted=True, grows=True) == (114, 2)
    assert _served(10, 12, 200, hinted=True, grows=True)[0] == 10 + 3 * 102 + 2
    assert _served(10, 12, 500, hinted=True, grows=True)[0] == 10 + 7 * 102 + 2
    assert _served(10, 12, 1500, hinted=True, grows=True)[0] == 10 + 7 * 102 + 1000 + 2


def test_each_pause_that_grows_is_one_error() -> None:
    assert _served(10, 12, 500, hinted=True, grows=True)[1] == 1 + 3
    assert _served(10, 12, 1500, hinted=True, grows=True)[1] == 1 + 4


def test_a_short_back_off_doubles_up_to_a_second() -> None:
    # With a round trip of 2 ms: 10 ms, 20, and so on to 640; then seconds.
    assert _served(10, 12, 300, hinted=True, grows=True, backoff=8)[0] == 10 + 31 * 10 + 2
    assert _served(10, 12, 900, hinted=True, grows=True, backoff=8)[0] == 10 + 63 * 10 + 1000 + 2


def test_a_client_that_does_not_back_off_has_nothing_that_grows() -> None:
    at, errors = _served(10, 12, 301, hinted=True, grows=True, backoff=0)
    assert (at, errors) == _served(10, 12, 301, hinted=True, backoff=0)
    assert at == 302


@settings(max_examples=200, deadline=None)
@given(told=_TIMES, known=_TIMES, serves=_TIMES, fresh=st.booleans())
def test_a_hint_that_comes_with_the_error_of_a_leader_that_serves_never_takes_longer(
    told: float, known: float, serves: float, fresh: bool
) -> None:
    known, serves = max(known, told), min(serves, told)
    with_hint, _ = _served(told, known, serves, hinted=True, fresh=fresh)
    without, _ = _served(told, known, serves, fresh=fresh)
    assert with_hint <= without + 1e-9


@settings(max_examples=200, deadline=None)
@given(error=_TIMES, serves=_TIMES, shows=st.lists(_TIMES, min_size=1, max_size=5))
def test_no_mode_holds_beyond_its_bound(error: float, serves: float, shows: list[float]) -> None:
    for mode in Mode:
        for uses in (False, True):
            until, _ = _hold(mode, error, serves, shows, uses=uses)
            assert error <= until <= error + _QUIET.deadline_ms + _QUIET.proxy_ms
