"""Error codes that the proxy acts upon. It never changes one."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """As org.apache.kafka.common.protocol.Errors numbers them."""

    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    TOPIC_AUTHORIZATION_FAILED = 29
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNKNOWN_TOPIC_ID = 100


#: The errors with which a native broker names the new leader (KIP-951, Public Interfaces).
#: UNKNOWN_LEADER_EPOCH is not among them: there the client knows more than the broker.
HINTABLE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
