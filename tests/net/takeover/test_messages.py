"""Messages, and sockets beside them."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from leader_hints.errors import TakeoverError
from leader_hints.net.takeover import messages
from leader_hints.net.takeover.messages import MOST_SOCKETS, check_peer, receive, send
from tests.net.rig import descriptors_before, open_descriptors

Ends = tuple[trio.socket.SocketType, trio.socket.SocketType]


@asynccontextmanager
async def _ends() -> AsyncIterator[Ends]:
    one, another = trio.socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, another:
        yield one, another


async def test_as_many_sockets_as_may_be_come_beside_a_message() -> None:
    before = descriptors_before()
    with socket.create_server(("127.0.0.1", 0)) as server:
        async with _ends() as (one, another):
            await send(one, {"addresses": ["a"]}, [server.fileno()] * MOST_SOCKETS)
            message, descriptors = await receive(another)
        assert message == {"addresses": ["a"]}
        assert len(descriptors) == MOST_SOCKETS
        assert not any(map(os.get_inheritable, descriptors))
        with socket.socket(fileno=descriptors.pop()) as same:
            assert same.getsockname() == server.getsockname()
        messages.close_all(descriptors)
    assert open_descriptors() == before


@pytest.mark.parametrize("data", [b"{", b"[1]", b"\xff", b"null", b"[" * 60_000])
async def test_what_is_no_message_is_refused_and_its_sockets_are_closed(data: bytes) -> None:
    before = descriptors_before()
    async with _ends() as (one, another):
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.send_fds(_std(one), [data], [server.fileno()])
        with pytest.raises(TakeoverError, match="sends what is not understood"):
            await receive(another)
    assert open_descriptors() == before


async def test_more_sockets_than_may_be_are_refused_and_closed() -> None:
    before = descriptors_before()
    async with _ends() as (one, another):
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.send_fds(_std(one), [b"{}"], [server.fileno()] * (MOST_SOCKETS + 20))
        with pytest.raises(TakeoverError, match="too few descriptors are left"):
            await receive(another)
    assert open_descriptors() == before


async def test_the_end_of_the_other_process_is_said() -> None:
    async with _ends() as (one, another):
        one.close()
        with pytest.raises(TakeoverError, match=r"the other process has ended$"):
            await receive(another)
        with pytest.raises(TakeoverError, match="the other process has ended: broken pipe"):
            await send(another, {})


async def test_a_process_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with _ends() as (one, _):
        assert check_peer(one) == os.getpid()
        mine = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
        if mine == 0:
            assert check_peer(one) == os.getpid()
        else:
            with pytest.raises(TakeoverError, match="belongs to another user"):
                check_peer(one)


def _std(sock: trio.socket.SocketType) -> socket.socket:
    return socket.socket(fileno=os.dup(sock.fileno()))
