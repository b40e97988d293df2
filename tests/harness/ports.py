"""Free loopback ports that stay free until their process binds them."""

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_LOWEST = 10_000
#: Where the demo and the lab look for theirs, at any time.
_OTHERS = range(20_000, 30_000)
#: For ports that follow each other.
_RANGES = range(5_000, _LOWEST)
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_given: set[int] = set()


def _first_ephemeral_port() -> int:
    if _RANGE.exists():
        return int(_RANGE.read_text().split()[0])
    return 32_768


def free_ports(count: int) -> list[int]:
    """Return ``count`` loopback TCP ports, never the same one twice in a run of the tests.

    They lie below the range from which the kernel picks ports for outgoing connections. A port
    out of that range could be taken by some client while its broker is down, and a client that
    calls a port where nothing listens could even be joined to itself.
    """
    below = range(_LOWEST, _first_ephemeral_port())
    ports = [port for port in below if port not in _OTHERS]
    found: list[int] = []
    while len(found) < count:
        port = random.choice(ports)
        if _reserve([port]):
            found.append(port)
    return found


def free_range(count: int) -> int:
    """Return the first of ``count`` ports that follow each other, below those of free_ports."""
    while True:
        first = random.choice(_RANGES[:-count])
        if _reserve(range(first, first + count)):
            return first


def _reserve(ports: Iterable[int]) -> bool:
    """Take free ports until this process ends: none that a process of this or another run took."""
    wanted = list(ports)
    if not _given.isdisjoint(wanted) or not all(map(_can_bind, wanted)):
        return False
    if not all(map(_lock, wanted)):
        # Those before it stay locked, which nobody misses.
        return False
    _given.update(wanted)
    return True


def _lock(port: int) -> bool:
    try:
        fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _locks() -> int:
    """A file of which a process locks one byte for each of its ports; its end unlocks them all."""
    file = Path(tempfile.gettempdir()) / f"leader-hints-ports-{os.getuid()}"
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
