"""Two ends of a takeover: the process that serves, and the one that comes.

Both are of this process here; ``tests/cli/test_takeover.py`` has real ones.
"""

import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from leader_hints.core.events import Event, TakeoverBegun, TakeoverFailed, TaskFailed
from leader_hints.errors import ListenError, TakeoverError
from leader_hints.net.takeover import successors
from leader_hints.net.takeover.messages import MOST_SOCKETS, new_socket, receive, send
from leader_hints.net.takeover.predecessor import Predecessor, find_predecessor
from leader_hints.net.takeover.successors import Successors
from tests.net.rig import descriptors_before, open_descriptors

_SECONDS = 5.0


class _Serving:
    """A process that serves, with so many listening sockets."""

    def __init__(self, folder: Path, number: int) -> None:
        self.path = folder / "takeover"
        self.events: list[Event] = []
        self.servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
        self.successors = Successors(self.path, self._opened, self.events.append)

    def _opened(self) -> list[tuple[str, int]]:
        return [(f"a:{number}", one.fileno()) for number, one in enumerate(self.servers)]

    @property
    def failures(self) -> list[str]:
        return [event.error for event in self.events if isinstance(event, TakeoverFailed)]


@asynccontextmanager
async def _serving(folder: Path, number: int = 1) -> AsyncIterator[_Serving]:
    serving = _Serving(folder, number)
    with trio.fail_after(_SECONDS):
        await serving.successors.prepare()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serving.successors.serve)
            await trio.testing.wait_all_tasks_blocked()
            yield serving
            serving.successors.close()
    for one in serving.servers:
        one.close()


async def _defect(*_: object) -> None:
    raise KeyError("a defect")


async def _successor(serving: _Serving) -> Predecessor:
    predecessor = await find_predecessor(serving.path)
    assert predecessor is not None
    return predecessor


@pytest.mark.parametrize("number", [0, 1, MOST_SOCKETS, MOST_SOCKETS + 1, 2 * MOST_SOCKETS + 50])
async def test_all_sockets_are_handed_over(tmp_path: Path, number: int) -> None:
    before = descriptors_before()
    async with _serving(tmp_path, number) as serving:
        predecessor = await _successor(serving)
        await predecessor.hand_over()
        sockets = predecessor.take()
        assert [*sockets] == [f"a:{one}" for one in range(number)]
        for (one,), server in zip(sockets.values(), serving.servers, strict=True):
            with one:
                assert one.getsockname() == server.getsockname()
        predecessor.close()
    assert open_descriptors() == before


async def test_the_one_that_serves_leaves_when_the_other_can_serve(tmp_path: Path) -> None:
    async with _serving(tmp_path) as serving, trio.open_nursery() as nursery:
        predecessor = await _successor(serving)
        await predecessor.hand_over()
        assert not serving.successors.ready.is_set()
        left = trio.Event()

        async def leave() -> None:
            await predecessor.leave()
            left.set()

        nursery.start_soon(leave)
        await serving.successors.ready.wait()
        await trio.testing.wait_all_tasks_blocked()
        # It has not closed its listeners yet.
        assert not left.is_set()
        await serving.successors.leave()
        await left.wait()
    assert [type(event) for event in serving.events] == [TakeoverBegun]


@pytest.mark.parametrize(
    ("switched", "told"),
    [
        (None, None),
        ({}, {}),
        ({"r": "off"}, {"r": "off"}),
        # It has no room: the successor serves all the same.
        ({f"r{number}": "off" for number in range(5000)}, None),
        # Nor has the socket: it was taken for a successor that is gone.
        ({f"{number:0100}": "off" for number in range(3000)}, None),
    ],
    ids=["nothing", "back to the settings", "a route", "very many", "more than a socket takes"],
)
async def test_the_successor_learns_what_was_switched(
    tmp_path: Path, switched: dict[str, str] | None, told: dict[str, str] | None
) -> None:
    async with _serving(tmp_path) as serving, trio.open_nursery() as nursery:
        predecessor = await _successor(serving)
        await predecessor.hand_over()

        async def leave() -> None:
            assert await predecessor.leave() == told

        nursery.start_soon(leave)
        await serving.successors.ready.wait()
        await serving.successors.leave(switched)
        await predecessor.serving()
        await serving.successors.check_successor()
    assert serving.failures == []


