from pathlib import Path

import pytest

from leader_hints.address import Address
from leader_hints.cli.local import _settings
from leader_hints.errors import ConfigurationError
from leader_hints.settings.local import LocalSettings
from tests.cli.commands import leader_hints


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give --bootstrap HOST:PORT[,HOST:PORT...] for a cluster, or --cluster mock:N"),
        (("--bootstrap", "a:1", "--cluster", "mock:3"), "one of the two"),
        (("--cluster", "mock:0"), "allowed: mock:N, N from 1 to 100"),
        (("--bootstrap", "nowhere"), "no port"),
        (("--bootstrap", "a:1", "--listen", "0.0.0.0:19092"), "give --advertise HOST"),
        (("--bootstrap", "a:1", "--listen", "127.0.0.1:0"), "the port cannot be 0"),
        (("--bootstrap", "a:1", "--port", "x"), "allowed: NODE=PORT"),
        (("--bootstrap", "a:1", "--port", "1=70000"), "65535"),
        (("--bootstrap", "a:1", "--port", "1=19092"), "19092 is used twice"),
        (("--bootstrap", "a:1", "--advertise", "a b"), '--advertise: advertise is "a b"'),
        (
            ("--bootstrap", "a:1", "--sasl", "LDAP"),
            '--sasl: sasl.mechanism is "LDAP"; allowed: none',
        ),
        (("--bootstrap", "a:1", "--sasl", "PLAIN"), "PLAIN needs username and password"),
        (("--bootstrap", "a:1", "--sasl", "GSSAPI"), "needs keytab or ticket_cache"),
        (
            ("--bootstrap", "a:1", "--sasl", "GSSAPI", "--sasl-keytab", "/k"),
            "keytab needs principal",
        ),
        (("--bootstrap", "a:1", "--tls-ca", "/no/such.pem"), "/no/such.pem: no such file"),
        (("--cluster", "mock:1", "--tls"), "TLS and SASL are for --bootstrap"),
        (("--cluster", "mock:1", "--admin", "127.0.0.1:19092"), "admin 127.0.0.1:19092 overlap"),
    ],
)
def test_bad_use_is_reported_in_one_line(arguments: tuple[str, ...], told: str) -> None:
    ended = leader_hints("local", *arguments)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_secret_is_not_repeated() -> None:
    sasl = ("--sasl", "PLAIN", "--sasl-username", "u", "--sasl-password", "hunter2")
    ended = leader_hints("local", "--bootstrap", "a:1", *sasl)
    assert ended.returncode == 2
    assert ended.stderr == (
        "leader-hints: --sasl-password: sasl.password is ***; allowed: file:PATH or env:NAME\n"
    )


def test_a_cluster_that_is_not_there_is_named() -> None:
    ended = leader_hints("local", "--bootstrap", "127.0.0.1:1")
    assert ended.returncode == 1
    assert ended.stderr == (
        "leader-hints: no cluster at 127.0.0.1:1: cannot connect: connection refused\n"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("steps: [{at_ms: 2024-13-45}]", "a value is not of its type, or too long"),
        ("[" * 3000, "groups and lists are nested too deeply"),
        ("steps: [", "expected the node content"),
    ],
)
def test_a_scenario_that_is_no_yaml_is_reported_in_one_line(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(text)
    scenario = ("--allow-faults", "--scenario", str(file))
    ended = leader_hints("local", "--cluster", "mock:1", *scenario)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"leader-hints: {file}")
    assert told in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_broker_at_the_bootstrap_listener_is_refused() -> None:
    """The proxy connected to itself without end."""
    listen = Address("127.0.0.1", 19092)
    local = LocalSettings(bootstrap=(Address("b", 1),), listen=listen)
    with pytest.raises(ConfigurationError, match="broker 7 is at localhost:19092, which"):
        _settings(local, {7: Address("localhost", 19092)}, None, {})


def test_a_scenario_of_a_route_that_is_not_there_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("steps: [{at_ms: 5, begin: {slow: {action: drop, routes: [broker-2, x]}}}]")
    scenario = ("--allow-faults", "--scenario", str(file))
    ended = leader_hints("local", "--cluster", "mock:1", *scenario)
    assert ended.returncode == 2
    assert ended.stderr == (
        "leader-hints: --scenario: at_ms 5 begins slow: no such route: broker-2, x; "
        "there are: broker-1\n"
    )
