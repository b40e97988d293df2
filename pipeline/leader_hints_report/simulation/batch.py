"""What one batch of moves costs all clients: stalls of producers, and until records are consumed.

A client knows nothing of a move until it meets an error. Its first error in a batch has it ask for
Metadata, and the answer brings all moves of the batch. So a producer has a stall only at partitions
for which it has a record before that; a consumer reads all the time, so at all of its partitions.
"""

from typing import NamedTuple

import numpy as np

from leader_hints_report.simulation import finding
from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.arrays import Bools, Floats, Ints, Random, joined
from leader_hints_report.simulation.clients import numbers_of
from leader_hints_report.simulation.finding import Held, Known
from leader_hints_report.simulation.fleet import Cluster
from leader_hints_report.simulation.layout import Layout, Streams
from leader_hints_report.simulation.load.proxy_questions import Holds
from leader_hints_report.simulation.load.requests import Asks
from leader_hints_report.simulation.moves import Batch
from leader_hints_report.simulation.parameters import Parameters
from leader_hints_report.simulation.propagation import Propagation


class Course(NamedTuple):
    """One course of a batch that is simulated."""

    cluster: Cluster
    layout: Layout
    batch: Batch
    spread: Propagation
    mode: Mode
    table: Parameters


class Stalls(NamedTuple):
    """``lengths`` in milliseconds, ``rates`` in records a millisecond; ``first``: how many records
    wait for the whole stall, 1 and what gathered with it; 0 where they come by the rate alone."""

    lengths: Floats
    rates: Floats
    first: Floats

    @classmethod
    def joined(cls, stalls: "list[Stalls]") -> "Stalls":
        """Return all stalls of a list."""
        if not stalls:
            return cls(np.empty(0), np.empty(0), np.empty(0))
        return joined(*stalls)


class Counts(NamedTuple):
    """``errors`` that clients got, ``hinted`` ones, requests for ``metadata`` by clients, and
    ``held_ms``: of all holds together."""

    errors: float = 0.0
    hinted: float = 0.0
    metadata: float = 0.0
    held_ms: float = 0.0

    def plus(self, other: "Counts") -> "Counts":
        """Return the sums."""
        return Counts(*(mine + its for mine, its in zip(self, other, strict=True)))


class Cost(NamedTuple):
    """What a batch costs. ``behind``: records that wait behind a held response. ``recoveries``: of
    consumers, from the first error of each at each of its partitions until it reads again."""

    produce: Stalls
    consume: Stalls
    recoveries: Floats
    behind: Stalls


class Met(NamedTuple):
    """What brokers and proxies have to do with clients. ``asks``: clients' requests for Metadata;
    ``holds``: of proxies."""

    counts: Counts
    asks: Asks
    holds: Holds


class _Topics(NamedTuple):
    """Partitions in ``order`` of their topics; where each topic's ``begin``, and how ``many``."""

    order: Ints
    begin: Ints
    many: Ints


class _Pairs(NamedTuple):
    """A client (``row``) at a partition that moved (``move``), and when it met that."""

    row: Ints
    move: Ints
    arrives: Floats


class _Ended(NamedTuple):
    """Pairs and when each was served again."""

    pairs: _Pairs
    at: Floats
    behind: Stalls
    met: Met


def cost(course: Course, random: Random) -> tuple[Cost, Met]:
    """Draw what a batch costs clients, and what brokers and proxies have to do with it."""
    topics = _by_topic(course.layout, course.batch.partitions)
    producers, ended = _produce(course, topics, random)
    lengths = ended.at - ended.pairs.arrives
    rates = producers.rate[ended.pairs.row]
    produce = Stalls(lengths, rates, producers.gathered[ended.pairs.row])
    consume, recoveries, met = _consume(course, topics, ended, produce, random)
    both = Met(
        ended.met.counts.plus(met.counts),
        joined(ended.met.asks, met.asks),
        joined(ended.met.holds, met.holds),
    )
    unacknowledged, uncommitted = _followed(course, random)
    return Cost(
        Stalls.joined([produce, unacknowledged]),
        Stalls.joined([consume, uncommitted]),
        recoveries,
        ended.behind,
    ), both


