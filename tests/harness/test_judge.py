"""A hint that was true once is not good enough: the client may know better."""

from datetime import datetime, time, timedelta

import pytest

from tests.harness.history import Term
from tests.harness.judge import is_wrong

#: Brokers write their own time of day, proxies UTC.
_FAILED = datetime(2026, 1, 2, 0, 0, 5).astimezone()
#: Broker 1 led again 10 seconds before, over midnight.
_TERMS = {
    4: Term(1, time(23, 0)),
    5: Term(2, time(23, 30)),
    6: Term(1, time(23, 59, 55)),
    7: Term(2, time(0, 0, 4)),
}


def _line(leader: int, epoch: int, *, client_epoch: int = -1) -> dict[str, object]:
    return {
        "leader": leader,
        "epoch": epoch,
        "client_epoch": client_epoch,
        "hold_ms": 50.0,
        "timestamp": (_FAILED + timedelta(milliseconds=50)).isoformat(),
    }


@pytest.mark.parametrize(("leader", "epoch"), [(2, 4), (1, 5), (2, 8)])
def test_who_never_led_under_the_epoch_is_wrong(leader: int, epoch: int) -> None:
    assert is_wrong(_line(leader, epoch, client_epoch=3), 1, _TERMS)


def test_a_move_older_than_the_brokers_last_term_is_wrong_where_no_epoch_is_given() -> None:
    assert is_wrong(_line(2, 5), 1, _TERMS)
    assert not is_wrong(_line(2, 5, client_epoch=4), 1, _TERMS)
    assert not is_wrong(_line(2, 7), 1, _TERMS)


def test_what_another_broker_or_a_moment_did_is_not_held_against_it() -> None:
    assert not is_wrong(_line(2, 5), 3, _TERMS)
    assert not is_wrong(_line(1, 6), 2, _TERMS)
