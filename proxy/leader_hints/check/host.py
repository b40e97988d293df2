"""Facts about this machine: connections, its own addresses, its clock."""

import contextlib
import ctypes
import os
import socket
from pathlib import Path
from typing import Final, NamedTuple

_TCP_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED: Final = "01"
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


def connections_to(port: int) -> int | None:
    """Return how many connections to a port of this machine there are, ``None`` if not known."""
    tables = []
    for table in _TCP_TABLES:
        with contextlib.suppress(OSError):
            tables.append(table.read_text(encoding="ascii").splitlines()[1:])
    if not tables:
        return None
    columns = (line.split() for lines in tables for line in lines)
    return sum(
        state == _ESTABLISHED and int(local.rpartition(":")[2], 16) == port
        for _, local, _, state, *_ in columns
    )


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
