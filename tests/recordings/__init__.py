"""What real clients and a real broker said to each other, over the test harness's relay.

``python -m tests.recordings`` records it again. The data is synthetic; the broker is one of 3.6.2
on 127.0.0.1. Each client produces (also without acknowledgement, and in transactions) and consumes
(also in a group), while a leader moves.

A file holds one client's connections, one behind the other, compressed by gzip: sizes of the two
directions as 32-bit numbers, then the bytes to the broker, then those to the client.
"""

import gzip
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.seeds import Exchanged

FOLDER = Path(__file__).parent
_SUFFIX = ".bin.gz"
_SIZES = struct.Struct(">II")


class Recorded(NamedTuple):
    """One connection: the bytes to the broker and those to the client."""

    up: bytes
    down: bytes


def clients() -> list[str]:
    """Return the names of the clients that were recorded."""
    return sorted(file.name.removesuffix(_SUFFIX) for file in FOLDER.glob(f"*{_SUFFIX}"))


def load(client: str) -> list[Recorded]:
    """Return the connections of a client."""
    raw = gzip.decompress((FOLDER / f"{client}{_SUFFIX}").read_bytes())
    connections = []
    at = 0
    while at < len(raw):
        up, down = _SIZES.unpack_from(raw, at)
        at += _SIZES.size
        connections.append(Recorded(raw[at : at + up], raw[at + up : at + up + down]))
        at += up + down
    return connections


def save(client: str, connections: Sequence[Recorded]) -> None:
    """Write the connections of a client."""
    raw = b"".join(_SIZES.pack(len(up), len(down)) + up + down for up, down in connections)
    # Without the time, so that the same bytes make the same file.
    (FOLDER / f"{client}{_SUFFIX}").write_bytes(gzip.compress(raw, mtime=0))


def frames(stream: bytes) -> Iterator[bytes]:
    """Iterate over the whole frames of a stream, size prefixes included."""
    at = 0
    while len(stream) - at >= 4:
        end = at + 4 + int.from_bytes(stream[at : at + 4])
        if end > len(stream):
            return
        yield stream[at:end]
        at = end


def exchanges(recorded: Recorded) -> list[Exchanged]:
    """Return the requests of a connection with their responses, in order."""
    answers = {frame[4:8]: frame for frame in frames(recorded.down)}
    return [Exchanged(frame, answers.get(frame[8:12], b"")) for frame in frames(recorded.up)]


def recorded_exchanges() -> list[Exchanged]:
    """Return what all clients asked and were answered."""
    return [
        exchanged
        for client in clients()
        for recorded in load(client)
        for exchanged in exchanges(recorded)
    ]
