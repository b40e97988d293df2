"""Faults of requests, where clients meet them: at the interposer."""

import struct

import pytest
import trio
import trio.testing

from leader_hints.apis.keys import ApiKey
from leader_hints.core.events import Event
from leader_hints.faults.fault import Fault, Faults
from leader_hints.faults.interposer import Interposer
from tests.core.samples import fetch_answer, fetch_request, produce_request
from tests.faults.interposed import RESPONSE, interposed
from tests.net.messages import framed, metadata_request

_TOPICS_NULL = b"\xff\xff\xff\xff"
#: Requests whose topics are null, which the protocol does not allow.
_PRODUCE_8 = struct.pack(">hhihhhi", ApiKey.PRODUCE, 8, 1, -1, -1, 1, 1000) + _TOPICS_NULL
_FETCH_4 = struct.pack(">hhihiiiib", ApiKey.FETCH, 4, 1, -1, -1, 500, 1, 1, 0) + _TOPICS_NULL


async def _connected() -> tuple[trio.SocketStream, trio.SocketStream]:
    """Both ends of a connection over TCP, which alone knows resets."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        client = await trio.testing.open_stream_to_socket_listener(listener)
        return client, await listener.accept()


async def test_a_refusal_of_a_topic_ends_only_connections_that_ask_for_it() -> None:
    faults = Faults()
    interposer = Interposer(faults, lambda event: None)
    faults.begin(Fault.model_validate({"action": "refuse", "topics": ["t"]}))
    assert interposer.admits(["r"]) == ["r"]
    async with interposed(interposer, client=await _connected()) as (client, link):
        await client.send_all(metadata_request(12, 1))
        await link.receive_some()
        await link.send_all(RESPONSE)
        assert await client.receive_some() == RESPONSE
        await client.send_all(fetch_request(11, 2, {("other", 0): 1}))
        await link.receive_some()
        await client.send_all(produce_request(9, 3))
        # franz-go takes an end before the first answer for TLS, and gives up.
        with pytest.raises(trio.BrokenResourceError):
            await client.receive_some()


async def test_a_fault_of_a_topic_meets_a_fetch_session_that_has_it_and_no_other() -> None:
    """Incremental requests name only what changed, in a session at rest nothing at all."""
    for topic, dropped in (("t", True), ("other", False)):
        faults = Faults()
        interposer = Interposer(faults, lambda event: None)
        async with interposed(interposer) as (client, link):
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


@pytest.mark.parametrize(
    ("topic", "session", "refused"),
    [("t", 5, True), ("other", 5, False), ("other", 6, True)],
    ids=["of the session", "of none", "of an unknown session, perhaps"],
)
async def test_an_error_of_a_topic_ends_no_session_that_lacks_it(
    topic: str, session: int, refused: bool
) -> None:
    """Each second Fetch of a consumer of another topic was answered
    FETCH_SESSION_ID_NOT_FOUND."""
    faults = Faults()
    async with interposed(Interposer(faults, lambda event: None)) as (client, link):
        await client.send_all(fetch_request(12, 1, {("t", 0): 1}, session=(0, 0)))
        await link.receive_some()
        opened = fetch_answer(12, 1, [("t", 0, 0, b"")], session_id=5)
        await link.send_all(opened)
        assert await client.receive_some() == opened
        faults.begin(
            Fault.model_validate({"action": "error", "apis": ["Fetch"], "topics": [topic]})
        )
        await client.send_all(fetch_request(12, 2, {}, session=(session, 1)))
        nothing = fetch_answer(12, 2, [], session_id=session)
        if not refused:
            await link.receive_some()
            await link.send_all(nothing)
        answer = await client.receive_some()
        assert (answer != nothing) is refused
        await client.aclose()


@pytest.mark.parametrize("request_", [_PRODUCE_8, _FETCH_4], ids=["Produce", "Fetch"])
async def test_an_array_that_is_null_is_for_the_broker_to_refuse(request_: bytes) -> None:
    """It was reported as a defect of the proxy."""
    faults, told = Faults(), list[Event]()
    faults.begin(Fault.model_validate({"action": "error", "topics": ["t"]}))
    async with interposed(Interposer(faults, told.append)) as (client, link):
        await client.send_all(framed(request_))
        assert await link.receive_some() == framed(request_)
        await link.aclose()
        assert await client.receive_some() == b""
    assert told == []
