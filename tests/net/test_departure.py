"""Departure: waiting for brokers to go."""

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from leader_hints.address import Address
from leader_hints.errors import BrokerError
from leader_hints.net.departure import departed

ONE, TWO = Address("broker-1", 9092), Address("broker-2", 9092)


class Brokers:
    """Brokers that go at given times. ``far_ends``: theirs, of the connections that they took."""

    def __init__(self, ends: dict[Address, float]) -> None:
        self._ends = ends
        self.far_ends: list[trio.abc.Stream] = []

    async def open(self, address: Address, patience: float) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        if trio.current_time() >= self._ends[address]:
            raise BrokerError("cannot connect: connection refused")
        near, far = memory_stream_pair()
        self.far_ends.append(far)
        return near


async def test_it_ends_when_the_last_has_gone(autojump_clock: MockClock) -> None:
    begin = trio.current_time()
    brokers = Brokers({ONE: begin + 3, TWO: begin + 20})

    await departed([ONE, TWO], 60, brokers.open)

    assert 20 <= trio.current_time() - begin < 21
    assert len(brokers.far_ends) > 20
    for end in brokers.far_ends:
        assert await end.receive_some() == b""


async def test_it_names_who_is_still_there_in_the_end(autojump_clock: MockClock) -> None:
    begin = trio.current_time()
    brokers = Brokers({ONE: begin, TWO: begin + 1000})

    with pytest.raises(BrokerError, match=r"^still there after 60 s: broker-2:9092$"):
        await departed([ONE, TWO], 60, brokers.open)

    assert trio.current_time() - begin == 60
