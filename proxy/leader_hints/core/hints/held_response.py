"""A response that is held, or for which a leader is still sought.

Tested in ``tests/core/hints/test_hold_queue.py``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.keys import ApiKey
from leader_hints.core.hints.failed_partition import FailedPartition, FailedPartitions, Outcome
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.hints.own_answers import OwnAnswers
from leader_hints.core.link.held import Held
from leader_hints.core.route import Route

_NONE: Mapping[Topic, OwnAnswers] = MappingProxyType({})
#: The largest part of a hold, or of the grace, that is cut off if reviews come late.
_MOST_CUT = 0.25


class HeldResponse:
    """An error response and its bounds.

    ``number``: increases with each response. ``since``: when it came, in seconds. ``deadline``: by
    rules 4 and 5, lowered by 6; see :mod:`leader_hints.core.hints.hold_queue`. ``confirm_at``: when
    a hint is to be given although its leader has confirmed nothing. ``first_hint``: when its
    partitions were judged first after one of them had got a hint (``hinted``). ``news``: what its
    judgement rests on has changed. ``detached``: it was forwarded already, and hints are only
    counted. ``sought``: it was forwarded, and its leaders are sought for the next error.
    ``exposed``: rule 9. ``switched``: the route's mode was changed meanwhile, so it gets no hint.
    ``topics``: by which it is found. ``answers``: what its broker has answered about topics, before
    its error as well. ``counting``: its partitions of which it is to be noted yet when they began
    to fail, and ``latest``: until when the others may be held. ``ending``: why it goes on, once
    that is decided; ``outcomes``: what comes of its partitions, as far as that was noted since.
    ``gone``: its link is.

    Large because all that decides when it goes on is here.
    """

    __slots__ = (
        "answers",
        "confirm_at",
        "counting",
        "deadline",
        "detached",
        "ending",
        "exposed",
        "first_hint",
        "gone",
        "held",
        "hinted",
        "latest",
        "news",
        "number",
        "outcomes",
        "partitions",
        "since",
        "sought",
        "switched",
        "topics",
    )

    def __init__(
        self,
        held: Held,
        number: int,
        since: float,
        *,
        detached: bool,
        deadline: float,
        sought: Sequence[FailedPartition] = (),
    ) -> None:
        failures = held.scanned.failures
        self.held = held
        self.number = number
        self.since = since
        self.deadline = deadline
        self.confirm_at = math.inf
        self.first_hint: float | None = None
        self.hinted = False
        self.news = False
        self.detached = detached
        self.exposed = False
        self.switched = False
        self.gone = False
        self.answers = _NONE
        self.counting: Iterator[FailedPartition] | None = None
        self.latest = -math.inf
        self.ending: MissReason | None = None
        self.outcomes: list[Outcome] = []
        self.sought = bool(sought)
        self.topics: dict[Topic, None] = {}
        if sought:
            self.partitions = FailedPartitions.of(sought)
        else:
            self.partitions = FailedPartitions(failures, held.epochs)

    @property
    def ready(self) -> bool:
        """Whether nothing is left to wait for, or nothing may be waited for."""
        return self.exposed or self.partitions.settled

    def apply_answers(self, partition: FailedPartition) -> None:
        """Note on one of its partitions what its broker has answered since."""
        if self.answers:
            topic, view = partition.failure.topic, self.route.broker.view
            about = view.topics.get(topic) if view is not None else None
            answers = self.answers.get(topic)
            # News of a recreated topic is passed on in steps, and may be late.
            if answers is not None and answers.about is about:
                answers.apply_to(partition)

    @property
    def route(self) -> Route:
        """The route of its link."""
        return self.held.link.route

    @property
    def is_produce(self) -> bool:
        """Whether it answers a Produce request."""
        return self.held.key == ApiKey.PRODUCE

    @property
    def end_reason(self) -> MissReason:
        """Why a partition has no hint if the response goes on now."""
        return MissReason.LEADER_NOT_READY if self.exposed else MissReason.HOLD_EXPIRED

    @property
    def earliest(self) -> float:
        """When it goes on at the earliest if reviews come late and nothing is learnt."""
        begin = self.since if self.first_hint is None else self.first_hint
        return self.deadline - _MOST_CUT * (self.deadline - begin)

    def over_at(self, ahead: float) -> float:
        """Return when it goes on if the next review may be ``ahead`` seconds late.

        A hint that comes in the time that is cut off is lost, so most of a hold is left, and of the
        grace.
        """
        return max(self.earliest, self.deadline - ahead)
