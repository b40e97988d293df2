"""What is done with the requests of one API and version on one link."""

from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.traffic_counters import Cell
from leader_hints.core.versions.address_rewriting import Rewriter

#: In place of the API key, where a client may not use it.
NOT_OFFERED = 1 << 16


class RequestPolicy:
    """Decided once for all such requests; see
    :meth:`leader_hints.core.link.link_state.LinkState.decide`.

    ``key`` and ``version``: as the client asks. ``sent``: the version that goes to the broker;
    ``recoded``: requests need more than that number changed. ``hintable``: the client can use a
    hint in the response, so it must be looked at. ``unhinted``: why it gets none where it is not,
    and errors in it are counted; ``None``: nothing is counted. ``cell``: where they are counted.
    ``rackless``: what is done in its place where a consumer names no rack; ``None``: the same.
    ``rewriter``: what puts a virtual cluster's addresses into the responses. ``unreadable``: one
    of them did not say in a known form who the client is, so none is looked at for that.
    """

    __slots__ = (
        "cell",
        "hintable",
        "key",
        "rackless",
        "recoded",
        "rewriter",
        "sent",
        "unhinted",
        "unreadable",
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
    ) -> None:
        self.key = key
        self.version = version
        self.cell = cell
        self.sent = sent
        self.recoded = recoded
        self.hintable = hintable
        self.unhinted = unhinted
        self.rackless: RequestPolicy | None = None
        self.rewriter: Rewriter | None = None
        self.unreadable = False
