"""Refusals: each names the place, the key, the value and what is allowed; all come at once."""

from pathlib import Path

import pytest

from leader_hints.cli.sources import load_settings
from leader_hints.errors import ConfigurationError

ROUTES = ("127.0.0.1:19092=broker-1:9092",)


def _problems(
    flags: dict[str, object], variables: dict[str, str] | None = None, file: Path | None = None
) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as refused:
        load_settings(flags, variables or {}, file)
    return refused.value.problems


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("hints: maybe", 'hints is "maybe"; allowed: on, observe, off'),
        ("hints: true", "hints is true; allowed: on, observe, off"),
        ("admin: 9100", "admin is 9100; allowed: HOST:PORT, such as"),
        ("admin: localhost", 'admin is "localhost"; no port; allowed: HOST:PORT, such as'),
        ("hold: 5", "hold is 5; allowed: the keys deadline_ms, kraft_ms, shared_response_ms"),
        (
            "hold: {deadline_ms: -1}",
            "hold.deadline_ms is -1; allowed: a whole number from 0 to 10000",
        ),
        ("hold: {deadline_ms: 1.5}", "hold.deadline_ms is 1.5; allowed: a whole number from 0"),
        ("hold: {deadline_ms: }", "hold.deadline_ms is null; allowed: a whole number from 0"),
        ("log: {level: loud}", 'log.level is "loud"; allowed: debug, info, warning, error'),
        ("routes: 127.0.0.1:1", 'routes is "127.0.0.1:1"; allowed: a list of at least one, each'),
        ("routes: []", "routes is []; allowed: a list of at least one, each with the keys listen"),
        (
            "routes: [{listen: 127.0.0.1:1}]",
            "routes[0].upstream is missing: HOST:PORT of the broker's listener",
        ),
        (
            "routes: [{listen: 127.0.0.1:1, upstream: broker-1:9092, name: a b}]",
            'routes[0].name is "a b"; allowed: text of the form ^[A-Za-z0-9',
        ),
        ("adm_tok: hunter2", "unknown key adm_tok (value ***); did you mean admin_token?"),
        ("hintz: on", 'unknown key hintz (value "on"); did you mean hints?'),
        ("hold: {deadlin_ms: 5}", "unknown key hold.deadlin_ms (value 5); did you mean hold.dead"),
        ("deadline_ms: 5", "unknown key deadline_ms (value 5); did you mean hold.deadline_ms?"),
        (
            "routes: [{listen: 127.0.0.1:1, upstream: b:1, nam: x}]",
            'unknown key routes[0].nam (value "x"); did you mean routes.name?',
        ),
        ("zzz: 5", "unknown key zzz (value 5); allowed: the keys routes, hints, topic_ids"),
        ('"a b\\e": 5', 'unknown key "a b\\u001b" (value 5); allowed: the keys'),
        ("5: 5", "unknown key 5; keys are words"),
        ("hints: on\n\nhints: off", "hints stands twice"),
        ("listen: [::1]:1", "no valid YAML: "),
        ("hints: !!python/name:os.system", "no valid YAML: could not determine a constructor"),
        ("a: *b", "no valid YAML: found undefined alias"),
    ],
)
def test_in_the_file(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"\n{line}\n", encoding="utf-8")
    place = f"{file}, line {2 + line.count(chr(10))}: "

    flags: dict[str, object] = {} if line.startswith("routes") else {"routes": ROUTES}
    (found,) = _problems(flags, file=file)

    assert found.startswith(place + problem), found


def test_a_file_of_another_shape(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("- hints\n", encoding="utf-8")

    assert _problems({}, file=file) == (f"{file}: it must hold keys with values at the top",)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"hints: \xff")

    assert _problems({}, file=tmp_path / "none") == (
        f"cannot read {tmp_path}/none: No such file or directory",
    )
    assert _problems({}, file=tmp_path) == (f"cannot read {tmp_path}: Is a directory",)
    assert _problems({}, file=tmp_path / "latin") == (
        f"cannot read {tmp_path}/latin: it is not UTF-8",
    )


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("LEADER_HINTS_HINTS", "maybe", 'hints is "maybe"; allowed: on, observe, off'),
        ("LEADER_HINTS_ADMIN", "[", 'admin is "["; no port; allowed: HOST:PORT'),
        ("LEADER_HINTS_HOLD", "5", "hold is 5; allowed: the keys deadline_ms"),
        ("LEADER_HINTS_HOLD__DEADLINE_MS", "soon", 'hold.deadline_ms is "soon"; allowed: a whole'),
        ("LEADER_HINTS_HOLD__DEADLINE_MS", "true", "hold.deadline_ms is true; allowed: a whole"),
        ("LEADER_HINTS_HOLD__DEADLIN_MS", "5", "unknown key hold.deadlin_ms (value 5); did you"),
        ("LEADER_HINTS_HOLD_DEADLINE_MS", "5", "unknown key hold_deadline_ms (value 5); did you"),
        ("LEADER_HINTS_HOLD__DEADLINE_MS__X", "5", 'hold.deadline_ms is {"x": 5}; allowed: a wh'),
        ("LEADER_HINTS_ROUTES", "b:1", '"b:1" is no route; allowed: LISTEN=UPSTREAM'),
        ("LEADER_HINTS_ROUTES", "[{]", '"[{]" is no JSON list: '),
        ("LEADER_HINTS_ROUTES", "[5]", "routes[0] is 5; allowed: the keys listen, upstream, name"),
    ],
)
def test_in_the_environment(name: str, value: str, problem: str) -> None:
    flags: dict[str, object] = {} if name.endswith("ROUTES") else {"routes": ROUTES}

    (found,) = _problems(flags, {name: value})

    assert found.startswith(f"environment variable {name}: {problem}"), found


