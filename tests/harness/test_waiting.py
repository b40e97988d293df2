"""How long is waited for what does not come."""

from types import SimpleNamespace

import pytest

from tests.harness.waiting import STILL_S, TimedOutError, patience, until


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


def test_a_suspended_machine_uses_up_no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 117.0, 117.1, 234.0])
    stalled = SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda seconds: None)
    monkeypatch.setattr("tests.harness.waiting.time", stalled)
    looks = iter([False, False, False, True])
    assert until(lambda: next(looks), "something", deadline_s=3 * STILL_S)
