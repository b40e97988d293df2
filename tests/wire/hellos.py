"""First messages of TLS clients: as OpenSSL makes them, but for the groups in them.

Python's own way to choose a client's group knows few of them before 3.11.3.
"""

import ssl
from collections.abc import Sequence

_GROUPS, _SHARES = 10, 51
#: Record, message, version, random.
_BEFORE_SESSION = 5 + 4 + 34


def openssl_hello(newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """Return the first message of a client of OpenSSL with its defaults."""
    context = ssl.create_default_context()
    context.maximum_version = newest
    outgoing = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="proxy.example")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake needs an answer")


def with_groups(hello: bytes, groups: Sequence[int], shares: Sequence[int]) -> bytes:
    """Return a first message with other supported groups, and key shares of one byte each."""
    at = _BEFORE_SESSION
    for size in (1, 2, 1):
        # The session, the ciphers and the compressions.
        at += size + int.from_bytes(hello[at : at + size], "big")
    extensions, left = b"", hello[at + 2 :]
    while left:
        kind, end = int.from_bytes(left[:2], "big"), 4 + int.from_bytes(left[2:4], "big")
        if kind not in (_GROUPS, _SHARES):
            extensions += left[:end]
        left = left[end:]
    packed = b"".join(number.to_bytes(2, "big") for number in groups)
    extensions += _GROUPS.to_bytes(2, "big") + sized(sized(packed))
    packed = b"".join(number.to_bytes(2, "big") + sized(b"x") for number in shares)
    extensions += _SHARES.to_bytes(2, "big") + sized(sized(packed))
    body = hello[9:at] + sized(extensions)
    return hello[:3] + sized(hello[5:6] + len(body).to_bytes(3, "big") + body)


def sized(content: bytes) -> bytes:
    """Return bytes behind their length in two bytes."""
    return len(content).to_bytes(2, "big") + content
