"""SaslAuthenticate: the tokens of a mechanism, after SaslHandshake v1 (KIP-152).

Request: a token. Response v0: error, its text, the broker's token. v1 (KIP-368): also for how long
the session holds. v2: flexible. Brokers of 2.2 and newer take v1.

Tested in ``tests/net/brokers/test_sasl.py``.
"""

import struct
from typing import NamedTuple

from leader_hints.wire.reader import Reader

#: The version that :func:`write_request_body` and :func:`read_response` know.
VERSION = 1

_SIZE = struct.Struct(">i")
_INT64_BYTES = 8


class Authenticated(NamedTuple):
    """An answer. ``lifetime_ms``: until the client must authenticate again; 0: it need not."""

    error: int
    message: str
    token: bytes
    lifetime_ms: int


def write_request_body(token: bytes) -> bytes:
    """Return the body of a request with the client's token."""
    return _SIZE.pack(len(token)) + token


def read_response(reader: Reader) -> Authenticated:
    """Read the answer at the reader's position, which is its body.

    :raises WireError: the response is not well formed.
    """
    error, message = reader.int16(), reader.string() or ""
    token = reader.take(reader.int32())
    lifetime = int.from_bytes(reader.take(_INT64_BYTES), "big", signed=True)
    return Authenticated(error, message, token, lifetime)
