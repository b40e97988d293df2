"""What a broker's error says of its leadership."""

import pytest

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.core.cluster.leadership_answer import LeadershipAnswer, leadership_answer

_EVERY = list(range(-1, 130))


@pytest.mark.parametrize(
    ("error", "answer", "denies"),
    [
        (ErrorCode.NONE, LeadershipAnswer.LEADS, False),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, LeadershipAnswer.NEVER_LEADS, True),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, LeadershipAnswer.NOT_YET, True),
        (ErrorCode.FENCED_LEADER_EPOCH, LeadershipAnswer.EPOCH_OVER, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, LeadershipAnswer.UNAWARE, False),
    ],
)
def test_five_errors_say_something(error: int, answer: LeadershipAnswer, denies: bool) -> None:
    assert leadership_answer(error) is answer
    assert answer.denies is denies


def test_all_others_say_nothing() -> None:
    assert leadership_answer(None) is None
    assert [error for error in _EVERY if leadership_answer(error)] == [0, 3, 6, 74, 75]
