"""Text of others: nothing of it moves a cursor, breaks a line or computes in a spreadsheet."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from leader_hints_report.text import escape, shorten, to_csv


@given(st.text())
def test_escaped_text_prints(text: str) -> None:
    assert escape(text).isprintable()


@given(st.text(), st.text())
def test_different_texts_stay_different(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) == (one == other)


def test_letters_of_every_script_stay_and_controls_do_not() -> None:
    assert escape("größe 分区") == "größe 分区"
    assert escape("a\x1b[31mb\n\u202ec\\") == r"a\x1b[31mb\n\u202ec\x5c".replace(r"\x5c", r"\\")


@given(st.text(), st.integers(1, 20))
def test_short_text_stays_and_long_text_ends_in_an_ellipsis(text: str, length: int) -> None:
    whole, shown = escape(text), shorten(text, length)
    assert len(shown) <= length
    assert shown == whole if len(whole) <= length else shown == f"{whole[: length - 1]}…"


_CELLS = st.one_of(st.none(), st.integers(), st.text())


@given(st.lists(st.tuples(_CELLS, _CELLS)))
def test_every_row_is_one_line_of_which_no_cell_computes(
    rows: list[tuple[object, object]],
) -> None:
    text = to_csv(("one", "other"), rows)
    head, *read = csv.reader(io.StringIO(text))
    assert head == ["one", "other"]
    assert text.count("\n") == len(rows) + 1
    for row, cells in zip(read, rows, strict=True):
        for shown, cell in zip(row, cells, strict=True):
            if isinstance(cell, str):
                assert not shown.startswith(("=", "+", "-", "@"))
                assert shown.removeprefix("'") == escape(cell).removeprefix("'")
            else:
                assert shown == ("" if cell is None else str(cell))
