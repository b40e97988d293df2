from leader_hints.net.journal.line_buffer import LineBuffer


def test_the_oldest_lines_stay_until_they_are_removed() -> None:
    buffer = LineBuffer(1000)
    for line in (b"one", b"two", b"three"):
        buffer.append(line)

    assert buffer.oldest(6) == buffer.oldest(7) == [b"one", b"two"]
    assert len(buffer) == 3

    buffer.remove([b"one", b"two"])

    assert buffer.oldest(1000) == [b"three"]


def test_a_full_buffer_has_room_for_one_more_line_of_the_writers_own() -> None:
    buffer = LineBuffer(200)
    buffer.append(bytes(35))
    assert not buffer.half_full
    buffer.append(bytes(35))
    assert buffer.half_full
    assert not buffer.full
    buffer.append(bytes(35))
    assert buffer.full

    buffer.append(b"a gap")
    assert len(buffer) == 4

    buffer.remove(buffer.oldest(1000))
    assert not buffer.half_full
