"""What the broker of a route has answered itself about a topic that held responses wait for.

It is kept once for all of them, and each failed partition gets it when it is judged: one answer may
concern very many. What was answered about one topic says nothing of another that has its name.
"""

import math
from typing import NamedTuple

from leader_hints.core.cluster.leadership_answer import LeadershipAnswer
from leader_hints.core.cluster.topic_leaders import TopicLeaders
from leader_hints.core.hints.failed_partition import FailedPartition


class _Said(NamedTuple):
    """Whether the broker leads (``serves``), as it said last, to a question of ``at``.

    ``counts_at``: when it was asked last with an answer that cannot be about another topic of the
    name; before all errors if never.
    """

    serves: bool
    at: float
    counts_at: float


class OwnAnswers:
    """A broker's answers about one topic; it is asked one thing after the other.

    ``about``: what the view has of the topic. ``asked_at``: when it was asked last by Metadata;
    before all errors if it was not.
    """

    __slots__ = ("_said", "about", "asked_at")

    def __init__(self, about: TopicLeaders | None = None) -> None:
        self.about = about
        self.asked_at = -math.inf
        #: By partition.
        self._said: dict[int, _Said] = {}

    def probed(
        self, number: int, answer: LeadershipAnswer, asked_at: float, *, may_be_former: bool
    ) -> float:
        """Take whether it leads a partition; return which errors that is news for.

        Those that came after the time returned. It is news for all if the last answer was another
        one.
        """
        serves = answer is LeadershipAnswer.LEADS
        # One at a newer epoch may lead at that. Of a recreated topic a broker does not know the
        # former one's epoch either.
        counts = serves or (answer is not LeadershipAnswer.EPOCH_OVER and not may_be_former)
        before = self._said.get(number)
        counted_at = before.counts_at if before is not None else -math.inf
        self._said[number] = _Said(serves, asked_at, asked_at if counts else counted_at)
        if before is None or before.serves is not serves:
            return -math.inf
        return counted_at if counts else before.at

    def apply_to(self, partition: FailedPartition) -> None:
        """Note on a failed partition what the broker has answered since its error."""
        if partition.about is not self.about:
            partition.about, partition.asked, partition.serves = self.about, False, None
        if self.asked_at >= partition.since:
            partition.asked = True
        said = self._said.get(partition.failure.partition)
        if said is not None and said.at >= partition.since:
            partition.serves = said.serves
            partition.asked |= said.counts_at >= partition.since
