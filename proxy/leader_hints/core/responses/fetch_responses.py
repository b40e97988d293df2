"""Fetch responses: those that may get hints, and those that are converted to another version.

Tested in ``tests/core/link/test_link_recoded.py``.
"""

from functools import partial

from leader_hints.apis.fetch_older import Names, response_up
from leader_hints.apis.fetch_response import FetchScan, begun_session, glance
from leader_hints.apis.leader_hint import Scanned
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.held import Held
from leader_hints.core.responses.outcome import (
    GATHER,
    GATHER_ANYWAY,
    Failed,
    Fault,
    Gather,
    Instead,
    InTurns,
    Outcome,
    failed,
    once_followed,
    read_in_turns,
)
from leader_hints.core.responses.response_notes import ResponseNotes
from leader_hints.wire.errors import WireError
from leader_hints.wire.steps import ENTRIES_AT_ONCE, Steps


def hinted(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Look for errors that a hint can answer."""
    version = exchange.policy.version
    glanced = glance(frame, version)
    if glanced is not None:
        following = notes.session_answered(exchange, *glanced)
        if following is not None:
            return once_followed(following, _passing)
        return notes.passing(exchange, frame, length, version)
    scan = FetchScan(version)
    outcome = go_on(notes, exchange, scan, frame, length)
    return Gather(must=False, scan=scan) if outcome is GATHER else outcome


def go_on(
    notes: ResponseNotes,
    exchange: Exchange,
    scan: FetchScan,
    frame: memoryview,
    length: int,
    ahead: memoryview | None = None,
) -> Outcome:
    """Look further into a response of which ``scan`` has seen the beginning, or nothing yet.

    ``ahead``: bytes from where the scan has got to, if ``frame`` does not go as far.
    """
    version = exchange.policy.version
    try:
        if ahead is None:
            scan.advance(frame, len(frame), length)
        else:
            scan.look(ahead, length)
        if not scan.clean and scan.scanned is None:
            return GATHER
    except WireError as error:
        notes.link.misunderstood("broker", f"Fetch v{version}: {error}")
        notes.session_unread(exchange, scan)
        return None
    read = _passing if scan.scanned is None else partial(_failed, scan.scanned)
    following = notes.session_answered(exchange, scan.session_id, scan.error)
    if following is not None:
        return once_followed(following, read)
    return read(notes, exchange, frame, length)


def _passing(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    return notes.passing(exchange, frame, length, exchange.policy.version)


def _failed(
    scanned: Scanned, notes: ResponseNotes, exchange: Exchange, frame: memoryview, _: int
) -> Outcome:
    return failed(notes, exchange, frame, scanned)


def follow_session(
    notes: ResponseNotes, exchange: Exchange, frame: memoryview
) -> Steps[None] | None:
    """Take note of the session of a response that has begun; return what takes long of that."""
    session = begun_session(frame)
    if session is not None:
        return notes.session_answered(exchange, *session)
    notes.session_unread(exchange, None)
    return None


def recoded(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Convert a response, or its beginning, to the client's version."""
    return read_in_turns(_recoded, notes, exchange, frame, length)


def _recoded(
    notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int
) -> Steps[Outcome]:
    policy, named = exchange.policy, exchange.by_name
    if policy.hintable and notes.session_takes_long(exchange):
        yield
    names = None
    if named is not None:
        names = yield from named.names(notes.link.route.broker.known)
    try:
        raised = yield from response_up(frame, length, exchange.recoded, names)
    except (WireError, KeyError) as error:
        if len(frame) < length:
            # That is judged when all of it is there.
            return GATHER_ANYWAY
        return Fault(f"Fetch v{exchange.recoded} response: {error}")
    if policy.hintable and raised.failed and len(frame) < length:
        return GATHER_ANYWAY
    # A broker refuses a request as a whole also to clients that it does not serve.
    if named is not None and names is not None and not raised.error:
        if raised.session_id:
            named.opened(notes.link.route.sessions_by_name, raised.session_id)
        if names.unknown:
            yield from _lack(notes, names)
    if policy.hintable and raised.failed:
        return (yield from _hinted_whole(notes, exchange, memoryview(b"".join(raised.pieces))))
    scan = None
    if names is None or not names.stale:
        # What is said of another topic is none of this client's.
        scan = notes.passing(exchange, frame, length, exchange.recoded)
        if scan is not None:
            yield from scan.see_rest(frame)
    if policy.hintable:
        following = notes.session_answered(exchange, raised.session_id, raised.error)
        if following is not None:
            yield from following
    return Instead(raised.pieces, raised.rest, scan)


def _hinted_whole(notes: ResponseNotes, exchange: Exchange, frame: memoryview) -> Steps[Outcome]:
    """Look for errors in a response that was converted."""
    scan = FetchScan(exchange.policy.version)
    outcome = go_on(notes, exchange, scan, frame, len(frame))
    while scan.paused:
        yield
        outcome = go_on(notes, exchange, scan, frame, len(frame))
    if isinstance(outcome, InTurns):
        outcome = yield from outcome.begin(notes, exchange, frame, len(frame))
    return outcome if isinstance(outcome, Held | Failed) else Instead([frame])


def _lack(notes: ResponseNotes, names: Names) -> Steps[None]:
    """Take note of the ids without a name."""
    unknown = [topic for topic, _ in names.unknown]
    for begin in range(0, len(unknown), ENTRIES_AT_ONCE):
        if begin:
            yield
        notes.link.topic_ids.lack(unknown[begin : begin + ENTRIES_AT_ONCE])
