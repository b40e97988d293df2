"""The fuzzer itself: that it finds what it is for. ``make fuzz`` is the long run."""

from pathlib import Path

import pytest

from proxy.core.mode import Mode
from tests.core.brokers import BROKERS, NAMES, names_before
from tests.core.conversation import ONE
from tests.core.samples import (
    NOT_LEADER,
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
from tests.fuzz.referee import BrokenRuleError, judge
from tests.fuzz.shrink import shrink
from tests.recordings import recorded_exchanges

#: Versions of Produce and Fetch that brokers answer.
_SENT = {
    **{"2.4": (8, 16), "2.8": (9, 12), "3.4": (9, 13), "3.6": (9, 15), "3.7": (10, 16)},
    **{"2.4+": (8, 11), "2.8+": (9, 12)},
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


def test_a_frame_that_breaks_off_in_its_tags_is_judged_by_what_has_passed() -> None:
    frame = bytearray(produce_request(9, 2, records=bytes(range(1, 256)) * 40))
    frame[-1] = 7
    steps: list[Step] = [
        ("up", request(18, 3, 1)),
        ("down", versions_answer(3, 1, BROKERS["2.4"])),
        ("up", bytes(frame[:9000])),
        ("up", bytes(frame[9000:])),
    ]
    case = _case("2.4", steps)
    outcome = play(case)
    judge(case, outcome)
    for at in (-1, -3000, -9000):
        outcome.driven.to_broker[at] ^= 0x41
        with pytest.raises(BrokenRuleError):
            judge(case, outcome)
        outcome.driven.to_broker[at] ^= 0x41


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
    case = _case("2.4")
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
