from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from leader_hints.cli.sources import load_settings
from leader_hints.core.versions.client_capabilities import OWN_NAME, HintForm, client_table
from leader_hints.errors import ConfigurationError
from leader_hints.settings.clients import ClientSettings
from tests.settings.samples import settings_of

_ROUTES = "routes: [{listen: 127.0.0.1:1, upstream: broker:9092}]\n"


def _client(**values: Any) -> ClientSettings:
    return ClientSettings.model_validate({"name": "a-service", "uses": [], **values})


@pytest.mark.parametrize(
    ("since", "first"),
    [("", ()), ("2", (2,)), ("2.10", (2, 10)), ("v1.17.0", (1, 17, 0))],
)
def test_the_first_version(since: str, first: tuple[int, ...]) -> None:
    assert _client(since=since).first_version == first


def test_each_use_is_a_form_of_hint() -> None:
    uses = [form.name.lower() for form in HintForm]
    settings = settings_of(clients=[{"name": "a-service", "since": "2.1", "uses": uses}])

    assert settings.client_uses == [("a-service", (2, 1), tuple(uses))]
    assert client_table(settings.client_uses).rules[0].forms == frozenset(HintForm)


@pytest.mark.parametrize("name", ["", "-a", "a b", "a" * 65, OWN_NAME])
def test_a_name_that_no_client_can_have_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        _client(name=name)


def _refused(clients: str, folder: Path) -> tuple[str, ...]:
    file = folder / "settings.yaml"
    file.write_text(f"{_ROUTES}clients:\n{clients}", encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        load_settings({}, {}, file)
    return tuple(problem.replace(f"{file}, ", "") for problem in refused.value.problems)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "- {name: a, since: 2.10, uses: []}",
            'line 3: clients[0].since is 2.1; put the version in quotes, such as "2.10": without '
            "them it is a number",
        ),
        (
            '- {name: a, since: "new", uses: []}',
            'line 3: clients[0].since is "new"; allowed: text of the form '
            r"^(v?[0-9]{1,9}(\.[0-9]{1,9}){0,7})?$",
        ),
        (
            "- {name: a, uses: [produce, consume]}",
            'line 3: clients[0].uses[1] is "consume"; allowed: produce, fetch, '
            "fetch_without_endpoints",
        ),
        (
            "- {name: a, uses: produce}",
            'line 3: clients[0].uses is "produce"; allowed: a list, each with produce, fetch, '
            "fetch_without_endpoints",
        ),
        (
            "- {name: leader-hints, uses: []}",
            'line 3: clients[0].name is "leader-hints"; that is the name of leader-hints itself; '
            "leave it out",
        ),
        (
            '- {name: "*", since: "2", uses: []}',
            "line 2: clients[0]: the name * stands for clients of any version; leave out since",
        ),
    ],
)
def test_a_refusal_says_where_and_what_to_do(text: str, line: str, tmp_path: Path) -> None:
    assert _refused(text, tmp_path) == (line,)


def test_what_a_client_uses_must_be_said(tmp_path: Path) -> None:
    (line,) = _refused("- {name: a}", tmp_path)

    assert line.startswith("line 2: clients[0].uses is missing: The hints that it uses:")


def test_one_version_of_a_name_is_listed_once(tmp_path: Path) -> None:
    twice = '- {name: a, since: "2", uses: []}\n- {name: a, since: v2, uses: [produce]}'

    assert _refused(twice, tmp_path) == (
        "clients: a since v2 is listed twice; list it once, with everything that it uses",
    )


def test_the_environment_has_them_as_a_json_list() -> None:
    variables = {"LEADER_HINTS_CLIENTS": '[{"name": "a", "since": "2.1", "uses": ["fetch"]}]'}
    settings = load_settings({"routes": ["127.0.0.1:1=broker:9092"]}, variables, None)

    assert settings.client_uses == [("a", (2, 1), ("fetch",))]


def test_the_environment_replaces_the_list_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"{_ROUTES}clients: [{{name: a, uses: []}}, {{name: b, uses: []}}]")
    variables = {"LEADER_HINTS_CLIENTS": '[{"name": "a", "uses": "fetch"}]'}

    with pytest.raises(ConfigurationError) as refused:
        load_settings({}, variables, file)

    (line,) = refused.value.problems
    assert line.startswith("environment variable LEADER_HINTS_CLIENTS: clients[0].uses is")


def test_text_in_the_environment_that_is_no_list_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"LEADER_HINTS_CLIENTS: .* is no JSON list"):
        load_settings({"routes": ["127.0.0.1:1=b:1"]}, {"LEADER_HINTS_CLIENTS": "kgo"}, None)