def _followed(course: Course, random: Random) -> tuple[Stalls, Stalls]:
    """What waits at partitions of which a follower was lost: no client meets an error there.

    A record is committed when all in-sync replicas have it, and the lost one is among them until
    the controller has taken it out. That is before its leader would (replica.lag.time.max.ms). So
    producers with acks=all wait, and consumers read no new record of any producer.
    """
    layout, batch = course.layout, course.batch
    if not len(batch.followed):
        return Stalls.joined([]), Stalls.joined([])
    begin = batch.lost_at - batch.at
    topics = _by_topic(layout, batch.followed)
    group, place = _readers(layout.producers, topics)
    members = (layout.producers.members * layout.producers.acks_all)[group]
    of = layout.producers.at(np.repeat(group, members))
    ends = course.spread.commits[np.repeat(place, members)]
    arrives = begin + random.random(len(ends)) / np.maximum(of.sends, 1e-12)
    waits = arrives < ends
    topic = layout.topic[batch.followed]
    read = np.isin(topic, layout.consumers.topic)
    window = np.maximum(course.spread.commits[read] - begin, 0)
    return (
        Stalls((ends - arrives)[waits], of.rate[waits], of.gathered[waits]),
        Stalls(window, layout.rate[topic[read]], np.zeros(len(window))),
    )


def _by_topic(layout: Layout, partitions: Ints) -> _Topics:
    topic = layout.topic[partitions]
    many = np.bincount(topic, minlength=len(layout.size))
    begin = np.concatenate([[0], np.cumsum(many)[:-1]])
    return _Topics(np.argsort(topic, kind="stable"), begin, many)


def _produce(course: Course, topics: _Topics, random: Random) -> tuple[Streams, _Ended]:
    streams, table = course.layout.producers, course.table
    some = np.flatnonzero(topics.many[streams.topic] > 0)
    of = streams.at(np.repeat(some, streams.members[some]))
    rows = np.arange(len(of.topic))
    many, begin = topics.many[of.topic], topics.begin[of.topic]
    within = (random.random(len(rows)) * many).astype(np.int64)
    move = topics.order[begin + within]
    # What a client sends to the moved partitions comes evenly: to each a record, or what has
    # gathered while it lingered from the first one on.
    gap = 1 / np.maximum(of.sends * many, 1e-12)
    arrives = course.spread.stops[move] + random.random(len(rows)) * gap
    # Without a record for so long it has asked for Metadata anyway, and meets no error.
    meets = np.flatnonzero(arrives - course.spread.stops[move] < table.metadata_age_ms)
    of, within = of.at(meets), within[meets]
    first = _Pairs(np.arange(len(meets)), move[meets], arrives[meets])
    held = _held(course, first, of.produce_hints, of.settles, random)
    known = _known(course, of, held.until, of.backoff, of.refresh, random)
    others = _others(course, topics, of, first, within, known.at, random)
    its = of.at(others.row)
    held = _both(held, _held(course, others, its.produce_hints, its.settles, random))
    pairs = joined(first, others)
    its = of.at(pairs.row)
    served = finding.served(
        held.until,
        held.hinted,
        np.maximum(known.at[pairs.row], held.until),
        course.spread.serves[pairs.move],
        its.backoff * (course.mode is not Mode.NO_BACKOFF),
        its.skips,
        its.fresh_skips | its.asks_late | (course.mode is Mode.NO_BACKOFF),
        its.grows,
        course.table,
        random,
    )
    at = served.at + _stuck(held.hinted & its.java, table.stuck_share, table, random)
    at = np.where(its.acks_all, np.maximum(at, course.spread.follows[pairs.move]), at)
    holds = held.until - _error(course, pairs)
    met = _met(course, pairs, served, held, known, its.produce_hints)
    behind = _behind(course, of, pairs, holds)
    return of, _Ended(pairs, at, behind, met)


def _others(
    course: Course,
    topics: _Topics,
    of: Streams,
    first: _Pairs,
    within: Ints,
    known: Floats,
    random: Random,
) -> _Pairs:
    """Return the other partitions to which a client sends before it knows of the moves."""
    others, sends = np.maximum(topics.many[of.topic] - 1, 0), of.sends
    meets = -np.expm1(-sends * np.maximum(known - first.arrives, 0))
    chosen = random.binomial(others, meets)
    row = np.repeat(np.arange(len(others)), chosen)
    number = np.arange(len(row)) - np.repeat(np.cumsum(chosen) - chosen, chosen)
    # So many of the others, from one of them on, behind the first one's place.
    offset = (random.random(len(others)) * others).astype(np.int64)[row]
    place = within[row] + 1 + (offset + number) % np.maximum(others[row], 1)
    move = topics.order[topics.begin[of.topic[row]] + place % (others[row] + 1)]
    waits = -np.log1p(-random.random(len(row)) * meets[row]) / np.maximum(sends[row], 1e-12)
    return _Pairs(row, move, np.maximum(first.arrives[row], course.spread.stops[move]) + waits)


