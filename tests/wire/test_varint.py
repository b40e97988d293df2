from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial.readers import read_unsigned_varint
from kio.serial.writers import write_unsigned_varint
from kio.static.primitive import uvarint

from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.varint import MAX_BYTES, read_uvarint, write_uvarint

_VALUES = st.one_of(
    st.integers(0, 2**32 - 1),
    st.sampled_from([2 ** (7 * n) + d for n in range(1, 5) for d in (-1, 0, 1)]),
)


def _kio(value: int) -> bytes:
    out = BytesIO()
    write_unsigned_varint(out, uvarint(value))
    return out.getvalue()


@given(_VALUES)
def test_is_written_as_kio_writes_it(value: int) -> None:
    assert write_uvarint(value) == _kio(value)


@given(_VALUES, st.binary(max_size=3), st.binary(max_size=3))
def test_is_read_where_it_stands(value: int, before: bytes, behind: bytes) -> None:
    raw = _kio(value)
    frame = before + raw + behind
    assert read_uvarint(frame, len(before), len(frame)) == (value, len(before) + len(raw))


@given(st.integers(0, 2**31 - 1), st.integers(0, MAX_BYTES - 1))
def test_padded_forms_are_read_as_kio_reads_them(value: int, padding: int) -> None:
    raw = bytearray(_kio(value))
    while len(raw) < MAX_BYTES and padding:
        raw[-1] |= 0x80
        raw.append(0)
        padding -= 1
    assert read_uvarint(raw, 0, len(raw)) == (value, len(raw))
    assert read_unsigned_varint(bytes(raw), 0) == (value, len(raw))


@given(_VALUES)
def test_every_beginning_is_truncated(value: int) -> None:
    raw = _kio(value)
    for end in range(len(raw)):
        with pytest.raises(Truncated):
            read_uvarint(raw, 0, end)


@pytest.mark.parametrize(
    "raw",
    [b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80", b"\x80\x80\x80\x80\x80\x00", b"\xff" * 9],
)
def test_more_than_32_bits_are_malformed(raw: bytes) -> None:
    with pytest.raises(Malformed):
        read_uvarint(raw, 0, len(raw))
