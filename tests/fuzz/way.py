"""What went in on one side of a link and came out at the other."""

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

from leader_hints.core.link.flow import Flow
from tests.core.links import Driven
from tests.fuzz.reading import Unreadable, frame_at

#: An unfinished frame that lacks more than this is none of a case.
_MOST_MISSING = 1 << 22


class BrokenRuleError(AssertionError):
    """The link did what it must not."""


def rule(kept: bool, text: str) -> None:
    """Hold a rule.

    :raises BrokenRuleError: it is not kept.
    """
    if not kept:
        raise BrokenRuleError(text)


class Allowed(ABC):
    """What may become of a frame.

    ``restamped``: versions that are sent for one that was asked, by API key and that, where the
    number alone changes.
    """

    restamped: Mapping[tuple[int, int], int]

    @abstractmethod
    def may(self, frame: bytes, out: bytes) -> bool:
        """Return whether a whole frame may come out as another.

        :raises Unreadable: one of them is no message.
        """

    @abstractmethod
    def ends(self, frame: bytes, missing: int) -> Iterable[bytes]:
        """Return how what came out of an unfinished frame may go on.

        ``frame``: as it went in, with zeros for the ``missing`` bytes: the last records, and behind
        them tag sections.
        """


class Way(NamedTuple):
    """One direction: what was ``given``, and what came ``out``.

    ``before``: where that began which was received last, if it ended the link. ``due``: so much of
    what went in must have come out.
    """

    name: str
    given: bytes
    out: bytes
    before: int | None
    due: int

    @classmethod
    def of(cls, name: str, given: bytearray, driven: Driven, flow: Flow, out: bytearray) -> Self:
        """Return what a flow did."""
        if flow.fault is None:
            return cls(name, bytes(given), bytes(out), None, len(given))
        before = driven.before[flow]
        return cls(name, bytes(given), bytes(out), before, _whole(bytes(given[:before])))

    def is_untouched(self) -> None:
        """Hold that no byte changes."""
        same = self.given.startswith(self.out) and len(self.out) >= self.due
        rule(same, f"{self.name}: a byte changed or is lost")

    def walk(self, allowed: Allowed) -> None:
        """Compare frame by frame."""
        _, given, out, before, due = self
        at = come = 0
        while given[at:] != out[come:]:
            frame, other = frame_at(given, at), frame_at(out, come)
            if before is not None and come == len(out):
                rule(at >= due, f"{self.name}: the frame at {at} is lost")
                return
            if frame is not None and _stamped(frame, out[come : come + len(frame)], allowed):
                come += len(frame)
            elif frame is not None and other is not None and _may(frame, other, allowed):
                come += len(other)
            else:
                # One of them is not whole. What ended the link may have been the frame's own end;
                # then nothing came out of what was received last.
                begun = given[at:before]
                same = _stamped(begun, out[come:], allowed) or _begins(begun, out[come:], allowed)
                rule(same, f"{self.name}: the frame at {at} changed")
                return
            at += len(frame)


def _whole(stream: bytes) -> int:
    """Return where the last whole frame ends."""
    at = 0
    while (frame := frame_at(stream, at)) is not None:
        at += len(frame)
    return at


def _stamped(frame: bytes, out: bytes, allowed: Allowed) -> bool:
    """Whether nothing is changed but the number of the version, where that must be."""
    if frame == out:
        return True
    if len(frame) < 12 or len(out) != len(frame):
        return False
    key, asked = struct.unpack_from(">hh", frame, 4)
    sent = allowed.restamped.get((key, asked))
    return sent is not None and out == frame[:6] + sent.to_bytes(2) + frame[8:]


def _may(frame: bytes, out: bytes, allowed: Allowed) -> bool:
    try:
        return allowed.may(frame, out)
    except Unreadable:
        return False


def _begins(given: bytes, out: bytes, allowed: Allowed) -> bool:
    """Whether unfinished frames say the same, were records of zeros to follow, and no tags."""
    if min(len(given), len(out)) < 8:
        return False
    missing, lacking = (
        4 + struct.unpack_from(">i", stream)[0] - len(stream) for stream in (given, out)
    )
    if not 0 < missing < _MOST_MISSING:
        return False
    frame = given + bytes(missing)
    return any(
        len(end) == lacking and _may(frame, out + end, allowed)
        for end in allowed.ends(frame, missing)
    )
