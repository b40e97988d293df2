"""Which replicas were named on a link lately."""

#: Seconds for which a replica is not named again for a partition on the same link. A consumer that
#: comes back has been refused there, or its broker is gone, or its lease is over (five minutes, by
#: default). librdkafka backs off if it is sent away again within a minute.
PAUSE = 65.0
#: Entries that a link keeps; the oldest go first. A consumer reads some hundred partitions.
_MOST = 2000


class NamedReplicas:
    """Nodes by partition, with the time when each may be named again.

    By the topic's name: a client may go on to ask by id what it asked by name, in an upgrade.
    """

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until: dict[tuple[str, int], dict[int, float]] = {}

    def add(self, topic: str, partition: int, node: int, now: float, pause: float = PAUSE) -> None:
        """Take note that ``node`` is named now, and may be again after a ``pause`` in seconds."""
        place = topic, partition
        nodes = self._until.pop(place, {})
        nodes = {one: until for one, until in nodes.items() if until > now}
        nodes[node] = now + pause
        # Those that were named last stand last.
        self._until[place] = nodes
        if len(self._until) > _MOST:
            del self._until[next(iter(self._until))]

    def lately(self, topic: str, partition: int, now: float) -> frozenset[int]:
        """Return the nodes that are not to be named yet."""
        nodes = self._until.get((topic, partition))
        if nodes is None:
            return frozenset()
        return frozenset(node for node, until in nodes.items() if until > now)
