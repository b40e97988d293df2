"""An error response that waits for the decision on its hints.

Tested in ``tests/core/link/test_link.py``.
"""

from collections.abc import Sequence

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import LeaderHint, Scanned, with_hints
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.flow import Pieces
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.wire.steps import Steps


class Held:
    """A whole response frame and what the hint rules need of it.

    ``frame`` is memory of its own. ``epochs``: for each failure the leader epoch that the
    client used, -1 where it is not known. ``unhinted``: why the client gets no hint; then the
    error waits until it is settled, and goes on byte for byte. Of such a response ``frame`` has
    only the part that is kept back. ``over_budget``: nothing is left of the budget for that.
    """

    __slots__ = (
        "epochs",
        "frame",
        "key",
        "link",
        "over_budget",
        "scanned",
        "unhinted",
        "version",
    )

    def __init__(
        self,
        link: LinkState,
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
        self.over_budget = False

    @property
    def refusal(self) -> MissReason | None:
        """Why it must not be held, whatever is known of its leaders; ``None`` if it may be."""
        if self.over_budget:
            return MissReason.BUDGET
        if self.unhinted is not None:
            off = self.link.route.mode is Mode.OFF
        else:
            off = not self.link.policies.hintable(self.key, self.version)
        return MissReason.HINTS_OFF if off else None

    def answer(self, hints: Sequence[LeaderHint | None]) -> Steps[Pieces]:
        """Return the response with ``hints``, one or ``None`` for each failure, in steps.

        :raises WireError: a tag section is not well formed.
        """
        return with_hints(self.frame, self.key, self.version, self.scanned, hints)
