"""The proxy's own rules on a sample of errors: the core of the proxy is called, not copied.

It imports the proxy on purpose: what the model takes for the rules of holds
(:func:`leader_hints_report.simulation.finding.held_until`) is held against them.
"""

from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint, Failure, Scanned
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.hold_rules import HoldRules
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.plan import plan_for
from leader_hints.settings.hold import HoldSettings
from leader_hints_report.simulation.arms import Mode as SimulatedMode
from leader_hints_report.simulation.arrays import Floats
from leader_hints_report.simulation.finding import Held as Holds
from leader_hints_report.simulation.finding import held_until
from leader_hints_report.simulation.fleet import Fleet
from leader_hints_report.simulation.layout import layout
from leader_hints_report.simulation.moves import batches
from leader_hints_report.simulation.parameters import Parameters
from leader_hints_report.simulation.propagation import propagate

_TOPIC: Final = "t"
_OLD, _NEW, _OTHER, _EPOCH = 1, 2, 3, 5
#: Error codes and newest versions of a broker of 3.6; 55, DescribeQuorum: it is one of KRaft.
_NOT_LEADER, _QUORUM = 6, 55
_VERSIONS: Final[dict[int, int]] = {
    ApiKey.PRODUCE: 9,
    ApiKey.FETCH: 15,
    ApiKey.LIST_OFFSETS: 8,
    ApiKey.METADATA: 12,
    ApiKey.API_VERSIONS: 3,
}
#: Seconds on the clock when the batch begins, and how often holds are reviewed.
_BEGIN: Final = 1000.0
_REVIEW: Final = 0.001
_MOST_HELD: Final = 10_000


class _News(NamedTuple):
    """What the proxy hears ``at`` a time: that a broker names the new leader, that this one does
    not lead yet, or that it does."""

    at: float
    what: str


class Comparison(NamedTuple):
    """Of so many ``holds``, how many ``differ`` in whether there is a hint, and how far the ends of
    the others are ``apart_ms`` at most."""

    holds: int
    differ: int
    apart_ms: float


def compare(fleet: Fleet, seed: int, most: int) -> Comparison:
    """Hold the model's fast form against the proxy's rules, on a sample of a fleet's moves.

    ``most``: so many errors, one of each move, of the event's first batches.
    """
    table, where = fleet.parameters, layout(fleet)
    random, kraft = np.random.default_rng(seed), fleet.cluster.mode == "kraft"
    apart, differ, holds = 0.0, 0, 0
    made = batches(fleet, where, fleet.event, table, random)
    for batch in islice((batch for batch in made if batch.alive), most):
        spread = propagate(fleet.cluster, where, batch, table, random)
        sample = np.arange(len(batch.partitions))[: most - holds]
        error = spread.refuses[sample] + random.uniform(0, table.deadline_ms, len(sample))
        asked = random.uniform(0, table.ask_ms, len(sample)) + table.rtt_ms
        serves, uses = spread.serves[sample], np.ones(len(sample), dtype=np.bool_)
        mode = SimulatedMode.HINTS
        fast = held_until(mode, error, serves, spread.shows, uses, asked, table, kraft=kraft)
        core = hold_by_core(error, serves, spread.shows, asked, table, kraft=kraft)
        same = core.hinted == fast.hinted
        differ += int((~same).sum())
        apart = max(apart, float(np.abs(core.until - fast.until)[same].max(initial=0.0)))
        holds += len(sample)
        if holds >= most:
            break
    return Comparison(holds, differ, apart)


def hold_by_core(
    error: Floats, serves: Floats, shows: Floats, asked: Floats, table: Parameters, *, kraft: bool
) -> Holds:
    """Return until when the proxy holds Produce errors of clients that use hints.

    Columns are as in :func:`~leader_hints_report.simulation.finding.held_until`; ``asked``: how
    long after a broker knows something the proxy has heard it.
    """
    ends = [
        _one(
            float(error[row]),
            float(serves[row]),
            float(shows.min()),
            float(asked[row]),
            table,
            kraft=kraft,
        )
        for row in range(len(error))
    ]
    return Holds(np.array([until for until, _ in ends]), np.array([hinted for _, hinted in ends]))


def _one(
    error: float, serves: float, shown: float, asked: float, table: Parameters, *, kraft: bool
) -> tuple[float, bool]:
    now = _BEGIN
    view = LeaderView("cluster", lambda: now)
    link = LinkState(_route(view, kraft=kraft), 1)
    queue = HoldQueue(_rules(table))
    _learn(view, Leader(_OLD, _EPOCH))
    # In order of time; a leader that does not lead yet answers so when it is asked.
    news = [_News(shown + asked, "named")]
    if serves > shown:
        news.append(_News(shown + asked, "denied"))
    news.append(_News(max(serves, shown) + asked, "confirmed"))
    # What was heard before the error is in the view by then.
    while news and news[0].at <= error:
        now = _BEGIN + news[0].at / 1000
        _hear(view, news.pop(0))
    now = _BEGIN + error / 1000
    hints = queue.submit(_failed(link), now)
    while hints is None:
        now += _REVIEW
        while news and news[0].at <= (now - _BEGIN) * 1000:
            _hear(view, news.pop(0))
        hints = next((given for _, given in queue.review(now)), None)
    return (now - _BEGIN) * 1000 + table.proxy_ms, hints[0] is not None


def _rules(table: Parameters) -> HoldRules:
    settings = HoldSettings()
    return HoldRules(
        deadline=table.deadline_ms / 1000,
        link_second=settings.link_per_second,
        kraft=table.kraft_hold_ms / 1000,
        shared=settings.shared_response,
        grace=settings.grace,
        confirm=settings.confirm,
        most=_MOST_HELD,
    )


def _route(view: LeaderView, *, kraft: bool) -> Route:
    versions = dict(_VERSIONS)
    if kraft:
        versions[_QUORUM] = 1
    endpoints = {node: Endpoint(f"broker-{node}", 9092, None) for node in (_OLD, _NEW, _OTHER)}
    state = BrokerState(
        plan=plan_for(versions), view=view, endpoints=endpoints, node=_OLD, reachable=True
    )
    return Route("route", Mode.ON, broker=state)


def _learn(view: LeaderView, leader: Leader) -> None:
    led = (Led(0, leader.node, leader.epoch),)
    view.learn(TopicMetadata(0, _TOPIC, ZERO_ID, led), _OTHER)


def _hear(view: LeaderView, news: _News) -> None:
    new = Leader(_NEW, _EPOCH + 1)
    if news.what == "named":
        _learn(view, new)
    elif news.what == "confirmed":
        view.leader_confirms(_TOPIC, 0, new)
    else:
        view.leader_denies(_TOPIC, 0, new)


def _failed(link: LinkState) -> Held:
    failures = (Failure(_TOPIC, 0, _NOT_LEADER, 0, 0),)
    return Held(link, ApiKey.PRODUCE, 10, memoryview(b""), Scanned(failures, False, 0, 0), [-1])
