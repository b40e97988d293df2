"""What reads which responses."""

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.traffic_counters import Cell
from leader_hints.core.responses import (
    addresses,
    api_versions_responses,
    fetch_responses,
    metadata_responses,
    produce_responses,
    response_table,
)
from leader_hints.core.responses.outcome import Reader
from leader_hints.core.versions.address_rewriting import Rewriter
from leader_hints.core.versions.request_policy import RequestPolicy

P, F, M, V = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.API_VERSIONS
_HEARTBEAT = 12


def _rewriter(*_: object) -> list[object]:
    return []


def _reader(
    key: int,
    *,
    hintable: bool = False,
    unhinted: MissReason | None = None,
    rewriter: Rewriter | None = None,
    recoded: int = 0,
) -> Reader | None:
    policy = RequestPolicy(
        key, 9, Cell(), sent=9, hintable=hintable, unhinted=unhinted, rewriter=rewriter
    )
    return response_table.reader_of(Exchange(1, policy, recoded=recoded))


@pytest.mark.parametrize(
    ("key", "reader"),
    [
        (P, None),
        (F, None),
        (M, metadata_responses.passed),
        (V, api_versions_responses.read),
        (_HEARTBEAT, None),
    ],
)
def test_most_responses_pass_unread(key: int, reader: Reader | None) -> None:
    assert _reader(key) is reader


@pytest.mark.parametrize(
    ("key", "reader"),
    [
        (P, addresses.readdressed),
        (F, addresses.readdressed),
        (M, metadata_responses.with_addresses),
        (V, api_versions_responses.read),
        (_HEARTBEAT, addresses.readdressed),
    ],
)
def test_addresses_are_replaced_in_every_response_that_has_some(key: int, reader: Reader) -> None:
    assert _reader(key, rewriter=_rewriter) is reader  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key", "reader"), [(P, produce_responses.hinted), (F, fetch_responses.hinted)]
)
def test_an_error_that_can_get_a_hint_is_looked_for_before_all_else(
    key: int, reader: Reader
) -> None:
    assert _reader(key, hintable=True) is reader
    both = _reader(key, hintable=True, unhinted=MissReason.BUDGET, rewriter=_rewriter)  # type: ignore[arg-type]
    assert both is reader


@pytest.mark.parametrize("key", [P, F])
def test_an_error_that_can_get_none_is_counted(key: int) -> None:
    assert _reader(key, unhinted=MissReason.NOT_USABLE_BY_CLIENT) is response_table.counted


@pytest.mark.parametrize("hintable", [False, True])
@pytest.mark.parametrize(
    ("key", "reader"),
    [
        (P, produce_responses.recoded),
        (F, fetch_responses.recoded),
        (M, metadata_responses.recoded),
    ],
)
def test_a_recoded_response_is_converted_whatever_else_it_is_read_for(
    key: int, reader: Reader, hintable: bool
) -> None:
    assert _reader(key, hintable=hintable, recoded=8) is reader
