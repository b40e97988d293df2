"""One request that awaits its response."""

from proxy.core.named_fetch import NamedFetch


class Exchange:
    """What the response needs to know of its request.

    ``version`` is what the client asked, whatever was sent. ``hintable``: the client can use
    a hint in this response, so it must be looked at. ``request``: a copy of a Fetch request's
    frame, whose epochs are read only where a partition failed; ``None`` for other APIs and
    where it was too large to be kept. ``recoded``: the version sent, where its response must be
    brought up to the client's, else 0; ``named``: what that needs where topics go by id.
    """

    __slots__ = ("correlation_id", "hintable", "key", "named", "recoded", "request", "version")

    def __init__(
        self,
        correlation_id: int,
        key: int,
        version: int,
        hintable: bool = False,
        request: bytes | None = None,
        recoded: int = 0,
        named: NamedFetch | None = None,
    ) -> None:
        self.correlation_id = correlation_id
        self.key = key
        self.version = version
        self.hintable = hintable
        self.request = request
        self.recoded = recoded
        self.named = named
