"""Settings from the command line, the environment and a file: what wins, what each form means."""

from pathlib import Path
from typing import Any

import pytest

from leader_hints.cli.sources import load_settings
from leader_hints.errors import ConfigurationError
from leader_hints.settings.settings import Settings

ROUTES = ("127.0.0.1:19092=broker-1:9092",)


def _file(folder: Path, text: str) -> Path:
    file = folder / "settings.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_flags_win_over_variables_over_the_file_over_defaults(tmp_path: Path) -> None:
    file = _file(tmp_path, "hold: {deadline_ms: 1, grace_ms: 2}\nhints: off\nlog: {level: error}\n")
    variables = {
        "LEADER_HINTS_HOLD__DEADLINE_MS": "3",
        "LEADER_HINTS_HINTS": "observe",
        "LEADER_HINTS_LOG__LEVEL": "warning",
    }

    settings = load_settings({"routes": ROUTES, "hints": "on"}, variables, file)

    assert settings.hints == "on"
    assert settings.log.level == "warning"
    assert settings.hold.deadline_ms == 3
    assert settings.hold.grace_ms == 2
    assert settings.hold.confirm_ms == 25


def test_routes_are_taken_whole_from_the_highest_place(tmp_path: Path) -> None:
    file = _file(tmp_path, "routes:\n  - {name: a, listen: 127.0.0.1:1, upstream: broker-1:9092}\n")
    variables = {"LEADER_HINTS_ROUTES": "127.0.0.1:2=broker-2:9092"}

    by_file = load_settings({}, {}, file)
    by_variable = load_settings({}, variables, file)
    by_flag = load_settings({"routes": ROUTES}, variables, file)

    assert [route.name for route in by_file.routes] == ["a"]
    assert [route.name for route in by_variable.routes] == ["127.0.0.1:2"]
    assert [route.name for route in by_flag.routes] == ["127.0.0.1:19092"]


def test_flags_that_are_not_given_leave_the_file_alone(tmp_path: Path) -> None:
    file = _file(tmp_path, "hints: observe\n")

    flags = {"routes": ROUTES, "hints": None, "log.level": None}

    assert load_settings(flags, {}, file).hints == "observe"


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:1=broker-1:9092,[::1]:2=broker-2:9092",
        " 127.0.0.1:1 = broker-1:9092 , [::1]:2 = broker-2:9092 ",
        '[{"listen": "127.0.0.1:1", "upstream": "broker-1:9092"},'
        ' {"listen": "[::1]:2", "upstream": "broker-2:9092"}]',
    ],
)
def test_routes_in_the_environment(text: str) -> None:
    settings = load_settings({}, {"LEADER_HINTS_ROUTES": text}, None)

    assert [(str(route.listen), str(route.upstream)) for route in settings.routes] == [
        ("127.0.0.1:1", "broker-1:9092"),
        ("[::1]:2", "broker-2:9092"),
    ]


def test_a_list_of_routes_that_begins_with_an_ipv6_address() -> None:
    settings = load_settings({}, {"LEADER_HINTS_ROUTES": "[::1]:1=broker-1:9092"}, None)

    assert str(settings.routes[0].listen) == "[::1]:1"


def test_every_setting_has_a_variable() -> None:
    """Each leaf of the model is set to another value through the environment."""
    variables = {
        "LEADER_HINTS_ADMIN": "127.0.0.1:9100",
        "LEADER_HINTS_ADMIN_TOKEN": "env:TOKEN",
        "LEADER_HINTS_SWITCH_FILE": "/state/switch.json",
        "LEADER_HINTS_HINTS": "off",
        "LEADER_HINTS_TAKEOVER": "/run/takeover",
        "LEADER_HINTS_TOPIC_IDS": "synthesize",
        "LEADER_HINTS_CLOSEST_REPLICA": "on",
        "LEADER_HINTS_RACKS": "1=a,2=b",
        "LEADER_HINTS_CLIENTS": '[{"name": "a-service", "uses": ["fetch"]}]',
        "LEADER_HINTS_LOG__LEVEL": "debug",
        "LEADER_HINTS_LOG__FORMAT": "json",
        "LEADER_HINTS_JOURNAL__KIND": "files",
        "LEADER_HINTS_JOURNAL__SIDECAR": "car-1",
        "LEADER_HINTS_JOURNAL__PATH": "/journal",
        "LEADER_HINTS_JOURNAL__BOOTSTRAP": "broker-1:9092,[::1]:9092",
        "LEADER_HINTS_JOURNAL__TOPIC": "journal",
        "LEADER_HINTS_JOURNAL__PROPERTIES_FILE": "/journal.properties",
    }
    before = load_settings({"routes": ROUTES}, {}, None).model_dump(exclude={"routes"})
    for key, value in _leaves(before):
        if value == "inherit":
            variables["LEADER_HINTS_" + "__".join(key).upper()] = "error"
        elif isinstance(value, bool):
            variables["LEADER_HINTS_" + "__".join(key).upper()] = str(not value).lower()
        elif isinstance(value, int):
            variables["LEADER_HINTS_" + "__".join(key).upper()] = str(value + 1)

    def changed_by(chosen: dict[str, str]) -> set[tuple[str, ...]]:
        after = load_settings({"routes": ROUTES}, chosen, None).model_dump(exclude={"routes"})
        return {key for key, value in _leaves(after) if value != dict(_leaves(before))[key]}

    # Not both: workers know nothing of replicas.
    one, other = "LEADER_HINTS_WORKERS", "LEADER_HINTS_CLOSEST_REPLICA"
    without = [{k: v for k, v in variables.items() if k != name} for name in (one, other)]
    changed = changed_by(without[0]) | changed_by(without[1])
    assert changed == {key for key, _ in _leaves(before)}
    assert len(variables) == len(changed)


