"""Free loopback ports that stay free until their process binds them."""

import os
import random
import socket
from collections.abc import Sequence
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
    ports = _own_share([port for port in below if port not in _OTHERS])
    found: list[int] = []
    while len(found) < count:
        port = random.choice(ports)
        if port not in _given and _can_bind(port):
            _given.add(port)
            found.append(port)
    return found


def free_range(count: int) -> int:
    """Return the first of ``count`` ports that follow each other.

    They lie below those of :func:`free_ports`, in a stretch that is this process's alone.
    """
    workers, number = _worker()
    size = len(_RANGES) // workers
    own = _RANGES[number * size : (number + 1) * size]
    while True:
        first = random.choice(own[:-count])
        ports = range(first, first + count)
        if _given.isdisjoint(ports) and all(map(_can_bind, ports)):
            _given.update(ports)
            return first


def _own_share(ports: Sequence[int]) -> Sequence[int]:
    """Return what is this process's alone where pytest-xdist runs the tests in several."""
    workers, number = _worker()
    return ports[number::workers]


def _worker() -> tuple[int, int]:
    """How many processes run the tests, and which of them this is."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return workers, number


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
