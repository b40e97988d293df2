"""One request that awaits its response."""

from proxy.apis.metadata_older import AskedById
from proxy.core.named_fetch import NamedFetch
from proxy.core.reason import Reason


class Exchange:
    """What the response needs to know of its request.

    ``version`` is what the client asked, whatever was sent. ``hintable``: the client can use
    a hint in this response, so it must be looked at. ``unhinted``: why it gets none where it is
    not, and errors in it are counted; ``None``: nothing is counted. ``request``: a copy of a
    Fetch request's frame, whose epochs are read only where a partition failed; ``None`` for other
    APIs and where it was too large to be kept; only as much as had arrived, where nothing but
    who asks is of interest. ``recoded``: the version sent, where its response must be
    brought up to the client's, else 0; ``named`` (Fetch) and ``by_id`` (Metadata): what that
    needs where topics go by id.
    """

    __slots__ = (
        "by_id",
        "correlation_id",
        "hintable",
        "key",
        "named",
        "recoded",
        "request",
        "unhinted",
        "version",
    )

    def __init__(
        self,
        correlation_id: int,
        key: int,
        version: int,
        hintable: bool = False,
        request: bytes | None = None,
        recoded: int = 0,
        named: NamedFetch | None = None,
        unhinted: Reason | None = None,
        by_id: AskedById | None = None,
    ) -> None:
        self.correlation_id = correlation_id
        self.key = key
        self.version = version
        self.hintable = hintable
        self.request = request
        self.recoded = recoded
        self.named = named
        self.unhinted = unhinted
        self.by_id = by_id