def _leaves(values: dict[str, Any], at: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    found: list[tuple[tuple[str, ...], Any]] = []
    for name, value in values.items():
        if isinstance(value, dict) and name != "admin":
            found += _leaves(value, (*at, name))
        else:
            found.append(((*at, name), value))
    return found


def test_a_variable_can_take_the_admin_address_away(tmp_path: Path) -> None:
    file = _file(tmp_path, "admin: 127.0.0.1:9100\n")
    flags = {"routes": ROUTES}

    assert load_settings(flags, {}, file).admin is not None
    assert load_settings(flags, {"LEADER_HINTS_ADMIN": "null"}, file).admin is None


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    file = _file(tmp_path, "hints: off\n")

    assert load_settings({"routes": ROUTES}, {"LEADER_HINTS_HINTS": ""}, file).hints == "off"


@pytest.mark.parametrize(
    "name",
    [
        "LEADER_HINTS_CONFIG",
        "LEADER_HINTS_SERVICE_HOST",
        "LEADER_HINTS_SERVICE_PORT",
        "LEADER_HINTS_SERVICE_PORT_ADMIN",
        "LEADER_HINTS_PORT",
        "LEADER_HINTS_PORT_9100_TCP",
        "LEADER_HINTS_PORT_9100_TCP_ADDR",
        "LEADER_HINTS_ADMIN_PORT_9100_TCP_PROTO",
        "LEADER_HINTS_ADMIN_SERVICE_PORT",
        "LEADER_HINTSX",
        "HINTS",
    ],
)
def test_variables_that_are_no_settings(name: str) -> None:
    """Kubernetes sets most of these for a Service that is named leader-hints."""
    assert load_settings({"routes": ROUTES}, {name: "tcp://10.0.0.1:9100"}, None).admin is None


@pytest.mark.parametrize("mode", ["on", "off", '"on"', "observe"])
def test_on_and_off_need_no_quotes_in_the_file(tmp_path: Path, mode: str) -> None:
    settings = load_settings({"routes": ROUTES}, {}, _file(tmp_path, f"hints: {mode}\n"))

    assert settings.hints == mode.strip('"')


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_a_file_may_be_empty(tmp_path: Path, text: str) -> None:
    assert load_settings({"routes": ROUTES}, {}, _file(tmp_path, text)).hints == "on"


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    file = _file(
        tmp_path,
        "routes:\n"
        "  - &first {name: a, listen: 127.0.0.1:1, upstream: broker-1:9092}\n"
        "  - {<<: *first, name: b, listen: 127.0.0.1:2}\n",
    )

    settings = load_settings({}, {}, file)

    assert [(route.name, str(route.upstream)) for route in settings.routes] == [
        ("a", "broker-1:9092"),
        ("b", "broker-1:9092"),
    ]


def test_a_file_that_holds_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"routes\[0\] is .*; allowed: the keys listen"):
        load_settings({}, {}, _file(tmp_path, "routes: &routes [*routes]\n"))


NODE = {"NODE_IP": "10.0.0.7"}
TEMPLATE = "${NODE_IP}:9092=${NODE_IP}:19092"


def _addresses(settings: Settings) -> list[tuple[str, str, str]]:
    return [(route.name, str(route.listen), str(route.upstream)) for route in settings.routes]


def test_a_route_may_name_variables_wherever_it_stands(tmp_path: Path) -> None:
    file = _file(
        tmp_path,
        "routes:\n  - listen: ${NODE_IP}:9092\n    upstream: ${NODE_IP}:19092\n"
        "admin: ${NODE_IP}:9100\n",
    )
    wanted = [("10.0.0.7:9092", "10.0.0.7:9092", "10.0.0.7:19092")]

    by_file = load_settings({}, NODE, file)

    assert _addresses(by_file) == wanted
    assert str(by_file.admin) == "10.0.0.7:9100"
    assert _addresses(load_settings({"routes": (TEMPLATE,)}, NODE, None)) == wanted
    assert _addresses(load_settings({}, {**NODE, "LEADER_HINTS_ROUTES": TEMPLATE}, None)) == wanted


