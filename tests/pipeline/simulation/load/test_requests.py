"""Requests by broker and second."""

import numpy as np
import pytest

from leader_hints_report.simulation.load import requests
from leader_hints_report.simulation.load.requests import Asks, RequestCounter, Sent, of_clients


def _sent(*requests: tuple[float, int]) -> Sent:
    return Sent(
        np.array([at for at, _ in requests], dtype=np.float64),
        np.array([broker for _, broker in requests], dtype=np.int64),
    )


def test_the_busiest_second_of_each_broker_is_found() -> None:
    counter = RequestCounter(3)
    counter.clients(10_000, _sent((0, 0), (900, 0), (1100, 0), (500, 1)))
    of = counter.load(20_000, 0)
    assert of.peak.tolist() == [2, 1, 0]
    assert of.begins_s.tolist() == [10, 10, 0]


def test_batches_that_follow_closely_share_a_second() -> None:
    counter = RequestCounter(1)
    counter.clients(10_000, _sent((1500, 0)))
    counter.questions(11_000, _sent((600, 0), (10_000, 0)))
    of = counter.load(50_000, 0)
    assert (of.peak.tolist(), of.begins_s.tolist()) == ([2], [11])


def test_means_are_by_origin() -> None:
    counter = RequestCounter(2)
    counter.clients(0, _sent((0, 0), (1, 0)))
    counter.questions(0, _sent((0, 1)))
    of = counter.load(2000, 0.25)
    assert of.clients.tolist() == [1, 0]
    assert of.questions.tolist() == [0, 0.5]
    assert of.mean.tolist() == [1.25, 0.75]
    assert counter.asked_by_proxies == 1


def test_clients_ask_evenly_and_only_brokers_that_are_there() -> None:
    asks = Asks(np.array([0.0, 50.0]), np.array([100.0, 50.0]), np.array([3.0, 1.0]))
    (sent,) = of_clients(asks, np.array([1, 4]), np.random.default_rng(1))
    assert sent.at.tolist() == [0, 50, 100, 50]
    assert set(sent.broker.tolist()) <= {1, 4}


def test_millions_of_requests_come_in_parts_that_make_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = np.array([3.0, 0.0, 7.0, 1.0, 20.0, 2.0])
    asks, brokers = Asks(many, many + 5, many), np.arange(3)
    (whole,) = of_clients(asks, brokers, np.random.default_rng(1))
    monkeypatch.setattr(requests, "_AT_ONCE", 8)
    parts = [*of_clients(asks, brokers, np.random.default_rng(1))]
    assert [len(part.at) for part in parts] == [3, 8, 20, 2]
    assert np.concatenate([part.at for part in parts]).tolist() == whole.at.tolist()
    assert np.concatenate([part.broker for part in parts]).tolist() == whole.broker.tolist()


def test_nothing_asked_is_no_load() -> None:
    assert RequestCounter(2).load(1000, 0).peak.tolist() == [0, 0]
