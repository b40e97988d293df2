"""SaslHandshake: how a client announces its mechanism.

v0: the tokens that follow are length-prefixed but no Kafka requests (KIP-43): from there on
the stream cannot be read. v1 (KIP-152): the tokens travel in SaslAuthenticate requests.
Request: the mechanism. Response: error, and the mechanisms that the listener has enabled; none on
a listener without SASL.
"""

from typing import NamedTuple

from leader_hints.wire.errors import Malformed
from leader_hints.wire.reader import Reader
from leader_hints.wire.writer import string

#: The version after which the stream holds bare tokens.
BARE_TOKENS_VERSION = 0
#: The version that :func:`write_request_body` and :func:`read_response` know.
VERSION = 1

#: More than there are.
_MOST = 100


class Offered(NamedTuple):
    """An answer: the error, and which mechanisms the listener has."""

    error: int
    mechanisms: tuple[str, ...]


def write_request_body(mechanism: str) -> bytes:
    """Return the body of a request for a mechanism."""
    return string(mechanism)


def read_response(reader: Reader) -> Offered:
    """Read the answer at the reader's position, which is its body.

    :raises WireError: the response is not well formed, or has very many mechanisms.
    """
    error, count = reader.int16(), reader.array(2)
    if count > _MOST:
        raise Malformed(f"{count} mechanisms")
    return Offered(error, tuple(reader.string() or "" for _ in range(count)))
