import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis.keys import ApiKey
from leader_hints.cli.conformance import ending
from leader_hints.conformance import traits as conformance
from leader_hints.conformance.traits import Answered, Verdict, follow
from leader_hints.conformance.wire_log import Said, Seen

_AT = ("t", 0)
_REFUSED = Said({_AT: 6}, {_AT: (2, 5)}, (2,))
_SERVED = Said({_AT: 0})


def _seen(
    at: float,
    route: str,
    api: str,
    said: Said | None = None,
    version: int = 10,
    client: str = "c",
) -> Seen:
    named = (_AT,) if api in ("Produce", "Fetch") else ()
    return Seen(at, route, 1, client, api, version, 1, named, said)


def _follow(seen: Sequence[Seen]) -> Answered:
    found = follow(seen, ApiKey.PRODUCE, "t", 1.0)
    assert found is not None
    return found


def test_a_hint_is_used_by_a_client_that_comes_before_any_metadata() -> None:
    found = _follow(
        [
            _seen(0.5, "broker-1", "Produce", _REFUSED),
            _seen(1.0, "broker-1", "Produce", _REFUSED),
            _seen(1.01, "broker-1", "Metadata"),
            _seen(1.02, "broker-2", "Produce"),
            _seen(1.03, "broker-2", "Produce", _SERVED),
            _seen(3.0, "broker-1", "Metadata", Said()),
        ]
    )
    assert (found.hint, found.endpoint, found.before_metadata, found.metadata) == (
        2,
        True,
        True,
        True,
    )
    assert found.came == pytest.approx(0.02)
    assert found.retried == pytest.approx(0.02)
    assert found.recovered == pytest.approx(0.03)


def test_what_other_clients_do_does_not_count() -> None:
    found = _follow(
        [
            _seen(1.0, "broker-1", "Produce", _REFUSED),
            _seen(1.01, "broker-2", "Produce", client="other"),
            _seen(1.02, "broker-1", "Metadata", client="other"),
            _seen(1.03, "broker-1", "Metadata", Said(), client="other"),
            _seen(1.04, "broker-1", "Produce"),
            _seen(1.05, "broker-2", "Produce"),
        ]
    )
    assert (found.metadata, found.before_metadata) == (False, True)
    assert found.retried == pytest.approx(0.04)
    assert found.came == pytest.approx(0.05)


def test_metadata_that_is_asked_after_the_recovery_counts() -> None:
    found = _follow(
        [
            _seen(1.0, "broker-1", "Produce", _REFUSED),
            _seen(1.01, "broker-2", "Produce"),
            _seen(1.02, "broker-2", "Produce", _SERVED),
            _seen(1.03, "broker-2", "Metadata"),
        ]
    )
    assert found.metadata


def test_a_client_that_comes_after_metadata_may_not_have_used_it() -> None:
    found = _follow(
        [
            _seen(1.0, "broker-1", "Produce", _REFUSED),
            _seen(1.1, "broker-1", "Metadata", Said()),
            _seen(1.2, "broker-2", "Produce"),
        ]
    )
    assert not found.before_metadata
    assert found.recovered is None


def test_without_a_refusal_there_is_nothing_to_judge() -> None:
    assert follow([_seen(2.0, "broker-1", "Produce", _SERVED)], ApiKey.PRODUCE, "t", 1.0) is None
    for judge in (
        conformance.of_move,
        conformance.of_unknown_node,
        conformance.of_refusing_leader,
    ):
        assert {t.verdict for t in judge(ApiKey.FETCH, None)} == {Verdict.NOT_APPLICABLE}


def _answered(**values: object) -> Answered:
    usual = {
        "version": 10,
        "hint": 2,
        "endpoint": True,
        "retried": 0.02,
        "came": 0.02,
        "before_metadata": True,
        "recovered": 0.03,
        "metadata": True,
    }
    return Answered(**{**usual, **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "answers", "differs"),
    [
        ({}, {"hint used": "yes, after 20 ms"}, set()),
        ({"before_metadata": False}, {"hint used": "no"}, {"hint used"}),
        ({"metadata": False}, {"Metadata asked as well": "no"}, {"Metadata asked as well"}),
        ({"hint": None, "version": 9}, {"hint used": "asks v9, which has no hints"}, set()),
        ({"hint": None}, {"hint used": "none was given"}, set()),
    ],
)
def test_a_move_is_judged(
    values: dict[str, object], answers: dict[str, str], differs: set[str]
) -> None:
    traits = conformance.of_move(ApiKey.PRODUCE, _answered(**values))
    assert answers.items() <= {t.question: t.answer for t in traits}.items()
    assert {t.question for t in traits if t.verdict is Verdict.DIFFERS} == differs
    assert all(t.section == conformance.CLIENT for t in traits if t.verdict is Verdict.DIFFERS)


