"""Fetch responses: those that may get hints, and those that are converted to another version.

Tested in ``tests/core/link/test_link_recoded.py``.
"""

from leader_hints.apis.fetch_older import Names, Raised, response_up
from leader_hints.apis.fetch_response import FetchScan, begun_session, glance
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.held import Held
from leader_hints.core.responses.outcome import (
    GATHER,
    GATHER_ANYWAY,
    Failed,
    Fault,
    Gather,
    Instead,
    Outcome,
    failed,
)
from leader_hints.core.responses.response_notes import ResponseNotes
from leader_hints.wire.errors import WireError


def hinted(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Look for errors that a hint can answer."""
    version = exchange.policy.version
    glanced = glance(frame, version)
    if glanced is not None:
        notes.session_answered(exchange, *glanced)
        return notes.passing(exchange, frame, length, version)
    scan = FetchScan(version)
    outcome = go_on(notes, exchange, scan, frame, length)
    return Gather(must=False, scan=scan) if outcome is GATHER else outcome


def go_on(
    notes: ResponseNotes, exchange: Exchange, scan: FetchScan, frame: memoryview, length: int
) -> Outcome:
    """Look further into a response of which ``scan`` has seen the beginning, or nothing yet."""
    version = exchange.policy.version
    try:
        scan.advance(frame, len(frame), length)
        if not scan.clean and scan.scanned is None:
            return GATHER
    except WireError as error:
        notes.link.misunderstood("broker", f"Fetch v{version}: {error}")
        notes.session_unread(exchange, scan)
        return None
    notes.session_answered(exchange, scan.session_id, scan.error)
    if scan.scanned is None:
        return notes.passing(exchange, frame, length, version, whole=False)
    return failed(notes, exchange, frame, scan.scanned)


def follow_session(notes: ResponseNotes, exchange: Exchange, frame: memoryview) -> None:
    """Take note of the session of a response that has begun."""
    session = begun_session(frame)
    if session is None:
        notes.session_unread(exchange, None)
    else:
        notes.session_answered(exchange, *session)


def recoded(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Convert a response, or its beginning, to the client's version."""
    names = _names(notes, exchange)
    try:
        raised = response_up(frame, length, exchange.recoded, names)
    except (WireError, KeyError) as error:
        if len(frame) < length:
            # That is judged when all of it is there.
            return GATHER_ANYWAY
        return Fault(f"Fetch v{exchange.recoded} response: {error}")
    if exchange.policy.hintable and raised.failed:
        if len(frame) < length:
            return GATHER_ANYWAY
        return _hinted_whole(notes, exchange, raised)
    _opened(notes, exchange, raised)
    scan = None
    if names is None or not names.stale:
        # What is said of another topic is none of this client's.
        scan = notes.passing(exchange, frame, length, exchange.recoded)
    if exchange.policy.hintable:
        notes.session_answered(exchange, raised.session_id, raised.error)
    return Instead(raised.pieces, raised.rest, scan)


def _hinted_whole(notes: ResponseNotes, exchange: Exchange, raised: Raised) -> Outcome:
    """Look for errors in a response that was converted."""
    _opened(notes, exchange, raised)
    frame = memoryview(b"".join(raised.pieces))
    scan = FetchScan(exchange.policy.version)
    outcome = go_on(notes, exchange, scan, frame, len(frame))
    while scan.paused:
        outcome = go_on(notes, exchange, scan, frame, len(frame))
    return outcome if isinstance(outcome, Held | Failed) else Instead([frame])


def _names(notes: ResponseNotes, exchange: Exchange) -> Names | None:
    named = exchange.by_name
    return None if named is None else named.names(notes.link.route.broker.known)


def _opened(notes: ResponseNotes, exchange: Exchange, raised: Raised) -> None:
    """Take note of the session that is opened by name, and of ids without a name."""
    named = exchange.by_name
    if named is None or raised.error:
        # A broker refuses a request as a whole also to clients that it does not serve.
        return
    notes.link.topic_ids.lack(named.unknown)
    if raised.session_id:
        named.opened(notes.link.route.sessions_by_name, raised.session_id)
