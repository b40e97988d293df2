"""The plan is written down once more, release by release and client by client."""

from dataclasses import asdict

import pytest
from hypothesis import given, settings

from leader_hints.apis.keys import ApiKey
from leader_hints.core.versions.client_capabilities import HintForm
from leader_hints.core.versions.plan import PASS, RESTAMPED, ROWS, Plan, Row, plan_for
from tests.apis.messages import as_version, decode, encode, entities, request_type, response_type

P, F, M = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA
_NATIVE = Plan(reads=False, native=True)
_KIP = frozenset({HintForm.PRODUCE, HintForm.FETCH})
_JAVA = _KIP | {HintForm.FETCH_WITHOUT_ENDPOINTS}
_KAFKA_PYTHON = frozenset({HintForm.FETCH_WITHOUT_ENDPOINTS})

#: Release: maxima of Produce, Fetch and Metadata; what Java, other clients of KIP-951 and
#: kafka-python are offered; what all of them are where there are no topic ids.
_RELEASES = {
    "2.4 to 2.6": ((8, 11, 9), {P: 10, F: 12}, {P: 10}, {F: 12}, {P: 10, F: 12}),
    "2.7": ((8, 12, 9), {P: 10, F: 16}, {P: 10, F: 16}, {}, {P: 10}),
    "2.8, 3.0": ((9, 12, 11), {P: 10, F: 16}, {P: 10, F: 16}, {}, {P: 10}),
    "3.1 to 3.4": ((9, 13, 12), {P: 10, F: 16}, {P: 10, F: 16}, {}, {P: 10, F: 16}),
    "3.5, 3.6": ((9, 15, 12), {P: 10, F: 16}, {P: 10, F: 16}, {}, {P: 10, F: 16}),
}


@pytest.mark.parametrize("release", _RELEASES)
def test_what_each_client_is_offered_before_each_release(release: str) -> None:
    (produce, fetch, metadata), java, kip, kafka_python, without_ids = _RELEASES[release]
    plan = plan_for({P: produce, F: fetch, M: metadata})
    assert plan.reads
    assert plan.offers(_JAVA, topic_ids=True) == java
    assert plan.offers(_KIP, topic_ids=True) == kip
    assert plan.offers(_KAFKA_PYTHON, topic_ids=True) == kafka_python
    assert plan.offers(_JAVA, topic_ids=False) == without_ids
    assert plan.offers(frozenset(), topic_ids=True) == {}


@pytest.mark.parametrize(
    ("maxima", "plan"),
    [
        pytest.param((7, 11, 8), PASS, id="2.3"),
        pytest.param((10, 16, 12), _NATIVE, id="3.7"),
        pytest.param((11, 16, 12), _NATIVE, id="3.8"),
        pytest.param((12, 17, 13), _NATIVE, id="4.0"),
    ],
)
def test_other_releases_pass(maxima: tuple[int, int, int], plan: Plan) -> None:
    assert plan_for(dict(zip((P, F, M), maxima, strict=True))) == plan


@pytest.mark.parametrize("kraft", [True, False])
def test_kraft_brokers_are_known_by_what_they_alone_take(kraft: bool) -> None:
    describe_quorum = {55: 1} if kraft else {}
    assert plan_for({P: 9, F: 15, M: 12} | describe_quorum).kraft is kraft


def test_a_raised_request_goes_as_the_newest_that_the_broker_takes() -> None:
    assert plan_for({P: 8, F: 11, M: 9}).sent == {(P, 9): 8, (P, 10): 8, (F, 12): 11}
    assert plan_for({P: 9, F: 12, M: 11}).sent == {(P, 10): 9} | {(F, v): 12 for v in range(13, 17)}
    assert plan_for({P: 9, F: 13, M: 12}).sent == {(P, 10): 9} | {(F, v): 13 for v in range(14, 17)}
    assert plan_for({P: 9, F: 15, M: 12}).sent == {(P, 10): 9, (F, 16): 15}


