"""A connection of the proxy's own to a broker."""

import math
import ssl
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar, TypeVarTuple, Unpack

import trio

from leader_hints.apis import sasl_authenticate, sasl_handshake
from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.header import request, response_body
from leader_hints.apis.keys import ApiKey
from leader_hints.errors import BrokerError, ConfigurationError, LoginError
from leader_hints.net.brokers.broker_stream import peer_of
from leader_hints.net.brokers.sasl import Conversation, Credentials
from leader_hints.net.tls import tls_errors
from leader_hints.wire.reader import Reader

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

_SIZE = struct.Struct(">i")
_CORRELATION = struct.Struct(">i")
_RECEIVE = 65_536
#: Largest answer that is taken: Metadata of some two million partitions, which is read in turns.
#: All others are read at once. ListOffsets has one of 300 bytes at most for each partition asked,
#: the rest is of a few kilobytes.
_LARGEST = 1 << 27
_LARGEST_OF_OFFSETS = 1 << 23
_LARGEST_OF_OTHERS = 1 << 20
_LARGEST_OF: Mapping[ApiKey, int] = {
    ApiKey.METADATA: _LARGEST,
    ApiKey.LIST_OFFSETS: _LARGEST_OF_OFFSETS,
}
#: Part of a session's lifetime after which it is renewed, as Java's clients do at the soonest.
_RENEWED_AFTER = 0.85
#: Seconds for a step of SASL in a thread: the longest hash that is computed takes some ten, and a
#: KDC that does not answer is given up after some thirty.
_THREAD_SECONDS = 60.0


