"""The PROXY protocol's header: both versions, cut anywhere, and anything else."""

import ipaddress
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leader_hints.wire.errors import Malformed
from leader_hints.wire.proxy_header import Source, missing, read

_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_TEXT4 = b"PROXY TCP4 192.0.2.1 198.51.100.7 56324 9092\r\n"
_TEXT6 = b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"


def binary(command: int, family: int, rest: bytes) -> bytes:
    """A header of version 2."""
    return _SIGNATURE + struct.pack(">BBH", command, family, len(rest)) + rest


def _tcp(source: str, destination: str, port: int, fields: bytes = b"") -> bytes:
    first, second = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    family = 0x11 if first.version == 4 else 0x21
    rest = first.packed + second.packed + struct.pack(">HH", port, 9092) + fields
    return binary(0x21, family, rest)


_HEADERS = [
    (_TEXT4, Source("192.0.2.1", 56324)),
    (_TEXT6, Source("2001:db8::1", 1)),
    (b"PROXY UNKNOWN\r\n", None),
    (b"PROXY UNKNOWN ffff:f::1 ffff:f::2 65535 65535\r\n", None),
    (_tcp("192.0.2.1", "198.51.100.7", 56324), Source("192.0.2.1", 56324)),
    (_tcp("2001:db8::1", "2001:db8::2", 1, b"\x04\x00\x02ab"), Source("2001:db8::1", 1)),
    (binary(0x20, 0x00, b""), None),
    (binary(0x20, 0x11, bytes(12)), None),
    (binary(0x21, 0x31, bytes(216)), None),
    (binary(0x21, 0x00, b""), None),
]


def _take(data: bytes) -> tuple[bytes, bytes]:
    """Read as from a socket, for no more than is missing; return the header and the rest."""
    taken = 0
    while more := missing(data[:taken]):
        if taken + more > len(data):
            raise EOFError
        taken += more
    return data[:taken], data[taken:]


@pytest.mark.parametrize(("header", "source"), _HEADERS)
def test_a_header_is_read_and_nothing_behind_it(header: bytes, source: Source | None) -> None:
    behind = b"\x00\x00\x00\x0cPROXY \r\n"
    assert _take(header + behind) == (header, behind)
    assert read(header) == source


@pytest.mark.parametrize("header", [header for header, _ in _HEADERS])
def test_a_header_that_is_cut_is_waited_for(header: bytes) -> None:
    for cut in range(len(header)):
        assert 0 < missing(header[:cut]) <= len(header) - cut


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x1c\x00\x12",
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/1.1\r\n",
        b"PROXZ TCP4",
        b"PROXY " + b"x" * 101,
        _SIGNATURE + b"\x21\x11\xff\xff",
        _SIGNATURE[:-1] + b"x",
    ],
)
def test_what_is_no_header_is_refused_at_its_first_bytes(data: bytes) -> None:
    with pytest.raises(Malformed):
        missing(data)


@pytest.mark.parametrize(
    "header",
    [
        b"PROXY TCP5 192.0.2.1 198.51.100.7 1 2\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 1\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 1 2 3\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 65536 2\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 1 -2\r\n",
        b"PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
        b"PROXY TCP6 fe80::1%eth0 2001:db8::2 1 2\r\n",
        b"PROXY TCP4 192.0.2.1\xff 198.51.100.7 1 2\r\n",
        b"PROXY  TCP4 192.0.2.1 198.51.100.7 1\r\n",
        binary(0x11, 0x11, bytes(12)),
        binary(0x22, 0x11, bytes(12)),
        binary(0x21, 0x11, bytes(11)),
        binary(0x21, 0x21, bytes(35)),
    ],
)
def test_a_header_that_is_not_well_formed_is_refused(header: bytes) -> None:
    assert missing(header) == 0
    with pytest.raises(Malformed):
        read(header)


@given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda b: b"PROXY " + b)))
@example(_SIGNATURE + b"\x21\x11\x00\x0c" + bytes(12))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        header, _ = _take(data)
        source = read(header)
    except (Malformed, EOFError):
        return
    assert source is None or ipaddress.ip_address(source.host)


@given(st.data())
def test_a_mutated_header_is_read_or_refused(data: st.DataObject) -> None:
    header = bytearray(data.draw(st.sampled_from([header for header, _ in _HEADERS])))
    for _ in range(data.draw(st.integers(1, 4))):
        header[data.draw(st.integers(0, len(header) - 1))] = data.draw(st.integers(0, 255))
    try:
        source = read(_take(bytes(header))[0])
    except (Malformed, EOFError):
        return
    assert source is None or 0 <= source.port <= 65535


@given(st.ip_addresses(), st.integers(0, 65535), st.booleans())
def test_each_address_comes_out_as_it_went_in(
    host: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int, text: bool
) -> None:
    if text:
        header = f"PROXY TCP{host.version} {host} {host} {port} 1\r\n".encode()
    else:
        header = _tcp(str(host), str(host), port)
    if getattr(host, "scope_id", None) is None:
        assert read(_take(header)[0]) == Source(str(host), port)
