from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial.writers import (
    write_legacy_bytes,
    write_nullable_compact_string,
    write_nullable_legacy_string,
)

from leader_hints.wire import writer
from leader_hints.wire.errors import Malformed


@given(st.none() | st.text())
def test_strings_are_as_kio_writes_them(text: str | None) -> None:
    old, compact = BytesIO(), BytesIO()
    write_nullable_legacy_string(old, text)
    write_nullable_compact_string(compact, text)
    assert writer.string(text) == old.getvalue()
    assert writer.compact_string(text) == compact.getvalue()


@given(st.binary())
def test_a_frame_is_its_size_and_its_payload(payload: bytes) -> None:
    out = BytesIO()
    write_legacy_bytes(out, payload)
    assert writer.frame(payload) == out.getvalue()


def test_a_string_longer_than_16_bits_say_is_refused() -> None:
    assert len(writer.string("x" * 32_767)) == 32_769
    with pytest.raises(Malformed):
        writer.string("x" * 32_768)
