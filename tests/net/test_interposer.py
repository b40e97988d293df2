"""What becomes of a connection that the interposer stands in."""

import trio

from proxy.core.fault import Faults
from proxy.core.mode import Mode
from proxy.core.route import Route
from proxy.net.interposer import Interposer
from tests.net.messages import metadata_request

_SECONDS = 10.0


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
