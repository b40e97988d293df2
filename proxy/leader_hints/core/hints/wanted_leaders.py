"""The leaders that held responses wait for, and the questions that would find them.

Tested in ``tests/core/hints/test_hold_queue.py``.
"""

from collections.abc import Iterable, Sequence, Set

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.list_offsets import Partition
from leader_hints.core.cluster.doubts import Reporter
from leader_hints.core.cluster.leader import LAST_EPOCH, Leader
from leader_hints.core.hints import hint_rules
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.route import Route


class WantedLeaders:
    """What would bring hints for the held responses of a route."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self._partitions: list[FailedPartition] = []

    def add(self, partitions: Iterable[FailedPartition]) -> None:
        """Add failed partitions that wait for their leaders."""
        self._partitions += partitions

    def __len__(self) -> int:
        """Failed partitions, each as often as a response waits for it."""
        return len(self._partitions)

    @property
    def topics(self) -> Set[Topic]:
        """The topics (names or ids) of which Metadata is wanted, in the order of their coming.

        Brokers are asked in that order, and it is the same wherever the same happens: a set's
        depends on the process.
        """
        return dict.fromkeys(partition.failure.topic for partition in self._partitions).keys()

    @property
    def epochs(self) -> dict[Partition, int]:
        """At which epoch each leader is sought, by asking each broker whether it leads."""
        return self.epochs_of(self._partitions)

    def awaits_metadata_of(self, reporter: Reporter) -> bool:
        """Whether an error waits until this broker's Metadata names a leader that is known."""
        view = self.route.broker.view
        if view is None:
            return False
        key, lags = view.topics.key, view.metadata_brokers.lags
        return any(
            lags(reporter, (key(one.failure.topic), one.failure.partition))
            for one in self._partitions
            if one.settles and one.found is not None
        )

    # For storms, in which all of it is too much.

    def single(self) -> None:
        """Keep each partition once, however many responses wait for it.

        Of those the one at the lowest epoch: see :meth:`epochs_of`.
        """
        lowest: dict[tuple[Topic, int], FailedPartition] = {}
        for one in self._partitions:
            place = one.failure[:2]
            known = lowest.setdefault(place, one)
            if known is not one and one.newest < known.newest:
                lowest[place] = one
        self._partitions = [*lowest.values()]

    @property
    def unknown(self) -> Set[Topic]:
        """As ``topics``, but only those with a partition whose leader is not known yet.

        Or not to all brokers, where an error waits for that.
        """
        topics: dict[Topic, None] = {}
        for one in self._partitions:
            if one.failure.topic not in topics and (
                one.found is None or not hint_rules.is_settled(self.route, one)
            ):
                topics[one.failure.topic] = None
        return topics.keys()

    def questions(self, most: int) -> list[tuple[int, Sequence[FailedPartition]]]:
        """Return the named leaders, each with at most ``most`` of the partitions it is named for.

        A leader with more partitions is returned several times.
        """
        by_leader: dict[int, list[FailedPartition]] = {}
        for one in self._partitions:
            if one.found is not None:
                by_leader.setdefault(one.found.leader, []).append(one)
        return [
            (node, of[begin : begin + most])
            for node, of in by_leader.items()
            for begin in range(0, len(of), most)
        ]

    @property
    def claims(self) -> dict[Partition, Leader]:
        """Who else is to be asked whether it leads, if the view's leader is in doubt."""
        view = self.route.broker.view
        claims: dict[Partition, Leader] = {}
        if view is None:
            return claims
        for one in self._partitions:
            topic, partition = one.failure[:2]
            name, claim = view.topics.name(topic), view.claim(topic, partition)
            if name is not None and claim is not None:
                claims[name, partition] = claim
        return claims

    def epochs_of(self, some: Iterable[FailedPartition]) -> dict[Partition, int]:
        """As ``epochs``: the view's epoch, or the next one if the client knows that already.

        Each move raises the epoch by one. So the leader at the next one reports itself as soon as
        it serves, while Metadata lags. In doubt the view's leader is asked whether it leads at all.
        A client may claim any epoch, and others may wait for the same partition: the lowest one is
        asked for. If that is over a broker says so, and the one behind it is asked for.
        """
        view = self.route.broker.view
        epochs: dict[Partition, int] = {}
        if view is None:
            return epochs
        for one in some:
            topic, partition = one.failure[:2]
            name, known = view.topics.name(topic), view.leader(topic, partition)
            if name is not None and known is not None:
                doubtful = view.in_doubt(topic, partition)
                next_one = known.epoch if doubtful else one.newest + 1
                epoch = min(max(known.epoch, next_one), LAST_EPOCH)
                epochs[name, partition] = min(epoch, epochs.get((name, partition), epoch))
        return epochs
