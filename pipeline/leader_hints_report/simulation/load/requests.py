"""How many requests each broker gets: over the event, and in its busiest second.

Which requests there are is decided elsewhere: by clients in ``finding``, by proxies in
``proxy_questions``.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from leader_hints_report.simulation.arrays import Floats, Ints, Random

_SECOND_MS: Final = 1000.0
#: Requests that are in memory at once, but for more of a single client.
_AT_ONCE: Final = 1_000_000


class Api(StrEnum):
    """The requests that are counted."""

    METADATA = "Metadata"
    LIST_OFFSETS = "ListOffsets"


class Asks(NamedTuple):
    """A row for each client: how ``many`` Metadata requests it sends from ``first`` to ``last``, in
    milliseconds after the controller began with the batch."""

    first: Floats
    last: Floats
    many: Floats


class Sent(NamedTuple):
    """Requests: when each was sent, and to which ``broker``."""

    at: Floats
    broker: Ints


class BrokerLoad(NamedTuple):
    """The requests of one API, a row for each broker, in requests a second.

    ``peak``: in the broker's busiest second, which ``begins_s`` seconds after the event did; of
    clients and of proxies' questions. ``clients``, ``questions`` and ``polls`` of proxies: over the
    whole event.
    """

    peak: Floats
    begins_s: Floats
    clients: Floats
    questions: Floats
    polls: Floats

    @property
    def mean(self) -> Floats:
        """All of them over the event."""
        return self.clients + self.questions + self.polls


def of_clients(asks: Asks, brokers: Ints, random: Random) -> Iterator[Sent]:
    """Iterate over clients' Metadata requests, many at a time: evenly in time, each to one of
    ``brokers`` at random."""
    part = np.cumsum(asks.many) // _AT_ONCE
    for rows in np.split(np.arange(len(part)), np.flatnonzero(np.diff(part)) + 1):
        yield _evenly(Asks(*(column[rows] for column in asks)), brokers, random)


def _evenly(asks: Asks, brokers: Ints, random: Random) -> Sent:
    many = asks.many.astype(np.int64)
    row = np.repeat(np.arange(len(many)), many)
    number = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    share = number / np.maximum(many[row] - 1, 1)
    at = asks.first[row] + (asks.last - asks.first)[row] * share
    return Sent(at, brokers[random.integers(len(brokers), size=len(row))])


class RequestCounter:
    """Counts the requests of one API by broker and second of the event."""

    def __init__(self, brokers: int) -> None:
        self._brokers = brokers
        self._clients = np.zeros(brokers)
        self._questions = np.zeros(brokers)
        #: A second and a broker in one number, and how many requests it had.
        self._cells: list[tuple[Ints, Ints]] = []

    def clients(self, begins: float, sent: Sent) -> None:
        """Count requests of clients, of a batch that ``begins`` at a millisecond."""
        self._clients += self._counted(begins, sent)

    def questions(self, begins: float, sent: Sent) -> None:
        """Count questions of proxies while they hold errors."""
        self._questions += self._counted(begins, sent)

    def load(self, duration_ms: float, polls_per_s: float) -> BrokerLoad:
        """Return the load of an event that took so long."""
        seconds = duration_ms / _SECOND_MS
        peak, begins = self._peaks()
        polls = np.full(self._brokers, polls_per_s)
        return BrokerLoad(peak, begins, self._clients / seconds, self._questions / seconds, polls)

    @property
    def asked_by_proxies(self) -> float:
        """All questions of proxies."""
        return float(self._questions.sum())

    def _counted(self, begins: float, sent: Sent) -> Floats:
        second = np.floor((begins + sent.at) / _SECOND_MS).astype(np.int64)
        cells, many = np.unique(second * self._brokers + sent.broker, return_counts=True)
        self._cells.append((cells, many))
        return np.bincount(sent.broker, minlength=self._brokers).astype(np.float64)

    def _peaks(self) -> tuple[Floats, Floats]:
        peak, begins = np.zeros(self._brokers), np.zeros(self._brokers)
        if not self._cells:
            return peak, begins
        # Batches that follow each other closely meet in the same second.
        cells, row = np.unique(np.concatenate([of for of, _ in self._cells]), return_inverse=True)
        many = np.bincount(row, np.concatenate([count for _, count in self._cells]))
        second, broker = np.divmod(cells, self._brokers)
        np.maximum.at(peak, broker, many)
        busiest = many == peak[broker]
        begins[:] = np.inf
        np.minimum.at(begins, broker[busiest], second[busiest])
        return peak, np.where(np.isfinite(begins), begins, 0.0)
