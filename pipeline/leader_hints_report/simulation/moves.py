"""Which leaders move when: an event as batches of moves."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.arrays import Ints, Random
from leader_hints_report.simulation.fleet import (
    Event,
    Fleet,
    Loss,
    PreferredElection,
    Reassignment,
    RollingRestart,
)
from leader_hints_report.simulation.layout import Layout, layout
from leader_hints_report.simulation.parameters import Parameters

_NONE: Final = np.empty(0, dtype=np.int64)


class Batch(NamedTuple):
    """Moves that the controller decides together.

    ``at``: when it begins to, in milliseconds of the event. ``partitions``, and their ``old`` and
    ``new`` leaders. ``alive``: the former leader still answers; else its connections break, and
    no error tells the client. ``lost_at``: when it was lost. ``epoch_before``: so much earlier the
    epoch rose under the former leader, as a reassignment has it; 0: it did not. ``started``: the
    broker that has just been started, -1: none. ``followed``: partitions whose leader stays, of
    which a lost broker is a follower.
    """

    at: float
    partitions: Ints
    old: Ints
    new: Ints
    alive: bool = True
    lost_at: float = 0.0
    epoch_before: float = 0.0
    started: int = -1
    followed: Ints = _NONE


def batches(
    fleet: Fleet, where: Layout, event: Event, table: Parameters, random: Random
) -> Iterator[Batch]:
    """Iterate over the batches of an event, in order.

    :raises PipelineError: the event cannot happen to this fleet.
    """
    if isinstance(event, RollingRestart):
        yield from _roll(where, event)
    elif isinstance(event, Reassignment):
        most = len(where.topic)
        count = event.partitions or most
        if count > most:
            raise PipelineError(f"event: partitions {count}: the fleet has {most}")
        chosen = np.sort(random.permutation(most)[:count])
        moves = _next_leaders(where, chosen, where.replicas[chosen, 0], lost=())
        # With KRaft another order of the same replicas leaves the epoch as it is.
        if fleet.cluster.mode == "zookeeper":
            moves = moves._replace(epoch_before=event.epoch_before_ms)
        yield from _split(moves, event.batch, event.batch_pause_s * 1000)
    elif isinstance(event, PreferredElection):
        everything = np.arange(len(where.topic))
        away = _next_leaders(where, everything, where.replicas[:, 0], lost=())
        yield from _split(_back(away, 0.0), event.batch, event.batch_pause_s * 1000)
    else:
        yield from _lost(fleet, where, event, table, random)


def check_event(fleet: Fleet) -> None:
    """Go through an event once.

    :raises PipelineError: it cannot happen to this fleet.
    """
    for _ in batches(fleet, layout(fleet), fleet.event, fleet.parameters, np.random.default_rng(0)):
        pass


def least_end(where: Layout, event: Event) -> float:
    """Return the milliseconds that an event takes even where few brokers lead anything."""
    if not isinstance(event, RollingRestart):
        return 0.0
    back = 0.0 if event.return_s is None else event.down_s + event.return_s
    return ((where.brokers - 1) * event.pause_s + back) * 1000


def least_pause(where: Layout, event: RollingRestart) -> float:
    """Return the seconds that the slowest broker takes, from its first batch to its last one."""
    return max((took for took, _ in _restarts(where, event)), default=0.0)


def _roll(where: Layout, event: RollingRestart) -> Iterator[Batch]:
    for took, moves in _restarts(where, event):
        if took > event.pause_s:
            raise PipelineError(
                f"event: pause_s {event.pause_s:g}: with batches of {event.batch}, "
                f"{event.batch_pause_s:g} s apart, a broker takes {took:g} s"
            )
        yield from moves


def _restarts(where: Layout, event: RollingRestart) -> Iterator[tuple[float, list[Batch]]]:
    """Iterate over the brokers that lead: the seconds that each takes, and its batches.

    A broker stops when the last batch has left it.
    """
    order = np.argsort(where.replicas[:, 0], kind="stable")
    ends = np.searchsorted(where.replicas[order, 0], np.arange(where.brokers + 1))
    leader = where.replicas[:, 0].copy()
    for broker in range(where.brokers):
        began = broker * event.pause_s * 1000
        preferred = np.sort(order[ends[broker] : ends[broker + 1]])
        # Without a return, a broker that stops has what others have given it, too.
        led = preferred if event.return_s is not None else np.flatnonzero(leader == broker)
        if not len(led):
            continue
        away = _next_leaders(where, led, leader[led], lost=(broker,), at=began)
        leader[led] = away.new
        moves = [*_split(away, event.batch, event.batch_pause_s * 1000)]
        done = moves[-1].at + event.down_s * 1000 if moves else began
        if event.return_s is not None and moves:
            back = _back(away, done + event.return_s * 1000)._replace(started=broker)
            leader[led] = back.new
            moves += _split(back, event.batch, event.batch_pause_s * 1000)
            done = moves[-1].at
        yield (done - began) / 1000, moves


def _lost(
    fleet: Fleet, where: Layout, event: Loss, table: Parameters, random: Random
) -> Iterator[Batch]:
    broker = int(random.integers(where.brokers))
    lost: tuple[int, ...] = (broker,)
    if event.kind == "rack_loss":
        lost = tuple(int(one) for one in np.flatnonzero(where.racks == where.racks[broker]))
        if len(lost) == where.brokers:
            raise PipelineError("event: rack_loss: all brokers are in one rack; set cluster.racks")
    at = table.session_ms
    if event.kind == "controller_failover" and fleet.cluster.mode == "zookeeper":
        at += table.reload_ms * len(where.topic)
    has_lost = np.isin(where.replicas, lost)
    led = np.flatnonzero(has_lost[:, 0])
    followed = np.flatnonzero(has_lost[:, 1:].any(axis=1) & ~has_lost[:, 0])
    moves = _next_leaders(where, led, where.replicas[led, 0], lost=lost, at=at)
    yield moves._replace(alive=False, lost_at=0.0, followed=followed)


def _next_leaders(
    where: Layout, partitions: Ints, leader: Ints, lost: tuple[int, ...], at: float = 0.0
) -> Batch:
    """Elect the first replica that is neither lost nor the leader; leave out what has none."""
    replicas = where.replicas[partitions]
    may = (replicas >= 0) & (replicas != leader[:, None])
    if lost:
        may &= ~np.isin(replicas, lost)
    some = may.any(axis=1)
    new = replicas[np.arange(len(partitions)), may.argmax(axis=1)]
    return Batch(at, partitions[some], leader[some], new[some])


def _back(away: Batch, at: float) -> Batch:
    return away._replace(at=at, old=away.new, new=away.old)


def _split(moves: Batch, most: int | None, pause: float) -> Iterator[Batch]:
    """Split a batch into such of ``most`` moves, ``pause`` apart; ``None``: all at once."""
    most = most or len(moves.partitions)
    for number, begin in enumerate(range(0, len(moves.partitions), most)):
        part = slice(begin, begin + most)
        yield moves._replace(
            at=moves.at + number * pause,
            partitions=moves.partitions[part],
            old=moves.old[part],
            new=moves.new[part],
        )
