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
)
from leader_hints.core.responses.response_notes import ResponseNotes
from leader_hints.wire.errors import WireError


def hinted(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Look for errors that a hint can answer."""
    if produce.has_no_failure(frame):
        return notes.passing(exchange, frame, length, exchange.policy.version)
    if len(frame) < length:
        return GATHER
    return _look(notes, exchange, frame)


def recoded(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Convert a whole response to the client's version."""
    if len(frame) < length:
        return GATHER_ANYWAY
    policy = exchange.policy
    try:
        raised = memoryview(produce_8.response_up(frame))
        if not policy.hintable or produce.has_no_failure(raised):
            notes.passing(exchange, raised, len(raised), policy.version)
            return Instead([raised])
    except (WireError, KeyError) as error:
        return Fault(f"Produce v{exchange.recoded} response: {error}")
    outcome = _look(notes, exchange, raised)
    return outcome if isinstance(outcome, Held | Failed) else Instead([raised])


def _look(notes: ResponseNotes, exchange: Exchange, frame: memoryview) -> Outcome:
    version = exchange.policy.version
    try:
        scanned = produce.scan_response(frame)
    except WireError as error:
        notes.link.misunderstood("broker", f"Produce v{version}: {error}")
        return None
    if not scanned.failures:
        return notes.passing(exchange, frame, len(frame), version)
    return failed(notes, exchange, frame, scanned)
