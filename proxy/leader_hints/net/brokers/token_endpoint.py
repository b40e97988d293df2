"""Token endpoint: fetches tokens for OAUTHBEARER by the client credentials grant (KIP-768).

The request is that of RFC 6749, section 4.4, with the secret in the header (section 2.3.1).
"""

import base64
import json
import math
import re
import ssl
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

import h11
import trio

from leader_hints.errors import BrokerError, ConfigurationError, LoginError
from leader_hints.net.brokers.broker_stream import open_broker_stream
from leader_hints.net.brokers.secret import read_secret
from leader_hints.net.brokers.tls_stream import TlsStream
from leader_hints.net.tls import tls_errors
from leader_hints.net.tls.certificates import TlsFiles
from leader_hints.settings.sasl import SaslSettings
from leader_hints.settings.tls import BrokerTlsSettings

#: Seconds for one request in all, and until the next one after a failure.
_PATIENCE: Final = 10.0
_PAUSE: Final = 10.0
#: Part of a token's life after which the next one is fetched, as Java's clients do.
_RENEWED_AFTER: Final = 0.8
#: Seconds for which a token is kept at most, 30 years. No float holds what JSON may say.
_LONGEST_LIFE: Final = 1e9
#: Bytes of an answer. A token has a few thousand at most.
_LARGEST: Final = 65_536
#: Bytes taken in one step. An answer may be of parts of one byte, with six bytes each.
_RECEIVE: Final = 1024
#: Answers such as 100 (Continue) before the one that counts.
_MOST_BEFORE: Final = 10
_OK: Final = 200
_TOKEN: Final = re.compile(r"[!-~]+")
_BROKEN: Final = (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError)


class TokenEndpoint:
    """Keeps the present token. All connections of a route share it, and each request for it.

    ``threads``: returns those in which secrets and roots are read, for each request.
    """

    def __init__(self, settings: SaslSettings, threads: Callable[[], trio.CapacityLimiter]) -> None:
        self._settings = settings
        self._url = settings.token_url
        self._threads = threads
        self._lock = trio.Lock()
        self._issued = ""
        self._expires = self._renewed = self._asked_again = self._asked = -math.inf
        self._failure = ""

    def check(self) -> None:
        """See that the secret and the roots can be read. It asks nobody.

        :raises ConfigurationError: they cannot; the text says which and why.
        """
        self._read()

    async def token(self, used: list[str]) -> str:
        """Return a token that is valid, a new one once most of its life is over.

        While none can be fetched the former one is used as long as it is valid. ``used``: what the
        token and the secret are added to, so that they can be hidden.

        :raises LoginError: there is no token; the text says why.
        """
        # Another connection that asks for the next one may have to wait for that.
        if not (self._lock.locked() and self._is_usable()):
            async with self._lock:
                now = trio.current_time()
                if now >= self._renewed and now >= self._asked_again:
                    try:
                        await self._renew(now, used)
                    except (ConfigurationError, LoginError) as error:
                        self._failure, self._asked_again = str(error), trio.current_time() + _PAUSE
                if trio.current_time() >= self._expires:
                    raise LoginError(self._failure)
        used.append(self._issued)
        return self._issued

    def _is_usable(self) -> bool:
        """Whether the token is valid, and no broker has refused it."""
        return trio.current_time() < self._expires and self._renewed > -math.inf

    def refused(self, token: str) -> None:
        """Take it that a broker refuses a token: the next one is fetched before its life is over.

        The endpoint may sign with another key by now, or have withdrawn it. Brokers may refuse each
        one, so no more are fetched for that than after a failure.
        """
        if token == self._issued:
            self._renewed = -math.inf
            self._asked_again = max(self._asked_again, self._asked + _PAUSE)
            self._failure = "the broker refuses the token, and the next is not asked for yet"

    async def _renew(self, now: float, used: list[str]) -> None:
        where = f"the token endpoint {self._settings.token_endpoint}"
        self._asked = now
        try:
            with trio.fail_after(_PATIENCE):
                secret, context = await trio.to_thread.run_sync(
                    self._read, abandon_on_cancel=True, limiter=self._threads()
                )
                used.append(secret)
                answer = await self._ask(secret, context)
            token, life = _token_of(*answer)
            if trio.current_time() >= now + life:
                raise LoginError("its token had expired when it came")
        except trio.TooSlowError:
            raise LoginError(f"{where} does not answer within {_PATIENCE:g} s") from None
        except (BrokerError, LoginError) as error:
            raise LoginError(f"{where}: {error}") from None
        except _BROKEN as error:
            # Such as one that ends the connection, or that speaks no HTTP.
            raise LoginError(f"{where} breaks off or breaks HTTP: {error}") from None
        self._issued = token
        self._expires, self._renewed = now + life, now + _RENEWED_AFTER * life

    def _read(self) -> tuple[str, ssl.SSLContext | None]:
        """:raises ConfigurationError: a file is missing or wrong, or there is no secret."""
        secret = read_secret(self._settings.client_secret)
        if not self._url.tls:
            return secret, None
        tls = BrokerTlsSettings(enabled=True, ca=self._settings.token_endpoint_ca)
        return secret, TlsFiles(tls).context

    async def _ask(self, secret: str, context: ssl.SSLContext | None) -> tuple[int, bytes]:
        """Make the request; return the status and the body of the answer."""
        host = self._url.address.host
        stream: trio.abc.Stream = await open_broker_stream(self._url.address, _PATIENCE)
        try:
            if context is not None:
                stream = await _secured(stream, context, host)
            return await _exchange(stream, self._request(secret), self._body())
        finally:
            # Nothing is left to be said, so nothing is waited for.
            await trio.aclose_forcefully(stream)

    def _request(self, secret: str) -> h11.Request:
        # Both are encoded as in a form before they are joined (RFC 6749, section 2.3.1).
        pair = f"{quote_plus(self._settings.client_id)}:{quote_plus(secret)}"
        return h11.Request(
            method="POST",
            target=self._url.target,
            headers=[
                ("Host", str(self._url.address)),
                ("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"),
                ("Accept", "application/json"),
                ("Content-Type", "application/x-www-form-urlencoded"),
                ("Content-Length", str(len(self._body()))),
                ("Connection", "close"),
            ],
        )

    def _body(self) -> bytes:
        form = {"grant_type": "client_credentials"}
        if self._settings.scope:
            form["scope"] = self._settings.scope
        return urlencode(form).encode()