@pytest.mark.parametrize(
    ("maxima", "offered", "fetch", "older"),
    [
        pytest.param((8, 11, 9), {P: 10, F: 16, M: 10}, 11, {10: 9, 11: 9, 12: 9}, id="2.4"),
        pytest.param((8, 12, 9), {P: 10, F: 16, M: 10}, 12, {10: 9, 11: 9, 12: 9}, id="2.7"),
        pytest.param((9, 12, 11), {P: 10, F: 16, M: 12}, 12, {10: 10, 11: 11, 12: 11}, id="2.8"),
        pytest.param((9, 13, 12), {P: 10, F: 16}, 12, {10: 10, 11: 11, 12: 12}, id="3.4"),
        pytest.param((9, 15, 12), {P: 10, F: 16}, 12, {10: 10, 11: 11, 12: 12}, id="3.6"),
    ],
)
def test_where_ids_are_synthetic_brokers_are_asked_by_name(
    maxima: tuple[int, int, int], offered: dict[int, int], fetch: int, older: dict[int, int]
) -> None:
    plan = plan_for(dict(zip((P, F, M), maxima, strict=True)), synthetic=True)
    assert plan.synthetic
    for topic_ids in (False, True):
        assert plan.offers(_KIP, topic_ids=topic_ids) == offered
        assert plan.offers(_KAFKA_PYTHON, topic_ids=topic_ids) == {}
    sent = {asked: takes for (key, asked), takes in plan.sent.items() if key == F}
    assert sent == dict.fromkeys(range(fetch + 1, 17), fetch)
    assert {asked: takes for (key, asked), takes in plan.sent.items() if key == M} == older
    assert {(F, 16), (M, 10), (M, 11), (M, 12)} <= plan.recoded


def test_where_ids_are_synthetic_other_releases_pass_too() -> None:
    assert plan_for({P: 7, F: 11, M: 8}, synthetic=True) == PASS
    assert plan_for({P: 10, F: 16, M: 12}, synthetic=True) == _NATIVE


def test_what_needs_more_than_another_number_is_recoded() -> None:
    assert plan_for({P: 9, F: 15, M: 12}).recoded == frozenset()
    assert plan_for({P: 8, F: 15, M: 12}).recoded == {(P, 9), (P, 10)}
    assert plan_for({P: 9, F: 14, M: 12}).recoded == {(F, 15), (F, 16)}


@pytest.mark.parametrize("synthetic", [False, True])
def test_only_2_4_is_asked_otherwise_by_clients_without_a_rack(synthetic: bool) -> None:

    releases = {"2.4": (8, 11, 9, 6), "2.5": (8, 11, 9, 7), "2.8": (9, 12, 11, 7)}
    rackless = {
        release: plan_for(
            dict(zip((P, F, M, ApiKey.JOIN_GROUP), maxima, strict=True)), synthetic=synthetic
        ).rackless
        for release, maxima in releases.items()
    }
    assert rackless == {"2.4": 10, "2.5": None, "2.8": None}


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
                    assert {row.key: row.takes for row in plan.rows} == {
                        row.key: row.takes for row in ROWS if maxima[row.key] == row.takes
                    }


def test_nothing_is_raised_for_an_api_that_the_broker_does_not_offer() -> None:
    assert plan_for({}) == PASS
    assert plan_for({M: 12}).rows == ()


def _restamped() -> list[Row]:
    return [row for row in ROWS if (row.key, row.takes) in RESTAMPED]


@pytest.mark.parametrize("row", _restamped())
def test_a_request_of_the_offered_version_is_the_brokers_but_for_its_number(row: Row) -> None:
    @settings(max_examples=30)
    @given(entities(request_type(row.key, row.offered)))
    def check(entity: object) -> None:
        read = decode(request_type(row.key, row.takes), encode(entity))
        assert asdict(read) == asdict(entity)  # type: ignore[call-overload]

    check()


@pytest.mark.parametrize("row", _restamped())
def test_the_brokers_response_is_one_of_the_offered_version(row: Row) -> None:
    @settings(max_examples=30)
    @given(entities(response_type(row.key, row.takes)))
    def check(entity: object) -> None:
        read = decode(response_type(row.key, row.offered), encode(entity))
        assert read == as_version(entity, response_type(row.key, row.offered))

    check()


@pytest.mark.parametrize("version", [13, 14])
def test_a_fetch_response_from_13_on_is_one_of_16(version: int) -> None:
    @settings(max_examples=30)
    @given(entities(response_type(F, version)))
    def check(entity: object) -> None:
        read = decode(response_type(F, 16), encode(entity))
        assert read == as_version(entity, response_type(F, 16))

    check()
