"""SaslHandshake: how a client announces its mechanism.

v0: the tokens that follow are length-prefixed but no Kafka requests (KIP-43): from there on
the stream cannot be read. v1 (KIP-152): the tokens travel in SaslAuthenticate requests.
Request: the mechanism. Response: error, and the mechanisms that the listener has enabled; none on
a listener without SASL.
"""

from proxy.wire.reader import Reader
from proxy.wire.writer import string

#: The version after which the stream holds bare tokens.
BARE_TOKENS_VERSION = 0
#: The version that :func:`write_request_body` and :func:`read_mechanisms` know.
VERSION = 1


def write_request_body(mechanism: str) -> bytes:
    """Return the body of a request for a mechanism."""
    return string(mechanism)


def read_mechanisms(reader: Reader) -> tuple[str, ...]:
    """Return the mechanisms that a response names, whatever its error.

    :raises WireError: the response is not well formed.
    """
    reader.int16()
    return tuple(reader.string() or "" for _ in range(reader.array(2)))
