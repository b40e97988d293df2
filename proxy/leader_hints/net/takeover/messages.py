"""The messages between two processes of which the second takes over from the first.

Each is one packet of a Unix socket (SOCK_SEQPACKET), in JSON. Listening sockets go beside it
(SCM_RIGHTS, unix(7)).

| from | message | means |
|---|---|---|
| successor | `{"protocol": 1}` | asks for the listening sockets |
| predecessor | `{"addresses": [...], "more": true}` | for which address each socket beside it is |
| predecessor | `{"refused": "..."}` | it hands nothing over, and why |
| successor | `{"ready": true, "reports": true}` | it can serve: accept no more |
| predecessor | `{"closed": true, "switched": {...}}` | it accepts none any more |
| successor | `{"serving": true}` | it listens, and the service manager knows |

`switched` has by route what the kill switch has set it to, and is there only where that could not
be written to the file in time. Older versions neither say nor read it. In no more than a message
has room for (some 1,000 routes): there is none in place of a longer one.

`reports` says that `serving` will come: older versions end the connection without it.

The two may be of different versions, so none of this may change without another protocol number.
"""

import array
import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import trio

from leader_hints.errors import TakeoverError

PROTOCOL: Final = 1
#: Sockets beside one message: Linux takes 253 (SCM_MAX_FD).
MOST_SOCKETS: Final = 100
#: Bytes of one message: more than the addresses of so many sockets have.
_MOST_BYTES: Final = 1 << 16
#: Process, user and group of who made the connection (struct ucred, unix(7)).
_CREDENTIALS: Final = struct.Struct("3i")

Message = Mapping[str, Any]


def has_room(message: Message) -> bool:
    """Whether a message is no larger than what is received at once."""
    return len(json.dumps(message)) <= _MOST_BYTES


async def send(
    connection: trio.socket.SocketType, message: Message, sockets: Sequence[int] = ()
) -> None:
    """Send a message, with the descriptors of sockets beside it.

    :raises TakeoverError: the other process has ended.
    """
    beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", sockets))] if sockets else []
    try:
        await connection.sendmsg([json.dumps(message).encode()], beside)
    except OSError as error:
        raise TakeoverError(f"the other process has ended: {reason_of(error)}") from None


async def receive(connection: trio.socket.SocketType) -> tuple[Message, list[int]]:
    """Receive a message, and the descriptors beside it, which are the caller's to close.

    :raises TakeoverError: there is none, or it is none of these.
    """
    room = socket.CMSG_SPACE(MOST_SOCKETS * array.array("i").itemsize)
    how = _MOST_BYTES, room, socket.MSG_CMSG_CLOEXEC
    try:
        try:
            data, beside, flags, _ = await connection.recvmsg(*how)
        except ConnectionResetError:
            # It has closed its end without reading everything. Linux reports that first, and what
            # it had sent before only then.
            data, beside, flags, _ = await connection.recvmsg(*how)
    except OSError as error:
        raise TakeoverError(f"the other process has ended: {reason_of(error)}") from None
    sockets = array.array("i")
    for level, kind, content in beside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            sockets.frombytes(content[: len(content) - len(content) % sockets.itemsize])
    try:
        return _read(data, flags), list(sockets)
    except TakeoverError:
        close_all(sockets)
        raise


def _read(data: bytes, flags: int) -> Message:
    if not data:
        raise TakeoverError("the other process has ended")
    if flags & socket.MSG_CTRUNC:
        raise TakeoverError("too few descriptors are left for the sockets of the other process")
    message: object = None
    # RecursionError: lists within lists, a thousand deep.
    with suppress(ValueError, RecursionError):
        message = json.loads(data)
    if not isinstance(message, dict):
        raise TakeoverError("the other process sends what is not understood")
    return message


def close_all(sockets: Sequence[int]) -> None:
    """Close descriptors that nobody needs."""
    for one in sockets:
        os.close(one)


def check_peer(connection: trio.socket.SocketType) -> int:
    """Return the number of the process at the other end.

    :raises TakeoverError: it is another user's, and not root's.
    """
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    assert isinstance(raw, bytes)
    process, user, _ = _CREDENTIALS.unpack(raw)
    if user not in (os.geteuid(), 0):
        raise TakeoverError(f"process {process} belongs to another user")
    return int(process)


def new_socket() -> trio.socket.SocketType:
    """Return a socket of the kind that both processes use."""
    return trio.socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def reason_of(error: OSError) -> str:
    """Return what the system says, in the case of a sentence's middle."""
    return (error.strerror or str(error)).lower()
