"""What becomes of a connection that the interposer stands in."""

import pytest
import trio
import trio.testing

from proxy.core.events import Event, LinkFailed
from proxy.core.fault import Action, Fault, Faults
from proxy.core.mode import Mode
from proxy.core.route import Route
from proxy.net.interposer import Interposer
from tests.net.messages import metadata_request

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
