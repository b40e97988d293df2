"""What a link keeps is counted, small or large, and given back however the link ends."""

import pytest

from proxy.core.budget import Budget
from proxy.core.events import HintMissed
from proxy.core.held import Held
from proxy.core.mode import Mode
from proxy.core.reason import Reason
from tests.core.links import Driven, route
from tests.core.samples import (
    NOT_LEADER,
    fetch_answer,
    fetch_request,
    produce_answer,
    produce_request,
    topic_id,
)


def _asked(size: int = 3) -> bytes:
    return fetch_request(16, 1, {(topic_id(1), partition): 3 for partition in range(size)})


def test_a_small_response_is_counted_while_it_is_held_and_what_came_behind_it_too() -> None:
    driven = Driven(route())
    driven.up(produce_request(10, 1) + produce_request(10, 2))
    first, second = produce_answer(9, 1, {0: NOT_LEADER}), produce_answer(9, 2, {0: 0})
    driven.down(first)
    assert driven.budget.used == len(first)
    driven.link.responses.flushed()
    assert driven.budget.used == len(first)
    driven.release([None])
    assert driven.budget.used == 0

    driven.up(produce_request(10, 3))
    driven.down(second + produce_answer(9, 3, {0: NOT_LEADER}))
    driven.release([None])
    assert driven.budget.used == 0


def test_what_came_behind_a_held_response_is_counted() -> None:
    driven = Driven(route())
    driven.up(produce_request(10, 1) + produce_request(10, 2))
    both = produce_answer(9, 1, {0: NOT_LEADER}) + produce_answer(9, 2, {0: 0})
    driven.down(both)
    assert driven.budget.used == len(both)
    driven.link.close()
    assert driven.budget.used == 0


def test_what_is_held_one_behind_the_other_is_counted_once() -> None:
    count = 50
    driven = Driven(route())
    driven.up(b"".join(produce_request(10, number) for number in range(count)))
    answers = [produce_answer(9, number, {0: NOT_LEADER}) for number in range(count)]
    every = b"".join(answers)
    driven.down(every)
    for answer in answers:
        assert driven.held is not None
        # Each has a copy of its own while it is held, beside the receive buffer's.
        assert len(answer) <= driven.budget.used <= 2 * len(every)
        driven.release([None])
    assert driven.to_client == every
    assert driven.budget.used == 0
    # It begins anew.
    driven.up(produce_request(10, 1) + produce_request(10, 2))
    driven.down(answers[1] + answers[2])
    assert driven.budget.used == len(answers[1] + answers[2])


def test_without_budget_a_small_response_is_not_held_and_that_is_told() -> None:
    driven = Driven(route(), budget=Budget(20, 20))
    driven.up(produce_request(10, 1))
    answer = produce_answer(9, 1, {0: NOT_LEADER})
    driven.down(answer)
    assert driven.held is None
    assert driven.to_client == answer
    (missed,) = (e for e in driven.link.state.events if isinstance(e, HintMissed))
    assert missed.reason is Reason.BUDGET


@pytest.mark.parametrize("ending", ["answered", "closed", "unmatched"])
def test_a_request_that_awaits_its_response_is_counted(ending: str) -> None:
    driven = Driven(route())
    driven.up(_asked())
    assert driven.budget.used == len(_asked())
    if ending == "answered":
        driven.down(fetch_answer(15, 1, []))
    elif ending == "closed":
        driven.link.close()
    else:
        # A response to nothing: from here on nothing is looked at, so nothing is kept.
        driven.down(fetch_answer(15, 99, []))
        assert driven.budget.used == 0
        driven.up(_asked())
    assert driven.budget.used == 0


def test_without_budget_no_copy_of_a_request_is_kept() -> None:
    driven = Driven(route(), budget=Budget(20, 20))
    driven.up(_asked())
    assert driven.budget.used == 0
    assert driven.link.state.exchanges[0].request is None


def test_a_response_that_is_only_looked_at_is_not_kept_once_it_has_gone_on() -> None:
    seen: list[Held] = []

    def decide(held: Held) -> list[None]:
        seen.append(held)
        return [None]

    driven = Driven(route(Mode.OBSERVE), decide=decide)
    driven.up(produce_request(9, 1))
    driven.down(produce_answer(9, 1, {0: NOT_LEADER}))
    assert len(seen[0].frame) == 0
    assert driven.budget.used == 0
