"""DescribeCluster (KIP-700): the brokers of a cluster, for admin clients.

Response v0, always flexible: throttle time, error, message, cluster id, controller id, brokers. v1
(KIP-919) adds the endpoint type before the cluster id. v2 (KIP-1073) says of each broker whether
it is fenced.
"""

from leader_hints.apis.address import ADDRESSES_AT_ONCE, Readdress, splice_address
from leader_hints.wire.reader import Reader
from leader_hints.wire.splice import Splice
from leader_hints.wire.steps import Steps

#: The versions that :func:`address_splices` knows.
VERSIONS = range(3)
_ENDPOINT_TYPE_FROM, _FENCED_FROM = 1, 2
#: Node, host, port, rack and tags at their shortest.
_SMALLEST = 11


def address_splices(frame: memoryview, version: int, readdress: Readdress) -> Steps[list[Splice]]:
    """Return the splices that change the addresses in a whole response, in steps.

    :raises WireError: the response is not well formed.
    """
    reader = Reader(frame, 8)
    reader.skip_tags()
    reader.skip(6)
    reader.skip_compact()
    if version >= _ENDPOINT_TYPE_FROM:
        reader.int8()
    reader.skip_compact()
    reader.int32()
    splices = []
    for number in range(1, reader.compact_array(_SMALLEST) + 1):
        if not number % ADDRESSES_AT_ONCE:
            yield
        splices += splice_address(reader, reader.int32(), readdress, flexible=True)
        reader.skip_compact()
        if version >= _FENCED_FROM:
            reader.int8()
        reader.skip_tags()
    reader.int32()
    reader.skip_tags()
    reader.done()
    return splices
