"""A fleet as arrays: where replicas are, and who produces to and consumes from which topic."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from leader_hints_report.simulation.arrays import Bools, Floats, Ints
from leader_hints_report.simulation.clients import Rules, rules_of
from leader_hints_report.simulation.fleet import Clients, Fleet, Topics


@dataclass(frozen=True)
class Streams:
    """Clients alike in one topic, a row for each (clients, topic).

    A client of several topics is taken for one client in each. ``members``: how many. ``rate``:
    records in a millisecond that one client sends to one partition; 0 of consumers. ``of``:
    the row of the fleet's clients. ``settles``: proxies with ``hold.settle`` hold their errors.
    The other columns are those of :class:`~leader_hints_report.simulation.clients.Rules`.
    Large because each rule of a client is a column.
    """

    topic: Ints
    members: Ints
    rate: Floats
    of: Ints
    acks_all: Bools
    settles: Bools
    produce_hints: Bools
    fetch_hints: Bools
    skips: Bools
    fresh_skips: Bools
    backoff: Floats
    refresh: Floats
    fetch_backoff: Floats
    fetch_refresh: Floats
    asks_late: Bools
    by_followers: Bools
    backs_off_again: Bools
    grows: Bools
    java: Bools
    linger: Floats

    @property
    def gathered(self) -> Floats:
        """Records that one client sends to one partition at once: one, and what came while it
        lingered."""
        return 1 + self.rate * self.linger

    @property
    def sends(self) -> Floats:
        """How often in a millisecond one client sends to one partition."""
        return self.rate / self.gathered

    def at(self, rows: Ints) -> "Streams":
        """Return some rows."""
        columns = {column.name: getattr(self, column.name)[rows] for column in fields(self)}
        return Streams(**columns)


class Layout(NamedTuple):
    """``replicas``: a row for each partition, the preferred leader first, -1 where there are fewer.
    ``topic`` of each partition; ``first`` and ``size``: where each topic's partitions are.
    ``rate``: records a millisecond of one partition of each topic. ``racks`` of the brokers.
    """

    brokers: int
    racks: Ints
    replicas: Ints
    topic: Ints
    first: Ints
    size: Ints
    rate: Floats
    producers: Streams
    consumers: Streams

    @property
    def records_per_ms(self) -> float:
        """Records of all producers in a millisecond."""
        return float((self.rate * self.size).sum())


def layout(fleet: Fleet) -> Layout:
    """Spread a fleet's partitions over its brokers, as Kafka does.

    Racks follow each other, so replicas of a partition are in different ones. At the end of a turn
    that brokers of the same rack follow, these are passed over.
    """
    brokers = fleet.cluster.brokers
    size = np.concatenate([np.full(one.count, one.partitions) for one in fleet.topics])
    replication = np.concatenate([np.full(one.count, one.replication) for one in fleet.topics])
    first = np.concatenate([[0], np.cumsum(size)[:-1]]).astype(np.int64)
    topic = np.repeat(np.arange(len(size)), size)
    number = np.arange(len(topic)) - first[topic]
    racks, widest = min(fleet.cluster.racks, brokers), int(replication.max())
    # Each topic begins at another broker. Followers are in the next racks, and further away in each
    # turn, so that the leaders of a broker go to many others (AdminUtils).
    leader = number + topic
    away = racks * (number // brokers % (brokers // racks)) if widest <= racks else 0
    columns = [leader % brokers]
    in_rack = np.arange(brokers) % racks
    for place in range(1, widest):
        follower = (leader + place + away) % brokers
        while (taken := _taken(follower, columns, in_rack, apart=place < racks)).any():
            follower = np.where(taken, (follower + 1) % brokers, follower)
        columns.append(follower)
    columns = [
        np.where(replication[topic] > place, column, -1) for place, column in enumerate(columns)
    ]
    producers = _streams(fleet, "producer", size)
    rate = np.zeros(len(size))
    np.add.at(rate, producers.topic, producers.rate * producers.members)
    return Layout(
        brokers,
        in_rack,
        np.stack(columns, axis=1),
        topic,
        first,
        size,
        rate,
        producers,
        _streams(fleet, "consumer", size),
    )


def _taken(follower: Ints, columns: list[Ints], in_rack: Ints, *, apart: bool) -> Bools:
    """Return where a follower is a replica already, or ``apart``, in the rack of one."""
    taken = np.zeros(len(follower), dtype=np.bool_)
    for column in columns:
        taken |= in_rack[follower] == in_rack[column] if apart else follower == column
    return taken


def _streams(fleet: Fleet, role: str, size: Ints) -> Streams:
    rows = [
        (clients, rules_of(clients.software, clients.version), number, topic)
        for number, clients in enumerate(fleet.clients)
        if clients.role == role
        for topic in _topics(fleet.topics, clients)
    ]
    rules = [_rules(clients, of) for clients, of, _, _ in rows]
    count = np.array([clients.count for clients, _, _, _ in rows], dtype=np.int64)
    topic = np.array([topic for _, _, _, topic in rows], dtype=np.int64)
    total = np.array([clients.records_per_second for clients, _, _, _ in rows], dtype=np.float64)
    return Streams(
        topic=topic,
        members=count,
        rate=total / 1000 / (count * size[topic]),
        of=np.array([number for _, _, number, _ in rows], dtype=np.int64),
        acks_all=np.array([clients.acks == "all" for clients, _, _, _ in rows], dtype=np.bool_),
        settles=np.array([clients.may_be_settled for clients, _, _, _ in rows], dtype=np.bool_),
        produce_hints=np.array([of.produce_hints for of in rules], dtype=np.bool_),
        fetch_hints=np.array([of.fetch_hints for of in rules], dtype=np.bool_),
        skips=np.array([of.skips for of in rules], dtype=np.bool_),
        fresh_skips=np.array([of.fresh_skips for of in rules], dtype=np.bool_),
        backoff=np.array([of.backoff for of in rules], dtype=np.float64),
        refresh=np.array([of.refresh for of in rules], dtype=np.float64),
        fetch_backoff=np.array([of.fetch_backoff for of in rules], dtype=np.float64),
        fetch_refresh=np.array([of.fetch_refresh for of in rules], dtype=np.float64),
        by_followers=np.array([of.by_followers for of in rules], dtype=np.bool_),
        backs_off_again=np.array([of.backs_off_again for of in rules], dtype=np.bool_),
        grows=np.array([of.grows for of in rules], dtype=np.bool_),
        asks_late=np.array([of.asks_late for of in rules], dtype=np.bool_),
        java=np.array([c.software.endswith("java") for c, _, _, _ in rows], dtype=np.bool_),
        linger=np.array([clients.linger_ms for clients, _, _, _ in rows], dtype=np.float64),
    )


def _topics(topics: tuple[Topics, ...], clients: Clients) -> list[int]:
    begin, numbers = 0, list[int]()
    for topic in topics:
        if not clients.topics or topic.name in clients.topics:
            numbers += range(begin, begin + topic.count)
        begin += topic.count
    return numbers


def _rules(clients: Clients, of: Rules) -> Rules:
    if clients.retry_backoff_ms is None:
        return of
    own = clients.retry_backoff_ms
    if not of.backs_off_metadata:
        return of._replace(backoff=own)
    return of._replace(backoff=own, refresh=own, fetch_refresh=own)
