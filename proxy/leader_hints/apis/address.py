"""A broker's address in responses: host and port, one after the other, after the node id.

Five APIs tell clients where brokers are: Metadata, FindCoordinator and DescribeCluster always,
Produce 10 and Fetch 16 in the NodeEndpoints of KIP-951. What stands around an address is never
touched.

Tested in ``tests/apis/test_metadata_brokers.py``.
"""

import struct
from collections.abc import Callable

from leader_hints.wire.reader import Reader
from leader_hints.wire.splice import Splice
from leader_hints.wire.writer import compact_string, string

_PORT = struct.Struct(">i")
#: Addresses that one step replaces, with what stands around them, field by field.
ADDRESSES_AT_ONCE = 50

#: Returns the host and port that are to stand in place of a node's own.
Readdress = Callable[[int, str, int], tuple[str, int]]


def splice_address(
    reader: Reader, node: int, readdress: Readdress, *, flexible: bool
) -> list[Splice]:
    """Read the address at the reader's position; return what is to stand there instead.

    Nothing where no broker is meant: a coordinator that is not available is node -1, without a
    host.

    :raises WireError: the address is not well formed.
    """
    start = reader.at
    host = reader.compact_string() if flexible else reader.string()
    port = reader.int32()
    if node < 0 or not host:
        return []
    new_host, new_port = readdress(node, host, port)
    text = compact_string(new_host) if flexible else string(new_host)
    return [Splice(start, reader.at, text + _PORT.pack(new_port))]
