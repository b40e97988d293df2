"""Tells systemd which process serves (sd_notify(3), Type=notify)."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import trio

#: Seconds before the message is sent again, where the queue of the service manager is full.
_AGAIN: Final = 0.1


async def tell_ready(environment: Mapping[str, str] = os.environ) -> None:
    """Say that this process serves, and is the service's main process from now on.

    Without a service manager nothing is done, and so it is if that takes no message: a process
    that serves must not end for it. While the manager is busy the message is sent again, however
    long that takes: it would end a process of which it does not learn that it serves.
    """
    address = environment.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address[0] == "@":
        # Of the abstract name space (unix(7)).
        address = f"\0{address[1:]}"
    message = f"READY=1\nMAINPID={os.getpid()}".encode()
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.setblocking(False)
        while True:
            with suppress(BlockingIOError):
                manager.sendto(message, address)
                return
            await trio.sleep(_AGAIN)
