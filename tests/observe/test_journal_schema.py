"""The journal's schema: published as it is, and open for what comes."""

import json

import jsonschema
import pytest

from leader_hints.observe.journal_schema import COLUMNS, KIND_MEANINGS, KINDS, schema
from tests.observe.journal_lines import PUBLISHED

_START = {
    "version": 1,
    "event": "start",
    "time": "2026-01-02T03:04:05.000006Z",
    "sidecar": "s",
    "run": "r",
    "seq": 0,
    "software": "leader-hints",
    "software_version": "1",
    "hints": "on",
}


def _validate(line: dict[str, object]) -> None:
    jsonschema.validate(line, schema(), cls=jsonschema.Draft202012Validator)


def test_the_published_one_is_this_one() -> None:
    # To renew it: leader-hints journal schema > docs/journal.schema.json
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == schema()


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_it_is_flat_and_every_column_says_what_it_means() -> None:
    for name, column in schema()["properties"].items():
        assert column["type"] in ("string", "integer", "number", "boolean"), name
        assert column["description"], name
    assert len({column.name for column in COLUMNS}) == len(COLUMNS)
    assert set(KIND_MEANINGS) == set(KINDS)


def test_it_takes_columns_and_events_to_come() -> None:
    _validate(_START)
    _validate({**_START, "colour": "blue"})
    _validate({**_START, "event": "eclipse"})


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"version": 2}, "version"),
        ({"seq": "0"}, "seq"),
        ({"seq": -1}, "seq"),
        ({"time": "2026-01-02T03:04:05Z"}, "time"),
        ({"time": "2026-01-02T03:04:05.000006+00:00"}, "time"),
        ({"hints": "maybe"}, "hints"),
    ],
)
def test_it_refuses_wrong_values(change: dict[str, object], wrong: str) -> None:
    with pytest.raises(jsonschema.ValidationError) as refused:
        _validate({**_START, **change})
    assert list(refused.value.absolute_path) == [wrong]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_columns(kind: str) -> None:
    wanted = [column.name for column in COLUMNS if kind in column.always]
    with pytest.raises(jsonschema.ValidationError) as refused:
        _validate({"event": kind})
    assert refused.value.validator == "required"
    assert set(_START) - {"software", "software_version", "hints"} <= set(wanted)
