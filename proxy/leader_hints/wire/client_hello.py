"""The first message of a TLS client, before OpenSSL has it: how long it is, and what it asks for.

RFC 8446: records (section 5.1), ClientHello (4.1.2), its supported groups (4.2.7) and key shares
(4.2.8). Every client sends it in one record.
"""

from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.reader import Reader

#: Bytes before the content of a record, and of a message.
_RECORD, _MESSAGE = 5, 4
_HEAD = _RECORD + _MESSAGE
_HANDSHAKE = 22
_CLIENT_HELLO = 1
#: What one record has room for. Those of clients have 0.3 to 2 KB; OpenSSL takes 131 KB, and gets
#: the memory as soon as that is claimed.
_LONGEST = 1 << 14
#: Sent before the second one by clients that want to look like those of TLS 1.2.
_CHANGE_CIPHER_SPEC = b"\x14\x03\x03\x00\x01\x01"
#: The server's random, where it asks for the message once more.
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
#: Version, random.
_BEFORE_SESSION = 34
_SUPPORTED_GROUPS, _KEY_SHARE = 10, 51
#: secp256r1, secp384r1, secp521r1, x25519, x448: a millisecond or two. Every client has one.
_CURVES = frozenset({23, 24, 25, 29, 30})
#: Over finite fields: with ffdhe8192 a key exchange takes the server a tenth of a second, and the
#: client nothing, if it makes up its share.
_FINITE_FIELDS = range(0x100, 0x200)


def missing(data: bytes) -> int:
    """Return how many bytes must be read at least until the message is whole; 0: it is.

    :raises Malformed: no such message begins so, or it is longer than any is.
    """
    if len(data) < len(_CHANGE_CIPHER_SPEC) and _CHANGE_CIPHER_SPEC.startswith(data):
        return _HEAD
    at = _begin(data)
    head = data[at : at + _HEAD]
    if head and (head[0] != _HANDSHAKE or (len(head) > _RECORD and head[_RECORD] != _CLIENT_HELLO)):
        raise Malformed("no ClientHello")
    if len(head) < _HEAD:
        return _HEAD - len(head)
    record, message = int.from_bytes(head[3:_RECORD], "big"), _length(head)
    if record > _LONGEST or _MESSAGE + message > record:
        raise Malformed(f"ClientHello of {message} bytes in a record of {record}")
    return max(at + _RECORD + record - len(data), 0)


def is_costly(data: bytes) -> bool:
    """Whether a whole message has the server compute over a finite field.

    :raises Malformed: it is not well formed.
    """
    at = _begin(data)
    body = Reader(data, at + _HEAD, at + _HEAD + _length(data[at:]))
    supported, shared = set[int](), set[int]()
    try:
        for kind, content in _extensions(body):
            if kind == _SUPPORTED_GROUPS:
                groups = _vector(content, 2)
                while groups.at < groups.end:
                    supported.add(groups.int16())
            elif kind == _KEY_SHARE:
                shares = _vector(content, 2)
                while shares.at < shares.end:
                    shared.add(shares.int16())
                    _vector(shares, 2)
    except Truncated as error:
        raise Malformed(f"ClientHello that is too short: {error}") from None
    if not shared.isdisjoint(_FINITE_FIELDS):
        return True
    return bool(supported) and supported.isdisjoint(_CURVES)


def is_asked_again(answer: bytes) -> bool:
    """Whether a server's answer has the client send the message once more."""
    return _RETRY in answer


def _begin(data: bytes) -> int:
    begun = len(_CHANGE_CIPHER_SPEC)
    return begun if data[:begun] == _CHANGE_CIPHER_SPEC else 0


def _length(head: bytes) -> int:
    return int.from_bytes(head[_RECORD + 1 : _HEAD], "big")


def _extensions(reader: Reader) -> list[tuple[int, Reader]]:
    reader.skip(_BEFORE_SESSION)
    for size in (1, 2, 1):
        # The session, the ciphers and the compressions.
        _vector(reader, size)
    found = []
    if reader.at < reader.end:
        extensions = _vector(reader, 2)
        while extensions.at < extensions.end:
            found.append((extensions.int16(), _vector(extensions, 2)))
    return found


def _vector(reader: Reader, size: int) -> Reader:
    """Pass over bytes whose length is in ``size`` bytes before them; return a reader of them."""
    length = int.from_bytes(reader.take(size), "big")
    at = reader.at
    reader.skip(length)
    return Reader(reader.buffer, at, reader.at)
