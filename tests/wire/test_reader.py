import tracemalloc
from collections.abc import Callable
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import readers, writers
from kio.serial.writers import Writer

from leader_hints.wire.errors import Malformed, Truncated, WireError
from leader_hints.wire.reader import Reader

Read = Callable[[Reader], object]


def _count(reader: Reader) -> int:
    return reader.array(1)


def _compact_count(reader: Reader) -> int:
    return reader.compact_array(1)


READS: dict[str, Read] = {
    "int8": Reader.int8,
    "int16": Reader.int16,
    "int32": Reader.int32,
    "uvarint": Reader.uvarint,
    "uuid": Reader.uuid,
    "string": Reader.string,
    "compact_string": Reader.compact_string,
    "clients_string": Reader.clients_string,
    "skip_compact": Reader.skip_compact,
    "array": _count,
    "compact_array": _compact_count,
    "skip_tags": Reader.skip_tags,
}


def _written(writer: Writer, value: object) -> bytes:  # type: ignore[type-arg]
    out = BytesIO()
    writer(out, value)
    return out.getvalue()


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@pytest.mark.parametrize(
    ("read", "write", "values"),
    [
        ("int8", writers.write_int8, _integers(8)),
        ("int16", writers.write_int16, _integers(16)),
        ("int32", writers.write_int32, _integers(32)),
        ("uvarint", writers.write_unsigned_varint, st.integers(0, 2**32 - 1)),
        ("string", writers.write_nullable_legacy_string, st.none() | st.text()),
        ("compact_string", writers.write_nullable_compact_string, st.none() | st.text()),
        ("clients_string", writers.write_nullable_compact_string, st.none() | st.text()),
    ],
)
def test_reads_what_kio_writes(
    read: str,
    write: Writer,  # type: ignore[type-arg]
    values: st.SearchStrategy[object],
) -> None:
    @given(values, st.binary(max_size=4), st.binary(max_size=4))
    def check(value: object, before: bytes, behind: bytes) -> None:
        raw = _written(write, value)
        reader = Reader(memoryview(before + raw + behind), len(before))
        assert READS[read](reader) == value
        assert reader.at == len(before) + len(raw)
        for end in range(len(raw)):
            with pytest.raises(Truncated):
                READS[read](Reader(raw, 0, end))

    check()


@given(st.uuids())
def test_reads_a_uuid_as_its_bytes(value: object) -> None:
    raw = _written(writers.write_uuid, value)
    assert readers.read_uuid(raw, 0) == (value, 16)
    assert Reader(raw).uuid() == raw


@given(st.none() | st.binary(max_size=300))
def test_passes_over_compact_bytes(value: bytes | None) -> None:
    raw = _written(writers.write_nullable_compact_string, value)
    reader = Reader(raw)
    reader.skip_compact()
    reader.done()


@given(st.dictionaries(st.integers(0, 2**31), st.binary(max_size=200), max_size=5))
def test_passes_over_tags(fields: dict[int, bytes]) -> None:
    out = BytesIO()
    writers.write_unsigned_varint(out, len(fields))  # type: ignore[arg-type]
    for tag, payload in sorted(fields.items()):
        writers.write_tagged_field(out, tag, lambda o, p: o.write(p), payload)  # type: ignore[arg-type]
    raw = out.getvalue()
    reader = Reader(raw)
    reader.skip_tags()
    reader.done()
    for end in range(len(raw)):
        with pytest.raises(Truncated):
            Reader(raw, 0, end).skip_tags()


@given(st.none() | st.integers(0, 40), st.integers(0, 50))
def test_counts_an_array_only_if_it_fits(count: int | None, room: int) -> None:
    pairs: list[tuple[bytes, Read]] = [
        (_written(writers.write_compact_array_length, count), _compact_count),
        (_written(writers.write_legacy_array_length, -1 if count is None else count), _count),
    ]
    for raw, read in pairs:
        frame = raw + bytes(room)
        if (count or 0) <= room:
            assert read(Reader(frame)) == (count or 0)
        else:
            with pytest.raises(Truncated):
                read(Reader(frame))


@given(st.sampled_from(sorted(READS)), st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_wire_error(read: str, raw: bytes) -> None:
    reader = Reader(raw)
    try:
        READS[read](reader)
    except WireError:
        return
    assert reader.at <= len(raw)


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        ("string", b"\x7f\xff"),
        ("compact_string", b"\xff\xff\xff\xff\x0f"),
        ("skip_compact", b"\xff\xff\xff\xff\x0f"),
        ("array", b"\x7f\xff\xff\xff"),
        ("compact_array", b"\xff\xff\xff\xff\x0f"),
        ("skip_tags", b"\x01\x00\xff\xff\xff\xff\x0f"),
    ],
)
def test_huge_sizes_are_refused_before_memory_is_taken(read: str, raw: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Truncated):
            READS[read](Reader(raw + bytes(8)))
        assert tracemalloc.get_traced_memory()[1] < 20_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("read", "raw"),
    [
        ("string", b"\xff\xfe"),
        ("string", b"\x00\x01\xff"),
        ("compact_string", b"\x02\xff"),
        ("compact_string", b"\x80\x80\x80\x80\x80\x80"),
        ("clients_string", b"\x81\x80\x02"),
        ("skip_tags", b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_what_no_further_byte_can_fix_is_malformed(read: str, raw: bytes) -> None:
    with pytest.raises(Malformed):
        READS[read](Reader(raw))


def test_the_longest_text_that_brokers_read_is_read() -> None:
    assert Reader(b"\x80\x80\x02" + b"a" * 32_767).clients_string() == "a" * 32_767


def test_a_negative_size_is_never_stepped_back() -> None:
    with pytest.raises(Malformed):
        Reader(b"abcd", 2).skip(-1)


def test_bytes_left_over_are_malformed() -> None:
    with pytest.raises(Malformed):
        Reader(b"ab", 1).done()


def test_nothing_is_read_behind_the_end() -> None:
    raw = bytes(range(1, 40))
    for read in READS.values():
        with pytest.raises(WireError):
            read(Reader(raw, 5, 5))


def test_a_tag_section_of_more_fields_than_any_message_has_is_refused() -> None:
    with pytest.raises(Malformed, match="11 tagged fields"):
        Reader(b"\x0b" + bytes(22)).skip_tags()
    reader = Reader(b"\x0a" + bytes(20))
    reader.skip_tags()
    assert reader.at == 21


def test_sections_of_more_fields_in_all_than_any_message_has_are_refused() -> None:
    reader = Reader((b"\x0a" + bytes(20)) * 10_001)
    for _ in range(10_000):
        reader.skip_tags()
    with pytest.raises(Malformed, match="100010 tagged fields"):
        reader.skip_tags()
