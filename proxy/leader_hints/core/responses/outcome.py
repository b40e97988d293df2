"""What becomes of a response once as much of it was read as is there.

Tested in ``tests/core/responses/test_response_table.py``.
"""

from collections.abc import Callable
from typing import NamedTuple

from leader_hints.apis.fetch_response import FetchScan
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.flow import Pieces
from leader_hints.core.link.held import Held
from leader_hints.core.responses.passthrough_scan import PassthroughScan
from leader_hints.core.responses.response_notes import ResponseNotes
from leader_hints.wire.scatter import Rest


class Instead(NamedTuple):
    """Other bytes go in its place; ``rest``: how they go on where not all of it is there.

    ``scan``: what reads the rest as it passes.
    """

    pieces: Pieces
    rest: Rest | None = None
    scan: PassthroughScan | None = None


class Gather(NamedTuple):
    """It is kept until more of it is there; ``scan``: what was read of it so far.

    ``must``: it cannot go on as it is, so it is kept even if the budget is used up.
    """

    must: bool
    scan: FetchScan | None = None


class Fault(NamedTuple):
    """Nothing of it may go on, so the link ends; why, in words."""

    reason: str


#: ``None``: it passes, as it is or as it was changed in place. So it does with a scan, which reads
#: the rest of it. A :class:`Held` waits for its hints.
Outcome = PassthroughScan | Instead | Gather | Held | Fault | None
#: Reads as much as is there of a response, of which the last argument is the whole length.
Reader = Callable[[ResponseNotes, Exchange, memoryview, int], Outcome]

GATHER = Gather(must=False)
GATHER_ANYWAY = Gather(must=True)
