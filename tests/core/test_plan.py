from dataclasses import asdict

import pytest
from hypothesis import given, settings

from proxy.apis.keys import ApiKey
from proxy.core.plan import PASS, RESTAMPED, Plan, plan_for
from tests.apis.messages import (
    as_version,
    decode,
    encode,
    entities,
    request_type,
    response_type,
)

P, F, M = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA
_NATIVE = Plan(reads=False, native=True)


def _raised(*keys: ApiKey) -> Plan:
    """Return the plan that raises ``keys`` in the only way there is for each."""
    rows = {P: (10, 9), F: (16, 15)}
    return Plan(
        reads=True,
        raised={key: rows[key][0] for key in keys},
        sent={(key, rows[key][0]): rows[key][1] for key in keys},
    )


#: Release: maxima of Produce, Fetch, Metadata, and the plan.
_RELEASES = {
    "2.3": (7, 11, 8, PASS),
    "2.4 to 2.6": (8, 11, 9, _raised()),
    "2.7": (8, 12, 9, _raised()),
    "2.8, 3.0": (9, 12, 11, _raised(P)),
    "3.1 to 3.4": (9, 13, 12, _raised(P)),
    "3.5, 3.6": (9, 15, 12, _raised(P, F)),
    "3.7": (10, 16, 12, _NATIVE),
    "3.8": (11, 16, 12, _NATIVE),
    "4.0": (12, 17, 13, _NATIVE),
}


@pytest.mark.parametrize("release", _RELEASES)
def test_the_plan_of_each_release(release: str) -> None:
    produce, fetch, metadata, plan = _RELEASES[release]
    assert plan_for({P: produce, F: fetch, M: metadata}) == plan


def test_every_combination_of_versions() -> None:
    for produce in range(-1, 14):
        for fetch in range(-1, 19):
            for metadata in range(-1, 14):
                maxima = {P: produce, F: fetch, M: metadata}
                plan = plan_for({key: v for key, v in maxima.items() if v >= 0})
                if produce >= 10:
                    assert plan == _NATIVE
                elif metadata < 9:
                    assert plan == PASS
                else:
                    rows = [P] * (produce == 9) + [F] * (fetch == 15)
                    assert plan == _raised(*rows)


def test_nothing_is_raised_for_an_api_that_the_broker_does_not_offer() -> None:
    assert plan_for({}) == PASS
    assert plan_for({M: 12}) == _raised()


@pytest.mark.parametrize(("row", "offered"), RESTAMPED.items())
def test_a_request_of_the_offered_version_is_the_brokers_but_for_its_number(
    row: tuple[ApiKey, int], offered: int
) -> None:
    key, maximum = row

    @settings(max_examples=30)
    @given(entities(request_type(key, offered)))
    def check(entity: object) -> None:
        read = decode(request_type(key, maximum), encode(entity))
        assert asdict(read) == asdict(entity)  # type: ignore[call-overload]

    check()


@pytest.mark.parametrize(("row", "offered"), RESTAMPED.items())
def test_the_brokers_response_is_one_of_the_offered_version(
    row: tuple[ApiKey, int], offered: int
) -> None:
    key, maximum = row

    @settings(max_examples=30)
    @given(entities(response_type(key, maximum)))
    def check(entity: object) -> None:
        read = decode(response_type(key, offered), encode(entity))
        assert read == as_version(entity, response_type(key, offered))

    check()


def test_a_client_cannot_be_offered_more_than_topic_ids_allow() -> None:
    # Fetch above 12 needs topic ids: it is raised only where the broker has them itself.
    assert all(maximum >= 13 for (key, maximum) in RESTAMPED if key is F)