def _consume(
    course: Course, topics: _Topics, ended: _Ended, refused: Stalls, random: Random
) -> tuple[Stalls, Floats, Met]:
    """Until records are consumed: by each group that reads a topic, apart.

    A record that is written while its partition is not read waits until it is read again, and one
    that is refused until it is written besides.
    """
    layout, spread, table = course.layout, course.spread, course.table
    streams = layout.consumers
    topic = layout.topic[course.batch.partitions]
    group, move = _readers(streams, topics)
    of = streams.at(group)
    # Partitions of a topic are dealt out to the group's members.
    member = group * (int(streams.members.max(initial=1))) + (
        course.batch.partitions[move] % np.maximum(of.members, 1)
    )
    members, row = np.unique(member, return_inverse=True)
    arrives = spread.stops[move] + table.rtt_ms / 2
    kept = np.zeros(len(move), dtype=np.bool_)
    if _keeps_polls(course.cluster.version):
        # It began with the last record that was read.
        kept = of.by_followers & (random.random(len(move)) < table.long_poll_share)
        gap = random.random(len(move)) / np.maximum(layout.rate[of.topic], 1e-12)
        arrives = arrives + np.where(kept, np.maximum(table.long_poll_ms - gap, 0.0), 0.0)
    pairs = _Pairs(row, move, arrives)
    held = _held(course, pairs, of.fetch_hints, of.settles, random)
    first = np.full(len(members), np.inf)
    np.minimum.at(first, row, held.until)
    its_first = np.zeros(len(members), dtype=np.int64)
    its_first[row] = np.arange(len(row))
    one = of.at(its_first)
    told = held.until
    if course.batch.epoch_before and course.mode is not Mode.SETTLED:
        first = _after_epoch(course, one, first)
        waits = of.backs_off_again & ~(of.fetch_hints & (course.mode is Mode.HINTS))
        told = np.where(waits, np.maximum(told, first[row]), told)
    known = _known(course, one, first, one.fetch_backoff, one.fetch_refresh, random)
    # Its answer is no error of a leader, and clients do not back off for it.
    pause = of.fetch_backoff * (course.mode is not Mode.NO_BACKOFF) * ~kept
    served = finding.served(
        told,
        held.hinted,
        np.maximum(known.at[row], told),
        spread.serves[move],
        pause,
        np.ones(len(move), dtype=np.bool_),
        (pause == 0) | of.asks_late,
        of.grows,
        table,
        random,
    )
    # The new leader shows nothing new before its followers have it.
    at = served.at + _stuck(held.hinted & of.java, table.stuck_fetch_share, table, random)
    again = np.maximum(at, spread.follows[move] + table.rtt_ms / 2)
    unread = _until_consumed(course, ended, refused, move, topic, again)
    return unread, at - arrives, _met(course, pairs, served, held, known, of.fetch_hints)


def _after_epoch(course: Course, one: Streams, first: Floats) -> Floats:
    """Return when consumers may ask that asked when the epoch rose: not so soon again. Where a
    proxy holds their errors, it held that one."""
    since = one.fetch_refresh - course.batch.epoch_before
    exempt = one.asks_late | (one.fetch_hints & (course.mode is Mode.HINTS))
    return np.where(exempt, first, np.maximum(first, since))


def _readers(streams: Streams, topics: _Topics) -> tuple[Ints, Ints]:
    """Return the pairs of a row of streams and a partition of its topic."""
    many = topics.many[streams.topic]
    group = np.repeat(np.arange(len(many)), many)
    number = np.arange(len(group)) - np.repeat(np.cumsum(many) - many, many)
    return group, topics.order[topics.begin[streams.topic[group]] + number]


def _until_consumed(
    course: Course, ended: _Ended, stalls: Stalls, move: Ints, topic: Ints, again: Floats
) -> Stalls:
    """``again``: when each group reads what ``move`` has. Records that were refused count by their
    producer's stall, others of the time in which nothing was read by their rate."""
    moves = len(topic)
    # Of groups that read the same partition the latest counts: one figure for each record.
    read = course.spread.stops.copy()
    np.maximum.at(read, move, again)
    begin = np.minimum(course.spread.stops, course.spread.leaves)
    pairs = ended.pairs
    end = np.maximum(ended.at, read[pairs.move])
    waited = stalls.first + stalls.rates * stalls.lengths
    refused = np.bincount(pairs.move, waited, minlength=moves)
    window = np.maximum(read - begin, 0)
    all_records = course.layout.rate[topic] * window
    left = np.maximum(all_records - refused, 0) / np.maximum(window, 1e-9)
    return Stalls(
        np.concatenate([end - pairs.arrives, window]),
        np.concatenate([stalls.rates, left]),
        np.concatenate([stalls.first, np.zeros(moves)]),
    )