def test_a_group_and_its_key_that_are_both_set() -> None:
    variables = {"LEADER_HINTS_HOLD": "5", "LEADER_HINTS_HOLD__DEADLINE_MS": "5"}

    (found,) = _problems({"routes": ROUTES}, variables)

    assert found.startswith("environment variable LEADER_HINTS_HOLD: hold is 5; allowed: the keys")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"routes": ROUTES, "hints": "maybe"}, '--hints: hints is "maybe"; allowed: on, observe'),
        ({"routes": ROUTES, "admin": ""}, '--admin: admin is ""; no port; allowed: HOST:PORT'),
        ({"routes": ROUTES, "log.level": "x"}, '--log-level: log.level is "x"; allowed: debug'),
        ({"routes": ("b:1",)}, '--route: "b:1" is no route; allowed: LISTEN=UPSTREAM'),
        ({"routes": ("b:1=",)}, '--route: routes[0].upstream is ""; no port; allowed: HOST:PORT'),
        (
            {"routes": ("0.0.0.0:1=localhost:1",)},
            "--route: routes[0]: upstream localhost:1 leads to the route's own listen 0.0.0.0:1",
        ),
        ({"routes": ROUTES * 2}, "the listening address 127.0.0.1:19092 is used twice"),
        (
            {},
            "no route: give --route LISTEN=UPSTREAM, the environment variable LEADER_HINTS_ROUTES",
        ),
    ],
)
def test_on_the_command_line(flags: dict[str, object], problem: str) -> None:
    (found,) = _problems(flags)

    assert found.startswith(problem), found


def test_a_rule_over_two_settings_names_the_places_of_both() -> None:
    variables = {
        "LEADER_HINTS_LIMITS__LINK_BUFFER_BYTES": "200000",
        "LEADER_HINTS_LIMITS__PROCESS_BUFFER_BYTES": "100000",
    }

    (found,) = _problems({"routes": ROUTES}, variables)

    assert found == (
        "environment variable LEADER_HINTS_LIMITS__LINK_BUFFER_BYTES and "
        "environment variable LEADER_HINTS_LIMITS__PROCESS_BUFFER_BYTES: "
        "limits: process_buffer_bytes 100000 must be at least link_buffer_bytes 200000"
    )


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("hints: maybe\nhold: {grace_ms: x}\n", encoding="utf-8")

    problems = _problems({"routes": ROUTES, "admin": "x"}, {"LEADER_HINTS_LOG__LEVEL": "x"}, file)

    assert sorted(problem.split(":")[0] for problem in problems) == sorted(
        [
            f"{file}, line 1",
            f"{file}, line 2",
            "--admin",
            "environment variable LEADER_HINTS_LOG__LEVEL",
        ]
    )


