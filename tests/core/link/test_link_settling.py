"""Errors to clients that can use no hint are kept back until they are settled; no byte changes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis import response_scan
from leader_hints.apis.keys import ApiKey
from leader_hints.core.events import HintMissed
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.held import cost
from leader_hints.core.route import Route
from tests.core.brokers import route_before
from tests.core.conversation import ONE
from tests.core.links import Driven
from tests.core.samples import (
    BROKER_3_6,
    FENCED,
    NOT_LEADER,
    NUMBERED,
    UNNUMBERED,
    USES_HINTS,
    fetch_answer,
    fetch_request,
    produce_answer,
    produce_request,
    request,
    versions_answer,
)

P, F = ApiKey.PRODUCE, ApiKey.FETCH
_CELLS = [*((P, version) for version in range(3, 10)), *((F, version) for version in range(4, 16))]
_EACH = pytest.mark.parametrize(("key", "version"), _CELLS)


def _route() -> Route:
    route = route_before("3.6")
    return replace(route, config=replace(route.config, settle=True))


def _asked(key: int, version: int, number: int = 1, replica_id: int = -1) -> bytes:
    if key == P:
        return produce_request(version, number, records=NUMBERED)
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


@pytest.mark.parametrize("version", range(3, 10))
@pytest.mark.parametrize("records", [UNNUMBERED, b"records", b""])
def test_a_producer_whose_records_have_no_numbers_never_waits(version: int, records: bytes) -> None:
    """What it sends behind a held error fails too, and it sends all that again in reverse."""
    driven = Driven(_route())
    answered = _answered(P, version, [NOT_LEADER])
    driven.up(produce_request(version, 1, records=records))
    driven.down(answered)
    assert driven.held is None
    assert driven.to_client == answered
    (event,) = (e for e in driven.link.state.events if isinstance(e, HintMissed))
    assert (event.reason, event.settling) == (MissReason.VERSION_WITHOUT_FIELD, "")


def test_a_link_on_which_some_records_have_no_numbers_never_waits() -> None:
    driven = Driven(_route())
    for number, records in enumerate((NUMBERED, UNNUMBERED, NUMBERED), 1):
        driven.up(produce_request(9, number, records=records))
    driven.down(b"".join(_answered(P, 9, [NOT_LEADER], number) for number in (1, 2, 3)))
    assert driven.held is None


def test_a_fenced_epoch_that_is_not_known_waits() -> None:
    driven = Driven(_route())
    driven.up(_asked(F, 11))
    driven.down(_answered(F, 11, [FENCED]))
    assert driven.held is not None
    assert driven.held.epochs == [-1]


_LARGE = st.lists(st.sampled_from([NOT_LEADER, FENCED, 0, 3]), min_size=1, max_size=300)


@given(
    st.sampled_from(_CELLS),
    _LARGE,
    st.lists(st.integers(1, 30_000), max_size=8),
    st.sampled_from([400, 4096, 1 << 16]),
    st.booleans(),
)
def test_errors_that_need_several_turns_are_held_together(
    cell: tuple[int, int], errors: list[int], cuts: list[int], size: int, awaited: bool
) -> None:
    """Fifty are read in a turn; what comes behind may be held, too."""
    key, version = cell
    driven = Driven(_route(), buffer_size=size)
    driven.link.state.route.awaited = awaited
    answered, behind = _answered(key, version, errors), _answered(key, version, [FENCED, 0], 2)
    failed = [number for number, error in enumerate(errors) if error in (NOT_LEADER, FENCED)]
    driven.up(_asked(key, version) + _asked(key, version, 2))
    driven.down(answered + behind, cuts)
    expected = [failed, [0]] if failed else [[0]]
    for left, numbers in enumerate(expected, 3 - len(expected)):
        held = driven.held
        assert held is not None
        assert [failure.partition for failure in held.scanned.failures] == numbers
        assert len(held.epochs) == len(numbers)
        whole = len(answered) + (len(behind) if left == 2 else 0)
        assert len(driven.to_client) < whole
        assert len(driven.to_client) + len(held.frame) <= whole
        assert driven.budget.used >= len(held.frame)
        assert not any(isinstance(e, HintMissed) for e in driven.link.state.events)
        driven.release([None] * len(numbers))
    assert driven.to_client == answered + behind
    assert driven.held is None
    assert driven.budget.used == 0


@pytest.mark.parametrize(("key", "version"), [(P, 9), (F, 11), (F, 15)])
def test_wherever_it_is_cut_a_response_is_held_once(
    key: int, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs two turns, which are made shorter: at fifty each is cut alike fifty times."""
    monkeypatch.setattr(response_scan, "_FOUND_AT_ONCE", 5)
    asked = _asked(key, version) + _asked(key, version, 2)
    answered = _answered(key, version, [NOT_LEADER] * 8 + [0])
    behind = _answered(key, version, [0], 2)
    for cut in range(1, len(answered)):
        driven = Driven(_route(), buffer_size=1 << 13)
        driven.up(asked)
        driven.down(answered + behind, [cut])
        assert driven.held is not None
        assert len(driven.held.scanned.failures) == 8
        assert driven.held.scanned.carries
        driven.release([None] * 8)
        assert driven.to_client == answered + behind
        assert driven.budget.used == 0


