"""Relays frames between a client and its link, and injects faults into them.

Only a process that allows faults uses this: pump, links and hints know nothing of faults. Each
message is buffered whole, and two tasks serve each connection: this is for tests of clients, not
for throughput.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import trio

from leader_hints.core.events import Event, LinkFailed
from leader_hints.core.route import Route
from leader_hints.errors import places_of
from leader_hints.faults.asking import Asking, OnRequest, OnResponse
from leader_hints.faults.chosen_faults import ChosenFaults
from leader_hints.faults.fault import Faults
from leader_hints.faults.frames import Frames, NoFrameError
from leader_hints.faults.request_faults import ConnectionRefused, RequestFaults
from leader_hints.faults.response_faults import ConnectionCut, ResponseFaults
from leader_hints.net.clients.reset import reset_when_closed
from leader_hints.wire.errors import WireError

#: Requests of a connection that await their responses, at most.
_MOST_WAITING = 1000


class Interposer:
    """Injects the active faults into messages that pass. ``emit`` takes an event for each one."""

    def __init__(
        self,
        faults: Faults,
        emit: Callable[[Event], None],
        on_request: OnRequest = lambda route, asking: None,
        on_response: OnResponse = lambda route, asking, frame: None,
    ) -> None:
        self._emit = emit
        self._on_request = on_request
        self._chosen = ChosenFaults(faults, emit)
        self._requests = RequestFaults(self._chosen)
        self._responses = ResponseFaults(self._chosen, on_response)
        self._links = 0

    def admits(self, routes: Sequence[str]) -> Sequence[str]:
        """Return which of some routes, by name, take a connection that is made now."""
        return self._chosen.admits(routes)

    async def serve(
        self,
        route: Route,
        client: trio.abc.HalfCloseableStream,
        link: trio.abc.HalfCloseableStream,
    ) -> None:
        """Relay between a client and its link until either ends, then close both."""
        self._links += 1
        number = self._links
        waiting, asked = trio.open_memory_channel[Asking](_MOST_WAITING)
        try:
            async with client, link, trio.open_nursery() as nursery:
                nursery.start_soon(self._answer, route, client, link, asked, nursery.cancel_scope)
                async with waiting:
                    try:
                        await self._ask(route, number, client, link, waiting)
                    except NoFrameError as no_frame:
                        # The link says what it is, and ends.
                        await link.send_all(no_frame.received)
                        async for more in client:
                            await link.send_all(more)
                    # Responses may still come for a client that only says nothing more. But of one
                    # that has gone the link learns in no other way: without this a broker that
                    # hangs would keep all of it for good, since `linger_ms` would not begin.
                    await link.send_eof()
        except* (
            ConnectionCut,
            ConnectionRefused,
            trio.BrokenResourceError,
            trio.ClosedResourceError,
            # The link ended while a client waited for a response.
            trio.EndOfChannel,
            WireError,
        ):
            pass
        except* Exception as group:
            # A defect of the proxy or of an observer must end one connection and not all of them.
            for error in _leaves(group):
                places = places_of(error)
                self._emit(LinkFailed(route=route.name, link=number, traceback=places))

    async def _ask(
        self,
        route: Route,
        number: int,
        client: trio.abc.HalfCloseableStream,
        link: trio.abc.HalfCloseableStream,
        waiting: trio.MemorySendChannel[Asking],
    ) -> None:
        """Send the requests of a client on, but for those that are refused.

        :raises NoFrameError: it sends something else.
        :raises ConnectionRefused: a fault refuses its connection.
        """
        async for frame in Frames(client):
            try:
                asking = self._requests.look(route, number, frame)
            except ConnectionRefused:
                reset_when_closed(client)
                raise
            self._on_request(route, asking)
            if asking.refused is None:
                await link.send_all(frame)
            if not asking.asked.silent:
                await waiting.send(asking)

    async def _answer(
        self,
        route: Route,
        client: trio.abc.HalfCloseableStream,
        link: trio.abc.HalfCloseableStream,
        asked: trio.MemoryReceiveChannel[Asking],
        scope: trio.CancelScope,
    ) -> None:
        """Send the responses on in order, refusals among them."""
        send, responses = trio.open_memory_channel[bytes](0)
        busy = trio.Lock()

        async def receive() -> None:
            async with send:
                with suppress(NoFrameError):
                    async for frame in Frames(link):
                        await send.send(frame)
            # The link has ended: nothing more comes. What it said before is good, and goes on
            # first: it may be delayed, or be taken slowly, for as long as the client stays.
            async with busy:
                scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            async for asking in asked:
                async with busy:
                    frame = asking.refused
                    if frame is None:
                        frame = await responses.receive()
                        self._requests.follow(route, asking, frame)
                        frame = self._responses.restaged(route, asking, frame)
                    await self._responses.send(route, client, asking, frame)
            nursery.cancel_scope.cancel()
        scope.cancel()


def _leaves(group: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
