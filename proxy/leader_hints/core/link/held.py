"""An error response that waits for the decision on its hints."""

from collections.abc import Sequence
from typing import Protocol

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import LeaderHint, Scanned, with_hints
from leader_hints.core.events import ErrorAnswered
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.flow import Pieces
from leader_hints.core.link.link_state import Failed
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.wire.steps import Steps

#: Bytes that each failed partition of a held response costs until it was reported, and each of
#: their topics: what stands of them in the response, what is known of their leaders and hints, and
#: where news of the topic finds the response. Measured, on 64 bits, where nothing is shared with
#: another response; ``tests/core/link/test_held.py`` compares. What a response costs without them
#: is bounded by how many may be held.
_PARTITION = 650
_TOPIC = 700

_NO_BYTES = memoryview(b"")


def cost(scanned: Scanned) -> int:
    """Return how many bytes are to be reserved for what failed in a response, beside its own."""
    failures = scanned.failures
    topics = 1 if len(failures) == 1 else len({failure.topic for failure in failures})
    return _PARTITION * len(failures) + _TOPIC * topics


class HeldLink(Protocol):
    """The link of a response, in this process or in a worker's."""

    @property
    def route(self) -> Route:
        """The link's route."""

    @property
    def number(self) -> int:
        """The link's number, which no other link has."""

    def hintable(self, key: ApiKey, version: int) -> bool:
        """Whether a response of ``version`` is to be looked at for errors."""

    def answered(
        self,
        key: ApiKey,
        version: int,
        failed: Failed,
        epoch: int,
        hold_ms: float,
        *,
        observed: bool | None = None,
    ) -> ErrorAnswered:
        """See :meth:`leader_hints.core.link.link_state.LinkState.answered`."""


class Reservation(Protocol):
    """Of what the bytes are that are reserved for a response."""

    def give_back(self, size: int) -> None:
        """End a reservation."""


class Held:
    """A whole response frame and what the hint rules need of it.

    ``frame`` is memory of its own. ``epochs``: for each failure the leader epoch that the
    client used, -1 where it is not known. ``unhinted``: why the client gets no hint; then the
    error waits until it is settled, and goes on byte for byte. Of such a response ``frame`` has
    only the part that is kept back. ``reserved``: bytes of ``account`` for what failed, beside it.
    """

    __slots__ = (
        "account",
        "epochs",
        "frame",
        "key",
        "link",
        "reserved",
        "scanned",
        "unhinted",
        "version",
    )

    def __init__(
        self,
        link: HeldLink,
        key: ApiKey,
        version: int,
        frame: memoryview,
        scanned: Scanned,
        epochs: Sequence[int],
        unhinted: MissReason | None = None,
    ) -> None:
        self.link = link
        self.key = key
        self.version = version
        self.frame = frame
        self.scanned = scanned
        self.epochs = epochs
        self.unhinted = unhinted
        self.account: Reservation | None = None
        self.reserved = 0

    @property
    def refusal(self) -> MissReason | None:
        """Why it must not be held, whatever is known of its leaders; ``None`` if it may be."""
        if self.unhinted is not None:
            off = self.link.route.mode is Mode.OFF
        else:
            off = not self.link.hintable(self.key, self.version)
        return MissReason.HINTS_OFF if off else None

    @property
    def observed(self) -> bool:
        """Whether hints are only counted, so that it went on when it came."""
        return self.link.route.mode is Mode.OBSERVE

    def without_failures(self) -> "Held":
        """Return the same without its bytes and what failed in it, for what outlives it."""
        scanned = Scanned((), self.scanned.carries, 0, 0)
        return Held(self.link, self.key, self.version, _NO_BYTES, scanned, (), self.unhinted)

    def give_back(self) -> None:
        """Give back what is reserved, if it still is: what failed was reported, or never will be.

        Its link may have ended before.
        """
        if self.account is not None:
            self.account.give_back(self.reserved)
            self.account = None

    def answer(self, hints: Sequence[LeaderHint | None]) -> Steps[Pieces]:
        """Return the response with ``hints``, one or ``None`` for each failure, in steps.

        :raises WireError: a tag section is not well formed.
        """
        return with_hints(self.frame, self.key, self.version, self.scanned, hints)