def _keeps_polls(version: str) -> bool:
    return numbers_of(version)[:2] <= (2, 4)


def _held(course: Course, pairs: _Pairs, hints: Bools, settles: Bools, random: Random) -> Held:
    table = course.table
    # A broker that is gone answers nothing that could be held.
    mode = course.mode if course.batch.alive else Mode.NO_PROXY
    return finding.held_until(
        mode,
        _error(course, pairs),
        course.spread.serves[pairs.move],
        course.spread.shows,
        hints & mode.gives_hints,
        settles & (mode is Mode.SETTLED),
        random.uniform(0, table.ask_ms, len(pairs.row)) + table.rtt_ms,
        table,
        kraft=course.cluster.mode == "kraft",
    )


def _error(course: Course, pairs: _Pairs) -> Floats:
    """When the former leader's refusal is on its way."""
    waits = np.maximum(pairs.arrives, course.spread.refuses[pairs.move])
    return waits + course.table.rtt_ms


def _both(one: Held, other: Held) -> Held:
    return Held(*(np.concatenate(both) for both in zip(one, other, strict=True)))


def _known(
    course: Course,
    of: Streams,
    error: Floats,
    backoff: Floats,
    refresh: Floats,
    random: Random,
) -> Known:
    backs_off = course.mode is not Mode.NO_BACKOFF
    return finding.metadata_known(
        error,
        backoff * of.asks_late * backs_off,
        refresh * backs_off,
        course.spread.shows,
        _queue(course, of, random),
        course.table,
        random,
    )


def _queue(course: Course, of: Streams, random: Random) -> Floats:
    """What Metadata waits for behind requests on its connection: a client asks the broker with the
    fewest requests under way, so only where all have one."""
    table = course.table
    busy = of.rate * course.layout.size[of.topic] * table.base_p50_ms / course.layout.brokers
    waits = random.exponential(table.base_p50_ms, len(of.topic))
    return np.where(random.random(len(of.topic)) < busy, waits, 0.0)


def _stuck(hinted: Bools, share: float, table: Parameters, random: Random) -> Floats:
    """Java clients for which no node is ready, though they have a hint: Metadata is due."""
    stuck = hinted & (random.random(len(hinted)) < share)
    return np.where(stuck, random.uniform(table.stuck_ms, 2 * table.stuck_ms, len(hinted)), 0.0)


def _met(
    course: Course,
    pairs: _Pairs,
    served: finding.Served,
    held: Held,
    known: Known,
    uses_hints: Bools,
) -> Met:
    error, proxies = _error(course, pairs), course.mode.has_proxy
    own = np.maximum(held.until - error - course.table.proxy_ms, 0)
    counts = Counts(
        errors=float(served.errors.sum()),
        hinted=float(held.hinted.sum()),
        metadata=float(known.asks.sum()),
        held_ms=float(own.sum()) if proxies else 0.0,
    )
    some = np.flatnonzero(own > 0) if proxies and course.batch.alive else np.empty(0, np.int64)
    holds = Holds(pairs.move[some], error[some], held.until[some], ~uses_hints[some])
    return Met(counts, Asks(known.first, known.last, known.asks), holds)


def _behind(course: Course, of: Streams, pairs: _Pairs, holds: Floats) -> Stalls:
    """Records of partitions that stay, behind a response that is held: those of the client's other
    partitions at the same broker. Holds of a batch overlap, so a client's longest counts."""
    if not course.mode.has_proxy:
        return Stalls.joined([])
    longest = np.zeros(len(of.topic))
    np.maximum.at(longest, pairs.row, holds - course.table.proxy_ms)
    led = np.bincount(course.batch.old, minlength=course.layout.brokers)
    share = 1 / course.layout.brokers - led.max() / len(course.layout.topic)
    rate = of.rate * course.layout.size[of.topic] * max(share, 0.0)
    some = (longest > 0) & (rate > 0)
    return Stalls(longest[some], rate[some], np.zeros(int(some.sum())))
