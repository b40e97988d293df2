"""What brokers of each release take: a table, read from the releases' message definitions."""

from collections.abc import Mapping
from typing import Final, NamedTuple

PRODUCE, FETCH, LIST_OFFSETS, METADATA, JOIN_GROUP, API_VERSIONS = 0, 1, 2, 3, 11, 18
#: DescribeQuorum: brokers of KRaft clusters alone take it.
DESCRIBE_QUORUM = 55


class Release(NamedTuple):
    """``maxima``: by API key. ``ids``: Metadata has topic ids, if the cluster has them.
    ``not_available``: where a follower may answer, a broker without a replica answers
    REPLICA_NOT_AVAILABLE. ``hints``: it gives hints itself (KIP-951).
    Of a partition without a leader, Metadata has an epoch where ``leaderless_epochs``; the error is
    LISTENER_NOT_FOUND where ``blames_listener`` (MetadataCache.getPartitionMetadata looks whether
    the broker itself is there, and not whether the leader is). ``forgets_epochs``: what is
    remembered in a fetch session has no leader epochs (KAFKA-9338).
    """

    name: str
    maxima: Mapping[int, int]
    ids: bool
    not_available: bool
    hints: bool
    leaderless_epochs: bool
    blames_listener: bool
    forgets_epochs: bool


def _release(
    name: str, produce: int, fetch: int, offsets: int, metadata: int, join: int
) -> Release:
    maxima = {
        PRODUCE: produce,
        FETCH: fetch,
        LIST_OFFSETS: offsets,
        METADATA: metadata,
        JOIN_GROUP: join,
        API_VERSIONS: 3,
    }
    # 2.5 brought JoinGroup 7, NOT_LEADER_OR_FOLLOWER for followers, and epochs without leaders.
    return Release(
        name,
        maxima,
        ids=metadata >= 10,
        not_available=join < 7,
        hints=produce >= 10,
        leaderless_epochs=join >= 7,
        # 2.7 brought Fetch 12, and looks for the leader.
        blames_listener=fetch < 12,
        forgets_epochs=join < 7,
    )


RELEASES: Final = {
    release.name: release
    for release in (
        _release("2.4", 8, 11, 5, 9, 6),
        _release("2.6", 8, 11, 5, 9, 7),
        _release("2.7", 8, 12, 5, 9, 7),
        _release("2.8", 9, 12, 6, 11, 7),
        _release("3.0", 9, 12, 7, 11, 7),
        _release("3.3", 9, 13, 7, 12, 9),
        _release("3.6", 9, 15, 8, 12, 9),
        _release("3.7", 10, 16, 8, 12, 9),
    )
}
