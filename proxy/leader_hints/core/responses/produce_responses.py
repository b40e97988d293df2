"""Produce responses: those that may get hints, and those that are converted to another version.

Tested in ``tests/core/link/test_link_recoded.py``.
"""

from leader_hints.apis import produce, produce_8
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.held import Held
from leader_hints.core.responses.outcome import (
    GATHER,
    GATHER_ANYWAY,
    Failed,
    Fault,
    Instead,
    Outcome,
    failed,
    read_in_turns,
)
from leader_hints.core.responses.response_notes import ResponseNotes
from leader_hints.wire.errors import WireError
from leader_hints.wire.steps import Steps


def hinted(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Look for errors that a hint can answer."""
    if produce.has_no_failure(frame):
        return notes.passing(exchange, frame, length, exchange.policy.version)
    if len(frame) < length:
        return GATHER
    return read_in_turns(_look, notes, exchange, frame, length)


def recoded(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Convert a whole response to the client's version."""
    if len(frame) < length:
        return GATHER_ANYWAY
    return read_in_turns(_recoded, notes, exchange, frame, length)


def _recoded(notes: ResponseNotes, exchange: Exchange, frame: memoryview, _: int) -> Steps[Outcome]:
    policy = exchange.policy
    try:
        raised, some_failed = yield from produce_8.response_up(frame)
        if not (policy.hintable and some_failed):
            scan = notes.passing(exchange, raised, len(raised), policy.version)
            if scan is not None:
                yield from scan.see_rest(raised)
            return Instead([raised])
    except WireError as error:
        return Fault(f"Produce v{exchange.recoded} response: {error}")
    outcome = yield from _look(notes, exchange, raised, len(raised))
    return outcome if isinstance(outcome, Held | Failed) else Instead([raised])


def _look(
    notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int
) -> Steps[Outcome]:
    version = exchange.policy.version
    try:
        scanned = yield from produce.scan_in_steps(frame)
    except WireError as error:
        notes.link.misunderstood("broker", f"Produce v{version}: {error}")
        return None
    if scanned.failures:
        return failed(notes, exchange, frame, scanned)
    return (yield from notes.passed(exchange, frame, length, version))
