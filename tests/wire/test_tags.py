import contextlib
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial.writers import write_tagged_field, write_unsigned_varint

from leader_hints.wire.errors import WireError
from leader_hints.wire.tags import with_field

_FIELDS = st.dictionaries(st.integers(0, 2**31), st.binary(max_size=150), max_size=6)


def _section(fields: dict[int, bytes]) -> bytes:
    out = BytesIO()
    write_unsigned_varint(out, len(fields))  # type: ignore[arg-type]
    for tag, payload in sorted(fields.items()):
        write_tagged_field(out, tag, lambda o, p: o.write(p), payload)  # type: ignore[arg-type]
    return out.getvalue()


@given(_FIELDS, st.integers(0, 3), st.binary(max_size=150), st.binary(max_size=3))
def test_sets_one_field_and_keeps_all_others_in_order(
    fields: dict[int, bytes], tag: int, payload: bytes, around: bytes
) -> None:
    section = _section(fields)
    frame = memoryview(around + section + around)
    result = with_field(frame, len(around), len(around) + len(section), tag, payload)
    assert result == _section({**fields, tag: payload})


def test_an_empty_section_gets_its_first_field() -> None:
    assert with_field(_section({}), 0, 1, 1, b"abc") == _section({1: b"abc"})


@given(_FIELDS)
def test_a_section_that_ends_elsewhere_is_refused(fields: dict[int, bytes]) -> None:
    section = _section(fields)
    for end in [*range(1, len(section)), len(section) + 1]:
        if section[:end] == b"\0":
            continue
        with pytest.raises(WireError):
            with_field(section + b"\0", 0, end, 0, b"x")


@given(st.binary(min_size=1, max_size=40))
def test_any_bytes_give_a_section_or_a_wire_error(raw: bytes) -> None:
    with contextlib.suppress(WireError):
        with_field(raw, 0, len(raw), 1, b"x")
