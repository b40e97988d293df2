"""Which responses are read, and by what.

The use is decided by the link's plan, client and mode, once for all responses of a kind
(:class:`leader_hints.core.versions.request_policy.ResponseUse`). A response is recoded if its
request went to the broker in another layout, whatever the use.
"""

from collections.abc import Mapping
from typing import NamedTuple

from leader_hints.apis.keys import ApiKey
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.responses import (
    addresses,
    api_versions_responses,
    fetch_responses,
    metadata_responses,
    outcome,
    produce_responses,
)
from leader_hints.core.responses.outcome import Outcome, Reader
from leader_hints.core.responses.passthrough_scan import PassthroughScan
from leader_hints.core.responses.response_notes import ResponseNotes


class Readers(NamedTuple):
    """What reads the responses of an API: by use, in the order of its numbers, or recoded.

    ``None``: they pass unread.
    """

    hints: Reader | None = None
    errors: Reader | None = None
    settling: Reader | None = None
    addresses: Reader | None = addresses.readdressed
    nothing: Reader | None = None
    recoded: Reader | None = None


def counted(
    notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int
) -> PassthroughScan | None:
    """Count errors as they pass."""
    return notes.passing(exchange, frame, length, exchange.policy.version)


def settled(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Have errors held until they are settled."""
    if exchange.policy.follows_session:
        following = fetch_responses.follow_session(notes, exchange, frame)
        if following is not None:
            return outcome.once_followed(following, _settling)
    return _settling(notes, exchange, frame, length)


def _settling(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    scan = notes.settling(exchange, frame, length)
    return scan and (outcome.settled(scan, frame) or scan)


BY_API: Mapping[int, Readers] = {
    ApiKey.PRODUCE: Readers(
        hints=produce_responses.hinted,
        errors=counted,
        settling=settled,
        recoded=produce_responses.recoded,
    ),
    ApiKey.FETCH: Readers(
        hints=fetch_responses.hinted,
        errors=counted,
        settling=settled,
        recoded=fetch_responses.recoded,
    ),
    ApiKey.METADATA: Readers(
        addresses=metadata_responses.with_addresses,
        nothing=metadata_responses.passed,
        recoded=metadata_responses.recoded,
    ),
    ApiKey.API_VERSIONS: Readers(
        addresses=api_versions_responses.read, nothing=api_versions_responses.read
    ),
}
OTHERS = Readers()


def reader_of(exchange: Exchange) -> Reader | None:
    """Return what reads the response of an exchange; ``None``: it passes unread."""
    readers = BY_API.get(exchange.policy.key, OTHERS)
    return readers.recoded if exchange.recoded else readers[exchange.policy.use]
