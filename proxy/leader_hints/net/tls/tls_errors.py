"""What went wrong with TLS, in words that say who is at fault.

Tested in ``tests/net/tls/test_tls.py``.
"""

import ssl
from typing import Final

_OUR_CERTIFICATE: Final = "does not trust the proxy's certificate"
_NO_PEER_CERTIFICATE: Final = "shows no certificate, and must"
#: By OpenSSL's reason. An alert is what the other side said; all else was found here.
_WORDS: Final = {
    "WRONG_VERSION_NUMBER": "speaks no TLS",
    "PACKET_LENGTH_TOO_LONG": "speaks no TLS",
    "RECORD_LAYER_FAILURE": "speaks no TLS, or breaks it",
    "HTTP_REQUEST": "speaks HTTP without TLS",
    "UNSUPPORTED_PROTOCOL": "speaks only versions of TLS that are too old",
    "VERSION_TOO_LOW": "speaks only versions of TLS that are too old",
    "TLSV1_ALERT_PROTOCOL_VERSION": "speaks none of the versions of TLS that are allowed here",
    "NO_SHARED_CIPHER": "knows none of the ciphers that are allowed here",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "refuses the handshake: it asks for a certificate, or knows "
    "none of the ciphers that are allowed here",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "asks for a certificate of the proxy",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": _NO_PEER_CERTIFICATE,
    "TLSV1_ALERT_UNKNOWN_CA": _OUR_CERTIFICATE,
    "SSLV3_ALERT_BAD_CERTIFICATE": _OUR_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _OUR_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": f"{_OUR_CERTIFICATE}: it has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": f"{_OUR_CERTIFICATE}: it is revoked",
    "UNEXPECTED_EOF_WHILE_READING": "ended the connection in the handshake",
}


def describe(error: BaseException | None) -> str:
    """Say what the other side did or lacks, as the end of a sentence that begins with it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        # Such as "certificate has expired", or for which host names it is not valid.
        message = error.verify_message.rstrip(".")
        return f"has a certificate that is not accepted: {message[:1].lower()}{message[1:]}"
    if isinstance(error, ssl.SSLError):
        reason = error.reason or str(error)
        return _WORDS.get(reason, f"broke off TLS ({reason.lower().replace('_', ' ')})")
    return f"broke the connection ({error})" if error else "broke the connection"
