"""Free ports, for listeners whose address must be known before they start."""

import random
import socket
from contextlib import ExitStack

_RANGE = range(20_000, 30_000)
"""Below the ports that systems pick for outgoing connections, so that none of those takes one."""


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 on which nothing listens."""
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            probe = held.enter_context(socket.socket())
            port = random.choice(_RANGE)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
    return ports
