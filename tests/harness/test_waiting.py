"""How long is waited for what does not come."""

import pytest

from tests.harness.waiting import TimedOutError, patience, until


def test_what_comes_is_returned() -> None:
    looks = iter([None, 0, "here"])
    assert until(lambda: next(looks), "something") == "here"


def test_patience_is_for_waits_that_name_no_deadline() -> None:
    with patience(0.0):
        with pytest.raises(TimedOutError, match=r"not within 0 s: nothing"):
            until(lambda: False, "nothing")
        looks = iter([False, False, True])
        assert until(lambda: next(looks), "something", deadline_s=60.0)


def test_patience_ends() -> None:
    with patience(0.0):
        pass
    looks = iter([False, False, True])
    assert until(lambda: next(looks), "something")
