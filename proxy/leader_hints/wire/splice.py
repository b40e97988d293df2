"""Rewrites a frame by replacing stretches of it, without copying what stays."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from leader_hints.wire.steps import ENTRIES_AT_ONCE, Steps

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


def spliced_in_steps(
    frame: memoryview, splices: Sequence[Splice]
) -> Steps[list[memoryview | bytes]]:
    """Do as :func:`spliced`, in steps.

    What lies between many splices is copied: so many pieces would take long to be sent.
    """
    if len(splices) <= ENTRIES_AT_ONCE:
        return spliced(frame, splices)
    out = bytearray(_SIZE.size)
    at = _SIZE.size
    for number, (start, end, replacement) in enumerate(splices, 1):
        if not number % ENTRIES_AT_ONCE:
            yield
        out += frame[at:start]
        out += replacement
        at = end
    behind = frame[at:]
    _SIZE.pack_into(out, 0, len(out) - _SIZE.size + len(behind))
    return [memoryview(out), behind] if behind else [memoryview(out)]
