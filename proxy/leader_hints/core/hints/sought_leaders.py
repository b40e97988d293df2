"""Leaders that are sought for the next error, since a response went on without a hint.

A client without a hint comes back soon, and may come back often.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice

from leader_hints.apis.fetch_response import Topic
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.held_response import HeldResponse
from leader_hints.core.route import Route

#: Partitions that are sought in all. Each costs 1 KB, or up to 5 KB if each is of another link and
#: topic. Clients of others come back all the same, and theirs are sought once there is room.
MOST_SOUGHT = 10_000
#: Topics of those given up in one step: after a pause of the process all may be over.
_GIVEN_UP_AT_ONCE = 500

_Place = tuple[str, Topic, int]


class SoughtLeaders(OrderedDict[HeldResponse, None]):
    """Responses whose leaders are sought, in the order in which the search ends.

    A partition is sought once for each route, however many responses lack it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._places: set[_Place] = set()

    @property
    def first(self) -> HeldResponse:
        """The response whose search ends first."""
        return next(iter(self))

    def is_over(self, now: float) -> bool:
        """Whether the time of some is over."""
        return bool(self) and self.first.deadline <= now

    def over(self, now: float) -> Iterator[HeldResponse]:
        """Iterate over those whose time is over, but not very many; each is to be given up."""
        left = _GIVEN_UP_AT_ONCE
        while left > 0 and self.is_over(now):
            left -= len(self.first.topics)
            yield self.first

    def new(self, response: HeldResponse) -> list[FailedPartition]:
        """Return the partitions that a response went on without and that are not sought yet.

        Only as many as may be sought.
        """
        route, places = response.route, self._places
        lacking = (partition for partition in response.partitions.seen if not partition.settled)
        new = (partition for partition in lacking if _place(route, partition) not in places)
        return [*islice(new, MOST_SOUGHT - len(places))]

    def add(self, response: HeldResponse) -> None:
        """Have the leaders of a response sought."""
        self._places.update(_places(response.route, response.partitions.lacking))
        self[response] = None

    def found(self, route: Route, partitions: Iterable[FailedPartition]) -> None:
        """Note that the leaders of ``partitions`` are known."""
        self._places.difference_update(_places(route, partitions))

    def give_up(self, response: HeldResponse) -> None:
        """Seek the leaders of a response no longer."""
        self.found(response.route, response.partitions.lacking)
        del self[response]


def _place(route: Route, partition: FailedPartition) -> _Place:
    return route.name, partition.failure.topic, partition.failure.partition


def _places(route: Route, partitions: Iterable[FailedPartition]) -> Iterator[_Place]:
    return (_place(route, partition) for partition in partitions)
