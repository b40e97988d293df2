"""What proxies ask brokers."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.leader_hint import Endpoint, Failure, LeaderHint
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core import mode as proxy_mode
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.cluster import Cluster
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.refresh_plan import RefreshPlan
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.wanted_leaders import WantedLeaders
from leader_hints.core.route import Route, RouteConfig
from leader_hints.settings.subscription import SubscriptionSettings
from leader_hints.wire.steps import at_once
from leader_hints_report.simulation import simulate as simulation
from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.arrays import Ints
from leader_hints_report.simulation.fleet import Fleet
from leader_hints_report.simulation.layout import Layout, layout
from leader_hints_report.simulation.load.proxy_questions import AskedBroker, Holds, Proxies
from leader_hints_report.simulation.load.requests import Api, Sent
from leader_hints_report.simulation.moves import Batch
from leader_hints_report.simulation.parameters import Parameters
from leader_hints_report.simulation.propagation import Propagation
from tests.pipeline.simulation.fleets import small

_NEW = 1
#: The first Metadata has the moves at this time, the last at the other.
_SHOWN, _LAST = 40.0, 80.0


def _questions(
    partitions: int, brokers: int = 4, *, until: float = 95.0, settles: bool = False
) -> dict[Api, Sent]:
    """Return what the proxy of broker 0 asks, whose leaders go to broker 1 and are held from 0."""
    fleet = small(
        cluster={"brokers": brokers}, topics=[{"name": "t", "partitions": max(partitions, 50) * 5}]
    )
    none, moved = np.zeros(partitions), np.arange(partitions)
    shows = np.full(brokers, _LAST)
    shows[2] = _SHOWN
    old = np.zeros(partitions, np.int64)
    spread = Propagation(none, none, none, none, none, none, shows, 0.0)
    held = Holds(moved, none, np.full(partitions, until), np.full(partitions, settles))
    proxies = Proxies(layout(fleet), Parameters(), settle=settles)
    return proxies.questions(Batch(5000.0, moved, old, old + _NEW), spread, held)


def _asked(sent: Sent, begin: float, end: float) -> list[int]:
    """Return which brokers are asked in a time."""
    return sorted(set(sent.broker[(sent.at >= begin) & (sent.at < end)].tolist()))


def test_all_brokers_are_asked_whether_they_lead_until_one_names_the_leader() -> None:
    sent = _questions(1)[Api.LIST_OFFSETS]
    assert _asked(sent, 0, _SHOWN) == [0, 1, 2, 3]
    assert _asked(sent, _SHOWN + 3, 100) == [_NEW]


def test_its_own_broker_is_asked_for_metadata_and_all_in_every_fourth_round() -> None:
    sent = _questions(1)[Api.METADATA]
    assert sent.at[sent.broker == 0].tolist() == [*range(0, 100, 10)]
    assert sent.at[sent.broker == 3].tolist() == [30, 70]


def test_settled_errors_have_brokers_asked_that_lag() -> None:
    sent = _questions(1, settles=True)[Api.METADATA]
    assert 3 in sent.broker[sent.at == 50]
    assert 2 not in sent.broker[sent.at == 50]


def test_a_storm_asks_few() -> None:
    sent = _questions(1000)
    assert _asked(sent[Api.LIST_OFFSETS], 0, _SHOWN) == [], "nobody is named yet"
    assert _asked(sent[Api.LIST_OFFSETS], _SHOWN + 3, 100) == [_NEW]
    # 5000 partitions are more than one round asks for: one broker at a time.
    _, many = np.unique(sent[Api.METADATA].at, return_counts=True)
    assert many.max() == 1


def test_no_process_asks_more_often_than_it_may() -> None:
    sent = _questions(1, until=3000.0)[Api.METADATA]
    assert 20 + 2.9 * 20 - 1 <= len(np.unique(sent.at)) <= 20 + 3 * 20 + 1


def test_what_is_not_held_is_not_asked_about() -> None:
    assert _questions(1, until=0.3) == {}


def test_polls_are_of_the_own_proxy_and_of_all_others() -> None:
    def polls(brokers: int, topics: int) -> float:
        of = [{"name": "t", "partitions": 100, "count": topics}]
        where = layout(small(cluster={"brokers": brokers}, topics=of))
        return Proxies(where, Parameters(), settle=False).polls_per_s * 60

    # Two requests in each fifth poll, and one for each 2,000 partitions in the others.
    assert polls(3, 20) == pytest.approx((2 + 4 * 1) / 5 + 2)
    assert polls(3, 200) == pytest.approx((2 + 4 * 10) / 5 + 2)
    assert polls(103, 20) == pytest.approx((2 + 4 * 1) / 5 + 102)
    assert polls(3, 10_000) == pytest.approx((2 + 4 * 500) / 5 + 2)


class _Direct:
    """The core's rules over a view of all partitions, with all of their Metadata: no short cuts."""

    def __init__(self, where: Layout, table: Parameters, *, settle: bool) -> None:
        self._where, self._table = where, table
        self._config = RouteConfig(settle=settle)
        of = SubscriptionSettings()
        self._plans = [RefreshPlan(of.slice_partitions) for _ in range(where.brokers)]
        self._rates = [
            RefreshRate(of.refreshes_per_second, of.refresh_burst) for _ in range(where.brokers)
        ]
        firsts = np.flatnonzero(np.diff(where.topic, prepend=-1))
        self._number = np.arange(len(where.topic)) - firsts[where.topic]

    def questions(self, batch: Batch, spread: Propagation, holds: Holds) -> dict[Api, Sent]:
        asked: list[tuple[float, Api, int]] = []
        for node in np.unique(batch.old[holds.move]):
            asked += self._of(int(node), batch, spread, holds)
        return {
            api: Sent(
                np.array([at for at, of, _ in asked if of is api]),
                np.array([broker for _, of, broker in asked if of is api], np.int64),
            )
            for api in dict.fromkeys(api for _, api, _ in asked)
        }

    def _of(
        self, node: int, batch: Batch, spread: Propagation, holds: Holds
    ) -> Iterator[tuple[float, Api, int]]:
        now = [0.0]
        cluster = Cluster(LeaderView("cluster", lambda: now[0] / 1000))
        state = BrokerState(view=cluster.view, node=node, reachable=True)
        route = Route(f"broker-{node}", proxy_mode.Mode.ON, self._config, broker=state)
        brokers = [
            AskedBroker(other, route if other == node else None)
            for other in range(self._where.brokers)
        ]
        self._learn(cluster, batch, batch.old, 5, node)
        cluster.view.metadata_brokers.expect(brokers, 0.0)
        its = [
            (int(move), begin, until, bool(settles))
            for move, begin, until, settles in zip(*holds, strict=True)
            if batch.old[move] == node and until - begin > self._table.proxy_ms
        ]
        news = sorted(
            (spread.shows[other] + self._table.rtt_ms, other) for other in range(len(brokers))
        )
        if not self._config.settle:
            # What others name later is no news then.
            del news[1:]
        plan, rate = self._plans[node], self._rates[node]
        plan.reset()
        named = False
        now[0] = min((begin for _, begin, _, _ in its), default=np.inf)
        while now[0] < max((until for _, _, until, _ in its), default=0):
            while news and news[0][0] <= now[0]:
                self._learn(cluster, batch, batch.new, 6, int(news.pop(0)[1]))
                named = True
            held = sorted({(move, of) for move, begin, until, of in its if begin <= now[0] < until})
            if not held:
                now[0] = min(begin for _, begin, _, _ in its if begin > now[0])
                plan.reset()
                continue
            if rate.take((batch.at + now[0]) / 1000):
                plan.begin()
                wanted = WantedLeaders(route)
                wanted.add(self._failed(batch, move, of, named=named) for move, of in held)
                for request in at_once(plan.round(wanted, cluster, brokers, 0)).requests:
                    if request.topics:
                        yield now[0], Api.METADATA, request.broker.node
                    if request.epochs:
                        yield now[0], Api.LIST_OFFSETS, request.broker.node
            now[0] += self._table.ask_ms

    def _failed(self, batch: Batch, move: int, settles: bool, *, named: bool) -> FailedPartition:
        of = batch.partitions[move]
        topic, number = str(self._where.topic[of]), int(self._number[of])
        failure = Failure(topic, number, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, 0)
        one = FailedPartition(failure, -1, 0.0, 5, settles=settles)
        if named:
            one.found = LeaderHint(int(batch.new[move]), 6, Endpoint("b", 9092, None))
        return one

    def _learn(
        self, cluster: Cluster, batch: Batch, leaders: Ints, epoch: int, source: int
    ) -> None:
        moved = dict(zip(batch.partitions.tolist(), leaders.tolist(), strict=True))
        for topic in np.unique(self._where.topic[batch.partitions]):
            led = tuple(
                Led(int(self._number[of]), moved.get(of, 0), epoch if of in moved else 5)
                for of in np.flatnonzero(self._where.topic == topic).tolist()
            )
            cluster.view.learn(TopicMetadata(0, str(topic), ZERO_ID, led), source)


