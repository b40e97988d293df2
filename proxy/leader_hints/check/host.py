"""Facts about this machine: connections, its own addresses, its clock."""

import contextlib
import ctypes
import ipaddress
import os
import socket
import sys
from pathlib import Path
from typing import Final, NamedTuple

from leader_hints.address import Address

_TCP_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED: Final = "01"
#: A connection that has ended; its port can be listened on.
_TIME_WAIT: Final = "06"
_LISTEN: Final = "0A"
#: What adjtimex(2) returns while the clock is not synchronised, and where it fails.
_TIME_ERROR: Final = 5
_FAILED: Final = -1


class _Timex(ctypes.Structure):
    """struct timex of adjtimex(2), as far as it is read; the kernel fills in more."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("rest", ctypes.c_byte * 256),
    )


class Clock(NamedTuple):
    """The kernel's report of its clock. ``error_ms``: its largest possible error."""

    synchronised: bool
    error_ms: int


class _Socket(NamedTuple):
    """A line of the kernel's tables: far end and state, both as they stand there."""

    far: str
    state: str


def connections_to(port: int) -> int | None:
    """Return how many connections to a port of this machine there are, ``None`` if not known."""
    sockets = _sockets_at(port)
    return None if sockets is None else sum(one.state == _ESTABLISHED for one in sockets)


def connection_from(port: int) -> str | None:
    """Return HOST:PORT to which a connection leads that has a port of this machine as its own.

    ``None`` where something listens at that port, there is no such connection, or that is not
    known. While there is one nobody can listen there.
    """
    sockets = _sockets_at(port) or []
    if any(one.state == _LISTEN for one in sockets):
        return None
    return next((_address(one.far) for one in sockets if one.state != _TIME_WAIT), None)


def _sockets_at(port: int) -> list[_Socket] | None:
    """Return the sockets at a port of this machine, ``None`` if that is not known."""
    tables = []
    for table in _TCP_TABLES:
        with contextlib.suppress(OSError):
            tables.append(table.read_text(encoding="ascii").splitlines()[1:])
    if not tables:
        return None
    columns = (line.split() for lines in tables for line in lines)
    return [
        _Socket(far, state)
        for _, local, far, state, *_ in columns
        if int(local.rpartition(":")[2], 16) == port
    ]


def _address(end: str) -> str:
    """Return HOST:PORT of an end as the kernel writes it: words of four bytes in its own order."""
    host, _, port = end.rpartition(":")
    words = [bytes.fromhex(host[at : at + 8]) for at in range(0, len(host), 8)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    address = ipaddress.ip_address(b"".join(words))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(Address(str(mapped or address), int(port, 16)))


def is_here(address: str) -> bool:
    """Whether an IP address is one of this machine's: only to those a socket can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((address, 0))
        return True
    return False


def address_towards(address: str) -> str | None:
    """Return this machine's address on connections to an IP address, ``None`` if it has no way.

    Nothing is sent.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((address, 9))
        return str(sock.getsockname()[0])
    return None


def clock() -> Clock | None:
    """Return the kernel's report of its clock, ``None`` without one (only Linux has it).

    Nothing is set: that is what ``modes`` 0 means, and it needs no privilege.
    """
    if os.uname().sysname != "Linux":
        return None
    timex = _Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    if state == _FAILED:
        return None
    return Clock(state != _TIME_ERROR, timex.maxerror // 1000)
