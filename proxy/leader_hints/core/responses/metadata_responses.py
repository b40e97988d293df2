"""Metadata responses: read for the view in passing, recoded, or with other addresses.

Tested in ``tests/core/link/test_link_synthetic_ids.py``.
"""

from leader_hints.apis import metadata, metadata_older
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.responses.addresses import readdress, readdressed
from leader_hints.core.responses.outcome import (
    GATHER_ANYWAY,
    Fault,
    Instead,
    Outcome,
    read_in_turns,
)
from leader_hints.core.responses.response_notes import ResponseNotes
from leader_hints.wire.errors import WireError
from leader_hints.wire.steps import Steps

_SIZE_PREFIX = 4
#: Largest Metadata response that is read besides being passed on: some 1500 partitions,
#: so that reading never stops the event loop for long. The subscription reads larger ones.
_SNOOPED = 65_536
#: Metadata responses of one step that are read. Clients ask for one at a time; one that asks for
#: hundreds would have all of them read while others wait.
_SNOOPED_AT_ONCE = 8


def passed(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Keep a copy for the view."""
    if len(frame) == length:
        _snoop(notes.link, exchange.policy.version, frame)
    return None


def with_addresses(
    notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int
) -> Outcome:
    """Keep a copy for the view, and put other addresses into the response."""
    passed(notes, exchange, frame, length)
    return readdressed(notes, exchange, frame, length)


def recoded(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Convert a whole response to the client's version, with the ids of its topics."""
    if len(frame) < length:
        return GATHER_ANYWAY
    return read_in_turns(_recoded, notes, exchange, frame, length)


def _recoded(notes: ResponseNotes, exchange: Exchange, frame: memoryview, _: int) -> Steps[Outcome]:
    link, policy = notes.link, exchange.policy
    assert exchange.by_id is not None

    def make_id(cluster_id: str, name: str) -> bytes:
        view = link.route.broker.view
        if view is not None and view.cluster_id == cluster_id:
            return view.topics.synthesize_id(name)
        return synthetic_id(cluster_id, name)

    try:
        pieces = yield from metadata_older.response_up(
            frame, exchange.recoded, policy.version, exchange.by_id, make_id
        )
        if policy.rewriter is not None:
            pieces = yield from readdress(link, policy, memoryview(b"".join(pieces)))
    except (WireError, KeyError) as error:
        return Fault(f"Metadata v{exchange.recoded} response: {error}")
    # Not before the last step, since the first one may be done twice.
    _snoop(link, exchange.recoded, frame)
    if not metadata_older.is_refusal(frame):
        link.topic_ids.lack(exchange.by_id.unknown)
    return Instead(pieces)


def _snoop(link: LinkState, version: int, frame: memoryview) -> None:
    room = _SNOOPED - sum(len(payload) for _, payload in link.snooped)
    if len(link.snooped) >= _SNOOPED_AT_ONCE or len(frame) > room:
        return
    if metadata.OLDEST <= version <= metadata.NEWEST:
        link.snooped.append((version, bytes(frame[_SIZE_PREFIX:])))
