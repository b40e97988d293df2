"""When a certificate expires, against the cryptography library that made it."""

import contextlib
import random
import ssl
from datetime import UTC, datetime

import pytest
import trustme
from cryptography import x509

from leader_hints.wire.errors import WireError
from leader_hints.wire.x509 import not_after

_AUTHORITY = trustme.CA()


def _issue(until: datetime | None = None, *, key: trustme.KeyType = trustme.KeyType.ECDSA) -> bytes:
    issued = _AUTHORITY.issue_cert("proxy.example", not_after=until, key_type=key)
    return ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())


@pytest.mark.parametrize(
    "until",
    [
        datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        # From here on the year has four digits (RFC 5280, 4.1.2.5).
        datetime(2050, 1, 1, tzinfo=UTC),
        datetime(2199, 1, 1, tzinfo=UTC),
    ],
)
def test_the_end_is_the_one_that_was_asked_for(until: datetime) -> None:
    assert not_after(_issue(until)) == until.timestamp()


@pytest.mark.parametrize("key", trustme.KeyType)
def test_it_is_what_the_oracle_reads(key: trustme.KeyType) -> None:
    der = _issue(key=key)

    assert not_after(der) == x509.load_der_x509_certificate(der).not_valid_after_utc.timestamp()


def test_what_is_no_certificate_is_refused_and_nothing_else_happens() -> None:
    der, chance = _issue(), random.Random(7)
    head = der.index(b"\x17") + 40
    for end in range(len(der)):
        with pytest.raises(WireError):
            not_after(der[:end])
    for _ in range(5000):
        wrong = bytearray(der)
        wrong[chance.randrange(head)] = chance.randrange(256)
        with contextlib.suppress(WireError):
            assert isinstance(not_after(bytes(wrong)), float)
