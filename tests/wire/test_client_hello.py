"""First messages of TLS clients, as OpenSSL makes them."""

import contextlib
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.wire import client_hello
from leader_hints.wire.errors import Malformed
from tests.wire.hellos import openssl_hello, sized, with_groups

_CHANGE_CIPHER_SPEC = b"\x14\x03\x03\x00\x01\x01"


HELLO = openssl_hello()


@pytest.mark.parametrize("begin", [b"", _CHANGE_CIPHER_SPEC], ids=["first", "second"])
def test_no_more_is_asked_for_than_is_missing(begin: bytes) -> None:
    hello = begin + HELLO
    for size in range(len(hello)):
        assert 0 < client_hello.missing(hello[:size]) <= len(hello) - size
    assert client_hello.missing(hello) == 0
    assert client_hello.missing(hello + b"more") == 0


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1",
        b"\x00\x00\x00\x20",
        b"\x16\x03\x01\x00\x40\x02\x00\x00\x3c",
        b"\x16\x03\x01\x00\x40\x01\x00\x00\x3d",
        b"\x16\x03\x01\x40\x01\x01\x00\x00\x3d",
        b"\x16\x03\x01\x00\x05\x01\x01\xff\xf8",
        _CHANGE_CIPHER_SPEC * 2,
        b"\x14\x03\x03\x00\x02\x01",
    ],
    ids=["http", "kafka", "answer", "larger", "long", "claims", "twice", "other"],
)
def test_what_is_no_first_message_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        client_hello.missing(data)


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_only_finite_fields_cost_much(newest: ssl.TLSVersion) -> None:
    hello = openssl_hello(newest)
    assert not client_hello.is_costly(hello)
    for curve in (23, 24, 25, 29, 30):
        assert not client_hello.is_costly(with_groups(hello, [curve], [curve])), curve
    for field in range(0x100, 0x105):
        assert client_hello.is_costly(with_groups(hello, [field], [field])), field


def test_fields_count_beside_curves_only_where_they_have_a_share() -> None:
    # As Java's clients.
    assert not client_hello.is_costly(with_groups(HELLO, [29, 23, 256, 257], [29, 23]))
    # A server that takes none of the shares asks for one of a curve.
    assert not client_hello.is_costly(with_groups(HELLO, [260, 29], []))
    assert client_hello.is_costly(with_groups(HELLO, [260, 29], [29, 260]))
    # It would ask for one of the field; the other number means nothing (RFC 8701).
    assert client_hello.is_costly(with_groups(HELLO, [0x0A0A, 260], []))


def test_extensions_may_be_none_and_are_refused_where_they_are_cut() -> None:
    def hello(*extensions: bytes) -> bytes:
        parts = [b"\x03\x03", bytes(32), b"\x00", b"\x00\x02\x13\x01", b"\x01\x00"]
        body = b"".join(parts) + sized(b"".join(extensions))
        return b"\x16\x03\x01" + sized(b"\x01" + len(body).to_bytes(3, "big") + body)

    assert not client_hello.is_costly(hello())
    with pytest.raises(Malformed):
        client_hello.is_costly(hello(b"\x00\x0a" + sized(b"\x00\x09\x00\x1d")))


@given(st.binary(max_size=60), st.integers(0, len(HELLO) - 1))
def test_whatever_stands_in_it_is_read_or_refused(data: bytes, at: int) -> None:
    changed = HELLO[:at] + data + HELLO[at + len(data) :]
    with contextlib.suppress(Malformed):
        if not client_hello.missing(changed):
            client_hello.is_costly(changed)