def _back_off(
    unhinted: Sequence[float], hinted: Sequence[float], api: ApiKey = ApiKey.PRODUCE
) -> tuple[str, Verdict]:
    (trait,) = conformance.of_back_off(
        api,
        [None, *(_answered(hint=None, came=None, retried=at) for at in unhinted)],
        [None, _answered(before_metadata=False, came=0), *(_answered(came=at) for at in hinted)],
    )
    return trait.answer, trait.verdict


@pytest.mark.parametrize(
    ("unhinted", "hinted", "answer", "verdict"),
    [
        ((1.0, 1.1, 0.9), (0.2, 0.01), "yes: 10 ms with a hint, 1000 ms without", Verdict.OK),
        ((0.1,), (0.09,), "no: 90 ms with a hint, 100 ms without", Verdict.DIFFERS),
        # One request was on its way already when the refusal came.
        ((0.0, 0.1, 0.1), (0.1,), "no: 100 ms with a hint, 100 ms without", Verdict.DIFFERS),
        ((0.004,), (0.006,), "has none: 6 ms with a hint, 4 ms without", Verdict.NOT_APPLICABLE),
        ((), (0.1,), "no hint was used", Verdict.NOT_APPLICABLE),
        ((0.1,), (), "no hint was used", Verdict.NOT_APPLICABLE),
    ],
)
def test_a_back_off_is_judged_by_that_without_a_hint(
    unhinted: tuple[float, ...], hinted: tuple[float, ...], answer: str, verdict: Verdict
) -> None:
    assert _back_off(unhinted, hinted) == (answer, verdict)


def test_a_consumer_may_keep_its_back_off() -> None:
    assert _back_off((0.1,), (0.1,), ApiKey.FETCH)[1] is Verdict.NOT_APPLICABLE


#: Seconds that a machine with other work adds.
_LATE = st.floats(0, 10)


@given(
    own=st.floats(0.08, 5),
    kept=st.tuples(st.floats(0, 1), st.floats(0, 1), _LATE),
    came=st.tuples(st.floats(0, 0.45), _LATE, _LATE),
)
def test_a_busy_machine_changes_no_verdict_on_a_back_off(
    own: float, kept: tuple[float, float, float], came: tuple[float, float, float]
) -> None:
    """Two refusals of three are late by less than the back-off, and one hint of three by half."""
    unhinted = [own + kept[0] * own * 0.99, own + kept[1] * own * 0.99, own + kept[2]]
    hinted = [came[0] * own, came[1], came[2]]
    assert _back_off(unhinted, hinted)[1] is Verdict.OK
    assert _back_off(unhinted, [own + late for late in hinted])[1] is Verdict.DIFFERS


def test_an_old_hint_is_to_be_ignored() -> None:
    followed = conformance.of_old_hint("stale epoch", ApiKey.FETCH, _answered())
    ignored = conformance.of_old_hint("stale epoch", ApiKey.FETCH, _answered(before_metadata=False))
    assert [t.verdict for t in followed] == [Verdict.NOT_APPLICABLE, Verdict.DIFFERS]
    assert [t.verdict for t in ignored] == [Verdict.NOT_APPLICABLE, Verdict.OK]


def test_versions_are_those_that_were_asked() -> None:
    seen = [_seen(1, "b", "Fetch", version=16), _seen(1, "b", "Fetch", version=12)]
    assert conformance.versions(seen) == {"Fetch": [12, 16]}
    told = [conformance.asks_for_hints(ApiKey.FETCH, version) for version in (11, 12, 16)]
    assert told == ["none", "leader", "leader and endpoint"]


def test_a_report_ends_with_a_count_and_what_each_deviation_means() -> None:
    hinted = Answered(10, 2, True, 0.01, 0.01, True, 0.02, False)
    late = dataclasses.replace(hinted, before_metadata=False)
    api = ApiKey.PRODUCE
    traits = [
        *conformance.of_move(api, hinted),
        *conformance.of_move(ApiKey.FETCH, late),
        *conformance.of_back_off(api, [hinted] * 3, [hinted]),
        *conformance.of_old_hint("stale epoch", api, hinted),
        *conformance.of_unknown_node(api, dataclasses.replace(hinted, came=None)),
        *conformance.of_refusing_leader(api, dataclasses.replace(hinted, recovered=None)),
    ]
    count, *differences = ending(traits)

    wrong = [trait for trait in traits if trait.verdict is Verdict.DIFFERS]
    assert len(differences) == len(wrong) == 5
    right = sum(trait.verdict is Verdict.OK for trait in traits)
    assert count == (
        f"{right} as KIP-951 specifies, 5 different, {len(traits) - 5 - right} without a verdict."
    )
    assert differences[0] == (
        "- move, Produce, Metadata asked as well: it went to the hinted leader and did not ask for "
        "Metadata. KIP-951 has a client ask as well, so that it learns what else has changed "
        "(Proposed Changes, Client)."
    )
