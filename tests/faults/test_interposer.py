"""What becomes of a connection that the interposer stands in."""

import struct

import pytest
import trio
import trio.testing

from leader_hints.core.events import Event, FaultDone, LinkFailed
from leader_hints.faults.fault import Fault, Faults
from leader_hints.faults.interposer import Interposer
from tests.faults.interposed import RESPONSE, interposed
from tests.net.messages import framed, metadata_request

#: What begins no Kafka message: a client that speaks TLS.
_HELLO = b"\x16\x03\x01\x02\0" + bytes(512)


def _pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    one, other = trio.socket.socketpair()
    return trio.SocketStream(one), trio.SocketStream(other)


async def test_a_link_that_ends_before_its_response_ends_that_connection_alone() -> None:
    interposer = Interposer(Faults(), lambda event: None)
    asked = metadata_request(12, 1)
    async with interposed(interposer, client=_pair(), link=_pair()) as (client, link):
        await client.send_all(asked)
        assert await link.receive_some() == asked
        await link.aclose()
        assert await client.receive_some() == b""


async def test_bytes_that_are_no_kafka_go_on_to_the_link_which_says_so() -> None:
    """A client that speaks TLS waited for 30 s, and anybody could have 2 GB of his bytes kept."""
    async with interposed(Interposer(Faults(), lambda event: None)) as (client, link):
        await client.send_all(metadata_request(12, 1) + _HELLO)
        received = b""
        while len(received) < len(metadata_request(12, 1) + _HELLO):
            received += await link.receive_some()
        await client.send_all(b"more")
        assert await link.receive_some() == b"more"
        assert received == metadata_request(12, 1) + _HELLO
        await link.aclose()
        assert await client.receive_some() == b""


@pytest.mark.parametrize("more", [b"", _HELLO], ids=["", "behind no Kafka"])
async def test_a_link_learns_that_its_client_says_nothing_more(
    more: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    """A client that had gone while its broker hung left its link there for good."""
    async with interposed(Interposer(Faults(), lambda event: None)) as (client, link):
        await client.send_all(metadata_request(12, 1) + more)
        await client.aclose()
        received = b""
        while chunk := await link.receive_some():
            received += chunk
        assert received == metadata_request(12, 1) + more
        # As the pump does where the broker has said nothing for `linger_ms`.
        await link.aclose()


async def test_a_client_that_says_nothing_more_gets_its_response(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with interposed(Interposer(Faults(), lambda event: None)) as (client, link):
        await client.send_all(metadata_request(12, 1))
        await client.send_eof()
        assert await link.receive_some() == metadata_request(12, 1)
        assert await link.receive_some() == b""
        await link.send_all(RESPONSE)
        assert await client.receive_some() == RESPONSE
        assert await client.receive_some() == b""


@pytest.mark.parametrize("watched", ["on_request", "on_response"])
async def test_a_watcher_that_fails_ends_that_connection_alone(watched: str) -> None:
    def fail(*_: object) -> None:
        raise KeyError

    told: list[Event] = []
    interposer = Interposer(Faults(), told.append, **{watched: fail})
    async with interposed(interposer) as (client, link):
        await client.send_all(metadata_request(12, 1))
        await link.send_all(RESPONSE)
        assert await client.receive_some() == b""
    (failed,) = told
    assert isinstance(failed, LinkFailed)
    assert failed.traceback.endswith("KeyError")


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
    async with interposed(interposer) as (client, link):
        await client.send_all(_produce_2(1) + metadata_request(12, 2))
        await link.send_all(framed(struct.pack(">i", 2) + bytes(4)))
        assert await client.receive_some() == b""
    assert [(event.action, event.api) for event in done if isinstance(event, FaultDone)] == [
        ("drop", "Metadata")
    ]