def test_what_is_held_behind_another_response_is_reserved_with_what_came_behind_that() -> None:
    driven = Driven(_route(), budget=Budget(1 << 10, 1 << 12))
    each = [_answered(P, 8, [NOT_LEADER], number) for number in range(1, 20)]
    driven.up(b"".join(_asked(P, 8, number) for number in range(1, 20)))
    driven.down(b"".join(each))
    for number in range(19):
        assert driven.held is not None
        assert driven.to_client == b"".join(each[:number])
        # What has gone on is given back when all of it was sent.
        assert driven.budget.used == sum(map(len, each)) + cost(driven.held.scanned)
        driven.release([None])
    assert driven.to_client == b"".join(each)
    assert driven.budget.used == 0


def test_what_a_broker_sends_before_it_ends_comes_before_what_is_held() -> None:
    driven = Driven(_route())
    answered = _answered(P, 8, [NOT_LEADER] * 60 + [0])
    driven.up(_asked(P, 8))
    driven.down(answered[:-10])
    assert driven.held is None
    driven.end()
    assert driven.to_client == answered[:-10]
    driven.link.close()
    assert driven.budget.used == 0


@pytest.mark.parametrize("version", [4, 11])
def test_an_error_waits_only_where_it_is_known_that_no_replica_has_asked(version: int) -> None:
    """Of requests of these versions only that is kept which comes at once."""
    asked = [_asked(F, version), _asked(F, version, replica_id=2)]
    answered = _answered(F, version, [NOT_LEADER, 0])
    held = set()
    for cut in range(1, len(asked[0])):
        for of_replica, frame in enumerate(asked):
            driven = Driven(_route())
            driven.up(frame, [cut])
            driven.down(answered)
            assert not (of_replica and driven.held is not None)
            missed = [e for e in driven.link.state.events if isinstance(e, HintMissed)]
            assert len(missed) == (driven.held is None)
            if driven.held is not None:
                held.add(cut)
                driven.release([None])
            assert driven.to_client == answered
    assert held
    assert held != {*range(1, len(asked[0]))}


def test_errors_of_a_response_that_cannot_be_read_to_its_end_are_counted() -> None:
    driven = Driven(_route())
    answered = bytearray(_answered(P, 8, [NOT_LEADER, NOT_LEADER]))
    # One more partition than there is.
    at = answered.index(b"\0\0\0\2", 15)
    answered[at : at + 4] = b"\0\0\0\3"
    driven.up(_asked(P, 8))
    driven.down(bytes(answered))
    assert driven.held is None
    assert driven.to_client == answered
    missed = [e for e in driven.link.state.events if isinstance(e, HintMissed)]
    assert [event.settling for event in missed] == ["", ""]
    assert len(driven.not_understood) == 1


def test_an_error_in_a_response_that_is_recoded_goes_on_at_once() -> None:
    """Its bytes change, and nothing of it is kept to be settled."""
    route = route_before("2.4")
    driven = Driven(replace(route, config=replace(route.config, settle=True)))
    driven.up(_asked(F, 12))
    driven.down(_answered(F, 10, [NOT_LEADER]))
    assert driven.held is None
    assert driven.to_client == _answered(F, 12, [NOT_LEADER])
    (event,) = (e for e in driven.link.state.events if isinstance(e, HintMissed))
    assert event.settling == ""


@pytest.mark.parametrize("size", [1 << 20, 100])
def test_errors_of_a_client_that_uses_hints_wait_for_those(size: int) -> None:
    """Also those that have no room, and are read to their end in one turn."""
    driven = Driven(_route(), budget=Budget(size, 1 << 22))
    driven.up(request(ApiKey.API_VERSIONS, 3, 9, **USES_HINTS))
    driven.down(versions_answer(3, 9, BROKER_3_6))
    driven.to_client.clear()
    driven.up(produce_request(10, 1))
    answered = _answered(P, 9, [NOT_LEADER] * 60)
    driven.down(answered, [40])
    if driven.held is not None:
        assert driven.held.unhinted is None
        driven.release([None] * 60)
    else:
        missed = [e for e in driven.link.state.events if isinstance(e, HintMissed)]
        assert [(e.reason, e.settling) for e in missed] == [("budget", "")] * 60
    assert driven.to_client == answered
    assert (driven.link.state.traffic.raw["budget"] > 0) == (size == 100)


@pytest.mark.parametrize("failed", [1, 600])
def test_without_budget_errors_are_given_up_at_once(failed: int) -> None:
    driven = Driven(_route(), budget=Budget(0, 0))
    answered = _answered(P, 8, [NOT_LEADER] * failed)
    driven.up(_asked(P, 8))
    driven.down(answered)
    assert driven.held is None
    assert driven.to_client == answered
    assert driven.budget.used == 0
    missed = [e for e in driven.link.state.events if isinstance(e, HintMissed)]
    assert [(e.answered.partition, e.reason, e.settling) for e in missed] == [
        (partition, MissReason.VERSION_WITHOUT_FIELD, "budget") for partition in range(failed)
    ]
