"""HandshakeTurns: who goes first, and who is not woken."""

import contextlib
import select
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from leader_hints.net.tls import handshake_turns
from leader_hints.net.tls.handshake_turns import HandshakeTurns, Rank
from tests.net.serving import Rounds, until_true

_NEW, _ANSWERED, _SLOW = Rank.NEW, Rank.ANSWERED, Rank.SLOW


class _Clients:
    """Clients, each with what it is watched at and what it sends by."""

    def __init__(self, turns: HandshakeTurns, rounds: Rounds) -> None:
        self._turns = turns
        self._rounds = rounds
        self._ends = contextlib.ExitStack()
        #: Whose turn came, and in which round.
        self.came: list[tuple[int, int]] = []
        self.far: list[socket.socket] = []

    def close(self) -> None:
        self._ends.close()

    async def wait(self, nursery: trio.Nursery, *ranks: Rank) -> list[trio.CancelScope]:
        """Have clients of these ranks awaited."""
        scopes = [trio.CancelScope() for _ in ranks]
        for rank, scope in zip(ranks, scopes, strict=True):
            far, near = socket.socketpair()
            self._ends.enter_context(far)
            self._ends.enter_context(near)
            self.far.append(far)
            nursery.start_soon(self._await, len(self.far) - 1, near.fileno(), rank, scope)
        # Each has begun to wait in the round after this one.
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        return scopes

    async def _await(self, number: int, near: int, rank: Rank, scope: trio.CancelScope) -> None:
        with scope:
            await self._turns.arrival(near, rank)
            self.came.append((number, self._rounds.now))

    @property
    def order(self) -> list[int]:
        return [number for number, _ in self.came]


@pytest.fixture
def urgent() -> list[int]:
    """Pieces of work for which links take short turns: how many there are."""
    return []


@pytest.fixture
def turns(urgent: list[int]) -> HandshakeTurns:
    @contextlib.contextmanager
    def is_urgent() -> Iterator[None]:
        urgent.append(1)
        try:
            yield
        finally:
            urgent.pop()

    return HandshakeTurns(is_urgent)


@asynccontextmanager
async def _running(turns: HandshakeTurns) -> AsyncIterator[tuple[_Clients, trio.Nursery]]:
    rounds = Rounds()
    clients = _Clients(turns, rounds)
    with contextlib.closing(clients):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(turns.run, lambda _: contextlib.nullcontext())
            nursery.start_soon(rounds.count)
            yield clients, nursery
            nursery.cancel_scope.cancel()


async def test_clients_that_send_together_are_woken_one_in_each_round(
    turns: HandshakeTurns,
) -> None:
    """9,000 that sent a byte at the same time were all woken in one round, of 0.2 s."""
    async with _running(turns) as (clients, nursery):
        await clients.wait(nursery, *[_NEW] * 20)
        for far in clients.far:
            far.send(b"x")
        await until_true(lambda: len(clients.came) == 20)
    rounds = [at for _, at in clients.came]
    # The counter may have its turn before or after a client in the same round.
    assert max(map(rounds.count, rounds)) <= 2


async def test_who_has_cost_a_signature_goes_first_and_many_pieces_last(
    turns: HandshakeTurns,
) -> None:
    async with _running(turns) as (clients, nursery):
        async with turns.turn():
            ranks = [_SLOW, _NEW, _ANSWERED, _SLOW, _NEW, _ANSWERED]
            await clients.wait(nursery, *ranks)
            for far in clients.far:
                far.send(b"x")
                await until_true(lambda: not _readable(turns))
        await until_true(lambda: len(clients.came) == len(ranks))
    # Of the slow ones the oldest first: one that sends byte by byte is often the newest.
    assert clients.order == [5, 2, 4, 1, 0, 3]


async def test_what_has_been_received_is_worked_on_before_more_is_received(
    turns: HandshakeTurns,
) -> None:
    async with _running(turns) as (clients, nursery):
        async with turns.turn():
            await clients.wait(nursery, _ANSWERED)
            clients.far[0].send(b"x")

            async def step() -> None:
                async with turns.turn():
                    clients.came.append((9, 0))

            nursery.start_soon(step)
            await until_true(lambda: not _readable(turns))
        await until_true(lambda: len(clients.came) == 2)
    assert clients.order == [9, 0]


async def test_a_client_that_goes_while_it_is_awaited_keeps_nobody_waiting(
    turns: HandshakeTurns,
) -> None:
    async with _running(turns) as (clients, nursery):
        async with turns.turn():
            silent, arrived, _ = await clients.wait(nursery, _NEW, _NEW, _NEW)
            silent.cancel()
            clients.far[1].send(b"x")
            clients.far[2].send(b"x")
            await until_true(lambda: not _readable(turns))
            arrived.cancel()
        await until_true(lambda: clients.came)
        # The place of the first is watched no more.
        clients.far[0].send(b"x")
        await clients.wait(nursery, _NEW)
        clients.far[3].send(b"x")
        await until_true(lambda: len(clients.came) == 2)
    assert clients.order == [2, 3]


async def test_a_client_that_goes_as_its_turn_comes_hands_it_on(turns: HandshakeTurns) -> None:
    async with _running(turns) as (clients, nursery):
        async with turns.turn():
            _, second = await clients.wait(nursery, _NEW, _NEW)
            for far in clients.far:
                far.send(b"x")
                await until_true(lambda: not _readable(turns))
        # It has been called, and is cancelled before it goes on.
        second.cancel()
        await until_true(lambda: 0 in clients.order)
        with trio.fail_after(5):
            async with turns.turn():
                pass


async def test_links_take_short_turns_only_while_somebody_who_has_sent_waits(
    turns: HandshakeTurns, urgent: list[int]
) -> None:
    async with _running(turns) as (clients, nursery):
        await clients.wait(nursery, _NEW, _NEW)
        assert urgent == []
        async with turns.turn():
            clients.far[0].send(b"x")
            await until_true(lambda: len(urgent) == 2)
        await until_true(lambda: clients.came and not urgent)


async def test_after_a_defect_those_that_are_awaited_are_watched_again(
    turns: HandshakeTurns,
) -> None:
    @contextlib.contextmanager
    def fails(_: int) -> Iterator[None]:
        raise ZeroDivisionError
        yield

    async with trio.open_nursery() as nursery:
        clients = _Clients(turns, Rounds())
        await clients.wait(nursery, _NEW)
        with contextlib.closing(clients):
            with pytest.raises(ZeroDivisionError):
                await turns.run(fails)
            nursery.start_soon(turns.run, lambda _: contextlib.nullcontext())
            clients.far[0].send(b"x")
            await until_true(lambda: clients.came)
            nursery.cancel_scope.cancel()


async def test_few_are_noted_at_once(
    turns: HandshakeTurns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake_turns, "_NOTED", 8)
    async with _running(turns) as (clients, nursery):
        async with turns.turn():
            await clients.wait(nursery, *[_NEW] * 20)
            for far in clients.far:
                far.send(b"x")
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            assert _readable(turns)
        await until_true(lambda: len(clients.came) == 20)


def _readable(turns: HandshakeTurns) -> bool:
    """Whether somebody has sent something that is not noted yet."""
    assert turns._poller is not None
    return bool(select.select([turns._poller.fileno()], [], [], 0)[0])