def test_a_variable_that_is_not_set_is_refused_with_the_place_that_names_it(
    tmp_path: Path,
) -> None:
    file = _file(tmp_path, "routes:\n  - listen: ${NODE_IP}:9092\n    upstream: broker-1:9092\n")

    with pytest.raises(ConfigurationError) as refused:
        load_settings({}, {}, file)

    assert str(refused.value) == (
        f'{file}, line 2: routes[0].listen is "${{NODE_IP}}:9092"; '
        "the environment variable NODE_IP is not set, or empty"
    )


def test_a_template_that_a_higher_place_replaces_needs_no_variable(tmp_path: Path) -> None:
    file = _file(tmp_path, "routes:\n  - listen: ${NODE_IP}:9092\n    upstream: broker-1:9092\n")

    assert load_settings({"routes": ROUTES}, {}, file).routes[0].upstream.host == "broker-1"


def test_a_refused_flag_is_not_blamed_on_the_file_that_it_replaces(tmp_path: Path) -> None:
    file = _file(tmp_path, "routes:\n  - listen: 127.0.0.1:1\n    upstream: broker-1:9092\n")

    with pytest.raises(ConfigurationError, match=r"^--route: routes\[0\]\.listen is"):
        load_settings({"routes": ("nonsense=broker-1:9092",)}, {}, file)


_ROUTE = "routes: [{listen: '127.0.0.1:1', upstream: 'b:2'}]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 5000, "nested too deeply"),
        ("{a: " * 5000, "nested too deeply"),
        (_ROUTE + "drain_ms: " + "9" * 5000, "no valid YAML"),
        (
            _ROUTE + "drain_ms: 0x" + "f" * 5000,
            "drain_ms is too large to show (int); allowed: a wh",
        ),
        (_ROUTE + "drain_ms: !!bool 'x'", "no valid YAML"),
        (_ROUTE + "drain_ms: !!int 'x'", "no valid YAML"),
        (_ROUTE + "drain_ms: !!timestamp '2001-99-99'", "no valid YAML"),
        (_ROUTE + "!!binary 'aGludHM=': 1", "keys are words"),
        (_ROUTE + "hints: &a [*a]", "hints is "),
        (_ROUTE + "a: &a {<<: *a}", "unknown key a"),
        (_ROUTE + '? [a]\n: "x"', "no valid YAML"),
        (_ROUTE + 'hints: "\\ud800"', 'hints is "\\ud800"'),
        (_ROUTE + 'journal: {kind: files, path: "\\ud800"}', 'journal.path is "\\ud800"'),
        (_ROUTE + 'metrics: {topics: ["\\ud800"]}', "\\ud800"),
        ("routes: &a [*a]", "routes[0]"),
        ("routes: {a: 1}", "routes"),
        (_ROUTE[:-3] + ", upstream_tls: {server_name: .b.example}}]", "neither a host name nor"),
        (_ROUTE[:-3] + ", upstream_tls: {server_name: a..b}}]", "neither a host name nor"),
    ],
)
def test_what_libraries_stumble_over_in_a_file_is_a_line_of_its_own(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_settings({}, {}, _file(tmp_path, text))
    assert said in str(refused.value)
    assert all(len(problem) < 2000 for problem in refused.value.problems)


@pytest.mark.parametrize(
    "value", ["\udcff", "[" * 20_000 + "]", '[{"a":' * 20_000 + "]", "9" * 5000, "\x00"]
)
@pytest.mark.parametrize(
    "name",
    ["ROUTES", "JOURNAL__PATH", "HINTS", "DRAIN_MS", "JOURNAL", "A__B__C", "METRICS__TOPICS"],
)
def test_what_libraries_stumble_over_in_the_environment_is_a_line_of_its_own(
    name: str, value: str
) -> None:
    variables = {"LEADER_HINTS_ROUTES": ROUTES[0], f"LEADER_HINTS_{name}": value}
    if name == "JOURNAL__PATH" and value.isprintable():
        assert load_settings({}, variables, None).journal.path == value
        return
    with pytest.raises(ConfigurationError) as refused:
        load_settings({}, variables, None)
    assert any(f"LEADER_HINTS_{name}" in problem for problem in refused.value.problems)


def test_a_variable_of_thousands_of_groups_is_a_line_of_its_own() -> None:
    name = "LEADER_HINTS_" + "A__" * 5000 + "B"
    with pytest.raises(ConfigurationError, match="LEADER_HINTS_A__A"):
        load_settings({"routes": ROUTES}, {name: "1"}, None)
