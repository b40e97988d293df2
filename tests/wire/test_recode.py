"""Values in both encodings, against the writers of kio."""

import struct
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import writers
from kio.static.primitive import uvarint

from leader_hints.wire import recode
from leader_hints.wire.errors import Malformed, Truncated
from leader_hints.wire.reader import Reader

_SHORT = st.text(max_size=8)
#: Around the sizes at which the length takes one more byte.
_LONG = st.sampled_from([126, 127, 128, 16382, 16383, 32767]).map("x".__mul__)
_STRINGS = st.one_of(st.none(), _SHORT, _LONG)
_COUNTS = st.one_of(st.integers(-1, 300), st.sampled_from([16382, 16383, 2**21, 2**27]))
_AROUND = st.binary(max_size=3)


def _compact(value: str | None) -> bytes:
    out = BytesIO()
    writers.write_nullable_compact_string(out, value)
    return out.getvalue()


def _old(value: str | None) -> bytes:
    out = BytesIO()
    writers.write_nullable_legacy_string(out, value)
    return out.getvalue()


def _varint(value: int) -> bytes:
    out = BytesIO()
    writers.write_unsigned_varint(out, uvarint(value))
    return out.getvalue()


@given(_STRINGS, _AROUND, _AROUND)
def test_a_compact_string_becomes_an_old_one(
    value: str | None, before: bytes, behind: bytes
) -> None:
    out, raw = bytearray(before), _compact(value)
    end = recode.string_to_old(out, before + raw + behind, len(before))
    assert (bytes(out), end) == (before + _old(value), len(before) + len(raw))


@given(_STRINGS, _AROUND, _AROUND)
def test_an_old_string_becomes_a_compact_one(
    value: str | None, before: bytes, behind: bytes
) -> None:
    out, raw = bytearray(before), _old(value)
    end = recode.string_to_compact(out, before + raw + behind, len(before))
    assert (bytes(out), end) == (before + _compact(value), len(before) + len(raw))


def test_a_string_that_is_too_long_for_the_old_encoding_is_refused() -> None:
    with pytest.raises(Malformed, match="32768 bytes"):
        recode.string_to_old(bytearray(), _varint(32769) + b"x" * 32768, 0)


@given(_COUNTS, _AROUND, _AROUND)
def test_a_count_becomes_an_old_one(count: int, before: bytes, behind: bytes) -> None:
    out, raw = bytearray(before), _varint(count + 1)
    read = recode.count_to_old(out, before + raw + behind, len(before))
    assert read == (count, len(before) + len(raw))
    assert bytes(out) == before + struct.pack(">i", count)


@given(_COUNTS, _AROUND, _AROUND)
def test_a_count_becomes_a_compact_one(count: int, before: bytes, behind: bytes) -> None:
    out = bytearray(before)
    read = recode.count_to_compact(out, before + struct.pack(">i", count) + behind, len(before))
    assert read == (count, len(before) + 4)
    assert bytes(out) == before + _varint(count + 1)


def test_a_count_below_null_becomes_null() -> None:
    out = bytearray()
    assert recode.count_to_compact(out, struct.pack(">i", -5), 0) == (-1, 4)
    assert out == b"\0"


@given(st.integers(0, 2**32 - 1), _AROUND, _AROUND)
def test_a_varint_is_read_where_it_stands(value: int, before: bytes, behind: bytes) -> None:
    raw = _varint(value)
    assert recode.uvarint(before + raw + behind, len(before)) == (value, len(before) + len(raw))


@given(st.dictionaries(st.integers(0, 300), st.binary(max_size=200), max_size=10), _AROUND, _AROUND)
def test_tagged_fields_are_passed_over(
    fields: dict[int, bytes], before: bytes, behind: bytes
) -> None:
    each = (_varint(tag) + _varint(len(data)) + data for tag, data in sorted(fields.items()))
    raw = _varint(len(fields)) + b"".join(each)
    buffer = before + raw + behind
    assert recode.past_tags(Reader(buffer), len(before)) == len(before) + len(raw)


def test_a_section_of_too_many_tagged_fields_is_refused() -> None:
    with pytest.raises(Malformed):
        recode.past_tags(Reader(_varint(1001) + b"\0\0" * 1001), 0)


@given(_STRINGS.filter(lambda value: value is not None), st.data())
def test_what_is_cut_short_is_noticed_by_its_end(value: str, data: st.DataObject) -> None:
    for raw, step in (
        (_compact(value), recode.string_to_old),
        (_old(value), recode.string_to_compact),
    ):
        cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
        try:
            end = step(bytearray(), cut, 0)
        except (IndexError, struct.error, Malformed, Truncated):
            continue
        assert end > len(cut)