class BrokerConnection:
    """Asks one request at a time. Where it has credentials, it authenticates with them before it
    asks anything but versions, and again before the session ends (KIP-368).

    After an error, a timeout or a cancellation the stream is in an unknown state: close it.
    ``peer``: the broker's IP address, "" if it is not known.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        client_id: str,
        timeout: float,
        credentials: Credentials | None = None,
        host: str = "",
    ) -> None:
        """``timeout``: seconds in which an answer must have come. ``host``: of the broker, as in
        its Kerberos principal.
        """
        self.peer = peer_of(stream)
        self._stream = stream
        self._client_id = client_id
        self._timeout = timeout
        self._credentials = credentials
        self._host = host
        self._authenticate_at = math.inf if credentials is None else -math.inf
        self._correlation_id = 0
        self._received = bytearray()

    async def ask(self, key: ApiKey, version: int, body: bytes) -> Reader:
        """Send a request and return a reader at the body of its answer.

        :raises BrokerError: no answer in time, a broken connection or protocol, or it is refused to
            authenticate.
        :raises WireError: the answer's header is not well formed.
        """
        if key is not ApiKey.API_VERSIONS and trio.current_time() >= self._authenticate_at:
            await self._authenticate()
        return await self._ask(key, version, body)

    async def _ask(self, key: ApiKey, version: int, body: bytes) -> Reader:
        self._correlation_id += 1
        asked = request(key, version, self._correlation_id, self._client_id, body)
        try:
            with trio.fail_after(self._timeout):
                await self._stream.send_all(asked)
                payload = await self._answer(_LARGEST_OF.get(key, _LARGEST_OF_OTHERS))
        except trio.TooSlowError:
            raise BrokerError(f"no answer within {self._timeout:g} s") from None
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise BrokerError(_broken(error)) from None
        if _CORRELATION.unpack_from(payload)[0] != self._correlation_id:
            raise BrokerError("answer to another request")
        return response_body(key, version, payload)

    async def wait(
        self,
        event: trio.Event,
        turn: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        """Wait for ``event`` without a request under way.

        ``turn``: awaited before an end of the connection is acted upon.

        :raises BrokerError: the broker ended the connection, or spoke unasked.
        """
        failed = ""

        async def listen() -> None:
            nonlocal failed
            try:
                data = await self._stream.receive_some(_RECEIVE)
                failed = "answer to no request" if data else "connection closed by the broker"
            except trio.BrokenResourceError as error:
                failed = _broken(error)
            await turn()
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await event.wait()
            nursery.cancel_scope.cancel()
        if failed:
            raise BrokerError(failed)

    async def _authenticate(self) -> None:
        assert self._credentials is not None
        try:
            lifetime = await self._begin_session(self._credentials)
        except trio.TooSlowError:
            what = f"{self._credentials.slow} within {_THREAD_SECONDS:g} s"
            raise BrokerError(f"SASL: {what}") from None
        until = trio.current_time() + _RENEWED_AFTER * lifetime
        self._authenticate_at = until if lifetime else math.inf

    async def _begin_session(self, credentials: Credentials) -> float:
        """Authenticate; return for how many seconds that holds, 0 for ever.

        :raises TooSlowError: secrets are not read and hashed in time.
        """
        used: list[str] = []
        try:
            await credentials.prepare(used)
            body = sasl_handshake.write_request_body(credentials.mechanism)
            reader = await self._ask(ApiKey.SASL_HANDSHAKE, sasl_handshake.VERSION, body)
            _check_offer(credentials.mechanism, sasl_handshake.read_response(reader))
            conversation = credentials.converse(used, self._host)
            return await self._converse(credentials, conversation, used)
        except (BrokerError, ConfigurationError, LoginError) as error:
            # Where secrets are read in a thread: a file may be on a disk that hangs.
            if credentials.has_secrets:
                words = await self._in_thread(credentials.hidden, str(error), used)
            else:
                words = credentials.hidden(str(error), used)
            raise BrokerError(f"SASL: {words}") from None

    async def _converse(
        self, credentials: Credentials, conversation: Conversation, used: list[str]
    ) -> float:
        """Have a conversation; return for how many seconds its outcome holds, 0 for ever."""
        token = await self._in_thread(next, conversation)
        while True:
            body = sasl_authenticate.write_request_body(token)
            key, version = ApiKey.SASL_AUTHENTICATE, sasl_authenticate.VERSION
            answer = sasl_authenticate.read_response(await self._ask(key, version, body))
            if answer.error:
                credentials.refused(used)
                words = answer.message or f"error {answer.error}"
                raise BrokerError(credentials.refusal(words, self._host))
            try:
                token = await self._in_thread(_step, conversation, answer.token)
            except _OverError:
                return answer.lifetime_ms / 1000

    async def _in_thread(self, work: Callable[[Unpack[_Ts]], _T], *arguments: *_Ts) -> _T:
        """Abandoned when it is cancelled: a process that is told to end does not wait for a hash of
        ten million rounds, nor for a disk that hangs.

        :raises TooSlowError: it takes too long.
        """
        assert self._credentials is not None
        with trio.fail_after(_THREAD_SECONDS):
            return await trio.to_thread.run_sync(
                work, *arguments, abandon_on_cancel=True, limiter=self._credentials.threads
            )

    async def _answer(self, largest: int) -> memoryview:
        await self._need(_SIZE.size)
        (size,) = _SIZE.unpack_from(self._received)
        if not _CORRELATION.size <= size <= largest:
            raise BrokerError(f"answer of {size} bytes")
        end = _SIZE.size + size
        await self._need(end)
        # Not copied: it may have many megabytes, and what comes behind it is nothing or little.
        received, self._received = self._received, self._received[end:]
        return memoryview(received)[_SIZE.size : end]

    async def _need(self, size: int) -> None:
        while len(self._received) < size:
            data = await self._stream.receive_some(_RECEIVE)
            if not data:
                raise BrokerError("connection closed by the broker")
            self._received += data

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


class _OverError(Exception):
    """All is said. In its place StopIteration could not leave a coroutine."""


def _step(conversation: Conversation, token: bytes) -> bytes:
    try:
        return conversation.send(token)
    except StopIteration:
        raise _OverError from None


def _check_offer(mechanism: str, offered: sasl_handshake.Offered) -> None:
    if offered.error == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        has = ", ".join(offered.mechanisms)
        raise BrokerError(f"the listener does not take {mechanism}; it takes {has or 'none'}")
    if offered.error == ErrorCode.ILLEGAL_SASL_STATE:
        raise BrokerError("the listener has no SASL; set sasl.mechanism: none")
    if offered.error:
        raise BrokerError(f"error {offered.error}")


def _broken(error: BaseException) -> str:
    cause = error.__cause__
    if isinstance(cause, ssl.SSLError):
        return f"connection broken: the broker {tls_errors.describe(cause)}"
    return f"connection broken: {cause or error}"
