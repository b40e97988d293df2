"""Memory that is used again: by nobody else while it is viewed, and not kept for long."""

import errno
import mmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.link.frame_memory import FrameMemory

_KB = 1024
_MOST = 4096 * _KB


def test_memory_is_given_out_again_once_no_view_is_left() -> None:
    memory = FrameMemory(_MOST)
    first = memory.take(64 * _KB, 64 * _KB)
    whole = memoryview(first)
    part = whole[10:20]
    whole.release()
    assert memory.take(64 * _KB, 64 * _KB) is not first
    part.release()
    assert memory.take(64 * _KB, 64 * _KB) is first
    assert len(first) == 64 * _KB


def test_the_smallest_is_taken_that_holds_the_whole_frame_or_else_the_largest() -> None:
    memory = FrameMemory(_MOST)
    sizes = [1024 * _KB, 512 * _KB, 256 * _KB, 128 * _KB]
    taken = [memory.take(size, size) for size in sizes]
    viewed = [memoryview(each) for each in taken]
    more = [memory.take(size, size) for size in sizes]
    assert not {id(each) for each in taken} & {id(each) for each in more}
    for view in viewed:
        view.release()
    assert memory.take(64 * _KB, 200 * _KB) is taken[2]
    assert memory.take(64 * _KB, 256 * _KB) is taken[2]
    assert memory.take(64 * _KB, 3000 * _KB) is taken[0]
    assert memory.take(64 * _KB, 1) is taken[3]


def test_what_was_too_small_makes_room_for_more() -> None:
    memory = FrameMemory(_MOST)
    for _ in range(10):
        grown = [memory.take(size * _KB, 2048 * _KB) for size in (64, 128, 256, 512, 1024, 2048)]
    assert memory.take(64 * _KB, 2048 * _KB) is grown[-1]


def test_who_needs_little_takes_nothing_from_others() -> None:
    """As a client does that only claims that its frame is large."""
    memory = FrameMemory(_MOST)
    large = memory.take(1024 * _KB, 1024 * _KB)
    little = memory.take(8 * _KB, 1024 * _KB)
    view = memoryview(little)
    assert len(little) == 8 * _KB
    assert memory.take(1024 * _KB, 1024 * _KB) is large
    view.release()
    assert memory.take(8 * _KB, 1024 * _KB) is not little


def test_very_much_is_taken_at_once_and_not_kept() -> None:
    memory = FrameMemory(1 << 30)
    taken = memory.take(9 << 20, 100 << 20)
    assert len(taken) == 100 << 20
    assert memory.take(64 * _KB, 100 << 20) is not taken
    memoryview(taken)[-1] = 7
    assert taken[-1] == 7


def test_where_the_system_has_not_so_much_at_once_what_is_needed_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    assert len(FrameMemory(_MOST).take(9 << 20, 100 << 20)) == 9 << 20


def test_no_more_is_kept_than_may_be() -> None:
    memory = FrameMemory(_MOST)

    def taken_at_once() -> list[bytearray | mmap.mmap]:
        """Six of 1 MiB; the views of them are dropped afterwards."""
        views = []
        taken = []
        for _ in range(6):
            taken.append(memory.take(1024 * _KB, 1024 * _KB))
            views.append(memoryview(taken[-1]))
        return taken

    first, second = taken_at_once(), taken_at_once()
    assert sum(any(each is other for other in first) for each in second) == 4


def test_what_nobody_used_between_two_sweeps_is_forgotten() -> None:
    memory = FrameMemory(_MOST)
    busy = memory.take(64 * _KB, 64 * _KB)
    view = memoryview(busy)
    idle = memory.take(128 * _KB, 128 * _KB)
    memory.sweep()
    assert memory.take(128 * _KB, 128 * _KB) is idle
    memory.sweep()
    memory.sweep()
    assert memory.take(128 * _KB, 128 * _KB) is not idle
    view.release()
    assert memory.take(64 * _KB, 64 * _KB) is busy


@given(st.data())
def test_no_two_frames_have_the_same_memory(data: st.DataObject) -> None:
    """As all that use it do: views are taken of what is given out, and dropped at some time."""
    memory = FrameMemory(512 * _KB)
    views: list[memoryview] = []
    for _ in range(data.draw(st.integers(1, 20))):
        what = data.draw(st.sampled_from(["take", "take", "drop", "sweep"]))
        if what == "take":
            least = data.draw(st.integers(1, 200 * _KB))
            most = data.draw(st.integers(least, 500 * _KB))
            given_out = memory.take(least, most)
            assert len(given_out) >= least
            views.append(memoryview(given_out)[: data.draw(st.integers(0, least))])
        elif what == "drop" and views:
            views.pop(data.draw(st.integers(0, len(views) - 1)))
        else:
            memory.sweep()
        assert len({id(view.obj) for view in views}) == len(views)
