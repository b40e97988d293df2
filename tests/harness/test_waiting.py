"""How long is waited for what does not come."""

from types import SimpleNamespace

import pytest

from tests.harness.waiting import POLL_S, STILL_S, TimedOutError, patience, until


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


@pytest.mark.parametrize("longest", [0.2, 0.05])
def test_what_takes_long_is_looked_at_less_and_less_often(
    longest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(
        "tests.harness.waiting.time", SimpleNamespace(monotonic=lambda: 0.0, sleep=pauses.append)
    )
    looks = iter([*[False] * 30, True])
    assert until(lambda: next(looks), "something", longest_poll_s=longest)
    assert pauses[0] == POLL_S
    assert pauses == sorted(pauses)
    assert pauses[-1] == longest
