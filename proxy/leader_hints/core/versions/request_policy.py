"""What is done with the requests of one API and version on one link.

Tested in ``tests/core/responses/test_response_table.py``.
"""

from enum import IntEnum

from leader_hints.apis.header import FLEXIBLE_FROM
from leader_hints.apis.keys import ApiKey
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.traffic_counters import Cell
from leader_hints.core.versions.address_rewriting import Rewriter

#: In place of the API key, where a client may not use it.
NOT_OFFERED = 1 << 16


class ResponseUse(IntEnum):
    """What a response that is not recoded is read for.

    ``HINTS``: errors that get a hint. ``ERRORS``: errors that are only counted. ``SETTLING``:
    errors that are to be settled. ``ADDRESSES``: those of brokers, which are replaced. ``NOTHING``:
    it passes; see :mod:`leader_hints.core.responses.response_table` for the APIs that are read
    anyway.
    """

    HINTS = 0
    ERRORS = 1
    SETTLING = 2
    ADDRESSES = 3
    NOTHING = 4


class RequestPolicy:
    """Decided once for all such requests; see
    :meth:`leader_hints.core.link.request_policies.RequestPolicies.decide`.

    ``key`` and ``version``: as the client asks. ``sent``: the version that goes to the broker;
    ``recoded``: requests need more than that number changed. ``hintable``: the client can use a
    hint in the response, so it must be looked at. ``unhinted``: why it gets none where it is not,
    and errors in it are counted; ``None``: nothing is counted. ``follows_session``: it is a Fetch
    whose leader epochs are needed, and can be read. ``cell``: where they are counted.
    ``rackless``: what is done in its place where a consumer names no rack; ``None``: the same.
    ``rewriter``: what puts a virtual cluster's addresses into the responses. ``use``: what the
    responses are read for, as an int, by which a table is faster. ``unreadable``: one of the
    requests did not say in a known form who the client is, so none is looked at for that.
    ``noted``: that such a request is answered has been noted. ``places``: consumers among those who
    ask may be sent to another replica.
    """

    __slots__ = (
        "cell",
        "follows_session",
        "hintable",
        "key",
        "noted",
        "places",
        "rackless",
        "recoded",
        "rewriter",
        "sent",
        "unhinted",
        "unreadable",
        "use",
        "version",
    )

    def __init__(
        self,
        key: int,
        version: int,
        cell: Cell,
        *,
        sent: int,
        recoded: bool = False,
        hintable: bool = False,
        unhinted: MissReason | None = None,
        settles: bool = False,
        rewriter: Rewriter | None = None,
        places: bool = False,
    ) -> None:
        self.key = key
        self.version = version
        self.cell = cell
        self.sent = sent
        self.recoded = recoded
        self.hintable = hintable
        self.unhinted = unhinted
        readable = key == ApiKey.FETCH and version >= FLEXIBLE_FROM[ApiKey.FETCH]
        self.follows_session = readable and (hintable or settles)
        self.rackless: RequestPolicy | None = None
        self.rewriter = rewriter
        self.use = int(_use(hintable, unhinted, settles, rewriter))
        self.unreadable = False
        self.places = places
        self.noted = False


def _use(
    hintable: bool, unhinted: MissReason | None, settles: bool, rewriter: Rewriter | None
) -> ResponseUse:
    if hintable:
        return ResponseUse.HINTS
    if settles:
        return ResponseUse.SETTLING
    if unhinted is not None:
        return ResponseUse.ERRORS
    return ResponseUse.NOTHING if rewriter is None else ResponseUse.ADDRESSES
