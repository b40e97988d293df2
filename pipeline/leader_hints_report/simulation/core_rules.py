"""The proxy's own rules on a sample of errors: the core of the proxy is called, not copied.

It imports the proxy on purpose: what the model takes for the rules of holds
(:func:`leader_hints_report.simulation.finding.held_until`) is held against them.
"""

from collections.abc import Iterable
from itertools import islice, product
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
from leader_hints.core.hints.miss_reason import MissReason
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
from leader_hints_report.simulation.load.proxy_questions import AskedBroker
from leader_hints_report.simulation.moves import batches
from leader_hints_report.simulation.parameters import Parameters
from leader_hints_report.simulation.propagation import propagate

_TOPIC: Final = "t"
_OLD, _NEW, _EPOCH = 1, 2, 5
#: Brokers whose Metadata the proxy's rules get: of more, the first, the last, and others
#: between them.
_MOST_BROKERS: Final = 20
#: Of requests whose answers can carry hints, and of those that cannot.
_HINTED: Final = {ApiKey.PRODUCE: 10, ApiKey.FETCH: 16}
_UNHINTED: Final = {ApiKey.PRODUCE: 9, ApiKey.FETCH: 11}
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
    """What the proxy hears ``at`` a time: that a ``broker``'s Metadata names the new leader, or of
    this one that it does not lead yet, or that it does."""

    at: float
    what: str
    broker: int = _NEW


class Comparison(NamedTuple):
    """Of so many ``holds`` of ``kind``, how many ``differ`` in whether there is a hint, and how far
    the ends of the others are ``apart_ms`` at most."""

    kind: str
    holds: int
    differ: int
    apart_ms: float


def compare(
    fleet: Fleet, seed: int, most: int, modes: Iterable[SimulatedMode] = (SimulatedMode.HINTS,)
) -> list[Comparison]:
    """Hold the model's fast form against the proxy's rules, on a sample of a fleet's moves.

    ``most``: so many errors of each kind, one of each move, of the event's first batches. ``modes``
    with proxies: a kind for each of Produce and Fetch, with hints; and with ``SETTLED`` of clients
    that use none, too.
    """
    kinds = [
        (key, settles)
        for settles, key in product((False, True), _HINTED)
        if not settles or SimulatedMode.SETTLED in modes
    ]
    return [_compared(fleet, seed, most, key, settles=settles) for key, settles in kinds]


def _compared(fleet: Fleet, seed: int, most: int, key: ApiKey, *, settles: bool) -> Comparison:
    table, where = fleet.parameters, layout(fleet)
    random, kraft = np.random.default_rng(seed), fleet.cluster.mode == "kraft"
    apart, differ, holds = 0.0, 0, 0
    mode = SimulatedMode.SETTLED if settles else SimulatedMode.HINTS
    made = batches(fleet, where, fleet.event, table, random)
    for batch in islice((batch for batch in made if batch.alive), most):
        spread = propagate(fleet.cluster, where, batch, table, random)
        sample = np.arange(len(batch.partitions))[: most - holds]
        error = spread.refuses[sample] + random.uniform(0, table.deadline_ms, len(sample))
        asked = random.uniform(0, table.ask_ms, len(sample)) + table.rtt_ms
        serves, settled = spread.serves[sample], np.full(len(sample), settles)
        fast = held_until(
            mode, error, serves, spread.shows, ~settled, settled, asked, table, kraft=kraft
        )
        core = hold_by_core(
            error, serves, spread.shows, asked, table, kraft=kraft, key=key, settles=settles
        )
        same = core.hinted == fast.hinted
        differ += int((~same).sum())
        apart = max(apart, float(np.abs(core.until - fast.until)[same].max(initial=0.0)))
        holds += len(sample)
        if holds >= most:
            break
    kind = f"{key.name.title()} {'settled' if settles else 'with hints'}"
    return Comparison(kind, holds, differ, apart)


