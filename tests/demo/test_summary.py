from demo.summary import NOT_READ, summarize
from tests.demo.reports import good_move, good_round, hint_line


def test_rounds_of_a_kind_are_pooled() -> None:
    rows = summarize(
        [
            good_round(False, moves=(good_move(fetch_ms=500.0), good_move(fetch_ms=540.0))),
            good_round(True, moves=(good_move(fetch_ms=30.0),)),
            good_round(False, moves=(good_move(fetch_ms=510.0),), lost=2),
            good_round(True, moves=(good_move(fetch_ms=20.0),), doubled=3),
        ]
    )
    table = {label: (off, on) for label, off, on in rows}
    assert table["leader moves"] == ("3", "2")
    assert table["Fetch recovery, median / max"] == ("510 / 540 ms", "25 / 30 ms")
    assert table["Produce recovery, median / max"] == ("100 / 100 ms", "100 / 100 ms")
    assert table["records acknowledged"] == ("600", "600")
    assert table["records lost"] == ("2", "0")
    assert table["records doubled"] == ("0", "3")


def test_errors_are_hints_given_and_missed() -> None:
    lines = (hint_line(), hint_line())
    missed = tuple({"reason": reason} for reason in ("budget", "no_leader", "no_leader"))
    rows = summarize([good_round(False), good_round(True, hint_lines=lines, missed_lines=missed)])
    table = {label: (off, on) for label, off, on in rows}
    assert table["leader errors answered"] == (NOT_READ, "5")
    assert table["hints given"] == ("0", "2")
    assert table["errors without a hint"] == (NOT_READ, "2 no_leader, 1 budget")


def test_a_move_counts_with_its_longest_hold() -> None:
    moves = (
        good_move(hints=(hint_line(hold_ms=9.0), hint_line(hold_ms=0.0))),
        good_move(hints=(hint_line(hold_ms=21.0),)),
        good_move(hints=()),
    )
    rows = summarize([good_round(False), good_round(True, moves=moves)])
    assert ("hold at a move, median / max", "-", "15 / 21 ms") in rows


def test_moves_without_recovery_leave_the_times_of_the_others() -> None:
    moves = (good_move(fetch_ms=None), good_move(fetch_ms=50.0))
    rows = summarize(
        [good_round(False, moves=(good_move(fetch_ms=None),)), good_round(True, moves=moves)]
    )
    assert ("Fetch recovery, median / max", "-", "50 / 50 ms") in rows
