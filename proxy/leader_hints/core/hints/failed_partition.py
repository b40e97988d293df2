"""The failed partitions of a response, and what is known of each of them."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.leader_hint import Failure, LeaderHint
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.topic_leaders import TopicLeaders
from leader_hints.core.hints.miss_reason import MissReason, Settling

#: Reasons that no further answer of a broker would change.
_FINAL = (MissReason.NO_LEADER, MissReason.NOT_AUTHORIZED)

#: What came of a partition: the client's epoch, and the hint or why there is none.
Outcome = tuple[Failure, int, LeaderHint | None, MissReason | Settling]


class FailedPartition:
    """One failed partition that waits for its hint.

    ``since``: when the error came. ``led``: the epoch at which the answering broker was known to
    lead at that time, -1 if it was not. ``asked``: the answering broker was asked after the error,
    and its answer cannot be about another topic of the name. ``serves``: whether it has reported
    since that it leads; ``None``: it has reported nothing. ``about``: of which topic both are.
    ``known``: the view's leader.
    ``found``: a good hint, first found at ``found_at``; it is given at ``good_at`` even if its
    leader has confirmed nothing. ``hint``: the hint that is given; ``reason``: why there is none.
    ``settles``: its client can use no hint; its error waits until all brokers name the hint's
    leader.
    """

    __slots__ = (
        "about",
        "asked",
        "client_epoch",
        "failure",
        "found",
        "found_at",
        "good_at",
        "hint",
        "known",
        "led",
        "reason",
        "serves",
        "settles",
        "since",
    )

    def __init__(
        self,
        failure: Failure,
        client_epoch: int,
        since: float,
        led: int,
        *,
        settles: bool = False,
    ) -> None:
        self.failure = failure
        self.client_epoch = client_epoch
        self.since = since
        self.led = led
        self.settles = settles
        self.about: TopicLeaders | None = None
        self.asked = False
        self.serves: bool | None = None
        self.known: Leader | None = None
        self.found: LeaderHint | None = None
        self.found_at = 0.0
        self.good_at = math.inf
        self.hint: LeaderHint | None = None
        self.reason: MissReason | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing is left to wait for."""
        return self.hint is not None or self.reason in _FINAL

    def outcome(self, reason: MissReason) -> Outcome:
        """Return what comes of it if its response goes on now; ``reason``: of the response."""
        late = self.settles and self.hint is None and self.found is not None
        # Then only Metadata was late.
        why = self.reason or (Settling.METADATA_BEHIND if late else reason)
        return self.failure, self.client_epoch, self.hint, why

    @property
    def is_fenced_blindly(self) -> bool:
        """Whether the client used an older epoch than its broker has, and it is not known which.

        That may be of the leadership that is known already, so only the broker's answer shows
        whether there is a newer one.
        """
        fenced = self.failure.error == ErrorCode.FENCED_LEADER_EPOCH
        return self.settles and fenced and self.client_epoch < 0

    @property
    def newest(self) -> int:
        """The newest epoch at which the client and the answering broker are known to have been."""
        if self.is_fenced_blindly:
            return self.led - 1
        return self.client_epoch if self.client_epoch >= 0 else self.led


class FailedPartitions:
    """The failed partitions of one response, which may be thousands.

    ``seen``: those that were judged at least once, in the order of the response; ``missing``: how
    many were not. ``lacking``: those of ``seen`` that are not settled, the next one to be judged
    first. ``stale``: how many of ``lacking`` are to be judged again.
    """

    __slots__ = ("_coming", "lacking", "missing", "seen", "stale")

    def __init__(self, failures: Sequence[Failure], epochs: Sequence[int]) -> None:
        self._coming = zip(failures, epochs, strict=True)
        self.missing = len(failures)
        self.seen: list[FailedPartition] = []
        self.lacking: deque[FailedPartition] = deque()
        self.stale = 0

    @classmethod
    def of(cls, partitions: Sequence[FailedPartition]) -> "FailedPartitions":
        """Return those that were judged before, none of them settled: nothing is to be ``seen``."""
        made = cls((), ())
        made.lacking = deque(partitions)
        return made

    @property
    def judged(self) -> bool:
        """Whether all of them were judged by what is known now."""
        return not (self.stale or self.missing)

    @property
    def settled(self) -> bool:
        """Whether nothing is left to wait for."""
        return not (self.lacking or self.missing)

    def next_one(self, make: Callable[[Failure, int], FailedPartition]) -> FailedPartition:
        """Return the partition that is to be judged next; ``make`` is for one not seen before."""
        if self.stale:
            self.stale -= 1
            return self.lacking.popleft()
        partition = make(*next(self._coming))
        self.seen.append(partition)
        self.missing -= 1
        return partition

    def rest(self) -> Iterator[tuple[Failure, int]]:
        """Iterate over failures and clients' epochs of those that were never judged."""
        return self._coming
