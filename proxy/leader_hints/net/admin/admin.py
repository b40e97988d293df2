"""The HTTP server for metrics, health, the status and the kill switch."""

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import h11
import trio

from leader_hints.address import Address
from leader_hints.core.events import AdminFailed, Event
from leader_hints.errors import ConfigurationError, places_of
from leader_hints.net.admin.admin_guard import SAFE_METHODS, denial, refusal
from leader_hints.net.brokers.secret import read_secret
from leader_hints.net.time_slices import TimeSlices

#: Seconds for a request to arrive, to be answered, and for its answer to be taken.
_PATIENCE = 10.0
#: Seconds of these for the token to be read.
_TOKEN_PATIENCE = 5.0
#: Connections at the same time: more than probes, scrapers and people make, and few of the
#: descriptors that the process has for all but links.
_MOST = 64
_RECEIVE = 8192
#: Bytes of a request that it takes no turn for: 60 of them, all at once, take less than 50 ms.
_SMALL = 512
#: The longest body that any request needs, generously.
_MOST_BODY = 1024
_UNAUTHORIZED = 401

_TOKEN_HANGS = (
    b"admin_token: it was not read within 5 s. "
    b"Does its disk hang? When it can be read again, send SIGHUP\n"
)

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
#: Of every answer: it is of this moment, nothing else than it says, and for nobody's page to use.
_HEADERS = (
    ("Connection", "close"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


class Request(NamedTuple):
    """An HTTP request: ``path`` as it was sent, without its query; ``headers`` in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """What is answered."""

    status: int
    body: bytes
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()


def json_reply(status: int, value: object) -> Reply:
    """Return an answer with a JSON document."""
    return Reply(status, f"{json.dumps(value)}\n".encode(), JSON)


class _TooLarge(Exception):
    """The request's body is longer than any that is needed."""


class Admin:
    """Serves one request on each connection.

    ``answer``: what it is asked for. ``listen``: the address that the operator gave. ``token``:
    where the secret is that changes need, ``None`` where they must come from this machine.
    """

    def __init__(
        self,
        answer: Callable[[Request], Awaitable[Reply]],
        listen: Address,
        emit: Callable[[Event], None],
        token: str | None = None,
    ) -> None:
        self._answer = answer
        self._token = token
        self.renew_threads()
        self._listen = listen
        self._emit = emit
        self._slices = TimeSlices()
        #: Of the connections that are open, the oldest first.
        self._open: OrderedDict[trio.CancelScope, None] = OrderedDict()

    def renew_threads(self) -> None:
        """Have the token read in another thread: the present one may hang for good."""
        self._reading = trio.CapacityLimiter(1)

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Answer one request; a client that is too slow or talks nonsense is dropped.

        Where there are too many, the oldest one is: the newest may be a probe.
        """
        connection = h11.Connection(h11.SERVER)
        async with stream:
            with trio.move_on_after(_PATIENCE) as scope, self._counted(scope):
                try:
                    await self._serve(stream, connection)
                except (h11.ProtocolError, trio.BrokenResourceError):
                    return
                except Exception as error:
                    # A defect here must not end the process, which relays other people's data.
                    self._emit(AdminFailed(traceback=places_of(error)))

    @contextmanager
    def _counted(self, scope: trio.CancelScope) -> Iterator[None]:
        if len(self._open) >= _MOST:
            oldest, _ = self._open.popitem(last=False)
            oldest.cancel()
        self._open[scope] = None
        try:
            yield
        finally:
            self._open.pop(scope, None)

    async def _serve(self, stream: trio.abc.Stream, connection: h11.Connection) -> None:
        with_body = True
        try:
            request = await self._read(stream, connection)
            with_body = request.method != "HEAD"
            reply = await self._reply(request, is_near=self._is_near(stream))
        except _TooLarge:
            reply = Reply(413, b"the body is too long\n")
        await stream.send_all(_head(connection, reply))
        if with_body:
            # Not joined with the head: it may have megabytes, and be others' answer too.
            await stream.send_all(reply.body)

    async def _read(self, stream: trio.abc.Stream, connection: h11.Connection) -> Request:
        incoming, received = _Incoming(connection), 0
        while True:
            steps = incoming.taking()
            if received > _SMALL:
                await self._slices.take(steps)
            else:
                # At once: requests that come together share the page that they ask for.
                for _ in steps:
                    pass
            if incoming.request is not None:
                return incoming.request
            data = bytes(await stream.receive_some(_RECEIVE))
            received += len(data)
            connection.receive_data(data)

    async def _reply(self, request: Request, *, is_near: bool) -> Reply:
        try:
            refused = refusal(request.method, request.headers, self._listen)
            if refused is not None:
                return Reply(403, f"{refused}\n".encode())
            denied = await self._denied(request, is_near=is_near)
            return await self._answer(request) if denied is None else denied
        except Exception as error:
            self._emit(AdminFailed(traceback=places_of(error)))
            return Reply(500, b"a defect of leader-hints; see its log\n")

    async def _denied(self, request: Request, *, is_near: bool) -> Reply | None:
        token = None
        if self._token and request.method not in SAFE_METHODS:
            try:
                with trio.fail_after(_TOKEN_PATIENCE):
                    token = await trio.to_thread.run_sync(
                        read_secret, self._token, abandon_on_cancel=True, limiter=self._reading
                    )
            except ConfigurationError as error:
                return Reply(500, f"admin_token: {error}\n".encode())
            except trio.TooSlowError:
                return Reply(500, _TOKEN_HANGS)
        denied = denial(request.method, request.headers, token, is_near=is_near)
        if denied is None:
            return None
        status, why = denied
        asks = (("WWW-Authenticate", "Bearer"),) if status == _UNAUTHORIZED else ()
        return Reply(status, f"{why}\n".encode(), TEXT, asks)

    def _is_near(self, stream: trio.abc.Stream) -> bool:
        """Whether a connection comes from this machine."""
        if self._listen.is_loopback:
            return True
        if not isinstance(stream, trio.SocketStream):
            return False
        try:
            host, port, *_ = stream.socket.getpeername()
        except OSError:
            return False  # It has gone.
        return Address(host, port).is_loopback


class _Incoming:
    """A request as it comes in. ``request``: the whole one, once it is there."""

    def __init__(self, connection: h11.Connection) -> None:
        self._connection = connection
        self._head: h11.Request | None = None
        self._body = b""
        self.request: Request | None = None

    def taking(self) -> Iterator[None]:
        """Take what was received, in steps: there may be a thousand chunks of one byte.

        :raises _TooLarge: its body is too long.
        :raises h11.ProtocolError: it is none.
        :raises trio.BrokenResourceError: nothing more will come.
        """
        while (event := self._connection.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Request):
                self._head = event
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > _MOST_BODY:
                    raise _TooLarge
            elif isinstance(event, h11.EndOfMessage) and self._head is not None:
                self.request = _request(self._head, self._body)
                return
            elif isinstance(event, h11.ConnectionClosed):
                raise trio.BrokenResourceError("no request")
            yield


def _request(head: h11.Request, body: bytes) -> Request:
    return Request(
        head.method.decode("latin-1"),
        head.target.split(b"?")[0].decode("latin-1"),
        {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers},
        body,
    )


def _head(connection: h11.Connection, reply: Reply) -> bytes:
    headers = [
        *_HEADERS,
        ("Content-Type", reply.content_type),
        ("Content-Length", str(len(reply.body))),
        *reply.headers,
    ]
    return connection.send(h11.Response(status_code=reply.status, headers=headers))