_ROLL = {"kind": "rolling_restart", "pause_s": 120}
#: Of each of six brokers 500 leaders move at once, then 200: a storm is more than 333.
_STORM = {"kind": "reassignment", "batch": 3000}


@pytest.mark.parametrize(
    ("mode", "partitions", "event"),
    [(Mode.HINTS, 9, _ROLL), (Mode.HINTS, 420, _STORM), (Mode.SETTLED, 9, _ROLL)],
    ids=["hints", "a storm", "settled"],
)
def test_all_questions_are_those_of_the_proxys_own_rules(
    monkeypatch: pytest.MonkeyPatch, mode: Mode, partitions: int, event: dict[str, object]
) -> None:
    compared: dict[Api, int] = defaultdict(int)

    class Held(Proxies):
        def __init__(self, where: Layout, table: Parameters, *, settle: bool) -> None:
            super().__init__(where, table, settle=settle)
            self._direct = _Direct(where, table, settle=settle)

        def questions(self, batch: Batch, spread: Propagation, holds: Holds) -> dict[Api, Sent]:
            asked = super().questions(batch, spread, holds)
            direct = self._direct.questions(batch, spread, holds)
            assert asked.keys() == direct.keys()
            for api, sent in asked.items():
                assert sent.at.tolist() == direct[api].at.tolist()
                assert sent.broker.tolist() == direct[api].broker.tolist()
                compared[api] += len(sent.at)
            return asked

    monkeypatch.setattr(simulation, "Proxies", Held)
    simulation.simulate(_ring(mode, partitions, event), mode, 1)
    assert min(compared[api] for api in Api) >= 20


def _ring(mode: Mode, partitions: int, event: dict[str, object]) -> Fleet:
    version = "3.6.2" if mode is Mode.SETTLED else "3.9"
    clients = [
        {"name": "p", "role": "producer", "version": version, "records_per_second": 4000},
        {"name": "c", "role": "consumer", "version": version},
    ]
    topics = [{"name": "t", "partitions": partitions, "count": 10}]
    return small(cluster={"brokers": 6}, topics=topics, clients=clients, event=event)
