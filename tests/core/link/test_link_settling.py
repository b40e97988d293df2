"""Errors to clients that can use no hint are kept back until they are settled; no byte changes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis.keys import ApiKey
from leader_hints.core.events import HintMissed
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.budget import Budget
from leader_hints.core.route import Route
from tests.core.brokers import route_before
from tests.core.conversation import ONE
from tests.core.links import Driven
from tests.core.samples import (
    FENCED,
    NOT_LEADER,
    fetch_answer,
    fetch_request,
    produce_answer,
    produce_request,
)

P, F = ApiKey.PRODUCE, ApiKey.FETCH
_CELLS = [*((P, version) for version in range(3, 10)), *((F, version) for version in range(4, 16))]
_EACH = pytest.mark.parametrize(("key", "version"), _CELLS)


def _route() -> Route:
    route = route_before("3.6")
    return replace(route, config=replace(route.config, settle=True))


def _asked(key: int, version: int, number: int = 1, replica_id: int = -1) -> bytes:
    if key == P:
        return produce_request(version, number)
    topic = ONE if version >= 13 else "one"
    asked = {(topic, partition): 5 for partition in range(4)}
    return fetch_request(version, number, asked, replica_id=replica_id)


def _answered(key: int, version: int, errors: list[int], number: int = 1) -> bytes:
    if key == P:
        return produce_answer(version, number, dict(enumerate(errors)), topic="one")
    topic = ONE if version >= 13 else "one"
    partitions = [(topic, n, error, bytes(0 if error else 50)) for n, error in enumerate(errors)]
    return fetch_answer(version, number, partitions)


@_EACH
def test_an_error_is_kept_back_and_goes_on_byte_for_byte(key: int, version: int) -> None:
    driven = Driven(_route())
    answered = _answered(key, version, [0, NOT_LEADER, 3])
    behind = _answered(key, version, [0], 2)
    driven.up(_asked(key, version) + _asked(key, version, 2))
    driven.down(answered + behind)
    assert driven.held is not None
    assert driven.held.unhinted is not None
    assert driven.held.scanned.carries
    (failure,) = driven.held.scanned.failures
    assert (failure.partition, failure.error) == (1, NOT_LEADER)
    epoch = 5 if key == F and version >= 12 else -1
    assert driven.held.epochs == [epoch]
    assert driven.to_client == b""
    driven.release([None])
    assert driven.to_client == answered + behind
    assert driven.budget.used == 0


@given(st.sampled_from(_CELLS), st.lists(st.integers(1, 700), max_size=20), st.integers(400, 500))
def test_no_client_has_all_of_a_response_before_it_is_settled(
    cell: tuple[int, int], cuts: list[int], size: int
) -> None:
    key, version = cell
    driven = Driven(_route(), buffer_size=size)
    answered = _answered(key, version, [NOT_LEADER, 0, 0, 0])
    behind = _answered(key, version, [0], 2)
    driven.up(_asked(key, version) + _asked(key, version, 2))
    driven.down(answered + behind, cuts)
    assert driven.held is not None
    assert len(driven.to_client) < len(answered)
    driven.release([None])
    assert driven.to_client == answered + behind
    assert driven.budget.used == 0


@_EACH
def test_what_has_no_error_is_not_kept_back(key: int, version: int) -> None:
    driven = Driven(_route())
    answered = _answered(key, version, [0, 3, 0])
    driven.up(_asked(key, version))
    driven.down(answered)
    assert driven.held is None
    assert driven.to_client == answered


@pytest.mark.parametrize("version", range(4, 16))
def test_a_replicas_fetch_never_waits(version: int) -> None:
    driven = Driven(_route())
    driven.up(_asked(F, version, replica_id=2))
    driven.down(_answered(F, version, [NOT_LEADER]))
    assert driven.held is None
    (event,) = (e for e in driven.link.state.events if isinstance(e, HintMissed))
    assert event.reason == MissReason.REPLICA


def test_a_fenced_epoch_that_is_not_known_waits() -> None:
    driven = Driven(_route())
    driven.up(_asked(F, 11))
    driven.down(_answered(F, 11, [FENCED]))
    assert driven.held is not None
    assert driven.held.epochs == [-1]


def test_without_budget_an_error_goes_on() -> None:
    driven = Driven(_route(), budget=Budget(0, 0))
    answered = _answered(P, 8, [NOT_LEADER])
    driven.up(_asked(P, 8))
    driven.down(answered)
    assert driven.to_client == answered
    (event,) = (e for e in driven.link.state.events if isinstance(e, HintMissed))
    assert event.settling == "budget"
