"""Which large requests are recoded now, of links that nobody has authenticated yet.

Until a request is recoded, what was read of it takes up to thirty times its bytes, in no budget. So
few are recoded at the same time, in the order in which they came.
"""

from collections import OrderedDict
from collections.abc import Callable

from leader_hints.wire.steps import Steps, T

#: Bytes of requests that are recoded at the same time, or one request that is larger.
_AT_ONCE = 1 << 20


class RecodingTurns:
    """The turns of a process's links, given by their numbers.

    ``recoded``: bytes that are recoded now. ``on_turn`` takes each link whose turn has come: until
    then none of its steps leads anywhere, and thousands may wait.
    """

    def __init__(self, on_turn: Callable[[int], None]) -> None:
        self.recoded = 0
        self.on_turn = on_turn
        self._waiting: OrderedDict[int, int] = OrderedDict()

    def waits(self, link: int) -> bool:
        """Whether a link's turn is still to come."""
        return link in self._waiting

    def in_turn(self, link: int, size: int, steps: Steps[T]) -> Steps[T]:
        """Do the steps that recode a link's request of ``size`` bytes, once its turn has come.

        It asks for that in the second of its own turns: what came before the request may still have
        to be sent, and a link is given none before its broker has taken that. So one that counts
        here always goes on.
        """
        yield
        self._waiting[link] = size
        try:
            self._admit()
            while link in self._waiting:
                yield
            return (yield from steps)
        finally:
            # Also where the link ends meanwhile.
            if self._waiting.pop(link, None) is None:
                self.recoded -= size
            self._admit()

    def _admit(self) -> None:
        while self._waiting:
            link, size = next(iter(self._waiting.items()))
            if self.recoded and self.recoded + size > _AT_ONCE:
                return
            del self._waiting[link]
            self.recoded += size
            self.on_turn(link)
