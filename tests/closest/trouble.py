"""What is done to brokers: leaders move, followers stop or fall behind, replicas leave."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence

from tests.closest.crowd import STAYS, TOPICS, Crowd
from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.cluster import RealCluster
from tests.harness.waiting import until

#: Coordinators are there: a group whose coordinator stops may begin again at what it has
#: committed. It never stops.
_STEADY = 1
#: It stops, falls behind, and is left; the others lead then.
_FOLLOWER = 3
_LEADERS = (_STEADY, 2)
_INTERNAL = ("__consumer_offsets", "__transaction_state")
#: Between two moves, so that replicas are named again: a leader is let alone for five seconds.
_BETWEEN_S = 17.0
#: Until brokers take a follower that stands still for out of sync; see RealCluster's overrides.
LAG_MS = "5000"
_BRIEFLY_S = 5.0
_MOVES = "leader moves"


class Trouble:
    """Makes trouble, one kind after the other. ``done``: how often each was made."""

    def __init__(
        self, cluster: RealCluster, admin: ClusterAdmin, crowd: Crowd, partitions: Sequence[int]
    ) -> None:
        self._cluster = cluster
        self._admin = admin
        self._crowd = crowd
        self._partitions = [TopicPartition(topic, n) for topic in TOPICS for n in partitions]
        self.done: Counter[str] = Counter()

    def make(self, moves: int) -> None:
        """Move leaders at least so often, with other trouble between two moves.

        :raises AssertionError: a client did not go on.
        """
        for topic in _INTERNAL:
            self._move({TopicPartition(topic, n): _STEADY for n in self._admin.partitions(topic)})
        others: tuple[Callable[[], None], ...] = (self._stop, self._fall_behind, self._leave)
        for turn in itertools.count():
            if self.done[_MOVES] >= moves:
                break
            self._crowd.flow(_BETWEEN_S)
            self._move(dict.fromkeys(self._partitions, None))
            self.done[_MOVES] += len(self._partitions)
            if turn % 2:
                self._crowd.flow(_BETWEEN_S)
                others[turn // 2 % len(others)]()
        self._crowd.flow(_BETWEEN_S)

    def _stop(self) -> None:
        """Stop the follower; all go on at others, and come back later."""
        self._lead_elsewhere()
        self._cluster.brokers[_FOLLOWER].stop()
        self._wait_out_of_sync()
        self._crowd.flow(_BRIEFLY_S, but=STAYS)
        self._cluster.restart(_FOLLOWER)
        self._wait_in_sync()
        self.done["follower stops"] += 1

    def _fall_behind(self) -> None:
        """Have the follower stand still until it is out of sync, and go on."""
        self._lead_elsewhere()
        with self._cluster.brokers[_FOLLOWER].frozen():
            self._wait_out_of_sync()
        self._crowd.flow(_BRIEFLY_S)
        self._wait_in_sync()
        self.done["partitions whose ISR shrank"] += len(self._partitions)

    def _leave(self) -> None:
        """Take some partitions' replicas away from the follower, and give them back."""
        self._lead_elsewhere()
        chosen = [where for where in self._partitions if where.partition < 2]
        for where in chosen:
            self._admin.reassign(where, _LEADERS)
        self._crowd.flow(_BRIEFLY_S)
        for where in chosen:
            self._admin.reassign(where, (*_LEADERS, _FOLLOWER))
        self._wait_in_sync()
        self.done["partitions reassigned away"] += len(chosen)

    def _lead_elsewhere(self) -> None:
        """Have no leader on the follower, and consumers read there."""
        led = {where: _LEADERS[where.partition % 2] for where in self._partitions}
        if any(self._admin.leader(*where) != node for where, node in led.items()):
            self._move(led)
            self.done[_MOVES] += len(led)
        self._crowd.flow(_BETWEEN_S)

    def _move(self, to: dict[TopicPartition, int | None] | dict[TopicPartition, int]) -> None:
        self._admin.move_leaders({**to})

    def _wait_out_of_sync(self) -> None:
        def gone() -> bool:
            # Only the leaders know at once.
            states = [
                state
                for topic in TOPICS
                for node in _LEADERS
                for state in self._admin.partitions(topic, node).values()
                if state.leader == node
            ]
            in_sync = any(_FOLLOWER in state.in_sync for state in states)
            return len(states) == len(self._partitions) and not in_sync

        until(gone, f"no partition has {_FOLLOWER} in sync")

    def _wait_in_sync(self) -> None:
        for topic in TOPICS:
            self._admin.wait_in_sync(topic)