@pytest.mark.parametrize("says", ["serving", "nothing", "older"])
async def test_a_process_that_is_replaced_learns_whether_the_next_one_serves(
    tmp_path: Path, says: str
) -> None:
    """``nothing``: it ended before that. ``older``: it is of a version that does not say it."""
    async with _serving(tmp_path) as serving, trio.open_nursery() as nursery:
        predecessor = await _successor(serving)
        await predecessor.hand_over()

        async def replace() -> None:
            if says == "older":
                await send(predecessor._connection, {"ready": True})
                await receive(predecessor._connection)
            else:
                await predecessor.leave()
            if says == "serving":
                await predecessor.serving()
            predecessor.close()

        nursery.start_soon(replace)
        await serving.successors.ready.wait()
        await serving.successors.leave()
        if says == "nothing":
            with pytest.raises(TakeoverError, match="took over, and ended before it listened"):
                await serving.successors.check_successor()
        else:
            await serving.successors.check_successor()
    assert len(serving.failures) == (says == "nothing")


async def test_a_successor_that_has_gone_before_it_gets_an_answer_is_noticed(
    tmp_path: Path,
) -> None:
    async with _serving(tmp_path) as serving:
        predecessor = await _successor(serving)
        await predecessor.hand_over()
        await send(predecessor._connection, {"ready": True})
        await serving.successors.ready.wait()
        predecessor.close()
        await serving.successors.leave()
        with pytest.raises(TakeoverError, match="ended before it listened"):
            await serving.successors.check_successor()


@pytest.mark.parametrize("leaves", ["before it closes", "after that"])
@pytest.mark.parametrize("serves", [True, False])
async def test_what_a_successor_said_counts_though_it_has_closed_since(
    tmp_path: Path, serves: bool, leaves: str
) -> None:
    """A process that stalled when it was to leave took one that served for one that did not."""
    async with _serving(tmp_path) as serving:
        predecessor = await _successor(serving)
        await predecessor.hand_over()
        await send(predecessor._connection, {"ready": True, "reports": True})
        await serving.successors.ready.wait()
        if leaves == "before it closes":
            await serving.successors.leave()
        if serves:
            await predecessor.serving()
        predecessor.close()
        if leaves == "after that":
            await serving.successors.leave()
        if serves:
            await serving.successors.check_successor()
        else:
            with pytest.raises(TakeoverError, match="ended before it listened"):
                await serving.successors.check_successor()
    assert len(serving.failures) == (not serves)


async def test_a_successor_that_says_nothing_is_not_waited_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(successors, "_PATIENCE", 0.05)
    async with _serving(tmp_path) as serving, trio.open_nursery() as nursery:
        predecessor = await _successor(serving)
        await predecessor.hand_over()
        nursery.start_soon(predecessor.leave)
        await serving.successors.ready.wait()
        await serving.successors.leave()
        await serving.successors.check_successor()
        predecessor.close()
    assert serving.failures == []


@pytest.mark.parametrize("switched", ["off", 7, ["r"], None])
async def test_what_is_not_understood_of_that_is_nothing(tmp_path: Path, switched: object) -> None:
    with new_socket() as listener:
        await listener.bind(str(tmp_path / "takeover"))
        listener.listen(1)
        predecessor = await find_predecessor(tmp_path / "takeover")
        assert predecessor is not None
        connection, _ = await listener.accept()
        with connection:
            await send(connection, {"closed": True, "switched": switched})
            with trio.fail_after(_SECONDS):
                assert await predecessor.leave() is None


async def test_a_successor_that_ends_before_it_can_serve_changes_nothing(tmp_path: Path) -> None:
    before = descriptors_before()
    async with _serving(tmp_path) as serving:
        for _ in range(2):
            predecessor = await _successor(serving)
            await predecessor.hand_over()
            predecessor.close()
            await trio.testing.wait_all_tasks_blocked()
        assert not serving.successors.ready.is_set()
    assert serving.failures == ["the other process has ended"] * 2
    assert open_descriptors() == before