def test_a_place_that_is_overridden_is_not_blamed(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("hints: off\n", encoding="utf-8")

    (found,) = _problems({"routes": ROUTES}, {"LEADER_HINTS_HINTS": "x"}, file)

    assert found.startswith("environment variable LEADER_HINTS_HINTS: ")


def test_a_long_value_is_cut_and_cannot_break_the_line() -> None:
    (found,) = _problems({"routes": ROUTES, "hints": "\x1b[31m\n" + "x" * 1000})

    assert found.startswith('--hints: hints is "\\u001b[31m\\nxxx')
    assert len(found) < 150
    assert found.isprintable()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("sasl: {password: hunter2}", "routes[0].sasl.password is ***; allowed: file:PATH or env:"),
        ("sasl: {passwort: hunter2}", "unknown key routes[0].sasl.passwort (value ***); did you"),
        ("client_tls: {key_password: hunter2}", "routes[0].client_tls.key_password is ***; allow"),
        ("sasl: {mechanism: PLAIN}", "routes[0].sasl: mechanism PLAIN needs username and password"),
        ("sasl: {mechanism: OAUTHBEARER}", "routes[0].sasl: mechanism OAUTHBEARER needs token"),
        ("client_tls: {mode: terminate}", "routes[0].client_tls: mode terminate needs certificate"),
        ("upstream_tls: {enabled: 1}", "routes[0].upstream_tls.enabled is 1; allowed: true or"),
        ('upstream_tls: {minimum_version: "1.1"}', 'minimum_version is "1.1"; allowed: 1.2, 1.3'),
        ("proxy_protocol: 2", "routes[0].proxy_protocol is 2; allowed: true or false"),
    ],
)
def test_what_is_wrong_with_security_is_said_and_no_secret_is_shown(
    tmp_path: Path, line: str, problem: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"routes:\n  - listen: 127.0.0.1:1\n    upstream: b:2\n    {line}\n")
    (said,) = _problems({}, file=file)
    assert problem in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sasl: {password: hunter2}", "unknown key sasl (value ***); did you mean routes.sasl?"),
        ("sasl_password: hunter2", "unknown key sasl_password (value ***); did you"),
        ("tls: {truststore: {password: hunter2}}", "unknown key tls (value ***); "),
        ("journal: {sasl.password: hunter2}", 'unknown key journal."sasl.password" (value ***)'),
        ("journal: {properties: {sasl.password: hunter2}}", "journal.properties (value ***)"),
        ("routes: [{listen: a:1, upstream: b:1, password: hunter2}]", "routes[0].password (value"),
        ("routes: [{listen: a:1, upstream: b:1, sasl: hunter2}]", "routes[0].sasl is ***; allowed"),
        ("routes: {listen: a:1, sasl: {password: hunter2}}", "routes is ***; allowed: a list of"),
        ("hints: {password: hunter2}", "hints is ***; allowed: on, observe, off"),
        ("hold: 'sasl.password=hunter2'", "hold is ***; allowed: the keys deadline_ms, "),
        ("journal: |\n  password : hunter2", "journal is ***; allowed: the keys kind, "),
        (
            "routes: [{listen: a:1, upstream: b:1, sasl: {password: file:a,hunter2}}]",
            "unknown key routes[0].sasl.*** (value ***); did you mean ",
        ),
        ("sasl: {password: *hunter2}", "no valid YAML: found undefined alias ***"),
        ("sasl:\n  password: !hunter2", "no valid YAML: could not determine a constructor for the"),
        ("sasl: {password: !!int hunter2}", "no valid YAML: a value is not of its type"),
        ("sasl: {password: !!bool hunter2}", "no valid YAML: a value is not of its type"),
        ("""sasl: {password: !!bool "'\\"hunter2"}""", "no valid YAML: a value is not of its type"),
        ("sasl: {password: !!timestamp hunter2}", "no valid YAML: a value is not of its type"),
    ],
)
def test_a_secret_at_the_wrong_place_of_a_file_is_not_shown(
    tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"{text}\n", encoding="utf-8")
    flags: dict[str, object] = {} if text.startswith("routes") else {"routes": ROUTES}
    said = "\n".join(_problems(flags, file=file))
    assert problem in said
    assert "hunter2" not in said


def test_a_wrong_address_is_shown_though_its_host_has_the_name_of_a_secret() -> None:
    (said,) = _problems({"routes": ["a:1=sasl-broker-1:99999"]})
    assert 'routes[0].upstream is "sasl-broker-1:99999"; the port must be' in said


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("SASL__PASSWORD", "hunter2", "unknown key sasl (value ***); did you mean routes.sasl?"),
        ("SASL_PASSWORD", "hunter2", "unknown key sasl_password (value ***)"),
        ("ROUTES", '[{"listen":"a:1","sasl":{"password":"a,hunter2"}', "*** is no route; allowed:"),
        ("ROUTES", '[{"listen":"a:1","sasl":{"password":"hunter2"}]', "*** is no JSON list: "),
        ("JOURNAL", '{"sasl.password":"hunter2"}', "journal is ***; allowed: the keys kind, "),
        ("ADMIN", '{"token":"hunter2"}', "admin is ***; "),
    ],
)
def test_a_secret_at_the_wrong_place_of_the_environment_is_not_shown(
    name: str, value: str, problem: str
) -> None:
    flags: dict[str, object] = {} if name == "ROUTES" else {"routes": ROUTES}
    said = "\n".join(_problems(flags, {f"LEADER_HINTS_{name}": value}))
    assert problem in said
    assert "hunter2" not in said
