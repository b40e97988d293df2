"""Memory that frames are gathered into, used again and again."""

import mmap
from dataclasses import dataclass

#: Bytes of the smallest memory that is kept: less costs little to get. Sizes are multiples of it,
#: so that frames of about one size find each other's.
_UNIT = 65_536
#: If more is needed it is taken for the whole frame: to double it means to clear it, and to copy
#: what has come, in one step. No more than this is kept: most responses that are recoded have half.
_DOUBLED = 1 << 23


@dataclass(slots=True)
class _Kept:
    """``used``: it was taken since the last sweep."""

    memory: bytearray
    used: bool = True


class FrameMemory:
    """Keeps memory that was taken, at most ``most`` bytes, and gives it out again.

    The system clears new memory page by page, when it is first written to. For a frame of some
    megabytes that costs several times what receiving and sending it does, and the C library gives
    such memory back as soon as it is free.

    Nobody gives memory back: it is free as soon as no view of it is left, wherever its bytes went.
    What it held before stays in it, so nothing may be read of it that was not written.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[_Kept] = []

    def take(self, least: int, most: int) -> bytearray | mmap.mmap:
        """Return memory of ``least`` bytes or more; of ``most`` if there is such.

        Of very much the system gives each page only when it is first written to: it costs nothing
        before bytes come.
        """
        if least < _UNIT:
            return bytearray(least)
        if least > _DOUBLED:
            return _new_pages(most) or bytearray(least)
        best: _Kept | None = None
        for kept in self._kept:
            size = len(kept.memory)
            if size < least or _is_viewed(kept.memory):
                continue
            if best is None or _fits_better(size, len(best.memory), most):
                best = kept
        if best is None:
            return self._new(least)
        best.used = True
        return best.memory

    def sweep(self) -> None:
        """Forget what nobody used since the last sweep; call it about every second."""
        self._kept = [kept for kept in self._kept if kept.used]
        for kept in self._kept:
            kept.used = _is_viewed(kept.memory)

    def _new(self, least: int) -> bytearray:
        memory = bytearray(-(-least // _UNIT) * _UNIT)
        # What is free was too small for this frame, and would be for others like it.
        self._kept = [kept for kept in self._kept if _is_viewed(kept.memory)]
        if sum(len(kept.memory) for kept in self._kept) + len(memory) <= self._most:
            self._kept.append(_Kept(memory))
        return memory


def _new_pages(size: int) -> mmap.mmap | None:
    """Return memory that nobody has written to; ``None`` if the system does not promise so much."""
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        return None


def _fits_better(size: int, other: int, most: int) -> bool:
    """Whether memory of a size fits a frame better: the smallest that holds all of it, or most."""
    return size > other if other < most else most <= size < other


def _is_viewed(memory: bytearray) -> bool:
    """Whether a view of it is left: Python changes the size of none that is viewed."""
    try:
        memory.pop()
    except BufferError:
        return True
    memory.append(0)
    return False
