"""A virtual cluster's addresses in place of the brokers' in responses."""

from leader_hints.apis.keys import api_name
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.flow import Pieces
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.responses.outcome import (
    GATHER_ANYWAY,
    Fault,
    Instead,
    Outcome,
    read_in_turns,
)
from leader_hints.core.responses.response_notes import ResponseNotes
from leader_hints.core.versions.request_policy import RequestPolicy
from leader_hints.wire.errors import WireError
from leader_hints.wire.splice import spliced_in_steps
from leader_hints.wire.steps import Steps


def readdressed(
    notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int
) -> Outcome:
    """Put other addresses into a whole response."""
    if len(frame) < length:
        return GATHER_ANYWAY
    return read_in_turns(_readdressed, notes, exchange, frame, length)


def _readdressed(
    notes: ResponseNotes, exchange: Exchange, frame: memoryview, _: int
) -> Steps[Outcome]:
    policy = exchange.policy
    try:
        return Instead((yield from readdress(notes.link, policy, frame)))
    except WireError as error:
        # Nothing of it may go on: it has addresses.
        return Fault(f"{api_name(policy.key)} v{policy.version} response: {error}")


def readdress(link: LinkState, policy: RequestPolicy, frame: memoryview) -> Steps[Pieces]:
    """Return a response with other addresses, in steps.

    :raises WireError: it is not well formed.
    """
    rewriting = link.route.config.address_rewriting
    assert policy.rewriter is not None
    assert rewriting is not None
    splices = yield from policy.rewriter(frame, policy.version, rewriting.readdress)
    return (yield from spliced_in_steps(frame, splices))
