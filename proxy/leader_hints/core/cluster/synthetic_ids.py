"""Topic ids for clusters whose brokers have none (KIP-516).

An id follows from the cluster and the topic's name alone, so that every proxy before the cluster
makes the same one, today and in years. It is a UUID of version 8 (RFC 9562, section 5.8): Kafka
draws its own as version 4, and those that it reserves have no version, so none of them is ever met.
"""

from hashlib import sha256

#: Never to be changed: clients keep ids for as long as they run.
_PREFIX = b"kafka-leader-hints topic id\0"
_SIZE = 16


def synthetic_id(cluster_id: str, name: str) -> bytes:
    """Return the 16 bytes of a topic's id."""
    # A topic's name has no null byte, so the two cannot run into each other.
    digest = sha256(b"\0".join((_PREFIX + cluster_id.encode(), name.encode()))).digest()
    made = bytearray(digest[:_SIZE])
    made[6] = 0x80 | made[6] & 0x0F
    made[8] = 0x80 | made[8] & 0x3F
    return bytes(made)
