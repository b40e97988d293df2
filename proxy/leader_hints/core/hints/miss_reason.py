"""Why an error response went on without a hint for a partition, and whether it was settled.

Tested in ``tests/docs/test_troubleshooting.py``.
"""

from enum import StrEnum


class MissReason(StrEnum):
    """The hold queue decides the first ones; the others never reach it.

    ``VERSION_WITHOUT_FIELD``: the version asked has no place for a hint.
    ``NOT_USABLE_BY_CLIENT``: it has one, but this client breaks at it or looks past it.
    ``NOT_AUTHORIZED``: brokers hide the topic from the proxy's own principal.
    ``REPLICA``: a follower asked. ``BUDGET``: the response is too large to be kept
    back, or as much is kept back as may be.
    """

    NO_FRESHER_VIEW = "no_fresher_view"
    NOT_AUTHORIZED = "not_authorized"
    HOLD_EXPIRED = "hold_expired"
    LEADER_NOT_READY = "leader_not_ready"
    LINK_HOLD_SPENT = "link_hold_spent"
    NO_LEADER = "no_leader"
    NO_ENDPOINT = "no_endpoint"
    HINTS_OFF = "hints_off"
    VERSION_WITHOUT_FIELD = "version_without_field"
    NOT_USABLE_BY_CLIENT = "not_usable_by_client"
    REPLICA = "replica"
    BUDGET = "budget"


class Settling(StrEnum):
    """What came of an error to a client without hints that waited to be settled.

    A :class:`MissReason` in its place: why it was not settled. ``METADATA_BEHIND``: the leader was
    known, and a broker did not name it in time.
    """

    SETTLED = "settled"
    METADATA_BEHIND = "metadata_behind"
