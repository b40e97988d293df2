"""What a broker's own answers tell the failed partitions of a topic."""

import math

import pytest

from leader_hints.apis.leader_hint import Failure
from leader_hints.core.cluster.leadership_answer import LeadershipAnswer
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.own_answers import OwnAnswers
from tests.core.samples import NOT_LEADER

LEADS, NOT_YET = LeadershipAnswer.LEADS, LeadershipAnswer.NOT_YET
NEVER, OVER = LeadershipAnswer.NEVER_LEADS, LeadershipAnswer.EPOCH_OVER
T = 10.0


def _told(answers: OwnAnswers, since: float = T, number: int = 0) -> tuple[bool, bool | None]:
    partition = FailedPartition(Failure("t", number, NOT_LEADER, 0, 0), 5, since, -1)
    answers.apply_to(partition)
    return partition.asked, partition.serves


def _probed(*said: LeadershipAnswer, former: bool = False) -> tuple[OwnAnswers, list[float]]:
    """Return what a broker said of partition 0, a second after the other, and what was news."""
    answers = OwnAnswers()
    news = [
        answers.probed(0, answer, T + number, may_be_former=former)
        for number, answer in enumerate(said)
    ]
    return answers, news


def test_metadata_counts_for_all_errors_from_before_the_question() -> None:
    answers = OwnAnswers()
    assert _told(answers) == (False, None)
    answers.asked_at = T
    assert _told(answers) == (True, None)
    assert _told(answers, T + 0.001, 7) == (False, None)


@pytest.mark.parametrize(
    ("said", "former", "told"),
    [
        (LEADS, False, (True, True)),
        (LEADS, True, (True, True)),
        (NEVER, False, (True, False)),
        (NEVER, True, (False, False)),
        (NOT_YET, False, (True, False)),
        (NOT_YET, True, (False, False)),
        (OVER, False, (False, False)),
    ],
)
def test_whether_it_leads_counts_for_errors_of_the_partition_from_before_the_question(
    said: LeadershipAnswer, former: bool, told: tuple[bool, bool]
) -> None:
    answers, _ = _probed(said, former=former)
    assert _told(answers) == told
    assert _told(answers, T + 0.001) == (False, None)
    assert _told(answers, number=1) == (False, None)


def test_the_last_answer_says_whether_it_serves_and_any_that_it_was_asked() -> None:
    answers, _ = _probed(LEADS, OVER)
    assert _told(answers) == (True, False)
    assert _told(answers, T + 0.5) == (False, False)
    assert _told(answers, T + 1.5) == (False, None)


def test_a_partition_keeps_what_it_was_given() -> None:
    partition = FailedPartition(Failure("t", 0, NOT_LEADER, 0, 0), 5, T, -1)
    first, _ = _probed(LEADS)
    first.apply_to(partition)
    OwnAnswers().apply_to(partition)
    assert (partition.asked, partition.serves) == (True, True)


@pytest.mark.parametrize(
    ("said", "news"),
    [
        # Another answer is news for all errors.
        ((NOT_YET, LEADS, NEVER), [-math.inf, -math.inf, -math.inf]),
        # The same one only for errors that came since the last question.
        ((NOT_YET, NOT_YET, NEVER), [-math.inf, T, T + 1]),
        ((OVER, OVER), [-math.inf, T]),
        # That it was asked is news for those for which it had not counted.
        ((OVER, NEVER), [-math.inf, -math.inf]),
        ((NEVER, OVER, OVER, NEVER), [-math.inf, T, T + 1, T]),
    ],
)
def test_what_is_said_again_is_no_news(
    said: tuple[LeadershipAnswer, ...], news: list[float]
) -> None:
    assert _probed(*said)[1] == news
