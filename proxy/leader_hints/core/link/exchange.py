"""One request that awaits its response.

Tested in ``tests/core/link/test_link.py``.
"""

from leader_hints.apis.metadata_older import AskedById
from leader_hints.core.sessions.fetch_by_name import FetchByName
from leader_hints.core.versions.request_policy import RequestPolicy


class Exchange:
    """What the response needs to know of its request.

    ``policy``: what is done with all of its kind. ``request``: a copy of a Fetch request's frame,
    whose epochs are read only where a partition failed; ``None`` for other APIs and where it was
    too large to be kept; only as much as had arrived, where only the asking client is of interest.
    Its bytes are reserved of the budget until the response begins. ``recoded``: the version sent,
    where its response must be converted to the client's, else 0; ``by_name`` (Fetch) and ``by_id``
    (Metadata): what that needs where topics go by id; ``noted``: how many bytes that takes, which
    are reserved as those of the copy are.
    """

    __slots__ = ("by_id", "by_name", "correlation_id", "noted", "policy", "recoded", "request")

    def __init__(
        self,
        correlation_id: int,
        policy: RequestPolicy,
        request: bytes | None = None,
        recoded: int = 0,
    ) -> None:
        self.correlation_id = correlation_id
        self.policy = policy
        self.request = request
        self.recoded = recoded
        self.by_name: FetchByName | None = None
        self.by_id: AskedById | None = None
        self.noted = 0