async def _secured(stream: trio.abc.Stream, context: ssl.SSLContext, host: str) -> trio.abc.Stream:
    secured = TlsStream(stream, context, host)
    try:
        await secured.do_handshake()
    except trio.BrokenResourceError as error:
        raise LoginError(f"it {tls_errors.describe(error.__cause__)}") from None
    return secured


async def _exchange(
    stream: trio.abc.Stream, request: h11.Request, body: bytes
) -> tuple[int, bytes]:
    http = h11.Connection(h11.CLIENT)
    sent = (http.send(event) for event in (request, h11.Data(body), h11.EndOfMessage()))
    await stream.send_all(b"".join(data or b"" for data in sent))
    status, before, received = 0, 0, bytearray()
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(bytes(await stream.receive_some(_RECEIVE)))
        elif isinstance(event, h11.InformationalResponse):
            before += 1
            if before > _MOST_BEFORE:
                raise LoginError(f"it has announced its answer more than {_MOST_BEFORE} times")
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            received += event.data
            if len(received) > _LARGEST:
                raise LoginError(f"its answer has more than {_LARGEST} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return status, bytes(received)


def _token_of(status: int, body: bytes) -> tuple[str, float]:
    """Return the token of an answer, and for how many seconds it is valid.

    :raises LoginError: there is none; the text says why, perhaps in the endpoint's words.
    """
    answer = _object(body)
    if status != _OK:
        # RFC 6749, section 5.2.
        words = [_text(answer[key]) for key in ("error", "error_description") if answer.get(key)]
        raise LoginError(f"it refuses (HTTP {status}): {': '.join(words) or 'it does not say why'}")
    token, life = answer.get("access_token"), answer.get("expires_in")
    # What RFC 7628 sends between separators: no blanks, and nothing that is not ASCII. Without a
    # letter it would not even be sent, so that no broker could refuse it before its life is over.
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise LoginError("its answer has no access_token; is this the URL of a token endpoint?")
    if isinstance(life, str) and life.isascii() and life.isdigit():
        life = int(life[:18])
    if isinstance(life, bool) or not isinstance(life, int | float) or not 0 < life < math.inf:
        raise LoginError("its answer does not say for how long the token is valid (expires_in)")
    return token, float(min(life, _LONGEST_LIFE))


def _text(value: object) -> str:
    """Return a value as a text that can be written anywhere: JSON may say half a surrogate pair."""
    return str(value).encode("utf-8", "replace").decode()


def _object(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
