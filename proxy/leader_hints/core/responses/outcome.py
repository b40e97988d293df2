"""What becomes of a response once as much of it was read as is there.

Tested in ``tests/core/responses/test_response_table.py``.
"""

from collections.abc import Callable
from typing import NamedTuple

from leader_hints.apis.fetch_request import SMALL
from leader_hints.apis.fetch_response import FetchScan
from leader_hints.apis.leader_hint import Scanned
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.flow import Pieces
from leader_hints.core.link.held import Held
from leader_hints.core.responses.passthrough_scan import PassthroughScan
from leader_hints.core.responses.response_notes import ResponseNotes
from leader_hints.core.responses.settling_scan import SettlingScan
from leader_hints.wire.scatter import Rest
from leader_hints.wire.steps import Steps, at_once


class Instead(NamedTuple):
    """Other bytes go in its place; ``rest``: how they go on where not all of it is there.

    ``scan``: what reads the rest as it passes. ``cost``: as how many others it counts in a turn of
    the link. A response that counts and passes stands in its own place.
    """

    pieces: Pieces
    rest: Rest | None = None
    scan: PassthroughScan | None = None
    cost: int = 1


class Gather(NamedTuple):
    """It is kept until more of it is there; ``scan``: what was read of it so far.

    ``must``: it cannot go on as it is, so it is kept even if the budget is used up.
    """

    must: bool
    scan: FetchScan | None = None


class Failed(NamedTuple):
    """Some of its partitions failed, and all that follows is done in turns, since it may be large;
    see :meth:`leader_hints.core.responses.response_notes.ResponseNotes.holding`.

    ``frame``: all of it, or of one that is to be settled what has not gone on. ``understood``: it
    could be read to its end.
    """

    frame: memoryview
    scanned: Scanned
    understood: bool = True


class InTurns(NamedTuple):
    """What becomes of it is found in the link's turns, since that takes long.

    ``begin`` finds it in steps, from what is there of the response, in memory that stays.
    """

    begin: "Begin"


class Fault(NamedTuple):
    """Nothing of it may go on, so the link ends; why, in words."""

    reason: str


#: ``None``: it passes, as it is or as it was changed in place. So it does with a scan, which reads
#: the rest of it. A :class:`Held` waits for its hints.
Outcome = PassthroughScan | Instead | Gather | Held | Failed | InTurns | Fault | None
#: Reads as much as is there of a response, of which the last argument is the whole length.
Reader = Callable[[ResponseNotes, Exchange, memoryview, int], Outcome]
#: The same in steps.
Begin = Callable[[ResponseNotes, Exchange, memoryview, int], Steps[Outcome]]

GATHER = Gather(must=False)
GATHER_ANYWAY = Gather(must=True)
#: Bytes of a response of which all partitions are noted at once: it has a hundred or two.
_AT_ONCE = 8192


def read_in_turns(
    begin: Begin, notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int
) -> Outcome:
    """Return what becomes of a response if one step finds it, as of nearly all.

    Else it is begun again in the link's turns, in memory that stays and once all of it is there. So
    the first step only reads, unless it is the only one.
    """
    try:
        next(begin(notes, exchange, frame, length))
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    return InTurns(begin) if len(frame) == length else GATHER_ANYWAY


def once_followed(following: Steps[None], read: Reader) -> InTurns:
    """Have a response read when the request that it answers was, which takes long."""

    def begin(
        notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int
    ) -> Steps[Outcome]:
        yield from following
        return read(notes, exchange, frame, length)

    return InTurns(begin)


def failed(
    notes: ResponseNotes, exchange: Exchange, frame: memoryview, scanned: Scanned
) -> Outcome:
    """Return what becomes of a whole response of which some partitions failed."""
    if len(frame) > _AT_ONCE or len(exchange.request or b"") > SMALL:
        return Failed(frame, scanned)
    passed = at_once(notes.passed(exchange, frame, len(frame), exchange.policy.version))
    return at_once(notes.held(exchange, frame, scanned)) or passed


def settled(scan: SettlingScan, piece: memoryview) -> Failed | None:
    """Return what becomes of a response whose last errors stand in ``piece``, if they may wait.

    ``None``: it has none, or more of it is to be seen. No client can read it without that piece.
    """
    if not (scan.over and scan.failures):
        return None
    scanned = Scanned(tuple(scan.failures), scan.carries, 0, 0)
    return Failed(piece, scanned, scan.understood)
