import struct

from hypothesis import given
from hypothesis import strategies as st

from leader_hints.wire.splice import Splice, spliced


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
