"""Relays frames between a client and its link, and injects faults into them.

Only a process that allows faults uses this: pump, links and hints know nothing of faults. Each
message is buffered whole, and two tasks serve each connection: this is for tests of clients, not
for throughput.
"""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import trio

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.header import RequestHeader, read_request_header
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.core.events import Event, FaultDone, LinkFailed
from leader_hints.core.route import Route
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH
from leader_hints.errors import places_of
from leader_hints.faults.fault import Action, Begun, Fault, Faults, hint_for
from leader_hints.faults.refusal import Asked, read_asked, read_session_id, refuse
from leader_hints.faults.session_partitions import Partitions, SessionPartitions
from leader_hints.faults.stale_metadata import Leaders, read_told, restage
from leader_hints.net.clients.reset import reset_when_closed
from leader_hints.wire.errors import WireError

_SIZE = struct.Struct(">i")
_RECEIVE = 65_536
#: Requests of a connection that await their responses, at most.
_MOST_WAITING = 1000
#: Seconds between two sips of a throttled response.
_SIP_SECONDS = 0.05
_NOTHING = Asked(())


class Asking(NamedTuple):
    """A request that went by, on the connection number ``link``. ``about``: all partitions that it
    asks about, those of its session too. ``refused``: what is answered in place of a broker's
    response.
    """

    link: int
    header: RequestHeader
    frame: bytes
    asked: Asked
    about: Partitions = ()
    refused: bytes | None = None


#: Are called with each request, and with each response and the frame that the client gets.
OnRequest = Callable[[Route, Asking], None]
OnResponse = Callable[[Route, Asking, bytes], None]


class _Over(Exception):
    """The connection is to end now."""


class _RefusedError(_Over):
    """It is to end as if there were no listener."""


