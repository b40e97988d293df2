"""Which large requests are recoded at the same time, and which link is next."""

from itertools import islice

import pytest

from leader_hints.core.link import recoding_turns
from leader_hints.core.link.recoding_turns import RecodingTurns
from leader_hints.wire.steps import Steps


@pytest.fixture(autouse=True)
def _room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recoding_turns, "_AT_ONCE", 100)


def _two_steps() -> Steps[None]:
    yield


class _Links:
    """Links that all want to recode a request of 60 bytes, but for some."""

    def __init__(self, count: int, sizes: dict[int, int] | None = None) -> None:
        self.came: list[int] = []
        self.turns = RecodingTurns(self.came.append)
        sizes = dict.fromkeys(range(count), 60) | (sizes or {})
        self.steps = {
            link: self.turns.in_turn(link, size, _two_steps()) for link, size in sizes.items()
        }
        for _ in range(2):
            for steps in self.steps.values():
                next(steps)

    def end(self, link: int) -> None:
        """Do all steps of a link."""
        left = list(islice(self.steps[link], 10))
        assert len(left) < 10, f"link {link} has no turn"


def test_each_link_has_its_turn_in_the_order_in_which_they_came() -> None:
    links = _Links(4)
    for link in range(4):
        assert links.came == list(range(link + 1))
        assert [links.turns.waits(other) for other in range(4)] == [
            other > link for other in range(4)
        ]
        links.end(link)
    assert links.turns.recoded == 0


def test_small_requests_are_recoded_at_the_same_time() -> None:
    links = _Links(3, {0: 40, 1: 60, 2: 1})
    assert links.came == [0, 1]
    links.end(1)
    assert links.came == [0, 1, 2]


def test_a_request_that_is_larger_than_all_room_is_recoded_alone() -> None:
    links = _Links(3, {1: 1000})
    links.end(0)
    assert links.came == [0, 1]
    links.end(1)
    assert links.came == [0, 1, 2]


@pytest.mark.parametrize("gone", [0, 1])
def test_who_ends_while_it_is_recoded_or_waits_keeps_no_room(gone: int) -> None:
    links = _Links(3)
    links.steps[gone].close()
    for link in {0, 1, 2} - {gone}:
        links.end(link)
    assert links.turns.recoded == 0
    assert not any(links.turns.waits(link) for link in range(3))


def test_a_link_that_is_given_no_second_turn_takes_no_room() -> None:
    """Its broker may not have taken what came before, and may never do so."""
    turns = RecodingTurns(lambda link: None)
    stuck = turns.in_turn(1, 60, _two_steps())
    next(stuck)
    assert turns.recoded == 0
    assert not turns.waits(1)
