"""Routes: names, and upstreams that cannot be a broker."""

import pytest
from pydantic import ValidationError

from tests.settings.samples import route


def test_a_route_is_named_by_its_listen_text() -> None:
    assert route("[0::1]:1", "b:1").name == "[::1]:1"
    assert route("[0::1]:1", "b:1", name="one").name == "one"


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
    "upstream", ["broker-1:0", "0.0.0.0:9092", "[::]:9092", "[::ffff:0.0.0.0]:9092"]
)
def test_refuses_an_upstream_that_cannot_be_connected_to(upstream: str) -> None:
    with pytest.raises(ValidationError, match="no address that can be connected to"):
        route("127.0.0.1:19092", upstream)
