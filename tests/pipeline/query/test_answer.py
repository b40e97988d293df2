"""How answers are written."""

import json
from decimal import Decimal

from leader_hints_report.query.answer import Answer, to_comma_separated, to_json, to_table

_ANSWER = Answer.of(
    ["client", "errors", "at", "at"],
    {2},
    [("a\x1b[2J", 12, 1_767_323_045_000_006, None), ("=1+1", None, None, [1.5, float("nan")])],
)


def test_a_table_has_its_columns_one_under_another_and_escapes_what_does_not_print() -> None:
    assert to_table(_ANSWER).splitlines() == [
        "client    errors  at                           at",
        "--------  ------  ---------------------------  -----------",
        "a\\x1b[2J      12  2026-01-02T03:04:05.000006Z",
        "=1+1                                           [1.5, null]",
    ]


def test_a_table_without_rows_has_its_head() -> None:
    assert to_table(Answer(["a", "bc"], [])) == "a  bc\n-  --\n"


def test_csv_is_text_to_a_spreadsheet() -> None:
    assert to_comma_separated(_ANSWER).splitlines() == [
        "client,errors,at,at",
        "a\\x1b[2J,12,2026-01-02T03:04:05.000006Z,",
        '\'=1+1,,,"[1.5, null]"',
    ]


def test_json_has_no_number_that_is_none_and_each_row_in_a_line() -> None:
    written = to_json(Answer(["n", "of"], [(float("inf"), "é"), (1, {"b": Decimal("2.5")})]))

    assert json.loads(written) == [{"n": None, "of": "é"}, {"n": 1, "of": {"b": 2.5}}]
    assert len(written.splitlines()) == 4
    assert json.loads(to_json(Answer(["n"], []))) == []
