"""What brokers of each release take: a table, read from the releases' message definitions."""

from collections.abc import Mapping
from typing import Final, NamedTuple

PRODUCE, FETCH, LIST_OFFSETS, METADATA, JOIN_GROUP, API_VERSIONS = 0, 1, 2, 3, 11, 18


class Release(NamedTuple):
    """``maxima``: by API key. ``ids``: Metadata has topic ids, if the cluster has them.
    ``not_available``: where a follower may answer, a broker without a replica answers
    REPLICA_NOT_AVAILABLE.
    """

    name: str
    maxima: Mapping[int, int]
    ids: bool
    not_available: bool


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
    # Brokers that take JoinGroup 7 answer NOT_LEADER_OR_FOLLOWER.
    return Release(name, maxima, metadata >= 10, join < 7)


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
    )
}
