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
    Feature.ACKS_0: "every record in the log was sent, is there once and in order",
    Feature.ACKS_1: "no acknowledged record is lost, except those that a new leader never had",
    Feature.ACKS_ALL: "no acknowledged record is lost",
    Feature.IDEMPOTENT: (
        "every acknowledged record is in the log once, in order, at the reported offset; of "
        "librdkafka once in its last producer epoch (docs/design.md)"
    ),
    Feature.TRANSACTIONAL: "the same for committed records; every third transaction is aborted",
    Feature.GZIP: "as acks=all, and every batch in the log has this compression",
    Feature.SNAPPY: "as gzip",
    Feature.LZ4: "as gzip",
    Feature.ZSTD: "as gzip",
    Feature.ASSIGN: "every record of the log was read once and in order",
    Feature.GROUP: "the same as a member of a group",
    Feature.READ_COMMITTED: "the same for committed records, and no other record was read",
    Feature.CLOSEST_REPLICA: (
        "the same with client.rack set; the client fetched from a follower (KIP-392)"
    ),
    Feature.END_OFFSETS: (
        "no partition's end offset went back (KIP-207); answers are the broker's bytes, "
        "including errors 78 and 5"
    ),
    Feature.ADMIN: "create a topic, describe it, add partitions, read its settings, delete it",
    Feature.HINTS: (
        "every hint named the leader of that epoch, by the brokers' logs; every error without a "
        "hint has a known reason; hints were given exactly where the client uses them and the "
        "broker gives none"
    ),
    Feature.USE: (
        "with its Metadata responses held back, the client went to the new leader exactly where "
        "it should"
    ),
}
