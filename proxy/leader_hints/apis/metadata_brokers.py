"""The brokers in a Metadata response, which precede its topics in every version.

Response v0: brokers with node, host and port, then topics. v1 adds a rack. v3 adds throttle time
before them. v9: flexible. v13 (KIP-1102) adds an error code at the very end.
"""

from leader_hints.apis.address import ADDRESSES_AT_ONCE, Readdress, splice_address
from leader_hints.wire.reader import Reader
from leader_hints.wire.splice import Splice
from leader_hints.wire.steps import Steps

#: The versions that :func:`address_splices` knows.
VERSIONS = range(14)
_RACK_FROM, _THROTTLE_FROM, _FLEXIBLE_FROM = 1, 3, 9
#: Node, host and port at their shortest.
_SMALLEST = 9


def address_splices(frame: memoryview, version: int, readdress: Readdress) -> Steps[list[Splice]]:
    """Return the splices that change the addresses in a whole response, in steps.

    :raises WireError: the response is not well formed, up to its topics.
    """
    flexible = version >= _FLEXIBLE_FROM
    reader = Reader(frame, 8)
    if flexible:
        reader.skip_tags()
    if version >= _THROTTLE_FROM:
        reader.int32()
    count = reader.compact_array(_SMALLEST) if flexible else reader.array(_SMALLEST)
    splices = []
    for number in range(1, count + 1):
        if not number % ADDRESSES_AT_ONCE:
            yield
        splices += splice_address(reader, reader.int32(), readdress, flexible=flexible)
        if flexible:
            reader.skip_compact()
            reader.skip_tags()
        elif version >= _RACK_FROM:
            reader.string()
    return splices
