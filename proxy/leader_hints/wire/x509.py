"""When a certificate expires.

The standard library shows the dates of a peer's certificate, and none of one's own.
"""

from asn1crypto.x509 import Certificate

from leader_hints.wire.errors import WireError


def not_after(der: bytes) -> float:
    """Return when a certificate expires, in seconds since 1970, UTC.

    :raises WireError: it is not a certificate.
    """
    try:
        expires: float = Certificate.load(der, strict=True).not_valid_after.timestamp()
    except (ValueError, TypeError) as error:
        raise WireError(f"not a certificate: {error}") from None
    return expires
