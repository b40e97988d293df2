"""The memory of a frame that is gathered."""

import pytest

from leader_hints.core.link.budget import Account, Budget
from leader_hints.core.link.gathered_frame import GatheredFrame

_SIZE = 1_000_000


def _account(total: int, *, trusted: bool = True) -> Account:
    account = Account(Budget(total, total), "client:1")
    if trusted:
        account.trust()
    return account


def _filled_up(frame: GatheredFrame) -> int:
    """Fill all the room that there is; return how much memory that is."""
    frame.filled = len(frame.memory)
    return frame.filled


@pytest.mark.parametrize(("trusted", "first"), [(True, 65_536), (False, 8192)])
def test_memory_doubles_as_bytes_come_up_to_the_whole_frame(trusted: bool, first: int) -> None:
    account = _account(1 << 30, trusted=trusted)
    frame = GatheredFrame(account, memoryview(b"begun"), _SIZE, must=False)
    sizes = []
    while frame.filled < _SIZE:
        assert frame.grow()
        assert frame.reserved == account.kept
        sizes.append(_filled_up(frame))
    assert sizes[:3] == [first, 2 * first, 4 * first]
    assert sizes[-1] == account.kept == _SIZE
    assert bytes(frame.memory[:5]) == b"begun"


def test_the_budget_ends_its_growth_and_takes_nothing_from_what_is_there() -> None:
    account = _account(100_000)
    frame = GatheredFrame(account, memoryview(b"begun"), _SIZE, must=False)
    assert frame.grow()
    _filled_up(frame)
    assert not frame.grow()
    assert (frame.filled, frame.reserved, account.kept) == (65_536, 65_536, 65_536)


def test_what_must_be_whole_grows_beyond_the_budget() -> None:
    account = _account(100_000)
    frame = GatheredFrame(account, memoryview(b"begun"), _SIZE, must=True)
    while frame.filled < _SIZE:
        assert frame.grow()
        _filled_up(frame)
    assert account.kept == _SIZE


def test_what_has_come_of_a_very_large_frame_is_copied_no_more() -> None:
    account, size = _account(100_000), 100_000_000
    frame = GatheredFrame(account, memoryview(b"begun"), size, must=True)
    copied = []
    while frame.filled < size:
        before, whole = frame.filled, frame.memory.obj
        assert frame.grow()
        assert len(frame.memory) == account.kept
        if frame.memory.obj is not whole:
            copied.append(before)
        _filled_up(frame)
    assert max(copied) <= 8 << 20
    assert bytes(frame.memory[:5]) == b"begun"