def hold_by_core(
    error: Floats,
    serves: Floats,
    shows: Floats,
    asked: Floats,
    table: Parameters,
    *,
    kraft: bool,
    key: ApiKey = ApiKey.PRODUCE,
    settles: bool = False,
) -> Holds:
    """Return until when the proxy holds errors of an API: of clients that use hints, or of others,
    whose errors it ``settles``.

    Columns are as in :func:`~leader_hints_report.simulation.finding.held_until`; ``asked``: how
    long after a broker knows something the proxy has heard it.
    """
    shown = np.sort(shows)
    if len(shown) > _MOST_BROKERS:
        shown = shown[np.linspace(0, len(shown) - 1, _MOST_BROKERS).astype(np.int64)]
    ends = [
        _one(
            _Error(key, float(error[row]), settles=settles),
            _news(float(serves[row]), shown, float(asked[row])),
            len(shown),
            table,
            kraft=kraft,
        )
        for row in range(len(error))
    ]
    return Holds(np.array([until for until, _ in ends]), np.array([hinted for _, hinted in ends]))


class _Error(NamedTuple):
    """An error answer to an API that came ``at`` a time."""

    key: ApiKey
    at: float
    settles: bool


def _news(serves: float, shown: Floats, asked: float) -> list[_News]:
    """Return what the proxy hears, in order of time.

    A leader that does not lead yet answers so when it is asked. Its own Metadata would confirm the
    move, to these rules; here it comes last, and not before it serves.
    """
    first = float(shown[0])
    news = [_News(first + asked, "named", _OLD)]
    if serves > first:
        news.append(_News(first + asked, "denied"))
    news.append(_News(max(serves, first) + asked, "confirmed"))
    news += [
        _News(float(at) + asked, "named", broker) for broker, at in enumerate(shown[1:-1], _NEW + 1)
    ]
    news.append(_News(max(serves, float(shown[-1])) + asked, "named"))
    return sorted(news, key=lambda one: one.at)


def _one(
    error: _Error, news: list[_News], brokers: int, table: Parameters, *, kraft: bool
) -> tuple[float, bool]:
    now = _BEGIN
    view = LeaderView("cluster", lambda: now)
    link = LinkState(_route(view, kraft=kraft), 1)
    queue = HoldQueue(_rules(table))
    _learn(view, Leader(_OLD, _EPOCH), _OLD)
    view.metadata_brokers.expect([AskedBroker(node) for node in range(1, brokers + 1)], now)
    # What was heard before the error is in the view by then.
    while news and news[0].at <= error.at:
        now = _BEGIN + news[0].at / 1000
        _hear(view, news.pop(0))
    now = _BEGIN + error.at / 1000
    hints = queue.submit(_failed(link, error), now)
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
        link_second=table.link_hold_ms / 1000,
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
    endpoints = {node: Endpoint(f"broker-{node}", 9092, None) for node in (_OLD, _NEW)}
    state = BrokerState(
        plan=plan_for(versions), view=view, endpoints=endpoints, node=_OLD, reachable=True
    )
    return Route("route", Mode.ON, broker=state)


def _learn(view: LeaderView, leader: Leader, broker: int) -> None:
    led = (Led(0, leader.node, leader.epoch),)
    view.learn(TopicMetadata(0, _TOPIC, ZERO_ID, led), broker)


def _hear(view: LeaderView, news: _News) -> None:
    new = Leader(_NEW, _EPOCH + 1)
    if news.what == "named":
        _learn(view, new, news.broker)
    elif news.what == "confirmed":
        view.leader_confirms(_TOPIC, 0, new)
    else:
        view.leader_denies(_TOPIC, 0, new)


def _failed(link: LinkState, error: _Error) -> Held:
    scanned = Scanned((Failure(_TOPIC, 0, _NOT_LEADER, 0, 0),), False, 0, 0)
    # A Produce request has no epoch.
    epochs = [-1 if error.key is ApiKey.PRODUCE else _EPOCH]
    version = (_UNHINTED if error.settles else _HINTED)[error.key]
    unhinted = MissReason.VERSION_WITHOUT_FIELD if error.settles else None
    return Held(link, error.key, version, memoryview(b""), scanned, epochs, unhinted)
