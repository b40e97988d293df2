"""Requests that await their responses, one of which may be timed."""

from leader_hints.apis.keys import ApiKey
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.exchanges import Exchanges
from leader_hints.core.link.latency_sampler import LatencySampler
from leader_hints.core.link.traffic_counters import Cell
from leader_hints.core.versions.request_policy import RequestPolicy


def _exchange(correlation_id: int, key: ApiKey = ApiKey.PRODUCE) -> Exchange:
    return Exchange(correlation_id, RequestPolicy(key, 9, Cell(), sent=9))


def test_they_wait_in_order_and_their_requests_are_counted() -> None:
    exchanges = Exchanges(None)
    policy = RequestPolicy(ApiKey.PRODUCE, 9, Cell(), sent=9)
    for number in (1, 2):
        exchanges.add(Exchange(number, policy))
    assert [one.correlation_id for one in exchanges.waiting] == [1, 2]
    assert (policy.cell.requests, policy.cell.responses) == (2, 0)
    assert exchanges.timed is None


def test_one_at_a_time_is_timed() -> None:
    now = [10.0]
    exchanges = Exchanges(LatencySampler(1, lambda: now[0]))
    first, second = _exchange(1), _exchange(2)
    exchanges.add(first)
    now[0] = 12.0
    exchanges.add(second)
    assert exchanges.timed is first
    now[0] = 13.5
    assert exchanges.end_timing() == 3.5
    assert exchanges.timed is None


def test_only_produce_and_fetch_are_timed() -> None:
    exchanges = Exchanges(LatencySampler(1, lambda: 0.0))
    exchanges.add(_exchange(1, ApiKey.METADATA))
    assert exchanges.timed is None


def test_none_are_kept_after_responses_are_no_longer_looked_at() -> None:
    exchanges = Exchanges(None)
    exchanges.add(_exchange(1))
    exchanges.stop()
    exchanges.add(_exchange(2))
    assert [*exchanges.waiting] == []
