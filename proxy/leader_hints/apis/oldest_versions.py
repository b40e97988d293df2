"""The oldest version of each request that brokers take, by release (KIP-896).

Brokers before 3.7 take all; those of 3.7 to 3.9 do, too, and call deprecated what 4.0 refuses. An
API that is missing here is taken from version 0 on. APIs of brokers among themselves are left out.
Held against Kafka's own message definitions in ``tests/apis/test_oldest_versions.py``, and those of
each release in ``tests/real/test_message_definitions.py``.
"""

from collections.abc import Mapping
from typing import Final

#: By API key.
OLDEST_IN_4_0: Final[Mapping[int, int]] = {
    0: 3,  # Produce
    1: 4,  # Fetch
    2: 1,  # ListOffsets
    8: 2,  # OffsetCommit
    9: 1,  # OffsetFetch
    19: 2,  # CreateTopics
    20: 1,  # DeleteTopics
    23: 2,  # OffsetForLeaderEpoch
    29: 1,  # DescribeAcls
    30: 1,  # CreateAcls
    31: 1,  # DeleteAcls
    32: 1,  # DescribeConfigs
    34: 1,  # AlterReplicaLogDirs
    35: 1,  # DescribeLogDirs
    38: 1,  # CreateDelegationToken
    39: 1,  # RenewDelegationToken
    40: 1,  # ExpireDelegationToken
    41: 1,  # DescribeDelegationToken
}
#: Share groups were a preview in 4.0 (KIP-932).
OLDEST_IN_4_1: Final[Mapping[int, int]] = {
    **OLDEST_IN_4_0,
    76: 1,  # ShareGroupHeartbeat
    77: 1,  # ShareGroupDescribe
    78: 1,  # ShareFetch
    79: 1,  # ShareAcknowledge
}
#: By the first release that takes no older ones.
RELEASES: Final[Mapping[str, Mapping[int, int]]] = {
    "3.7": {},
    "4.0": OLDEST_IN_4_0,
    "4.1": OLDEST_IN_4_1,
}
#: The newest release that was looked at: it takes what the last of these takes.
NEWEST_RELEASE: Final = "4.3"
