"""A connection of the proxy's own to a broker."""

import struct

import trio

from proxy.apis.header import request, response_body
from proxy.apis.keys import ApiKey
from proxy.errors import BrokerError
from proxy.wire.reader import Reader

_SIZE = struct.Struct(">i")
_CORRELATION = struct.Struct(">i")
_RECEIVE = 65_536
#: Largest answer that is taken: Metadata of some two million partitions.
_LARGEST = 1 << 27


class BrokerConnection:
    """Asks one request at a time.

    After an error, a timeout or a cancellation the stream is in an unknown state: close it.
    """

    def __init__(self, stream: trio.abc.Stream, client_id: str, timeout: float) -> None:
        """``timeout``: seconds in which an answer must have come."""
        self._stream = stream
        self._client_id = client_id
        self._timeout = timeout
        self._correlation_id = 0
        self._received = bytearray()

    async def ask(self, key: ApiKey, version: int, body: bytes) -> Reader:
        """Send a request and return a reader at the body of its answer.

        :raises BrokerError: no answer in time, a broken connection, or a broken protocol.
        :raises WireError: the answer's header is not well formed.
        """
        self._correlation_id += 1
        asked = request(key, version, self._correlation_id, self._client_id, body)
        try:
            with trio.fail_after(self._timeout):
                await self._stream.send_all(asked)
                payload = await self._answer()
        except trio.TooSlowError:
            raise BrokerError(f"no answer within {self._timeout:g} s") from None
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise BrokerError(f"connection broken: {error.__cause__ or error}") from None
        if _CORRELATION.unpack_from(payload)[0] != self._correlation_id:
            raise BrokerError("answer to another request")
        return response_body(key, version, memoryview(payload))

    async def wait(self, event: trio.Event) -> None:
        """Wait for ``event`` without a request under way.

        :raises BrokerError: the broker ended the connection, or spoke unasked.
        """
        failed = ""

        async def listen() -> None:
            nonlocal failed
            try:
                data = await self._stream.receive_some(_RECEIVE)
                failed = "answer to no request" if data else "connection closed by the broker"
            except trio.BrokenResourceError as error:
                failed = f"connection broken: {error.__cause__ or error}"
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await event.wait()
            nursery.cancel_scope.cancel()
        if failed:
            raise BrokerError(failed)

    async def _answer(self) -> bytes:
        await self._need(_SIZE.size)
        (size,) = _SIZE.unpack_from(self._received)
        if not _CORRELATION.size <= size <= _LARGEST:
            raise BrokerError(f"answer of {size} bytes")
        end = _SIZE.size + size
        await self._need(end)
        payload = bytes(self._received[_SIZE.size : end])
        del self._received[:end]
        return payload

    async def _need(self, size: int) -> None:
        while len(self._received) < size:
            data = await self._stream.receive_some(_RECEIVE)
            if not data:
                raise BrokerError("connection closed by the broker")
            self._received += data

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()
