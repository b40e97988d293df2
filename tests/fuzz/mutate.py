"""What is done to frames, and to the streams that they make."""

import itertools
import random
import struct
from collections.abc import Callable, Sequence

#: What stands in lengths, counts, numbers and varints of those who lie.
_EXTREMES = (
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff",
    b"\x7f\xff",
    b"\x80\x00",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\x3f\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xfe\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x08",
    b"\xff\xff\xff\xff\xff",
    b"\x80\x80\x80\x80\x80\x80",
    b"\xff\x01",
    b"\x81\x80\x00",
    b"\x80\x00",
)
#: Sizes that frames claim.
_SIZES = (
    0,
    3,
    4,
    7,
    8,
    9,
    11,
    12,
    200_000,
    90_000_000,
    1 << 30,
    2**31 - 1,
    -1,
    -(2**31),
    0x16030100,
)
Mutation = Callable[[bytes, Sequence[bytes], random.Random], bytes]


def mutated(frame: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Return a frame that is no more what it was; most often its size is right all the same."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        if frame:
            frame = chance.choice(_MUTATIONS)(frame, others, chance)
    if len(frame) >= 8 and chance.random() < 0.9:
        frame = struct.pack(">i", len(frame) - 4) + frame[4:]
    elif chance.random() < 0.5:
        frame = struct.pack(">i", chance.choice(_SIZES)) + frame[4:]
    return frame


def _place(frame: bytes, chance: random.Random) -> int:
    """Return a position, most often behind the size prefix and the correlation id."""
    first = 12 if len(frame) > 12 and chance.random() < 0.8 else 0
    # Counts and lengths stand at the beginning; records fill the rest.
    last = len(frame) if chance.random() < 0.4 else min(len(frame), 80)
    return chance.randrange(first, max(last, first + 1))


def _flip(frame: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at = min(_place(frame, chance), len(frame) - 1)
    return frame[:at] + bytes([frame[at] ^ 1 << chance.randrange(8)]) + frame[at + 1 :]


def _set(frame: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at, raw = _place(frame, chance), chance.choice(_EXTREMES)
    return frame[:at] + raw + frame[at + len(raw) :]


def _insert(frame: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at = _place(frame, chance)
    return frame[:at] + chance.choice(_EXTREMES) + frame[at:]


def _remove(frame: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at = _place(frame, chance)
    return frame[:at] + frame[at + chance.choice((1, 2, 4, 16)) :]


def _truncate(frame: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    return frame[: chance.randrange(len(frame))]


def _splice(frame: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    return frame[: _place(frame, chance)] + other[_place(other, chance) :]


def _repeat(frame: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at = _place(frame, chance)
    end = at + chance.randrange(1, 60)
    return frame[:end] + frame[at:end] * chance.choice((1, 2, 9)) + frame[end:]


def _version(frame: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    version = chance.choice((0, 3, 8, 9, 10, 11, 12, 13, 15, 16, 17, -1, 2**15 - 1))
    return frame[:6] + struct.pack(">h", version) + frame[8:]


def _number(frame: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Change what of a request and of a response is the correlation id."""
    at = chance.choice((4, 8))
    return frame[:at] + struct.pack(">i", chance.randrange(-2, 12)) + frame[at + 4 :]


_MUTATIONS: Sequence[Mutation] = (
    *(_flip, _flip, _set, _set, _set, _insert, _remove, _truncate),
    *(_splice, _repeat, _version, _number),
)


def shuffled(frames: Sequence[bytes], chance: random.Random) -> list[bytes]:
    """Return frames of which some lack, come twice, or change places."""
    out = list(frames)
    if out and chance.random() < 0.1:
        out.pop(chance.randrange(len(out)))
    if out and chance.random() < 0.1:
        out.insert(chance.randrange(len(out) + 1), chance.choice(out))
    if len(out) > 1 and chance.random() < 0.05:
        chance.shuffle(out)
    return out


def chunks(data: bytes, chance: random.Random) -> list[bytes]:
    """Cut a stream at places by chance, sometimes at many."""
    if not data:
        return []
    cuts = {chance.randrange(1, len(data) + 1) for _ in range(chance.choice((0, 0, 1, 2, 12)))}
    places = [0, *sorted(cuts - {len(data)}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(places)]
