"""Which response is reviewed next, and when the next one is due.

Tested in ``tests/core/hints/test_hold_queue.py``.
"""

from collections import OrderedDict
from itertools import chain

from leader_hints.core.hints.held_response import HeldResponse
from leader_hints.core.hints.hold_deadlines import HoldDeadlines


class ReviewQueue:
    """Responses to review: first one that may be over, then held ones with news, then sought ones.

    News are whatever may change how a response is judged.
    """

    def __init__(self) -> None:
        self.deadlines = HoldDeadlines()
        self._held: OrderedDict[HeldResponse, None] = OrderedDict()
        self._sought: OrderedDict[HeldResponse, None] = OrderedDict()

    def add(self, response: HeldResponse) -> None:
        """Have a response reviewed, of which not all was judged yet."""
        (self._sought if response.sought else self._held)[response] = None

    def add_news(self, response: HeldResponse) -> None:
        """Have a response reviewed, all of which is to be judged again."""
        response.news = True
        self.add(response)

    def judged(self, response: HeldResponse) -> None:
        """Note that a response needs no review until there is news, or a time is over."""
        (self._sought if response.sought else self._held).pop(response, None)

    @property
    def passed(self) -> int:
        """Of how many responses the last call of :meth:`next` took note that they may be over."""
        return self.deadlines.passed

    def next(self, now: float, ahead: float) -> HeldResponse | None:
        """Return what is to be reviewed next, ``None`` if nothing is.

        ``ahead``: how many seconds late the next call may be.
        """
        response = self.deadlines.due(now, ahead)
        return response or next(chain(self._held, self._sought), None)

    def remove(self, response: HeldResponse) -> None:
        """Forget a response."""
        self.deadlines.remove(response)
        (self._sought if response.sought else self._held).pop(response, None)
