"""Request and response headers.

Request header v1: key, version, correlation id, client id. v2 adds a tag section and is used by
flexible versions; the client id keeps the old string encoding (KIP-482).
Response header v0: correlation id. v1 adds a tag section and is used by flexible versions,
except for ApiVersions, whose answers always have v0 (KIP-511: the client does not know yet
which versions the broker speaks).
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from leader_hints.apis.keys import ApiKey
from leader_hints.wire.errors import Malformed
from leader_hints.wire.reader import LONGEST_TEXT, Reader
from leader_hints.wire.writer import frame, string

#: First version with the flexible encoding, for the APIs that the proxy reads or asks.
FLEXIBLE_FROM: Mapping[int, int] = {
    ApiKey.PRODUCE: 9,
    ApiKey.FETCH: 12,
    ApiKey.LIST_OFFSETS: 6,
    ApiKey.METADATA: 9,
    ApiKey.API_VERSIONS: 3,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: 0,
}

#: For the APIs that have no flexible version here.
_NEVER = 1 << 15

_REQUEST = struct.Struct(">hhi")
_INT16 = struct.Struct(">h")
#: The key's second byte: those with versions to be changed have no more.
_KEY_AT = 5
#: Behind size prefix, key, version and correlation id.
_CLIENT_ID_AT = 12
#: Bytes of a header that is written again: of a client id, and as many of tags, of which no version
#: has any.
_LONGEST = 2 * LONGEST_TEXT


class RequestHeader(NamedTuple):
    """What precedes a request's body. ``body`` is the position of the body."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: int


def read_request_header(frame: memoryview) -> RequestHeader:
    """Read the header of a whole or begun request; ``frame`` begins with the size prefix.

    :raises Truncated: the header goes on beyond ``frame``.
    """
    reader = Reader(frame, 4)
    key, version, correlation_id = reader.int16(), reader.int16(), reader.int32()
    size = reader.int16()
    # As brokers read it: any negative size is null, and bytes that are no text are no error.
    client_id = None if size < 0 else str(reader.take(size), errors="replace")
    if version >= FLEXIBLE_FROM.get(key, _NEVER):
        reader.skip_tags()
    return RequestHeader(key, version, correlation_id, client_id, reader.at)


def plain_body(frame: memoryview) -> int:
    """Return where the body of a flexible request begins if its header has no tags, else 0.

    That is what nearly all requests are; reading the header step by step costs several times as
    much. 0 also where the header has not arrived.
    """
    try:
        client_id: int = _INT16.unpack_from(frame, _CLIENT_ID_AT)[0]
        # Nearly always a name; a negative size other than -1 is read as -1 by brokers alone.
        tags = _CLIENT_ID_AT + 2 + client_id if client_id > 0 else _CLIENT_ID_AT + 2
        return 0 if frame[tags] or client_id < -1 else tags + 1
    except (struct.error, IndexError):
        return 0


def header_as(frame: memoryview, version: int) -> tuple[bytearray, int]:
    """Return a flexible request's header as another version has it, and where its body begins.

    Without the size prefix. Tags go where the version has none.

    :raises Truncated: the header goes on beyond ``frame``.
    :raises Malformed: it is longer than any.
    """
    body = plain_body(frame) or read_request_header(frame).body
    if body > _LONGEST:
        raise Malformed(f"header of {body} bytes")
    end = body
    if version < FLEXIBLE_FROM[frame[_KEY_AT]]:
        size: int = _INT16.unpack_from(frame, _CLIENT_ID_AT)[0]
        end = _CLIENT_ID_AT + 2 + max(size, 0)
    header = bytearray(frame[4:end])
    _INT16.pack_into(header, 2, version)
    return header, body


def request(key: ApiKey, version: int, correlation_id: int, client_id: str, body: bytes) -> bytes:
    """Return a whole request frame, size prefix included."""
    header = _REQUEST.pack(key, version, correlation_id) + string(client_id)
    if version >= FLEXIBLE_FROM.get(key, _NEVER):
        header += b"\0"
    return frame(header + body)


def response_body(key: ApiKey, version: int, payload: memoryview) -> Reader:
    """Return a reader at the body of a response whose ``payload`` begins at the correlation id.

    :raises Truncated: the header goes on beyond ``payload``.
    """
    reader = Reader(payload)
    reader.int32()
    if key is not ApiKey.API_VERSIONS and version >= FLEXIBLE_FROM.get(key, _NEVER):
        reader.skip_tags()
    return reader