class Interposer:
    """Injects the active faults into messages that pass. ``emit`` takes an event for each one."""

    def __init__(
        self,
        faults: Faults,
        emit: Callable[[Event], None],
        on_request: OnRequest = lambda route, asking: None,
        on_response: OnResponse = lambda route, asking, frame: None,
    ) -> None:
        self._faults = faults
        self._emit = emit
        self._on_request = on_request
        self._on_response = on_response
        self._links = 0
        self._sessions: defaultdict[str, SessionPartitions] = defaultdict(SessionPartitions)

    def admits(self, routes: Sequence[str]) -> Sequence[str]:
        """Return which of some routes, by name, take a connection that is made now.

        A fault that leaves others of them only sends the connection there, as where one broker is
        down. It is done, and counted, where it leaves none.
        """
        for begun in self._faults:
            fault = begun.fault
            if fault.action is not Action.REFUSE or not fault.chooses_connections:
                continue
            left = [route for route in routes if not fault.chooses(route, "", "")]
            if left:
                routes = left
            elif routes and self._faults.due(begun):
                self._report(begun, routes[0], "", "")
                return ()
        return routes

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
                    async for frame in _Frames(client):
                        try:
                            asking = self._look(route, number, frame)
                        except _RefusedError:
                            reset_when_closed(client)
                            raise
                        self._on_request(route, asking)
                        if asking.refused is None:
                            await link.send_all(frame)
                        if not asking.asked.silent:
                            await waiting.send(asking)
        except* (
            _Over,
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

    def _look(self, route: Route, link: int, frame: bytes) -> Asking:
        """Read a request as far as the faults need it, and refuse it if one does."""
        header = read_request_header(memoryview(frame))
        api, client_id = api_name(header.key), header.client_id or ""
        asked = _NOTHING
        if header.key in (ApiKey.PRODUCE, ApiKey.FETCH):
            asked = _read(frame)
        about: Partitions = asked.partitions
        if asked.incremental:
            sessions = self._sessions[route.name]
            about = sessions.change(asked.session, asked.partitions, asked.forgotten)
        for begun in self._of(Action.REFUSE, route, header):
            if _concerns(begun.fault, route, about) and self._faults.due(begun):
                self._report(begun, route.name, api, client_id)
                raise _RefusedError
        for begun in self._of(Action.ERROR, route, header):
            if not asked.partitions and not asked.incremental:
                continue
            refused = self._refuse(begun, route, header, frame, asked)
            if refused is not None:
                return Asking(link, header, frame, asked, about, refused)
        return Asking(link, header, frame, asked, about)

    def _refuse(
        self, begun: Begun, route: Route, header: RequestHeader, frame: bytes, asked: Asked
    ) -> bytes | None:
        fault = begun.fault
        chosen = [at for at in asked.partitions if fault.chooses_partition(*_named(route, at))]
        if not asked.incremental:
            # An incremental Fetch is asked for in full first: it does not say its partitions.
            if not chosen or not self._faults.due(begun):
                return None
            for topic, partition in chosen:
                self._report(
                    begun,
                    route.name,
                    api_name(header.key),
                    header.client_id or "",
                    refused=(route.broker.topic_name(topic), partition),
                )
        return refuse(
            memoryview(frame),
            header.correlation_id,
            fault.error.code,
            lambda topic, partition: fault.chooses_partition(*_named(route, (topic, partition))),
            lambda topic, partition: hint_for(fault.hint, route, topic, partition),
        )

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
                async for frame in _Frames(link):
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
                        self._follow(route, asking, frame)
                        frame = self._restage(route, asking, frame)
                    await self._send(route, client, asking, frame)
            nursery.cancel_scope.cancel()
        scope.cancel()

    async def _send(
        self, route: Route, client: trio.abc.SendStream, asking: Asking, frame: bytes
    ) -> None:
        header = asking.header
        for begun in self._of(Action.DELAY, route, header):
            if self._done(begun, route, asking):
                await trio.sleep(begun.fault.delay_ms / 1000)
        for begun in self._of(Action.DROP, route, header):
            if self._done(begun, route, asking):
                raise _Over
        for begun in self._of(Action.CUT, route, header):
            if self._done(begun, route, asking):
                await client.send_all(frame[: len(frame) // 2])
                raise _Over
        self._on_response(route, asking, frame)
        for begun in self._of(Action.THROTTLE, route, header):
            if self._done(begun, route, asking):
                await _send_slowly(client, frame, begun.fault.bytes_per_second)
                return
        await client.send_all(frame)

    def _follow(self, route: Route, asking: Asking, frame: bytes) -> None:
        """Remember what a new fetch session asks about."""
        if not asking.asked.opens:
            return
        session = read_session_id(memoryview(frame), asking.header.version)
        if session:
            self._sessions[route.name].begin(session, asking.asked.partitions)

    def _restage(self, route: Route, asking: Asking, frame: bytes) -> bytes:
        """Return Metadata as it was, if a fault requires it.

        A fault applies only where it changes something: clients also ask for brokers alone, and
        for partitions that have not moved. Of several for a partition the oldest applies.
        """
        header = asking.header
        staging = self._of(Action.STALE_METADATA, route, header)
        if header.key != ApiKey.METADATA or not staging:
            return frame
        now, _ = told = read_told(memoryview(frame), header.version)
        leaders: dict[tuple[str, int], tuple[int, int]] = {}
        hidden: set[int] = set()
        for begun in staging:
            former = {
                at: leader
                for at, leader in begun.told.items()
                if at in now and at not in leaders and begun.fault.chooses_partition(*at)
            }
            hides = begun.fault.hide_nodes & told.nodes - hidden if _names(begun, now) else set()
            if not hides and all(_is_as(now[at], leader) for at, leader in former.items()):
                continue
            if self._faults.due(begun):
                self._report(begun, route.name, api_name(header.key), header.client_id or "")
                leaders |= former
                hidden |= hides
        if not leaders and not hidden:
            return frame
        return restage(memoryview(frame), header.version, header.correlation_id, leaders, hidden)

    def _of(self, action: Action, route: Route, header: RequestHeader) -> list[Begun]:
        """Return the faults of an action that choose a message, by its header."""
        return [
            begun
            for begun in self._faults
            if begun.fault.action is action
            and begun.fault.chooses(route.name, api_name(header.key), header.client_id or "")
        ]

    def _done(self, begun: Begun, route: Route, asking: Asking) -> bool:
        """Whether a fault applies to a response now; it is reported then."""
        if not _concerns(begun.fault, route, asking.about) or not self._faults.due(begun):
            return False
        header = asking.header
        self._report(begun, route.name, api_name(header.key), header.client_id or "")
        return True

    def _report(
        self,
        begun: Begun,
        route: str,
        api: str,
        client_id: str,
        *,
        refused: tuple[str, int] | None = None,
    ) -> None:
        """Report that a fault was applied; ``refused``: to a topic's partition."""
        topic, partition = refused or ("", -1)
        self._emit(
            FaultDone(
                route=route,
                number=begun.number,
                action=begun.fault.action,
                api=api,
                client_id=client_id,
                topic=topic,
                partition=partition,
                error=begun.fault.error.code if refused else 0,
                hint=begun.fault.hint if refused else "",
            )
        )


def _leaves(group: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def _send_slowly(client: trio.abc.SendStream, frame: bytes, rate: int) -> None:
    sip = max(int(rate * _SIP_SECONDS), 1)
    for at in range(0, len(frame), sip):
        await trio.sleep(sip / rate)
        await client.send_all(frame[at : at + sip])


def _concerns(fault: Fault, route: Route, about: Partitions) -> bool:
    if not fault.chooses_some_partitions:
        return True
    return any(fault.chooses_partition(*_named(route, at)) for at in about)


def _names(begun: Begun, leaders: Leaders) -> bool:
    """Whether Metadata names something that a fault chooses."""
    fault = begun.fault
    return not fault.chooses_some_partitions or any(fault.chooses_partition(*at) for at in leaders)


def _is_as(now: tuple[int, int], former: tuple[int, int]) -> bool:
    """Whether a leader is the former one, as far as the version says it."""
    return now[0] == former[0] and now[1] in (former[1], UNKNOWN_EPOCH)


def _named(route: Route, at: tuple[Topic, int]) -> tuple[str, int]:
    return route.broker.topic_name(at[0]), at[1]


def _read(frame: bytes) -> Asked:
    try:
        return read_asked(memoryview(frame))
    except WireError:
        # A version that is not known here passes: no fault that minds partitions chooses it.
        return _NOTHING


class _Frames:
    """Iterates over the frames that come from a stream, size prefixes included."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._received = bytearray()

    def __aiter__(self) -> "_Frames":
        return self

    async def __anext__(self) -> bytes:
        if not await self._has(_SIZE.size):
            raise StopAsyncIteration
        (size,) = _SIZE.unpack_from(self._received)
        end = _SIZE.size + size
        if size < 0 or not await self._has(end):
            raise StopAsyncIteration
        frame = bytes(self._received[:end])
        del self._received[:end]
        return frame

    async def _has(self, size: int) -> bool:
        """Wait for so many bytes; false where no more come."""
        while len(self._received) < size:
            chunk = await self._stream.receive_some(_RECEIVE)
            if not chunk:
                return False
            self._received += chunk
        return True
