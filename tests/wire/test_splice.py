import struct

from hypothesis import given
from hypothesis import strategies as st

from leader_hints.wire.splice import Splice, spliced, spliced_in_steps
from leader_hints.wire.steps import ENTRIES_AT_ONCE, at_once


@st.composite
def _frames(draw: st.DrawFn) -> tuple[bytes, list[Splice]]:
    payload = draw(st.binary(max_size=60))
    cuts = sorted(draw(st.lists(st.integers(4, 4 + len(payload)), max_size=8).map(list)))
    splices = [
        Splice(start, end, draw(st.binary(max_size=6)))
        for start, end in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    return struct.pack(">i", len(payload)) + payload, splices


@given(_frames())
def test_replaces_each_stretch_and_corrects_the_size(case: tuple[bytes, list[Splice]]) -> None:
    frame, splices = case
    expected = bytearray(frame)
    for start, end, replacement in reversed(splices):
        expected[start:end] = replacement
    expected[:4] = struct.pack(">i", len(expected) - 4)
    assert b"".join(spliced(memoryview(frame), splices)) == expected


@given(_frames())
def test_copies_nothing_that_stays(case: tuple[bytes, list[Splice]]) -> None:
    frame, splices = case
    replacements = [splice.replacement for splice in splices]
    for piece in spliced(memoryview(frame), splices)[bool(splices) :]:
        if isinstance(piece, memoryview):
            assert piece.obj is frame
        else:
            assert piece in replacements


@given(
    st.integers(ENTRIES_AT_ONCE - 1, 3 * ENTRIES_AT_ONCE),
    st.binary(max_size=3),
    st.binary(max_size=3),
)
def test_many_splices_are_made_in_steps(count: int, replacement: bytes, behind: bytes) -> None:
    frame = bytes(4) + b"stay, go; " * count + behind
    splices = [Splice(at + 6, at + 8, replacement) for at in range(4, len(frame) - len(behind), 10)]
    pieces = at_once(spliced_in_steps(memoryview(frame), splices))
    assert b"".join(pieces) == b"".join(spliced(memoryview(frame), splices))
    assert len(pieces) <= 2 or count <= ENTRIES_AT_ONCE
