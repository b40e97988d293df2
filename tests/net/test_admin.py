"""The HTTP server for metrics and health, asked over streams; whatever it is sent, it stands."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair

from proxy.core.mode import Mode
from proxy.core.route import Route
from proxy.net.admin import Admin
from proxy.observe.metrics import Metrics

_METRICS = Metrics([Route("a", Mode.ON)])
_ADMIN = Admin({"/metrics": _METRICS.render, "/livez": lambda _: (b"alive\n", "text/plain")})


async def _answer(*chunks: bytes, admin: Admin = _ADMIN) -> tuple[str, dict[str, str], bytes]:
    """Status line, headers and body of the answer to a request."""
    raw = await _raw(*chunks, admin=admin)
    head, _, body = raw.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return status, headers, body


async def _raw(*chunks: bytes, admin: Admin = _ADMIN) -> bytes:
    """All that comes back before the server closes."""
    client, server = memory_stream_pair()
    raw = b""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(admin.handle, server)
        for chunk in chunks:
            await client.send_all(chunk)
            await trio.testing.wait_all_tasks_blocked()
        await client.send_eof()
        with trio.fail_after(60):
            while data := await client.receive_some():
                raw += data
    return raw


def _get(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: h", *headers, "", ""]).encode()


async def test_metrics_are_served_as_text() -> None:
    status, headers, body = await _answer(_get("/metrics"))

    assert status.startswith("HTTP/1.1 200")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert int(headers["content-length"]) == len(body)
    assert b'leader_hints_links_open{route="a"} 0.0\n' in body


async def test_metrics_are_served_as_openmetrics_where_that_is_accepted() -> None:
    accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    _, headers, body = await _answer(_get("/metrics", accept))

    assert headers["content-type"].startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


async def test_a_query_changes_nothing() -> None:
    status, _, body = await _answer(_get("/livez?verbose=1"))

    assert status.startswith("HTTP/1.1 200")
    assert body == b"alive\n"


async def test_head_has_the_headers_of_get_and_no_body() -> None:
    status, headers, body = await _answer(_get("/livez", method="HEAD"))

    assert status.startswith("HTTP/1.1 200")
    assert headers["content-length"] == "6"
    assert body == b""


@pytest.mark.parametrize("path", ["/", "/metrics/", "/Livez", "*", "http://h/livez", "/%2e"])
async def test_what_is_not_there_is_not_found(path: str) -> None:
    status, headers, body = await _answer(_get(path))

    assert status.startswith("HTTP/1.1 404")
    assert int(headers["content-length"]) == len(body)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "BREW"])
async def test_other_methods_are_not_allowed(method: str) -> None:
    status, headers, _ = await _answer(_get("/metrics", method=method))

    assert status.startswith("HTTP/1.1 405")
    assert headers["allow"] == "get, head"


async def test_one_request_is_answered_and_the_connection_is_closed() -> None:
    raw = await _raw(_get("/livez") + _get("/livez"))

    assert raw.count(b"HTTP/1.1 200") == 1
    assert b"connection: close" in raw.lower()


async def test_a_request_cut_in_two_at_every_byte_is_answered() -> None:
    request = _get("/livez", "Accept: */*", "Content-Length: 3", method="GET") + b"abc"
    for cut in range(1, len(request)):
        status, _, body = await _answer(request[:cut], request[cut:])
        assert status.startswith("HTTP/1.1 200")
        assert body == b"alive\n"


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"GET",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00\x00\x00\x15\x00\x12\x00\x03",
        b"GET /livez HTTP/1.1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        _get("/livez", "X: " + "x" * 100_000),
        _get("/" + "x" * 100_000),
    ],
)
async def test_garbage_is_dropped_without_a_word(garbage: bytes) -> None:
    assert await _raw(garbage) == b""


@pytest.mark.parametrize(
    "request_",
    [
        _get("/livez", method="CONNECT"),
        _get("/livez", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"),
        _get("/livez", "Expect: 100-continue", "Content-Length: 0"),
        b"GET /livez HTTP/1.0\r\n\r\n",
        _get("/livez", "Accept: \xff"),
        _get("/metrics", "Accept: application/openmetrics-text; version=x"),
    ],
)
async def test_odd_requests_are_answered(request_: bytes) -> None:
    assert (await _raw(request_)).startswith(b"HTTP/1.1 ")


Send = Callable[[trio.abc.Stream], Awaitable[None]]


async def _half_a_request(stream: trio.abc.Stream) -> None:
    await stream.send_all(_get("/livez")[:-2])


async def _a_trickle(stream: trio.abc.Stream) -> None:
    for byte in _get("/livez", "X: " + "x" * 1000):
        await stream.send_all(bytes([byte]))
        await trio.sleep(1)


async def _a_request_whose_answer_is_not_taken(stream: trio.abc.Stream) -> None:
    await stream.send_all(_get("/metrics"))


@pytest.mark.parametrize(
    "send", [_half_a_request, _a_trickle, _a_request_whose_answer_is_not_taken]
)
async def test_a_slow_client_is_dropped(autojump_clock: MockClock, send: Send) -> None:
    client, server = lockstep_stream_pair()
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:

        async def speak() -> None:
            try:
                await send(client)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return

        nursery.start_soon(speak)
        await _ADMIN.handle(server)
        assert trio.current_time() - begin == 10
        nursery.cancel_scope.cancel()
    with pytest.raises(trio.ClosedResourceError):
        await server.send_all(b"x")


async def test_a_client_that_goes_before_its_answer_is_no_error() -> None:
    client, server = memory_stream_pair()
    await client.send_all(_get("/metrics"))
    await client.aclose()
    await _ADMIN.handle(server)
