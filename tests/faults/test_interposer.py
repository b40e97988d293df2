"""What becomes of a connection that the interposer stands in."""

import struct
from collections.abc import Mapping
from typing import Any

import pytest
import trio
import trio.testing
from pydantic import ValidationError

from leader_hints.core.events import Event, FaultDone, LinkFailed
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.faults.fault import Action, Fault, Faults
from leader_hints.faults.interposer import Interposer
from leader_hints.faults.stale_metadata import read_told
from tests.core.samples import fetch_answer, fetch_request, metadata_answer, produce_request
from tests.net.messages import framed, metadata_request

_SECONDS = 10.0
_RESPONSE = bytes.fromhex("00000008 00000001 00000000")


def _pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    one, other = trio.socket.socketpair()
    return trio.SocketStream(one), trio.SocketStream(other)


async def test_a_link_that_ends_before_its_response_ends_that_connection_alone() -> None:
    client, client_end = _pair()
    link, link_end = _pair()
    interposer = Interposer(Faults(), lambda event: None)
    asked = metadata_request(12, 1)
    with trio.fail_after(_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(interposer.serve, Route("r", Mode.ON), client_end, link_end)
            await client.send_all(asked)
            assert await link.receive_some() == asked
            await link.aclose()
            assert await client.receive_some() == b""


@pytest.mark.parametrize("watched", ["on_request", "on_response"])
async def test_a_watcher_that_fails_ends_that_connection_alone(watched: str) -> None:
    def fail(*_: object) -> None:
        raise KeyError

    told: list[Event] = []
    interposer = Interposer(Faults(), told.append, **{watched: fail})
    client, client_end = trio.testing.memory_stream_pair()
    link, link_end = trio.testing.memory_stream_pair()
    with trio.fail_after(_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(interposer.serve, Route("r", Mode.ON), client_end, link_end)
            await client.send_all(metadata_request(12, 1))
            await link.send_all(_RESPONSE)
            assert await client.receive_some() == b""
    (failed,) = told
    assert isinstance(failed, LinkFailed)
    assert failed.traceback.endswith("KeyError")


@pytest.mark.parametrize(
    "values", [{"delay_ms": 60_000}, {"bytes_per_second": 1}], ids=["delay", "throttle"]
)
async def test_a_response_that_is_under_way_arrives_although_its_link_has_ended(
    values: dict[str, int], autojump_clock: trio.testing.MockClock
) -> None:
    faults = Faults()
    action = Action.DELAY if "delay_ms" in values else Action.THROTTLE
    faults.begin(Fault.model_validate({"action": action, **values}), {})
    interposer = Interposer(faults, lambda event: None)
    client, client_end = trio.testing.memory_stream_pair()
    link, link_end = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(interposer.serve, Route("r", Mode.ON), client_end, link_end)
        await client.send_all(metadata_request(12, 1))
        await link.receive_some()
        await link.send_all(_RESPONSE)
        await link.aclose()
        received = b""
        while chunk := await client.receive_some():
            received += chunk
    assert received == _RESPONSE


def _produce_2(correlation_id: int) -> bytes:
    """Produce 2 without acks, of one empty record set; kio knows no version so old."""
    header = struct.pack(">hhih", 0, 2, correlation_id, -1)
    topics = struct.pack(">ih1sii", 1, 1, b"t", 1, 0) + struct.pack(">i", 0)
    return framed(header + struct.pack(">hi", 0, 1000) + topics)


async def test_no_response_is_awaited_of_an_old_produce_request_without_acks() -> None:
    """Else the next response would be taken for its own, and all that follow be one too late."""
    faults = Faults()
    faults.begin(Fault.model_validate({"action": "drop", "apis": ["Metadata"]}))
    done: list[Event] = []
    interposer = Interposer(faults, done.append)
    client, client_end = trio.testing.memory_stream_pair()
    link, link_end = trio.testing.memory_stream_pair()
    with trio.fail_after(_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(interposer.serve, Route("r", Mode.ON), client_end, link_end)
            await client.send_all(_produce_2(1) + metadata_request(12, 2))
            await link.send_all(framed(struct.pack(">i", 2) + bytes(4)))
            assert await client.receive_some() == b""
    assert [(event.action, event.api) for event in done if isinstance(event, FaultDone)] == [
        ("drop", "Metadata")
    ]


def _refuse(faults: Faults, **values: object) -> None:
    faults.begin(Fault.model_validate({"action": "refuse", **values}))


def test_a_connection_is_refused_once_where_no_broker_is_left_for_it() -> None:
    faults = Faults()
    done: list[Event] = []
    interposer = Interposer(faults, done.append)
    _refuse(faults, times=1)
    assert not interposer.admits(["a", "b", "c"])
    assert len(done) == 1
    assert interposer.admits(["a", "b", "c"]) == ["a", "b", "c"]


def test_a_broker_that_refuses_costs_the_others_nothing_and_its_fault_is_kept() -> None:
    faults = Faults()
    done: list[Event] = []
    interposer = Interposer(faults, done.append)
    _refuse(faults, routes=["a"], times=1)
    assert interposer.admits(["a", "b"]) == ["b"]
    assert not done
    assert not interposer.admits(["a"])
    assert len(done) == 1
    assert interposer.admits(["a"]) == ["a"]


async def _connected() -> tuple[trio.SocketStream, trio.SocketStream]:
    """Both ends of a connection over TCP, which alone knows resets."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        client = await trio.testing.open_stream_to_socket_listener(listener)
        return client, await listener.accept()


async def test_a_refusal_of_a_topic_ends_only_connections_that_ask_for_it() -> None:
    faults = Faults()
    interposer = Interposer(faults, lambda event: None)
    _refuse(faults, topics=["t"])
    assert interposer.admits(["r"]) == ["r"]
    client, client_end = await _connected()
    link, link_end = trio.testing.memory_stream_pair()
    with trio.fail_after(_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(interposer.serve, Route("r", Mode.ON), client_end, link_end)
            await client.send_all(metadata_request(12, 1))
            await link.receive_some()
            await link.send_all(_RESPONSE)
            assert await client.receive_some() == _RESPONSE
            await client.send_all(fetch_request(11, 2, {("other", 0): 1}))
            await link.receive_some()
            await client.send_all(produce_request(9, 3))
            # franz-go takes an end before the first answer for TLS, and gives up.
            with pytest.raises(trio.BrokenResourceError):
                await client.receive_some()


async def _told_leaders(
    faults: Faults, now: Mapping[str, tuple[int, int]], done: list[Event], version: int = 12
) -> dict[tuple[str, int], tuple[int, int]]:
    """The leaders that a client gets where a broker answers ``now``."""
    interposer = Interposer(faults, done.append)
    client, client_end = trio.testing.memory_stream_pair()
    link, link_end = trio.testing.memory_stream_pair()
    with trio.fail_after(_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(interposer.serve, Route("r", Mode.ON), client_end, link_end)
            await client.send_all(metadata_request(version, 1))
            await link.receive_some()
            says = {topic: {0: leader} for topic, leader in now.items()}
            await link.send_all(metadata_answer(version, 1, says))
            told = await client.receive_some()
            await client.aclose()
    return dict(read_told(memoryview(bytes(told)), version).leaders)


async def test_leaders_of_chosen_topics_alone_are_reported_as_they_were() -> None:
    faults = Faults()
    done: list[Event] = []
    former = {("a", 0): (1, 4), ("b", 0): (1, 4)}
    faults.begin(Fault(action=Action.STALE_METADATA, topics=frozenset({"a"})), former)
    told = await _told_leaders(faults, {"a": (2, 5), "b": (2, 5)}, done)
    assert told == {("a", 0): (1, 4), ("b", 0): (2, 5)}
    assert len(done) == 1


async def test_metadata_is_stale_as_often_as_asked_for_and_not_before_it_differs() -> None:
    """Clients ask for brokers alone at first, and for leaders that have not moved yet."""
    faults = Faults()
    done: list[Event] = []
    faults.begin(Fault(action=Action.STALE_METADATA, times=1), {("a", 0): (1, 4)})
    for unchanged in ({}, {"a": (1, 4)}, {"b": (2, 7)}):
        assert await _told_leaders(faults, unchanged, done) == {
            (topic, 0): leader for topic, leader in unchanged.items()
        }
    assert not done
    assert await _told_leaders(faults, {"a": (2, 5)}, done) == {("a", 0): (1, 4)}
    assert len(done) == 1
    assert await _told_leaders(faults, {"a": (2, 5)}, done) == {("a", 0): (2, 5)}


async def test_of_two_faults_that_choose_a_partition_the_older_says_its_leader() -> None:
    faults = Faults()
    done: list[Event] = []
    faults.begin(Fault(action=Action.STALE_METADATA), {("a", 0): (1, 4)})
    faults.begin(Fault(action=Action.STALE_METADATA), {("a", 0): (2, 5), ("b", 0): (2, 5)})
    told = await _told_leaders(faults, {"a": (3, 6), "b": (3, 6)}, done)
    assert told == {("a", 0): (1, 4), ("b", 0): (2, 5)}


@pytest.mark.parametrize(
    "values",
    [{"action": "error", "apis": ["Metadata"]}, {"action": "stale_metadata", "apis": ["Fetch"]}],
)
def test_a_fault_that_could_never_be_done_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="is only done to"):
        Fault.model_validate(values)


async def test_a_fault_of_a_topic_meets_a_fetch_session_that_has_it_and_no_other() -> None:
    """Incremental requests name only what changed, in a session at rest nothing at all."""
    for topic, dropped in (("t", True), ("other", False)):
        faults = Faults()
        interposer = Interposer(faults, lambda event: None)
        client, client_end = trio.testing.memory_stream_pair()
        link, link_end = trio.testing.memory_stream_pair()
        with trio.fail_after(_SECONDS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(interposer.serve, Route("r", Mode.ON), client_end, link_end)
                await client.send_all(fetch_request(12, 1, {("t", 0): 1}, session=(0, 0)))
                await link.receive_some()
                opened = fetch_answer(12, 1, [("t", 0, 0, b"")], session_id=5)
                await link.send_all(opened)
                assert await client.receive_some() == opened
                fault = {"action": "drop", "apis": ["Fetch"], "topics": [topic]}
                faults.begin(Fault.model_validate(fault))
                await client.send_all(fetch_request(12, 2, {}, session=(5, 1)))
                await link.receive_some()
                nothing = fetch_answer(12, 2, [], session_id=5)
                await link.send_all(nothing)
                assert await client.receive_some() == (b"" if dropped else nothing)
                await client.aclose()
