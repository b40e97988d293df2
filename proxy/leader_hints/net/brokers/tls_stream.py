"""A TLS stream of the proxy's own, whose other end cannot keep it busy with TLS alone."""

import math
import ssl

import trio

from leader_hints.net.pump.tls_socket import GIVEN, MAKES_UP_FOR, MOST_IDLE


class TlsStream(trio.abc.Stream):
    """A client's end. ``transport``: the stream beneath it.

    What it receives has the bounds of a link's (:mod:`leader_hints.net.pump.tls_socket`): Trio
    gives OpenSSL 64 KB at once, and again as much for as long as it brings nothing.
    """

    def __init__(self, transport: trio.abc.Stream, context: ssl.SSLContext, name: str) -> None:
        """``name``: what must stand in the certificate of the other end.

        :raises ValueError: no certificate can have that name.
        """
        self.transport = transport
        self._weighed = _Weighed(transport)
        self._tls = trio.SSLStream(
            self._weighed, context, server_hostname=name, https_compatible=True
        )

    async def do_handshake(self) -> None:
        """Do the handshake, before anything else.

        :raises BrokenResourceError: it failed.
        """
        await self._tls.do_handshake()
        self._weighed.idle = 0

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """See :class:`trio.abc.SendStream`."""
        await self._tls.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """See :class:`trio.abc.SendStream`."""
        await self._tls.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """See :class:`trio.abc.ReceiveStream`.

        :raises BrokenResourceError: besides, the other end keeps TLS busy and sends no data.
        """
        data = await self._tls.receive_some(max_bytes)
        self._weighed.idle = max(self._weighed.idle - MAKES_UP_FOR * len(data), 0)
        return data

    async def aclose(self) -> None:
        """See :class:`trio.abc.AsyncResource`."""
        await self._tls.aclose()


class _Weighed(trio.abc.Stream):
    """The stream beneath. ``idle``: bytes received that brought nothing.

    They do not count before the handshake is done: certificates have as many as they like.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self.idle: float = -math.inf

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        # Trio receives only when all that came before is decrypted, and was taken.
        if self.idle > MOST_IDLE:
            raise trio.BrokenResourceError("the other end keeps TLS busy and sends no data")
        data = await self._stream.receive_some(GIVEN)
        self.idle += len(data)
        return data

    async def aclose(self) -> None:
        await self._stream.aclose()
