"""Which brokers are asked for what, where all of them cannot be asked for everything at once."""

from collections.abc import Iterator, Sequence


class RefreshShare:
    """Bounds one refresh, all brokers together, and goes round from one to the next.

    A leader move is looked for at every broker, since one of them knows first. When thousands move
    at once in a large cluster that would be more than anybody can read: ``most`` bounds it, in
    partitions.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._next = 0

    def pairs(self, brokers: int, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Iterate over who is to be asked for what, as positions of a broker and of a topic.

        ``sizes``: partitions of each topic. Broker by broker, from where the last refresh ended; at
        least one pair, whatever its size.
        """
        pairs = brokers * len(sizes)
        begin = self._next % pairs if pairs else 0
        left = self._most
        for number in range(pairs):
            broker, topic = divmod((begin + number) % pairs, len(sizes))
            # One of which nothing is known costs as much as one partition at least.
            left -= max(sizes[topic], 1)
            if left < 0 and number:
                self._next = begin + number
                return
            yield broker, topic
        self._next = 0
