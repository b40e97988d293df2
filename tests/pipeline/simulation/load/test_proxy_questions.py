"""What proxies ask brokers."""

import numpy as np
import pytest

from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.fleet import Fleet
from leader_hints_report.simulation.layout import layout
from leader_hints_report.simulation.load import proxy_questions
from leader_hints_report.simulation.load.proxy_questions import Holds, Proxies
from leader_hints_report.simulation.load.requests import Api, Sent
from leader_hints_report.simulation.moves import Batch
from leader_hints_report.simulation.parameters import Parameters
from leader_hints_report.simulation.propagation import Propagation
from leader_hints_report.simulation.simulate import Outcome, simulate
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
    spread = Propagation(none, none, none, none, none, shows, 0.0)
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


def test_holds_that_are_alike_are_as_good_as_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(planned: int) -> Outcome:
        monkeypatch.setattr(proxy_questions, "_PLANNED", planned)
        return simulate(_ring(), Mode.HINTS, 1)

    every, some = outcome(1000), outcome(3)
    for api in Api:
        # Few holds: in some of them all brokers are asked, so sums differ by a few such rounds.
        assert some.questions[api] == pytest.approx(every.questions[api], rel=0.4)
        one, other = some.load[api].peak, every.load[api].peak
        assert one.max() == pytest.approx(other.max(), abs=2)
        assert np.median(one) == pytest.approx(np.median(other), abs=1)


def _ring() -> Fleet:
    clients = [
        {"name": "p", "role": "producer", "version": "3.9", "records_per_second": 4000},
        {"name": "c", "role": "consumer", "version": "3.9"},
    ]
    topics = [{"name": "t", "partitions": 24, "count": 10}]
    return small(cluster={"brokers": 24}, topics=topics, clients=clients)
