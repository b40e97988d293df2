"""The fuzzer itself: that it finds what it is for. ``make fuzz`` is the long run."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import LeaderHint, current_leader, node_endpoints
from leader_hints.core.mode import Mode
from tests.core.brokers import BROKERS, NAMES, F, M, P, names_before
from tests.core.conversation import NODES, ONE
from tests.core.samples import (
    NOT_LEADER,
    USES_HINTS,
    fetch_answer,
    fetch_request,
    produce_answer,
    produce_request,
    request,
    versions_answer,
)
from tests.fuzz.answers import Answers
from tests.fuzz.case import KINDS, Case, Step, play
from tests.fuzz.make import Maker
from tests.fuzz.referee import judge
from tests.fuzz.shrink import shrink
from tests.fuzz.way import BrokenRuleError
from tests.recordings import recorded_exchanges

#: Versions of Produce and Fetch that brokers answer.
_SENT = {
    **{
        "2.4": (8, 16),
        "2.6": (8, 16),
        "2.8": (9, 12),
        "3.4": (9, 13),
        "3.6": (9, 15),
        "3.7": (10, 16),
    },
    **{"2.6+": (8, 11), "2.8+": (9, 12)},
}


def _talk(kind: str = "3.6") -> list[Step]:
    release, _ = KINDS[kind]
    produce, fetch = _SENT[release]
    asked = next(iter(names_before(release)))
    topic = NAMES[ONE] if fetch < 13 else asked
    return [
        ("up", request(18, 3, 1) + produce_request(10, 2, transactional_id="tx")),
        ("up", request(8, 8, 3)),
        ("down", versions_answer(3, 1, BROKERS[release])),
        ("down", produce_answer(produce, 2, {0: NOT_LEADER}) + b"\0\0\0\x08\0\0\0\x03abcd"),
        ("up", fetch_request(16, 4, {(asked, 0): 5})),
        ("down", fetch_answer(fetch, 4, [(topic, 0, NOT_LEADER, b"records")])),
    ]


def _hello(release: str) -> list[Step]:
    hello = request(18, 3, 1, **USES_HINTS)
    return [("up", hello), ("down", versions_answer(3, 1, BROKERS[release]))]


def _case(kind: str = "3.6", steps: list[Step] | None = None) -> Case:
    return Case(kind, 1, False, 1 << 20, 1 << 22, _talk(kind) if steps is None else steps)


def test_some_cases_of_every_kind_break_no_rule() -> None:
    maker = Maker(1, recorded_exchanges())
    seen = set()
    for number in range(600):
        case, _ = maker.case(number)
        judge(case, play(case))
        seen.add(case.kind)
    assert seen == set(KINDS)


def test_a_case_is_the_same_each_time() -> None:
    assert Maker(5, []).case(77) == Maker(5, []).case(77)
    assert Maker(5, []).case(77) != Maker(6, []).case(77)


def test_answers_are_read() -> None:
    answers = Answers(1)
    assert sum(answers.read(number) for number in range(100)) == 600


@pytest.mark.parametrize("kind", [k for k, (_, mode) in KINDS.items() if mode is not Mode.OFF])
def test_every_changed_byte_of_what_comes_out_is_found(kind: str) -> None:
    case = _case(kind)
    outcome = play(case)
    judge(case, outcome)
    for out in (outcome.driven.to_broker, outcome.driven.to_client):
        for at in range(len(out)):
            before = out[at]
            out[at] ^= 0x41
            with pytest.raises(BrokenRuleError):
                judge(case, outcome)
            out[at] = before
    judge(case, outcome)


@pytest.mark.parametrize("cuts", [(9000,), (9000, -1), (4000, 9000, -2)])
@pytest.mark.parametrize("records", [bytes(range(1, 256)) * 40, bytes(10_000), b"ab" * 5000])
def test_a_frame_that_breaks_off_in_its_tags_is_judged_by_what_has_passed(
    records: bytes, cuts: tuple[int, ...]
) -> None:
    frame = produce_request(9, 2, records=records)
    frame = frame[:-1] + b"\7"
    edges = [0, *(cut % len(frame) for cut in cuts), len(frame)]
    steps: list[Step] = [
        *_hello("2.6"),
        *(("up", frame[a:b]) for a, b in itertools.pairwise(edges)),
    ]
    case = _case("2.6", steps)
    outcome = play(case)
    judge(case, outcome)
    out, hello = outcome.driven.to_broker, len(steps[0][1])
    for at in (-1, -2000, hello + 31):
        out[at] ^= 0x41
        with pytest.raises(BrokenRuleError):
            judge(case, outcome)
        out[at] ^= 0x41
    del out[-1]
    with pytest.raises(BrokenRuleError):
        judge(case, outcome)


def test_what_came_before_the_end_of_a_link_must_not_be_lost() -> None:
    case = _case(steps=[*_talk(), ("up", b"\xff\xff\xff\xff" + bytes(8))])
    outcome = play(case)
    judge(case, outcome)
    outcome.driven.to_broker[:] = outcome.driven.to_broker[: len(request(18, 3, 1))]
    with pytest.raises(BrokenRuleError, match="is lost"):
        judge(case, outcome)


def test_what_passed_of_a_response_before_answers_of_our_own_is_judged() -> None:
    asked = fetch_request(16, 2, {(ONE, 0): 5, (bytes(15) + b"\7", 3): 6})
    answer = fetch_answer(12, 2, [(NAMES[ONE], 0, 0, b"records" * 1000)])
    case = _case("2.8", [*_hello("2.8"), ("up", asked), ("down", answer[:5000])])
    outcome = play(case)
    judge(case, outcome)
    out = outcome.driven.to_client
    assert len(out) > 5000
    for at in (*range(90), 3000, len(out) - 1):
        out[at] ^= 0x41
        with pytest.raises(BrokenRuleError):
            judge(case, outcome)
        out[at] ^= 0x41


def test_an_empty_name_may_stand_for_null() -> None:
    asked = fetch_request(12, 2, {("", 0): 5})
    answer = fetch_answer(11, 2, [("", 0, 0, b"records")])
    # Behind size, correlation id, throttle time, error, session and count stands the name's length.
    assert answer[22:24] == bytes(2)
    null = answer[:22] + b"\xff\xff" + answer[24:]
    case = _case("2.6", [*_hello("2.6"), ("up", asked), ("down", null)])
    judge(case, play(case))


#: Where in a response with one partition empty tag sections stand: of all, of the topic, and of the
#: partition. Behind the topics of Produce is the throttle time.
_SECTIONS: Mapping[int, tuple[int, int, int]] = {P: (-1, -6, -7), F: (-1, -2, -3)}
_LEADER: Mapping[int, int] = {P: 0, F: 1}
_HINT = LeaderHint(2, 9, NODES[2])


def _response(key: int, version: int, error: int) -> bytes:
    if key == P:
        return produce_answer(version, 2, {0: error})
    return fetch_answer(version, 2, [(ONE if version >= 13 else NAMES[ONE], 0, error, b"records")])


def _tagged(frame: bytes, at: int, fields: Sequence[tuple[int, bytes]]) -> bytes:
    at %= len(frame)
    assert frame[at] == 0
    tags = b"".join(bytes([tag, len(payload)]) + payload for tag, payload in fields)
    whole = frame[:at] + bytes([len(fields)]) + tags + frame[at + 1 :]
    return (len(whole) - 4).to_bytes(4) + whole[4:]


@pytest.mark.parametrize(
    ("key", "version", "error", "section", "allowed"),
    [
        (F, 16, NOT_LEADER, 2, True),
        (F, 16, 74, 2, True),
        (F, 16, 0, 2, False),
        (F, 16, 75, 2, False),
        (F, 16, NOT_LEADER, 1, False),
        (P, 10, NOT_LEADER, 2, True),
        (P, 10, 0, 2, False),
        (P, 10, NOT_LEADER, 1, False),
        (P, 9, NOT_LEADER, 2, False),
    ],
)
def test_a_leader_stands_in_a_partition_that_failed_and_nowhere_else(
    key: int, version: int, error: int, section: int, allowed: bool
) -> None:
    tag = [(_LEADER[key], current_leader(_HINT))]
    _judge_tagged(key, version, error, _SECTIONS[key][section], tag, allowed)


@pytest.mark.parametrize(
    ("key", "version", "allowed"), [(F, 16, True), (F, 15, False), (P, 10, True), (P, 9, False)]
)
def test_endpoints_go_to_clients_alone_that_know_them(
    key: int, version: int, allowed: bool
) -> None:
    tag = [(0, node_endpoints([_HINT]))]
    _judge_tagged(key, version, NOT_LEADER, _SECTIONS[key][0], tag, allowed)


def _judge_tagged(
    key: int,
    version: int,
    error: int,
    at: int,
    fields: Sequence[tuple[int, bytes]],
    allowed: bool,
    *,
    before: Sequence[tuple[int, bytes]] = (),
) -> None:
    """Judge a response that has got fields, in place of those ``before``."""
    kind = "3.4" if key == F else "3.6"
    asked = produce_request(version, 2) if key == P else fetch_request(version, 2, {(ONE, 0): 5})
    plain = _response(key, version, error)
    answered = _tagged(plain, at, before) if before else plain
    case = _case(kind, [*_hello(kind), ("up", asked), ("down", answered)])
    outcome = play(case)
    judge(case, outcome)
    outcome.hints.append(_HINT)
    outcome.driven.to_client[len(versions_answer(3, 1, BROKERS[kind])) :] = _tagged(
        plain, at, fields
    )
    if allowed:
        judge(case, outcome)
        return
    with pytest.raises(BrokenRuleError):
        judge(case, outcome)


def test_fields_of_others_keep_their_order_around_a_hint() -> None:
    leader = (1, current_leader(_HINT))
    before, at = [(5, b"five"), (0, b"zero"), (7, b"")], _SECTIONS[F][2]
    for fields, allowed in (
        ([(0, b"zero"), leader, (5, b"five"), (7, b"")], True),
        ([(0, b"zero"), leader, (7, b""), (5, b"five")], False),
        ([(5, b"five"), (0, b"zero"), leader, (7, b"")], False),
    ):
        _judge_tagged(F, 16, NOT_LEADER, at, fields, allowed, before=before)


@pytest.mark.parametrize(
    ("key", "maximum"), [(P, 11), (P, 12), (P, 16), (F, 10), (F, 12), (F, 17), (M, 16)]
)
def test_a_maximum_that_is_not_the_plans_is_found(key: ApiKey, maximum: int) -> None:
    case = _case(steps=_hello("3.6"))
    outcome = play(case)
    judge(case, outcome)
    offered = {**BROKERS["3.6"], P: 10, F: 16}
    assert outcome.driven.to_client == versions_answer(3, 1, offered)
    outcome.driven.to_client[:] = versions_answer(3, 1, {**offered, key: maximum})
    with pytest.raises(BrokenRuleError):
        judge(case, outcome)


@pytest.mark.parametrize("lost", [1, 4, 20])
def test_lost_bytes_are_found(lost: int) -> None:
    case = _case()
    outcome = play(case)
    del outcome.driven.to_client[-lost:]
    with pytest.raises(BrokenRuleError):
        judge(case, outcome)


def test_memory_that_stays_reserved_is_found() -> None:
    case = _case()
    outcome = play(case)
    outcome.driven.budget.take(1)
    with pytest.raises(BrokenRuleError):
        judge(case, outcome)


def test_memory_far_above_what_was_sent_is_found() -> None:
    case = _case("2.6")
    outcome = play(case)
    outcome.most_used = 1 << 30
    with pytest.raises(BrokenRuleError):
        judge(case, outcome)


def test_a_case_is_made_small_and_kept(tmp_path: Path) -> None:
    def breaks(case: Case) -> bool:
        return b"cde" in b"".join(data for side, data in case.steps if side == "up")

    small = shrink(_case(steps=[*_talk(), ("up", b"abcdefgh"), ("down", b"xyz")]), breaks)
    assert small.steps == [("up", b"cde")]
    small.save(tmp_path / "found" / "case.json")
    assert Case.load(tmp_path / "found" / "case.json") == small
