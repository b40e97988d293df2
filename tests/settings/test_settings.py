"""Settings: defaults, and the rules that involve more than one route."""

from typing import Any

import pytest
from pydantic import ValidationError

from leader_hints.address import Address
from leader_hints.settings.settings import Settings
from tests.settings.samples import ROUTE, route, settings_of


def test_defaults_need_only_a_route() -> None:
    settings = settings_of()

    assert settings.hints == "on"
    assert settings.admin is None
    assert settings.hold.deadline_ms == 100
    assert settings.limits.request_bytes == 2**30


def test_arguments_alone_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADER_HINTS_HINTS", "off")

    assert Settings(routes=(route(**ROUTE),)).hints == "on"


def test_models_are_frozen() -> None:
    settings = settings_of()

    with pytest.raises(ValidationError):
        settings.hints = "off"
    with pytest.raises(ValidationError):
        settings.hold.deadline_ms = 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # Each to the other.
        (("127.0.0.1:1", "127.0.0.1:2"), ("127.0.0.1:2", "127.0.0.1:1")),
        (("0.0.0.0:1", "localhost.:2"), ("[::1]:2", "127.0.0.1:1")),
        (("127.0.0.1:1", "[::ffff:127.0.0.1]:2"), ("0.0.0.0:2", "broker-1:9092")),
        (("127.0.0.1:1", "BROKER-1:2"), ("broker-1.:2", "broker-2:9092")),
    ],
)
def test_refuses_a_route_to_another_of_its_own(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    with pytest.raises(ValidationError, match="of this very process"):
        settings_of(routes=(route(*first), route(*second)))


def test_takes_routes_that_share_a_port() -> None:
    routes = (route("0.0.0.0:9092", "[::1]:9092"), route("[::2]:9092", "10.0.0.2:9092"))

    assert settings_of(routes=routes).routes == routes


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"routes": [ROUTE, {**ROUTE, "upstream": "broker-2:9092"}]},
            "listening address 127.0.0.1:19092 is used twice",
        ),
        (
            {"routes": [{**ROUTE, "name": "a"}, {**ROUTE, "name": "b"}]},
            "listening address 127.0.0.1:19092 is used twice",
        ),
        (
            {"routes": [{**ROUTE, "name": "a"}, {**ROUTE, "name": "a", "listen": "127.0.0.1:1"}]},
            "route name a is used twice",
        ),
        (
            {"routes": [ROUTE], "admin": "127.0.0.1:19092"},
            "listening address 127.0.0.1:19092 is used twice",
        ),
        (
            {"routes": [{**ROUTE, "listen": "127.0.0.1:0"}] * 2},
            "route name 127.0.0.1:0 is used twice",
        ),
    ],
)
def test_refuses_what_stands_twice(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        settings_of(**settings)


def test_two_routes_may_both_listen_on_a_free_port() -> None:
    routes = [{**ROUTE, "listen": "127.0.0.1:0", "name": name} for name in ("a", "b")]

    assert [str(route.listen) for route in settings_of(routes=routes).routes] == ["127.0.0.1:0"] * 2


def test_addresses_are_text_in_a_dump_and_typed_in_the_program() -> None:
    settings = settings_of(admin=Address("::1", 9100))

    assert settings.admin == Address("::1", 9100)
    assert settings.model_dump(mode="json")["admin"] == "[::1]:9100"
    assert settings_of(**settings.model_dump(mode="json")) == settings


def test_times_are_in_seconds() -> None:
    settings = settings_of(
        topic_ids_wait_ms=1500,
        connect_timeout_ms=20,
        greeting_timeout_ms=30,
        drain_ms=40,
        stuck_ms=0,
    )

    assert (settings.topic_ids_wait, settings.connect_timeout) == (1.5, 0.02)
    assert (settings.greeting_timeout, settings.drain, settings.stuck) == (0.03, 0.04, 0.0)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"takeover": "é" * 46}, "takeover has 92 bytes; .* may have 90"),
        ({"takeover": "/"}, "takeover is /, which names no file"),
        ({"takeover": "./"}, "takeover is ./, which names no file"),
        ({"takeover": "a\0b"}, "should match pattern"),
        ({"switch_file": f"/run/{'é' * 121}"}, "name has 242 bytes; it may have 240"),
    ],
)
def test_refuses_names_of_files_that_the_system_does_not_take(
    settings: dict[str, str], reason: str
) -> None:
    """The first two ended `config check` with a traceback; the third could not be written."""
    with pytest.raises(ValidationError, match=reason):
        settings_of(routes=[ROUTE], **settings)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("0.0.0.0:9092", "127.0.0.1:9092"),
        ("0.0.0.0:9092", "10.0.0.7:9092"),
        ("10.0.0.7:9092", "0.0.0.0:9092"),
        ("[::]:9092", "[::1]:9092"),
        ("[::]:9092", "[fe80::1%eth0]:9092"),
        ("localhost:9092", "127.0.0.1:9092"),
        ("localhost:9092", "[::1]:9092"),
        ("0.0.0.0:9092", "localhost:9092"),
        ("0.0.0.0:9092", "[::ffff:127.0.0.1]:9092"),
        ("[::ffff:10.0.0.7]:9092", "10.0.0.7:9092"),
        ("[::ffff:0.0.0.0]:9092", "10.0.0.7:9092"),
        ("localhost:9092", "localhost.:9092"),
        ("broker-1:9092", "broker-1.:9092"),
    ],
)
def test_refuses_listeners_that_overlap(first: str, second: str) -> None:
    routes = (route(first, "10.9.9.1:9093"), route(second, "10.9.9.2:9093"))

    with pytest.raises(ValidationError, match=r"listening addresses .* and .* overlap"):
        settings_of(routes=routes)
    with pytest.raises(ValidationError, match=r"listening addresses .* and .* overlap"):
        settings_of(routes=routes[:1], admin=second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("0.0.0.0:9092", "127.0.0.1:9093"),
        ("127.0.0.1:9092", "127.0.0.2:9092"),
        # Each takes connections of its own family only.
        ("0.0.0.0:9092", "[::]:9092"),
        ("0.0.0.0:9092", "[::1]:9092"),
        ("[::]:9092", "127.0.0.1:9092"),
        ("0.0.0.0:0", "127.0.0.1:0"),
        # What these names stand for is not known before they are listened on.
        ("broker-1:9092", "broker-2:9092"),
    ],
)
def test_takes_listeners_that_do_not_overlap(first: str, second: str) -> None:
    routes = (route(first, "10.9.9.1:9094"), route(second, "10.9.9.2:9094"))

    assert settings_of(routes=routes).routes == routes


@pytest.mark.parametrize(
    ("upstream", "admin"),
    [
        ("127.0.0.1:9100", "127.0.0.1:9100"),
        ("localhost:9100", "127.0.0.1:9100"),
        ("127.0.0.1:9100", "0.0.0.0:9100"),
        ("[::ffff:127.0.0.1]:9100", "localhost:9100"),
    ],
)
def test_refuses_a_route_to_the_admin_server(upstream: str, admin: str) -> None:
    routes = (route("127.0.0.1:19092", upstream),)

    with pytest.raises(ValidationError, match="leads to this process's admin server"):
        settings_of(routes=routes, admin=admin)
