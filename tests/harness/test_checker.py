"""The checker finds what it is for: a checker that passes everything would prove nothing."""

from collections.abc import Sequence

import pytest

from tests.harness import checker
from tests.harness.clients import Outcome
from tests.harness.stored import Stored


def acked(*seqs: int) -> list[Outcome]:
    """Records acknowledged at the offsets that their numbers say."""
    return [Outcome(0, seq, seq, 0.0, 0.0) for seq in seqs]


def stored(*seqs: int, epochs: Sequence[int] = ()) -> list[Stored]:
    """Records one behind the other in a log, all of epoch 0 unless told otherwise."""
    return [
        Stored(offset, epochs[offset] if epochs else 0, "p", seq) for offset, seq in enumerate(seqs)
    ]


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(stored(0, 1), id="lost"),
        pytest.param(stored(0, 1, 1, 2), id="doubled"),
        pytest.param(stored(0, 2, 1), id="order"),
        pytest.param(stored(0, 1, 2, 3), id="never acknowledged"),
    ],
)
def test_exactly_once_finds(log: list[Stored]) -> None:
    # Of the last one the broker told no offset, as of a batch that came twice.
    for answered in (acked(0, 1, 2), [*acked(0, 1), Outcome(0, 2, -1, 0.0, 0.0)]):
        checker._check_exactly_once("", answered, stored(0, 1, 2))
        with pytest.raises(AssertionError):
            checker._check_exactly_once("", answered, log)


def in_sessions(*records: tuple[int, int]) -> list[Stored]:
    """Records one behind the other in a log, by their numbers and producer epochs."""
    return [Stored(offset, 0, "p", seq, (7, of)) for offset, (seq, of) in enumerate(records)]


def test_only_what_was_written_again_in_a_later_producer_epoch_is_left_out() -> None:
    def kept(log: list[Stored]) -> list[int]:
        return [record.offset for record in checker.written_last(log)]

    assert kept(in_sessions((0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (3, 1))) == [0, 3, 4, 5]
    assert kept(in_sessions((0, 0), (1, 0), (1, 0), (2, 1))) == [0, 1, 2, 3]
    assert kept(in_sessions((0, 0), (1, 0), (1, 1), (1, 1))) == [0, 2, 3]
    assert kept(stored(0, 1, 1)) == [0, 1, 2]


def test_what_was_written_again_counts_once_only_without_its_first_copy() -> None:
    log = in_sessions((0, 0), (1, 0), (1, 1))
    answered = [Outcome(0, 0, 0, 0.0, 0.0), Outcome(0, 1, 2, 0.0, 0.0)]
    checker._check_exactly_once("", answered, checker.written_last(log))
    with pytest.raises(AssertionError):
        checker._check_exactly_once("", answered, log)


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(stored(0, 0, 1), id="doubled"),
        pytest.param(stored(1, 0), id="order"),
        pytest.param(stored(0, 7), id="never sent"),
        pytest.param([], id="nothing"),
    ],
)
def test_at_most_once_finds(log: list[Stored]) -> None:
    checker._check_at_most_once("", acked(0, 1, 2), stored(0, 2))
    with pytest.raises(AssertionError):
        checker._check_at_most_once("", acked(0, 1, 2), log)


def test_at_least_once_finds_a_loss_that_no_truncation_explains() -> None:
    truncated = stored(0, 2, epochs=(0, 2))
    checker._check_at_least_once("", acked(0, 1, 2), truncated, truncates=True)
    with pytest.raises(AssertionError):
        checker._check_at_least_once("", acked(0, 1, 2), truncated, truncates=False)
    with pytest.raises(AssertionError):
        checker._check_at_least_once("", acked(0, 1, 2), stored(0, 2), truncates=True)


def test_at_least_once_finds_a_loss_behind_the_end_that_no_truncation_explains() -> None:
    shorter = stored(0, 3, epochs=(0, 2))
    checker._check_at_least_once("", acked(0, 1, 2, 3), shorter, truncates=True)
    with pytest.raises(AssertionError):
        checker._check_at_least_once("", acked(0, 1, 2, 3), shorter, truncates=False)
    for log in (stored(0, 1), []):
        with pytest.raises(AssertionError):
            checker._check_at_least_once("", acked(0, 1, 2), log, truncates=True)


def test_ends_that_go_back_are_found() -> None:
    checker._check_never_back("", [0, 3, 3, 5])
    with pytest.raises(AssertionError):
        checker._check_never_back("", [0, 3, 2, 5])


@pytest.mark.parametrize(
    ("got", "once"),
    [
        pytest.param([0, 1, 2, 3], [0, 1, 2, 3], id="once"),
        pytest.param([0, 1, 2, 3, 2, 3, 4], [0, 1, 2, 3, 4], id="an epoch again"),
        pytest.param([0, 1, 2, 3, 4, 2, 3], [0, 1, 2, 3, 4], id="not yet back"),
        pytest.param([0, 1, 2, 2, 2, 3, 2, 3], [0, 1, 2, 3], id="several times"),
        pytest.param([0, 1, 2, 3, 3, 4], [0, 1, 2, 3, 3, 4], id="within an epoch"),
        pytest.param([0, 1, 2, 1, 2, 3], [0, 1, 2, 1, 3], id="before its beginning"),
        pytest.param([0, 1, 2, 3, 4, 2, 4, 5], [0, 1, 2, 3, 4, 4, 5], id="with a gap"),
        pytest.param([0, 1, 3], [0, 1, 3], id="lost"),
    ],
)
def test_only_records_from_the_beginning_of_an_epoch_may_come_again(
    got: list[int], once: list[int]
) -> None:
    log = stored(0, 1, 2, 3, 4, 5, epochs=(0, 0, 1, 1, 1, 1))
    records = [(offset, "p", offset) for offset in got]
    assert [record[0] for record in checker._once(records, log)] == once
