"""FindCoordinator: which broker looks after a group or a transaction.

Response v0: error, node, host, port. v1 adds throttle time and an error message before the node.
v3: flexible. v4 (KIP-699): an array of coordinators, each with its key. v5 and v6 are v4.
"""

from leader_hints.apis.address import ADDRESSES_AT_ONCE, Readdress, splice_address
from leader_hints.wire.reader import Reader
from leader_hints.wire.splice import Splice
from leader_hints.wire.steps import Steps

#: The versions that :func:`address_splices` knows.
VERSIONS = range(7)
_FLEXIBLE_FROM = 3
_BATCHED_FROM = 4
#: Key, node, host, port, error, message and tags at their shortest.
_SMALLEST = 14


def address_splices(frame: memoryview, version: int, readdress: Readdress) -> Steps[list[Splice]]:
    """Return the splices that change the addresses in a whole response, in steps.

    :raises WireError: the response is not well formed.
    """
    reader = Reader(frame, 8)
    if version >= _BATCHED_FROM:
        return (yield from _batched(reader, readdress))
    flexible = version >= _FLEXIBLE_FROM
    if flexible:
        reader.skip_tags()
    if version >= 1:
        reader.int32()
    reader.int16()
    if flexible:
        reader.skip_compact()
    elif version >= 1:
        reader.string()
    splices = splice_address(reader, reader.int32(), readdress, flexible=flexible)
    if flexible:
        reader.skip_tags()
    reader.done()
    return splices


def _batched(reader: Reader, readdress: Readdress) -> Steps[list[Splice]]:
    reader.skip_tags()
    reader.int32()
    splices = []
    for number in range(1, reader.compact_array(_SMALLEST) + 1):
        if not number % ADDRESSES_AT_ONCE:
            # A client may ask for thousands.
            yield
        reader.skip_compact()
        splices += splice_address(reader, reader.int32(), readdress, flexible=True)
        reader.int16()
        reader.skip_compact()
        reader.skip_tags()
    reader.skip_tags()
    reader.done()
    return splices