async def test_two_cannot_take_over_at_the_same_time(tmp_path: Path) -> None:
    async with _serving(tmp_path) as serving:
        first, second = await _successor(serving), await _successor(serving)
        await first.hand_over()
        with pytest.raises(TakeoverError, match="another process is taking over already"):
            await second.hand_over()
        second.close()
        first.close()
        await trio.testing.wait_all_tasks_blocked()
        third = await _successor(serving)
        await third.hand_over()
        third.close()


async def test_a_successor_finds_it_gone_if_it_is_told_to_end_meanwhile(tmp_path: Path) -> None:
    async with _serving(tmp_path) as serving:
        predecessor = await _successor(serving)
        await predecessor.hand_over()
        serving.successors.close()
        await predecessor.leave()
    assert await find_predecessor(serving.path) is None


async def test_a_process_of_another_protocol_is_refused(tmp_path: Path) -> None:
    async with _serving(tmp_path) as serving:
        with new_socket() as connection:
            await connection.connect(str(serving.path))
            await send(connection, {"protocol": 2})
            assert await receive(connection) == ({"refused": "it knows protocol 1 alone"}, [])
    assert "it knows protocol 1 alone" in serving.failures[0]


@pytest.mark.parametrize("message", [{"ready": False}, {}])
async def test_what_is_not_understood_changes_nothing(
    tmp_path: Path, message: dict[str, bool]
) -> None:
    async with _serving(tmp_path) as serving:
        with new_socket() as connection:
            await connection.connect(str(serving.path))
            await send(connection, {"protocol": 1})
            _, descriptors = await receive(connection)
            for one in descriptors:
                socket.close(one)
            await send(connection, message)
            await trio.testing.wait_all_tasks_blocked()
        assert not serving.successors.ready.is_set()
    assert "sends what is not understood" in serving.failures[0]


async def test_a_defect_met_by_one_successor_keeps_no_other_from_taking_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _serving(tmp_path) as serving:
        first, second = await _successor(serving), await _successor(serving)
        await first.hand_over()
        with monkeypatch.context() as broken:
            broken.setattr(successors, "_refuse", _defect)
            with pytest.raises(TakeoverError, match="the other process has ended"):
                await second.hand_over()
        # It is taking over all the same.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.leave)
            await serving.successors.ready.wait()
            await serving.successors.leave()
        second.close()
    assert [type(event) for event in serving.events] == [TakeoverBegun, TaskFailed]


async def test_one_that_says_nothing_is_given_up(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    serving = _Serving(tmp_path, 1)
    await serving.successors.prepare()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serving.successors.serve)
        while not serving.path.exists():
            await trio.lowlevel.checkpoint()
        with new_socket() as connection:
            await connection.connect(str(tmp_path / "takeover"))
            await trio.sleep(11.0)
        serving.successors.close()
    serving.servers[0].close()
    assert "does not answer" in serving.failures[0]


async def test_nobody_else_may_connect(tmp_path: Path) -> None:
    async with _serving(tmp_path) as serving:
        assert stat.S_IMODE(serving.path.stat().st_mode) == 0o600
        assert os.listdir(tmp_path) == ["takeover"]


async def test_what_a_killed_process_left_is_no_predecessor(tmp_path: Path) -> None:
    async with _serving(tmp_path):
        pass
    path = tmp_path / "takeover"
    assert path.exists()
    assert await find_predecessor(path) is None
    async with _serving(tmp_path) as serving:
        (await _successor(serving)).close()


async def test_a_path_with_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "takeover"
    path.write_text("precious")
    with pytest.raises(ListenError, match="it is no socket"):
        await Successors(path, list, lambda event: None).prepare()
    assert path.read_text() == "precious"


async def test_a_socket_of_another_kind_is_no_predecessor(tmp_path: Path) -> None:
    path = tmp_path / "takeover"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(TakeoverError, match=r"cannot connect to .*: protocol wrong type"):
            await find_predecessor(path)
