"""NodeEndpoints as brokers of 3.7 and newer give them in Produce 10 and Fetch 16 (KIP-951).

They stand in the response's last tag section, and only where a partition failed with
NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH. Records are passed over.
Produce 11 (KIP-890) and 12 have the response of 10; 13 has topic ids, which are not known here.
Fetch 17 (KIP-853) and 18 (KIP-1166) have the response of 16.
"""

from leader_hints.apis import produce
from leader_hints.apis.address import ADDRESSES_AT_ONCE, Readdress, splice_address
from leader_hints.apis.fetch_response import FetchScan, glance
from leader_hints.apis.leader_hint import NODE_ENDPOINTS_TAG
from leader_hints.wire.reader import Reader
from leader_hints.wire.splice import Splice
from leader_hints.wire.steps import Steps
from leader_hints.wire.tags import with_field
from leader_hints.wire.varint import write_uvarint

#: The versions of each API that have NodeEndpoints and are known here.
PRODUCE_VERSIONS, FETCH_VERSIONS = range(10, 13), range(16, 19)
#: Node, host, port, rack and tags at their shortest.
_SMALLEST = 11


def produce_splices(frame: memoryview, version: int, readdress: Readdress) -> Steps[list[Splice]]:
    """Return the splices that change the addresses in a whole Produce response, in steps.

    :raises WireError: the response is not well formed.
    """
    if produce.has_no_failure(frame):
        return []
    scanned = yield from produce.scan_in_steps(frame)
    return (yield from _section(frame, scanned.tags, scanned.tags_end, readdress))


def fetch_splices(frame: memoryview, version: int, readdress: Readdress) -> Steps[list[Splice]]:
    """Return the splices that change the addresses in a whole Fetch response, in steps.

    :raises WireError: the response is not well formed.
    """
    if glance(frame, version) is not None:
        return []
    scan = FetchScan(version)
    scan.advance(frame, len(frame), len(frame))
    while scan.paused:
        yield
        scan.advance(frame, len(frame), len(frame))
    if scan.scanned is None:
        return []
    return (yield from _section(frame, scan.scanned.tags, scan.scanned.tags_end, readdress))


def _section(frame: memoryview, start: int, end: int, readdress: Readdress) -> Steps[list[Splice]]:
    """Return the splice for the tag section that holds the endpoints, if it has any."""
    reader = Reader(frame, start, end)
    for _ in range(reader.uvarint()):
        tag, size = reader.uvarint(), reader.uvarint()
        at = reader.at
        reader.skip(size)
        if tag == NODE_ENDPOINTS_TAG:
            payload = yield from _rewritten(frame[at : reader.at], readdress)
            section = with_field(frame, start, end, NODE_ENDPOINTS_TAG, payload)
            return [Splice(start, end, section)]
    return []


def _rewritten(payload: memoryview, readdress: Readdress) -> Steps[bytes]:
    reader = Reader(payload)
    count = reader.compact_array(_SMALLEST)
    out = bytearray(write_uvarint(count + 1))
    for number in range(1, count + 1):
        if not number % ADDRESSES_AT_ONCE:
            yield
        at = reader.at
        node = reader.int32()
        splices = splice_address(reader, node, readdress, flexible=True)
        out += payload[at : at + 4]
        out += splices[0].replacement if splices else payload[at + 4 : reader.at]
        at = reader.at
        reader.skip_compact()
        reader.skip_tags()
        out += payload[at : reader.at]
    reader.done()
    return bytes(out)
