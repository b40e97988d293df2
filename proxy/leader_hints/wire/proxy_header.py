"""The header of the PROXY protocol, in which a load balancer reports its client's address.

https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt: version 1 is a line of text, version 2
has a signature, a length, addresses, and further fields that are passed over.
"""

import ipaddress
import struct
from typing import NamedTuple

from leader_hints.wire.errors import Malformed

_TEXT = b"PROXY "
#: The shortest line ("PROXY UNKNOWN") and the longest, both with their ends.
_SHORTEST_TEXT, _LONGEST_TEXT = 15, 107
_END = b"\r\n"
_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
#: Version and command, family and protocol, length of what follows.
_HEAD = struct.Struct(">12sBBH")
#: Most that may follow. Addresses and all fields that are in use are much smaller.
_LONGEST_REST = 4096
_LOCAL, _PROXY = 0x20, 0x21
#: By family and protocol (TCP): bytes of an address.
_ADDRESS_BYTES = {0x11: 4, 0x21: 16}
_TEXT_FAMILIES = {"TCP4": 4, "TCP6": 6}
_PORTS = struct.Struct(">HH")
_MOST_PORT = 65535


class Source(NamedTuple):
    """Where a connection came from: IP address and port."""

    host: str
    port: int


def missing(data: bytes) -> int:
    """Return how many bytes must be read at least until the header is whole; 0: it is.

    So nothing is read that stands behind it.

    :raises Malformed: no header begins so, or it is longer than any may be.
    """
    have = len(data)
    if data.startswith(_TEXT[:have]):
        if data.endswith(_END):
            return 0
        if have >= _LONGEST_TEXT:
            raise Malformed("PROXY header without an end")
        return max(_SHORTEST_TEXT - have, 1)
    if data[: len(_SIGNATURE)] != _SIGNATURE[:have]:
        raise Malformed("no PROXY header")
    if have < _HEAD.size:
        return _HEAD.size - have
    rest: int = _HEAD.unpack_from(data)[3]
    if rest > _LONGEST_REST:
        raise Malformed(f"PROXY header of {rest} bytes")
    return max(_HEAD.size + rest - have, 0)


def read(data: bytes) -> Source | None:
    """Read a whole header; ``None``: it does not say, so the connection is its sender's own.

    :raises Malformed: it is not well formed.
    """
    return _read_text(data) if data.startswith(_TEXT) else _read_binary(data)


def _read_text(data: bytes) -> Source | None:
    words = data[: -len(_END)].decode("ascii", "replace").split(" ")
    family = words[1]
    if family == "UNKNOWN":
        return None
    if family not in _TEXT_FAMILIES or len(words) != 6:
        raise Malformed("PROXY header that is none of TCP4, TCP6 or UNKNOWN")
    _, _, host, destination, port, destination_port = words
    for address in (host, destination):
        _check_address(address, _TEXT_FAMILIES[family])
    for number in (port, destination_port):
        if not (number.isascii() and number.isdigit() and len(number) <= 5):
            raise Malformed("PROXY header with a port that is none")
        if int(number) > _MOST_PORT:
            raise Malformed("PROXY header with a port that is none")
    return Source(str(ipaddress.ip_address(host)), int(port))


def _check_address(text: str, version: int) -> None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise Malformed("PROXY header with an address that is none") from None
    if address.version != version or "%" in text:
        raise Malformed("PROXY header with an address of another family")


def _read_binary(data: bytes) -> Source | None:
    _, command, family, rest = _HEAD.unpack_from(data)
    if command == _LOCAL:
        return None
    if command != _PROXY:
        raise Malformed(f"PROXY header with version and command {command:#04x}")
    size = _ADDRESS_BYTES.get(family)
    if size is None:
        # Of Unix sockets, datagrams, or not specified.
        return None
    if rest < 2 * size + _PORTS.size:
        raise Malformed("PROXY header too short for its addresses")
    host = ipaddress.ip_address(bytes(data[_HEAD.size : _HEAD.size + size]))
    return Source(str(host), _PORTS.unpack_from(data, _HEAD.size + 2 * size)[0])
