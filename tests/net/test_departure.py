"""Departure: waiting for brokers to go."""

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from leader_hints.address import Address
from leader_hints.errors import BrokerError
from leader_hints.net.departure import departed

ONE, TWO = Address("broker-1", 9092), Address("broker-2", 9092)


class Brokers:
    """Brokers that go at given times. ``far_ends``: theirs, of the connections that they took.

    ``refuse``: seconds since the start from which on, and up to which, none is taken.
    """

    def __init__(self, ends: dict[Address, float]) -> None:
        self._ends = ends
        self._begin = trio.current_time()
        self.refuse: list[tuple[float, float]] = []
        self.far_ends: list[trio.abc.Stream] = []

    async def open(self, address: Address, patience: float) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        since = trio.current_time() - self._begin
        refuses = any(begin <= since < end for begin, end in self.refuse)
        if refuses or trio.current_time() >= self._ends[address]:
            raise BrokerError("cannot connect: connection refused")
        near, far = memory_stream_pair()
        self.far_ends.append(far)
        return near


async def test_it_ends_when_the_last_has_gone(autojump_clock: MockClock) -> None:
    begin = trio.current_time()
    brokers = Brokers({ONE: begin + 3, TWO: begin + 20})

    await departed([ONE, TWO], 60, brokers.open)

    assert 20 <= trio.current_time() - begin < 22
    assert len(brokers.far_ends) > 20
    for end in brokers.far_ends:
        assert await end.receive_some() == b""


async def test_it_names_who_is_still_there_in_the_end(autojump_clock: MockClock) -> None:
    begin = trio.current_time()
    brokers = Brokers({ONE: begin, TWO: begin + 1000})

    with pytest.raises(BrokerError, match=r"^still there after 60 s: broker-2:9092$"):
        await departed([ONE, TWO], 60, brokers.open)

    assert trio.current_time() - begin == 60


async def test_one_that_refuses_for_a_moment_has_not_gone(autojump_clock: MockClock) -> None:
    """A queue of connections that is full refuses, or drops what comes, until it is read again."""
    begin = trio.current_time()
    brokers = Brokers({ONE: begin + 20})
    brokers.refuse = [(0, 0.7), (3, 3.1), (5, 5.8)]

    await departed([ONE], 60, brokers.open)

    assert 20 <= trio.current_time() - begin < 22


async def test_one_that_takes_none_when_the_time_is_over_has_gone(
    autojump_clock: MockClock,
) -> None:
    begin = trio.current_time()
    brokers = Brokers({ONE: begin, TWO: begin + 1000})
    brokers.refuse = [(0, 0.3)]

    with pytest.raises(BrokerError, match=r"^still there after 0.6 s: broker-2:9092$"):
        await departed([ONE, TWO], 0.6, brokers.open)
