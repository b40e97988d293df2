"""One request that awaits its response."""


class Exchange:
    """What the response needs to know of its request.

    ``version`` is what the client asked, whatever was sent. ``hintable``: the client can use
    a hint in this response, so it must be looked at. ``request``: a copy of a Fetch request's
    frame, whose epochs are read only where a partition failed; ``None`` for other APIs and
    where it was too large to be kept.
    """

    __slots__ = ("correlation_id", "hintable", "key", "request", "version")

    def __init__(
        self,
        correlation_id: int,
        key: int,
        version: int,
        hintable: bool = False,
        request: bytes | None = None,
    ) -> None:
        self.correlation_id = correlation_id
        self.key = key
        self.version = version
        self.hintable = hintable
        self.request = request
