"""What one broker is to be asked as soon as no other request is under way."""

from collections.abc import Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import trio

from leader_hints.apis.list_offsets import Partition

#: Partitions, at most, of which one request asks whether the broker leads them: its answer is taken
#: in one step, some 12 us for each. What is to be asked adds up while a broker is slow.
_EPOCHS_AT_ONCE = 500
#: Topics of one request for Metadata, which is written in one step.
_TOPICS_AT_ONCE = 2000

_K = TypeVar("_K")
_V = TypeVar("_V")


class Questions(NamedTuple):
    """``topics``: of which Metadata is asked for, or of all (``everything``). ``epochs``: whether
    the broker leads these partitions at these epochs. ``identity``: which node it is."""

    topics: dict[str, None]
    epochs: dict[Partition, int]
    everything: bool = False
    identity: bool = False


class PendingQuestions:
    """Questions that wait for the connection.

    ``due``: set while there are any, and by :meth:`wake`.
    """

    def __init__(self) -> None:
        self.due = trio.Event()
        self._waiting = Questions({}, {})

    def add(
        self,
        topics: Iterable[str] = (),
        epochs: Mapping[Partition, int] = MappingProxyType({}),
        *,
        everything: bool = False,
        identity: bool = False,
    ) -> None:
        """Have these asked, too."""
        self._waiting.topics.update(dict.fromkeys(topics))
        self._waiting.epochs.update(epochs)
        self._waiting = self._waiting._replace(
            everything=self._waiting.everything or everything,
            identity=self._waiting.identity or identity,
        )
        self.due.set()

    def wake(self) -> None:
        """Have the connection looked at, without a question."""
        self.due.set()

    def take(self) -> Questions:
        """Return all that wait; from now on none do. Of very many the rest waits on."""
        waiting = self._waiting
        epochs = _first(waiting.epochs, _EPOCHS_AT_ONCE)
        topics = _first(waiting.topics, _TOPICS_AT_ONCE)
        # A question for everything is one for the rest as well.
        self._waiting = Questions({} if waiting.everything else waiting.topics, waiting.epochs)
        self.due = trio.Event()
        if self._waiting.topics or self._waiting.epochs:
            self.due.set()
        return waiting._replace(topics=topics, epochs=epochs)


def _first(waiting: dict[_K, _V], most: int) -> dict[_K, _V]:
    """Take the first ones away; the rest is not copied, since there may be very many."""
    return {one: waiting.pop(one) for one in [*islice(waiting, most)]}
