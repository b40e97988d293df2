"""Rewrites a frame by replacing stretches of it, without copying what stays."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

_SIZE = struct.Struct(">i")


class Splice(NamedTuple):
    """The bytes from ``start`` to ``end`` give way to ``replacement``."""

    start: int
    end: int
    replacement: bytes


def spliced(frame: memoryview, splices: Sequence[Splice]) -> list[memoryview | bytes]:
    """Return ``frame`` with its splices as pieces to be sent, its size prefix made right.

    ``frame`` begins with the size prefix. The splices ascend, do not overlap and lie behind
    the prefix. The pieces are views of ``frame`` and the replacements: no byte that stays is
    copied.
    """
    if not splices:
        return [frame]
    grown = sum(len(s.replacement) - (s.end - s.start) for s in splices)
    pieces: list[memoryview | bytes] = [_SIZE.pack(len(frame) - _SIZE.size + grown)]
    at = _SIZE.size
    for start, end, replacement in splices:
        pieces.append(frame[at:start])
        pieces.append(replacement)
        at = end
    if at < len(frame):
        pieces.append(frame[at:])
    return pieces
