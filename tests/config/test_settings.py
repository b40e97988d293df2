"""The settings' model: defaults, bounds, and the rules that span more than one setting."""

from typing import Any

import pytest
from pydantic import ValidationError

from leader_hints.settings import Address, RouteSettings, Settings

ROUTE = {"listen": "127.0.0.1:19092", "upstream": "broker-1:9092"}


def route(listen: str, upstream: str, **others: str) -> RouteSettings:
    return RouteSettings.model_validate({"listen": listen, "upstream": upstream, **others})


def settings_of(**values: Any) -> Settings:
    return Settings.model_validate({"routes": [ROUTE], **values})


def test_defaults_need_only_a_route() -> None:
    settings = settings_of()

    assert settings.hints == "on"
    assert settings.admin is None
    assert settings.hold.deadline_ms == 100
    assert settings.limits.request_bytes == 2**30


def test_arguments_alone_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADER_HINTS_HINTS", "off")

    assert Settings(routes=(route(**ROUTE),)).hints == "on"


def test_a_route_is_named_by_its_listen_text() -> None:
    assert route("[0::1]:1", "b:1").name == "[::1]:1"
    assert route("[0::1]:1", "b:1", name="one").name == "one"


def test_models_are_frozen() -> None:
    settings = settings_of()

    with pytest.raises(ValidationError):
        settings.hints = "off"
    with pytest.raises(ValidationError):
        settings.hold.deadline_ms = 1


@pytest.mark.parametrize("listen", ["0.0.0.0:9092", "[::]:9092", "127.0.0.1:0", "[::1]:9092"])
def test_listens_anywhere(listen: str) -> None:
    assert str(route(listen, "broker-1:9092").listen) == listen


@pytest.mark.parametrize(
    ("listen", "upstream"),
    [
        ("127.0.0.1:9092", "127.0.0.1:9092"),
        ("broker-1:9092", "BROKER-1:9092"),
        ("[::1]:9092", "[0:0::1]:9092"),
        ("0.0.0.0:9092", "127.0.0.1:9092"),
        ("0.0.0.0:9092", "127.1.2.3:9092"),
        ("[::]:9092", "localhost:9092"),
        ("127.0.0.1:9092", "localhost:9092"),
        ("localhost:9092", "[::1]:9092"),
        ("localhost:9092", "localhost.:9092"),
        ("127.0.0.1:9092", "localhost.:9092"),
        ("127.0.0.1:9092", "[::ffff:127.0.0.1]:9092"),
        ("0.0.0.0:9092", "[::ffff:127.0.0.1]:9092"),
        ("[::]:9092", "[::1]:9092"),
        ("10.0.0.7:9092", "[::ffff:10.0.0.7]:9092"),
        ("broker-1:9092", "broker-1.:9092"),
    ],
)
def test_refuses_a_route_to_itself(listen: str, upstream: str) -> None:
    with pytest.raises(ValidationError, match="leads to the route's own listen"):
        route(listen, upstream)


@pytest.mark.parametrize(
    ("listen", "upstream"),
    [
        ("127.0.0.1:9092", "127.0.0.2:9092"),
        ("127.0.0.1:9092", "127.0.0.1:9093"),
        ("0.0.0.0:9092", "broker-1:9092"),
        ("0.0.0.0:19092", "127.0.0.1:9092"),
        ("127.0.0.2:9092", "localhost:9092"),
        # Each takes connections of its own family only.
        ("0.0.0.0:9092", "[::1]:9092"),
        ("[::]:9092", "127.0.0.1:9092"),
        ("[::]:9092", "[::ffff:7f00:1]:9092"),
    ],
)
def test_takes_a_route_to_elsewhere(listen: str, upstream: str) -> None:
    assert str(route(listen, upstream).upstream) == upstream


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
    "upstream", ["broker-1:0", "0.0.0.0:9092", "[::]:9092", "[::ffff:0.0.0.0]:9092"]
)
def test_refuses_an_upstream_that_cannot_be_connected_to(upstream: str) -> None:
    with pytest.raises(ValidationError, match="no address that can be connected to"):
        route("127.0.0.1:19092", upstream)


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


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"link_buffer_bytes": 2**27}, "must be at least link_buffer_bytes 134217728"),
        # A default broker takes 100 MiB; the proxy must not refuse what the broker would take.
        ({"request_bytes": 104857599}, "greater than or equal to 104857600"),
        ({"request_bytes": 2**31}, "less than or equal to 2147483647"),
    ],
)
def test_refuses_limits_that_make_no_sense(settings: dict[str, int], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        settings_of(limits=settings)


def test_refuses_pauses_that_shrink() -> None:
    with pytest.raises(ValidationError, match="must be at least reconnect_min_ms 6000"):
        settings_of(subscription={"reconnect_min_ms": 6000})


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kind": "files"}, "kind files needs path"),
        ({"kind": "topic"}, "kind topic needs bootstrap"),
        ({"kind": "topic", "bootstrap": "one:9092,two"}, "bootstrap: two: no port"),
        ({"kind": "topic", "bootstrap": "one:9092, two:9092"}, "should match pattern"),
        ({"kind": "topic", "bootstrap": "one:9092", "topic": "a b"}, "should match pattern"),
        ({"sidecar": "a/b"}, "should match pattern"),
        ({"sidecar": "a_b"}, "should match pattern"),
        ({"path": "a\0"}, "should match pattern"),
    ],
)
def test_refuses_journals_that_lead_nowhere(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        settings_of(journal=settings)


@pytest.mark.parametrize("value", [True, "5", 5.0, -1, 10001, None])
def test_takes_only_whole_numbers_within_bounds(value: object) -> None:
    with pytest.raises(ValidationError):
        settings_of(hold={"deadline_ms": value})


def test_addresses_are_text_in_a_dump_and_typed_in_the_program() -> None:
    settings = settings_of(admin=Address("::1", 9100))

    assert settings.admin == Address("::1", 9100)
    assert settings.model_dump(mode="json")["admin"] == "[::1]:9100"
    assert settings_of(**settings.model_dump(mode="json")) == settings
