"""The HTTP server for metrics and health."""

from collections.abc import Callable

import h11
import trio

#: Seconds for a request to arrive, and for its answer to be taken.
_PATIENCE = 10.0
_RECEIVE = 8192

#: Path -> what answers it, from the request's Accept header: body and content type.
Pages = dict[str, Callable[[str], tuple[bytes, str]]]


class Admin:
    """Serves pages, one request on each connection."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Answer one request; a client that is too slow or talks nonsense is dropped."""
        connection = h11.Connection(h11.SERVER)
        async with stream:
            with trio.move_on_after(_PATIENCE):
                try:
                    await self._answer(stream, connection, await self._read(stream, connection))
                except (h11.RemoteProtocolError, trio.BrokenResourceError):
                    return

    async def _read(self, stream: trio.abc.Stream, connection: h11.Connection) -> h11.Request:
        request = None
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(bytes(await stream.receive_some(_RECEIVE)))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                return request
            elif isinstance(event, h11.ConnectionClosed):
                raise trio.BrokenResourceError("no request")

    async def _answer(
        self, stream: trio.abc.Stream, connection: h11.Connection, request: h11.Request
    ) -> None:
        path = request.target.split(b"?")[0].decode("latin-1")
        accept = dict(request.headers).get(b"accept", b"").decode("latin-1")
        page = self._pages.get(path)
        body, content_type, status = b"not found\n", "text/plain", 404
        headers = [("Connection", "close")]
        if page is not None and request.method in (b"GET", b"HEAD"):
            (body, content_type), status = page(accept), 200
        elif page is not None:
            body, status = b"only GET and HEAD\n", 405
            headers.append(("Allow", "GET, HEAD"))
        headers += [("Content-Type", content_type), ("Content-Length", str(len(body)))]
        out = connection.send(h11.Response(status_code=status, headers=headers))
        if request.method != b"HEAD":
            out += connection.send(h11.Data(data=body))
        await stream.send_all(out)
