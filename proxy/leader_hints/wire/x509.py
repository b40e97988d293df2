"""When a certificate expires: the one field of X.509 that is read here (RFC 5280, 4.1).

The standard library shows the dates of a peer's certificate, and none of one's own.
"""

from datetime import UTC, datetime
from typing import Final

from leader_hints.wire.errors import WireError

_SEQUENCE: Final = 0x30
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
#: In front of the serial number; left out in version 1.
_VERSION: Final = 0xA0
#: Serial number, signature algorithm and issuer stand in front of the validity.
_BEFORE_VALIDITY: Final = 3
#: UTCTime has two digits of the year: from this one on they mean 19xx.
_CENTURY: Final = 50
_LONG_FORM: Final = 0x80


def not_after(der: bytes) -> float:
    """Return when a certificate expires, in seconds since 1970, UTC.

    :raises WireError: it is no certificate.
    """
    try:
        certificate = _Der(der).inside(_SEQUENCE)
        body = certificate.inside(_SEQUENCE)
        if body.tag() == _VERSION:
            body.element()
        for _ in range(_BEFORE_VALIDITY):
            body.element()
        validity = body.inside(_SEQUENCE)
        validity.element()
        return _seconds(*validity.element())
    except (IndexError, ValueError) as error:
        raise WireError(f"not a certificate: {error}") from None


class _Der:
    """Elements of DER, one after the other: tag, length, content."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def tag(self) -> int:
        return self._data[self._at]

    def element(self) -> tuple[int, bytes]:
        tag, size, begin = self.tag(), self._data[self._at + 1], self._at + 2
        if size & _LONG_FORM:
            end = begin + (size & ~_LONG_FORM)
            size, begin = int.from_bytes(self._data[begin:end], "big"), end
        self._at = begin + size
        if self._at > len(self._data):
            raise ValueError("it is cut off")
        return tag, self._data[begin : self._at]

    def inside(self, wanted: int) -> "_Der":
        tag, content = self.element()
        if tag != wanted:
            raise ValueError("another structure")
        return _Der(content)


def _seconds(tag: int, content: bytes) -> float:
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if int(text[:2]) >= _CENTURY else "20") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("no date")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
