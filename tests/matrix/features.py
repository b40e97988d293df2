"""What is checked in every cell."""

from collections.abc import Mapping
from enum import StrEnum


class Feature(StrEnum):
    """Something that clients do, or that the proxy does for them."""

    ACKS_0 = "produce, acks=0"
    ACKS_1 = "produce, acks=1"
    ACKS_ALL = "produce, acks=all"
    IDEMPOTENT = "produce, idempotent"
    TRANSACTIONAL = "produce, transactional"
    GZIP = "produce, gzip"
    SNAPPY = "produce, snappy"
    LZ4 = "produce, lz4"
    ZSTD = "produce, zstd"
    ASSIGN = "consume, assigned"
    GROUP = "consume, group"
    READ_COMMITTED = "consume, read_committed"
    CLOSEST_REPLICA = "consume, closest replica"
    END_OFFSETS = "ListOffsets during moves"
    ADMIN = "admin calls"
    HINTS = "hints right"
    USE = "hints used as expected"


MEANINGS: Mapping[Feature, str] = {
    Feature.ACKS_0: "what arrived was sent, arrived once and in order",
    Feature.ACKS_1: "nothing acknowledged is lost but what a new leader never had",
    Feature.ACKS_ALL: "nothing acknowledged is lost",
    Feature.IDEMPOTENT: "all that was acknowledged is there once, in order, at the offset told",
    Feature.TRANSACTIONAL: "the same of what was committed; every third transaction is aborted",
    Feature.GZIP: "as acks=all, and every batch stands compressed so in the log",
    Feature.SNAPPY: "as gzip",
    Feature.LZ4: "as gzip",
    Feature.ZSTD: "as gzip",
    Feature.ASSIGN: "every record of the log was read once and in order",
    Feature.GROUP: "the same as a member of a group",
    Feature.READ_COMMITTED: "the same of what was committed, and nothing else",
    Feature.CLOSEST_REPLICA: "the same with client.rack set; a follower was fetched from (KIP-392)",
    Feature.END_OFFSETS: (
        "no partition's end went back (KIP-207); answers are the broker's bytes, errors 78 and 5 "
        "included"
    ),
    Feature.ADMIN: "create, describe, grow, read the settings of and delete a topic",
    Feature.HINTS: (
        "every hint named who led at that epoch, by the brokers' logs; every miss has a known "
        "reason; hints were given just where the client takes them and the broker gives none"
    ),
    Feature.USE: (
        "with its Metadata answers held back, the client went to the new leader just where it "
        "should"
    ),
}
