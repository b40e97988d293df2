"""What somebody does to the admin server who speaks no HTTP, or speaks it to harm."""

import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping

import trio

from tests.fuzz.mutate import chunks, mutated
from tests.harness.connection import Address

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)
#: Seconds that one attack lasts at most.
_MOST_S = 5.0
_MANY = 40
_METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "CONNECT", "TRACE")
_PATHS = (
    "/",
    "/metrics",
    "/status",
    "/readyz",
    "/livez",
    "/routes//hints",
    "/faults/1",
    "*",
    "//[",
)
_NAMES = ("Origin", "Sec-Fetch-Site", "Accept", "Expect", "Upgrade", "Connection", "Cookie")
#: Texts that what reads URLs, hosts and headers may stumble over.
_VALUES = (
    *("http://[", "http://[::1", "http://[x]:1", "//]", "http://a:99999", "null", "same-origin"),
    *("application/openmetrics-text; version=x", "100-continue", "h2c", "%", "%ff", "\xff", ""),
)
_HOSTS = ("127.0.0.1", "localhost:1", "[::1", "[", "evil.example", "a:b:c", "\xff", "127.0.0.1:x")


class AdminAttacker:
    """Makes a connection to the admin server at ``address`` and does harm on it.

    It changes nothing that others would notice: no route has a name that it asks for.
    """

    def __init__(self, address: Address, chance: random.Random) -> None:
        self._address = address
        self._chance = chance

    async def attack(self, made: dict[str, int]) -> None:
        """Do one attack, and count it by its name; that the connection ends is no news."""
        name = self._chance.choice(list(ADMIN_ATTACKS))
        with contextlib.suppress(*_GONE), trio.move_on_after(_MOST_S):
            stream = await trio.open_tcp_stream(*self._address)
            made[name] += 1
            async with stream:
                await ADMIN_ATTACKS[name](self, stream)

    async def odd_requests(self, stream: trio.SocketStream) -> None:
        """Send whole requests with headers by chance, a connection each, and take the answers."""
        for _ in range(_MANY):
            with contextlib.suppress(*_GONE):
                await stream.send_all(self._request())
                while await stream.receive_some():
                    pass
            await stream.aclose()
            stream = await trio.open_tcp_stream(*self._address)

    async def mutated_requests(self, stream: trio.SocketStream) -> None:
        """Send a request that was changed by chance, in pieces."""
        others = [self._request() for _ in range(5)]
        for chunk in chunks(mutated(self._request(), others, self._chance), self._chance):
            await stream.send_all(chunk)
        with trio.move_on_after(self._chance.random()):
            while await stream.receive_some():
                pass

    async def endless_head(self, stream: trio.SocketStream) -> None:
        """Send headers without end."""
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        for _ in range(1000):
            await stream.send_all(b"X: " + b"x" * 1000 + b"\r\n")

    async def endless_body(self, stream: trio.SocketStream) -> None:
        """Claim a large body, or one in pieces, and send it without end."""
        head = self._chance.choice(("Content-Length: 99999999999", "Transfer-Encoding: chunked"))
        await stream.send_all(f"POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n\r\n".encode())
        for _ in range(1000):
            await stream.send_all(b"3e8\r\n" + b"x" * 1000 + b"\r\n")

    async def unread_answer(self, stream: trio.SocketStream) -> None:
        """Ask, and go without the answer."""
        await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

    def _request(self) -> bytes:
        some = self._chance.choice
        path = some((*_PATHS, f"/routes/{some(_VALUES)}/hints", "/faults/" + "9" * 5000))
        lines = [f"{some(_METHODS)} {path} HTTP/1.{some('01')}", f"Host: {some(_HOSTS)}"]
        lines += [f"{some(_NAMES)}: {some(_VALUES)}" for _ in range(self._chance.randrange(5))]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


ADMIN_ATTACKS: Mapping[str, Callable[[AdminAttacker, trio.SocketStream], Awaitable[None]]] = {
    "odd http": AdminAttacker.odd_requests,
    "mutated http": AdminAttacker.mutated_requests,
    "endless head": AdminAttacker.endless_head,
    "endless body": AdminAttacker.endless_body,
    "unread answer": AdminAttacker.unread_answer,
}
