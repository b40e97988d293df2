"""What each kind of client gets before each release, with hints on, observed and off."""

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.check.client_support import KINDS, PLAIN, support_of_kinds
from leader_hints.core.mode import Mode
from leader_hints.core.versions.client_capabilities import BUILT_IN, HintForm, client_table

_JAVA, _LIBRDKAFKA, _FRANZ_GO, _KAFKA_PYTHON, _PLAIN = range(5)


def _maxima(produce: int, fetch: int, metadata: int = 12) -> dict[int, int]:
    return {ApiKey.PRODUCE: produce, ApiKey.FETCH: fetch, ApiKey.METADATA: metadata}


#: Release, what it takes, whether there are topic ids; for each kind Produce and Fetch as offered,
#: marked where hints come with them. docs/how-it-works.md and docs/compatibility.md say the same.
_RELEASES = [
    ("3.6", _maxima(9, 15), True, ["10! 16!", "10! 16!", "10! 16!", "9 15!", "9 15"]),
    ("3.4", _maxima(9, 13), True, ["10! 16!", "10! 16!", "10! 16!", "9 13!", "9 13"]),
    ("2.8", _maxima(9, 12, 11), True, ["10! 16!", "10! 16!", "10! 16!", "9 12!", "9 12"]),
    ("2.8, no ids", _maxima(9, 12, 11), False, ["10! 12!", "10! 12", "10! 12", "9 12!", "9 12"]),
    ("2.7", _maxima(8, 12, 9), False, ["10! 12!", "10! 12", "10! 12", "8 12!", "8 12"]),
    ("2.4", _maxima(8, 11, 9), False, ["10! 12!", "10! 11", "10! 11", "8 12!", "8 11"]),
    ("2.3", _maxima(7, 11, 8), False, ["7 11"] * 5),
    ("3.7", _maxima(10, 16), True, ["10! 16!", "10! 16!", "10! 16!", "10 16!", "10 16"]),
]


@pytest.mark.parametrize(
    ("maxima", "topic_ids", "expected"),
    [row[1:] for row in _RELEASES],
    ids=[r[0] for r in _RELEASES],
)
def test_with_hints(maxima: dict[int, int], topic_ids: bool, expected: list[str]) -> None:
    shown = [
        f"{o.produce}{'!' * o.produce_hints} {o.fetch}{'!' * o.fetch_hints}"
        for o in support_of_kinds(maxima, Mode.ON, topic_ids=topic_ids)
    ]

    assert shown == expected


@pytest.mark.parametrize(
    ("mode", "maxima", "expected"),
    [
        (Mode.ON, _maxima(9, 15), [" ", " ", " ", "s ", "s s"]),
        (Mode.ON, _maxima(8, 11, 9), [" ", " s", " s", "s ", "s s"]),
        (Mode.ON, _maxima(10, 16), [" "] * 5),
        (Mode.ON, _maxima(7, 11, 8), [" "] * 5),
        (Mode.OBSERVE, _maxima(9, 15), [" "] * 5),
    ],
    ids=["3.6", "2.4", "3.7", "2.3", "observe"],
)
def test_what_gets_no_hint_is_settled(
    mode: Mode, maxima: dict[int, int], expected: list[str]
) -> None:
    ids = maxima[ApiKey.METADATA] > 9
    supported = support_of_kinds(maxima, mode, topic_ids=ids, settle=True)
    assert [f"{'s' * o.produce_settles} {'s' * o.fetch_settles}" for o in supported] == expected
    assert not any(
        o.produce_settles or o.fetch_settles for o in support_of_kinds(maxima, mode, topic_ids=ids)
    )


@pytest.mark.parametrize(
    ("maxima", "expected"),
    [
        (_maxima(9, 15), ["10! 16!", "10! 16!", "10! 16!", "9 15!", "9 15"]),
        (_maxima(8, 12, 9), ["10! 16!", "10! 16!", "10! 16!", "8 12!", "8 12"]),
        (_maxima(8, 11, 9), ["10! 16!", "10! 16!", "10! 16!", "8 12!", "8 11"]),
    ],
    ids=["3.6, no ids", "2.7", "2.4"],
)
def test_with_hints_and_ids_that_are_synthetic(maxima: dict[int, int], expected: list[str]) -> None:
    shown = [
        f"{o.produce}{'!' * o.produce_hints} {o.fetch}{'!' * o.fetch_hints}"
        for o in support_of_kinds(maxima, Mode.ON, topic_ids=False, synthetic=True)
    ]

    assert shown == expected


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.OFF])
def test_without_hints_all_get_what_the_broker_offers(mode: Mode) -> None:
    for support in support_of_kinds(_maxima(9, 15), mode, topic_ids=True):
        assert (support.produce, support.fetch) == (9, 15)
        assert not support.produce_hints
        assert not support.fetch_hints


def test_the_kinds_are_those_that_use_hints_and_one_that_does_not() -> None:
    assert [bool(BUILT_IN.forms(kind.software)) for kind in KINDS] == [True] * 4 + [False]
    assert PLAIN is KINDS[-1]
    # The first alone is enough to tell a proxy: whatever is raised is raised for it.
    assert BUILT_IN.forms(KINDS[0].software) == frozenset(HintForm)


def test_clients_of_the_configuration_are_kinds_too() -> None:
    clients = client_table(
        [("a-service", (2, 1), ["produce"]), ("kgo", (), []), ("*", (), ["fetch"])]
    )
    support = {
        o.client: (o.produce_hints, o.fetch_hints, o.fetch)
        for o in support_of_kinds(_maxima(9, 15), Mode.ON, clients, topic_ids=True)
    }

    assert support["a-service 2.1 or newer"] == (True, False, 15)
    assert support["franz-go 1.17 or newer"] == support["kgo"] == (False, False, 15)
    assert support["clients that are not known"] == (False, True, 16)
    assert [*support][-1] == PLAIN.name
    assert support[PLAIN.name] == (False, False, 15)
