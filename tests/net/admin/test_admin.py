"""The HTTP server for metrics and health, asked over streams; whatever it is sent, it stands."""

import json
import os
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from trio.testing import (
    MockClock,
    lockstep_stream_pair,
    memory_stream_pair,
    wait_all_tasks_blocked,
)

from leader_hints.address import Address
from leader_hints.core.events import AdminFailed, Event
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.faults.fault import Faults
from leader_hints.faults.fault_pages import FaultPages
from leader_hints.net import time_slices
from leader_hints.net.admin import admin as admin_module
from leader_hints.net.admin.admin import Admin, Reply, Request
from leader_hints.net.admin.admin_pages import AdminPages
from leader_hints.observe.metrics import Metrics
from tests.net.http_events import HttpEvents
from tests.net.serving import until_true
from tests.observe.watching import watched

_LOOPBACK = Address("127.0.0.1", 9100)
_PUBLIC = Address("0.0.0.0", 9100)
_NAMED = Address("admin.example", 9100)


class _Process:
    """What the admin server is asked about. ``reasons``: by route, why it is not ready."""

    def __init__(self) -> None:
        self.modes = {"a": Mode.ON, "[::1]:19092": Mode.OBSERVE, "50%": Mode.OFF}
        self.modes["unread"] = Mode.OFF
        self.reasons = dict.fromkeys(self.modes, "")
        self.events: list[Event] = []

    async def ready(self) -> dict[str, str]:
        return self.reasons

    async def status(self) -> bytes:
        """A document, one at each time."""
        await trio.lowlevel.checkpoint()
        return b'{"format":1}'.ljust(10_000)

    async def clients(self) -> bytes:
        """Another document."""
        await trio.lowlevel.checkpoint()
        return b'{"format":1,"clients":[]}'

    def switch(self, route: str, mode: Mode) -> str | None:
        """As the process does, which refuses a route on which TLS goes through unread."""
        if route == "unread":
            return "TLS goes through unread"
        self.modes[route] = mode
        return None

    def admin(self, listen: Address = _LOOPBACK, token: str | None = None) -> Admin:
        pages = AdminPages(
            Metrics(watched([Route("a", Mode.ON)])),
            self.status,
            self.clients,
            self.ready,
            lambda: self.modes,
            self.switch,
            [FaultPages(Faults(), lambda fault: 1, list)],
        )
        return Admin(pages.answer, listen, self.events.append, token)


_ADMIN = _Process().admin()


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
            await wait_all_tasks_blocked()
        await client.send_eof()
        with trio.fail_after(60):
            while data := await client.receive_some():
                raw += data
    return raw


def _get(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


async def test_metrics_are_served_as_text() -> None:
    status, headers, body = await _answer(_get("/metrics"))

    assert status.startswith("HTTP/1.1 200")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert int(headers["content-length"]) == len(body)
    assert b'leader_hints_links_open{route="a"} 0.0\n' in body


async def test_a_client_that_says_nothing_keeps_nobody_else_out() -> None:
    """Each connection is a descriptor, of which clients need theirs; and probes must be served."""
    admin = _Process().admin()
    silent = [memory_stream_pair() for _ in range(200)]
    ended = 0

    async def wait(client: trio.abc.ReceiveStream) -> None:
        nonlocal ended
        assert await client.receive_some() == b""
        ended += 1

    async with trio.open_nursery() as nursery:
        for client, server in silent:
            nursery.start_soon(wait, client)
            nursery.start_soon(admin.handle, server)
        await wait_all_tasks_blocked()
        assert ended >= 200 - 64
        status, _, _ = await _answer(_get("/livez"), admin=admin)
        assert status.startswith("HTTP/1.1 200")
        nursery.cancel_scope.cancel()


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


@pytest.mark.parametrize(
    "path",
    ["/metrics/", "/Livez", "*", "http://127.0.0.1/livez", "/%2e", "/routes/", "/routes/hints"],
)
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
        b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
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


# What there is.


async def test_the_page_is_served_and_may_use_nothing_from_elsewhere() -> None:
    status, headers, body = await _answer(_get("/"))

    assert status.startswith("HTTP/1.1 200")
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["x-content-type-options"] == "nosniff"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert body.startswith(b"<!doctype html>")


async def test_the_status_is_json() -> None:
    status, headers, body = await _answer(_get("/status"))

    assert status.startswith("HTTP/1.1 200")
    assert headers["content-type"] == "application/json"
    assert headers["cache-control"] == "no-store"
    assert body.rstrip() == b'{"format":1}'


async def test_readiness_says_which_route_is_not_ready_and_why() -> None:
    process = _Process()
    status, _, body = await _answer(_get("/readyz"), admin=process.admin())
    assert status.startswith("HTTP/1.1 200")
    assert json.loads(body) == {"ready": True, "not_ready": {}}

    process.reasons["a"] = "broker b:9092: cannot connect: connection refused"
    status, _, body = await _answer(_get("/readyz"), admin=process.admin())
    assert status.startswith("HTTP/1.1 503")
    assert json.loads(body) == {"ready": False, "not_ready": {"a": process.reasons["a"]}}


async def test_a_defect_ends_one_request_and_is_reported() -> None:
    events: list[Event] = []

    async def broken(request: Request) -> Reply:
        raise KeyError(request.path)

    status, _, _ = await _answer(_get("/secret"), admin=Admin(broken, _LOOPBACK, events.append))
    assert status.startswith("HTTP/1.1 500")
    (failed,) = events
    assert isinstance(failed, AdminFailed)
    assert failed.traceback.endswith("KeyError")
    assert "secret" not in failed.traceback


async def test_large_requests_that_come_together_are_taken_in_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sixty with bodies in chunks of one byte took 350 ms of one round; no link is served in it."""
    taken = HttpEvents(monkeypatch)
    monkeypatch.setattr(time_slices, "monotonic", taken.clock)
    trio.lowlevel.add_instrument(taken)
    body = b"1\r\nx\r\n" * 1000 + b"0\r\n\r\n"
    asked = _get("/hints/a", "Transfer-Encoding: chunked", method="PUT") + body
    answers: list[bytes] = []

    async def ask() -> None:
        answers.append(await _raw(asked))

    async with trio.open_nursery() as nursery:
        for _ in range(40):
            nursery.start_soon(ask)
    trio.lowlevel.remove_instrument(taken)
    assert len(answers) == 40
    assert all(answer.startswith(b"HTTP/1.1 404") for answer in answers)
    # One slice has 400 of them, and the first part of each request takes no turn.
    assert 400 <= taken.in_round < 600


async def test_a_defect_before_or_after_the_answer_ends_one_request_and_is_reported() -> None:
    """Also where nothing can be answered any more."""
    events: list[Event] = []

    async def broken(request: Request) -> Reply:
        return Reply(200, b"", "text/plain\nX: y")  # No header can be like that.

    async def odd(request: Request) -> Reply:
        return Reply(200, b"", None)  # type: ignore[arg-type]

    for answer in (broken, odd):
        assert await _raw(_get("/"), admin=Admin(answer, _LOOPBACK, events.append)) == b""
    assert [type(event) for event in events] == [AdminFailed]


_HOSTILE = [
    "http://[",
    "http://[::1",
    "//[",
    "[",
    "]",
    "http://[x]:y",
    "http://a:99999999999",
    "\xff",
]


@pytest.mark.parametrize("value", _HOSTILE)
@pytest.mark.parametrize("header", ["Origin", "Sec-Fetch-Site", "Accept", "X-Forwarded-Host"])
async def test_no_header_of_a_change_ends_the_server_or_makes_the_change(
    header: str, value: str
) -> None:
    process = _Process()
    request_ = b"\r\n".join(
        [
            b"PUT /routes/a/hints HTTP/1.1",
            b"Host: 127.0.0.1:9100",
            f"{header}: {value}".encode("latin-1"),
            *(b"Content-Length: 3", b"", b"off"),
        ]
    )
    status, _, _ = await _answer(request_, admin=process.admin())

    trusted = header in ("Accept", "X-Forwarded-Host")
    assert status.startswith("HTTP/1.1 200" if trusted else "HTTP/1.1 403")
    assert process.modes["a"] is (Mode.OFF if trusted else Mode.ON)
    assert not process.events


#: What a header's value may be on the wire (RFC 9110): no control characters, no blanks around it.
_VALUES = st.one_of(
    st.sampled_from([*_HOSTILE, "127.0.0.1:9100", "http://127.0.0.1:9100", "same-origin", "null"]),
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0xFF, blacklist_characters="\x7f")),
)
_NAMES = st.sampled_from(
    ["Host", "Origin", "Sec-Fetch-Site", "Accept", "Content-Length", "Transfer-Encoding", "Expect"]
)
_PATHS = st.one_of(
    st.sampled_from(["/", "/metrics", "/status", "/readyz", "/routes/a/hints", "/faults", "*"]),
    st.builds(
        lambda name: f"/routes/{name}/hints",
        st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E)),
    ),
    st.builds(lambda rest: f"/faults/{rest}", st.sampled_from(["1", "\xb2", "-1", "9" * 5000])),
)


@given(
    st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "CONNECT"]),
    _PATHS,
    st.lists(st.tuples(_NAMES, _VALUES), max_size=5),
    st.binary(max_size=30),
)
@example("PUT", "/routes/a/hints", [("Origin", "http://[")], b"")
@example("DELETE", f"/faults/{'9' * 5000}", [], b"")
def test_whatever_is_asked_is_answered_or_dropped_and_no_defect(
    method: str, path: str, headers: list[tuple[str, str]], body: bytes
) -> None:
    process = _Process()
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1:9100"]
    lines += [f"{name}: {value}" for name, value in headers if name != "Host"]
    request_ = "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    raw: bytes = trio.run(partial(_raw, request_, admin=process.admin()))

    assert not process.events
    assert raw == b"" or raw.startswith(b"HTTP/1.1 ")
    assert not raw.startswith(b"HTTP/1.1 5")


@given(st.binary(max_size=300))
def test_whatever_is_sent_is_answered_or_dropped_and_no_defect(data: bytes) -> None:
    process = _Process()
    raw: bytes = trio.run(partial(_raw, data, admin=process.admin()))

    assert not process.events
    assert not raw.startswith(b"HTTP/1.1 5")


# The kill switch.


def _put(path: str, body: str, *headers: str) -> bytes:
    head = _get(path, *headers, f"Content-Length: {len(body)}", method="PUT")
    return head + body.encode()


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/routes/a/hints", "a"),
        ("/routes/[::1]:19092/hints", "[::1]:19092"),
        ("/routes/%5B%3A%3A1%5D%3A19092/hints", "[::1]:19092"),
        ("/routes/50%25/hints?x", "50%"),
    ],
)
@pytest.mark.parametrize("mode", ["on", "observe", "off\n"])
async def test_what_a_route_does_about_hints_can_be_changed(
    path: str, route: str, mode: str
) -> None:
    process = _Process()
    before = process.modes[route]
    status, _, body = await _answer(_put(path, mode), admin=process.admin())

    assert status.startswith("HTTP/1.1 200")
    assert json.loads(body) == {"route": route, "hints": mode.strip(), "before": before}
    assert process.modes == {**_Process().modes, route: Mode(mode.strip())}
    status, _, body = await _answer(_get(path), admin=process.admin())
    assert json.loads(body) == {"route": route, "hints": mode.strip()}


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        (_put("/routes/a/hints", "maybe"), 400, b"on, observe, off"),
        (_put("/routes/a/hints", ""), 400, b"on, observe, off"),
        (_put("/routes/a/hints", "\xff"), 400, b"on, observe, off"),
        (_put("/routes/unread/hints", "on"), 409, b"TLS goes through unread"),
        (_put("/routes/b/hints", "off"), 404, b"there are: a, [::1]:19092, 50%"),
        (_put("/routes/a%2Fhints/hints", "off"), 404, b"no such route"),
        (_get("/routes/a/hints", method="DELETE"), 405, b"only GET, HEAD and PUT"),
        (_put("/routes/a/hints", "x" * 5000), 413, b"too long"),
    ],
)
async def test_a_bad_switch_changes_nothing_and_says_why(
    request_: bytes, status: int, words: bytes
) -> None:
    process = _Process()
    line, _, body = await _answer(request_, admin=process.admin())

    assert line.startswith(f"HTTP/1.1 {status}")
    assert words in body
    assert process.modes == _Process().modes


def _hosted(host: str, *headers: str, method: str = "PUT") -> bytes:
    lines = [f"{method} /routes/a/hints HTTP/1.1", f"Host: {host}", *headers]
    return "\r\n".join([*lines, "Content-Length: 3", "", "off"]).encode()


_OWN = "Origin: http://127.0.0.1:9100"


@pytest.mark.parametrize(
    ("listen", "request_", "allowed"),
    [
        # No browser: curl.
        (_LOOPBACK, _hosted("127.0.0.1:9100"), True),
        (_LOOPBACK, _hosted("localhost:9100"), True),
        (_LOOPBACK, _hosted("[::1]:9100"), True),
        (
            Address("admin.example", 9100),
            _hosted("admin.example:9100", "Sec-Fetch-Site: none"),
            True,
        ),
        # The page itself.
        (_LOOPBACK, _hosted("127.0.0.1:9100", _OWN, "Sec-Fetch-Site: same-origin"), True),
        (_LOOPBACK, _hosted("127.0.0.1:9100", _OWN), True),
        # Another site, or another port of this machine.
        (_LOOPBACK, _hosted("127.0.0.1:9100", "Origin: http://evil.example"), False),
        (_LOOPBACK, _hosted("127.0.0.1:9100", "Origin: null"), False),
        (_LOOPBACK, _hosted("127.0.0.1:9100", "Origin: http://127.0.0.1:3000"), False),
        (_LOOPBACK, _hosted("127.0.0.1:9100", _OWN, "Sec-Fetch-Site: same-site"), False),
        (_LOOPBACK, _hosted("127.0.0.1:9100", "Sec-Fetch-Site: cross-site"), False),
        # A name that somebody else has point here.
        (_LOOPBACK, _hosted("evil.example:9100", "Origin: http://evil.example:9100"), False),
        (_LOOPBACK, _hosted("evil.example:9100"), False),
        (_LOOPBACK, _hosted("localhost.evil.example"), False),
        (_LOOPBACK, _hosted("[::1"), False),
        (_PUBLIC, _hosted("evil.example:9100", "Origin: http://evil.example:9100"), False),
        (_PUBLIC, _hosted("evil.example:9100", "Sec-Fetch-Site: same-origin"), False),
        # By the machine's own name, which is not known here, but with no browser.
        (_PUBLIC, _hosted("broker-1.example:9100"), True),
        (_PUBLIC, _hosted("192.0.2.7:9100", "Origin: http://192.0.2.7:9100"), True),
    ],
)
async def test_only_an_operator_can_switch(
    listen: Address, request_: bytes, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = _Process()
    monkeypatch.setenv("TOKEN_OF_TEST", "sésame")
    token = b"\r\nAuthorization: Bearer " + "sésame".encode()
    request_ = request_.replace(b"\r\n", token + b"\r\n", 1)
    status, _, _ = await _answer(request_, admin=process.admin(listen, "env:TOKEN_OF_TEST"))

    assert status.startswith("HTTP/1.1 200" if allowed else "HTTP/1.1 403")
    assert process.modes["a"] is (Mode.OFF if allowed else Mode.ON)


@pytest.mark.parametrize(
    ("listen", "host", "status"),
    [
        (_LOOPBACK, "evil.example:9100", 403),
        (_LOOPBACK, "127.0.0.1:1", 200),
        # Prometheus asks by the machine's name.
        (_PUBLIC, "broker-1.example:9100", 200),
    ],
)
async def test_a_foreign_name_reads_nothing_of_the_loopback_address(
    listen: Address, host: str, status: int
) -> None:
    request_ = _hosted(host, method="GET")
    line, *_ = await _answer(request_, admin=_Process().admin(listen))

    assert line.startswith(f"HTTP/1.1 {status}")


@pytest.mark.parametrize(
    ("given", "token", "status"),
    [
        # Of a memory stream nobody knows whether it comes from this machine.
        ("", None, 403),
        ("Authorization: Bearer right", None, 403),
        ("", "env:TOKEN_OF_TEST", 401),
        ("Authorization: Bearer wrong", "env:TOKEN_OF_TEST", 401),
        ("Authorization: Basic right", "env:TOKEN_OF_TEST", 401),
        ("Authorization: bearer  right", "env:TOKEN_OF_TEST", 200),
        ("Authorization: Bearer right", "env:NO_SUCH_TOKEN", 500),
    ],
)
async def test_a_change_from_elsewhere_needs_the_token(
    given: str, token: str | None, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", "right")
    process = _Process()
    admin = process.admin(_PUBLIC, token)
    headers = [given] if given else []
    line, replied, body = await _answer(_hosted("192.0.2.7:9100", *headers), admin=admin)

    assert line.startswith(f"HTTP/1.1 {status}")
    assert process.modes["a"] is (Mode.OFF if status == 200 else Mode.ON)
    assert b"right" not in body
    assert (replied.get("www-authenticate") == "bearer") is (status == 401)
    # Any client that reaches it may read.
    line, *_ = await _answer(_get("/routes/a/hints"), admin=admin)
    assert line.startswith("HTTP/1.1 200")


async def test_a_token_whose_reading_hangs_is_read_by_another_thread_once_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could switch hints off before the process was started again, nor learnt why."""
    monkeypatch.setattr(admin_module, "_TOKEN_PATIENCE", 0.1)
    token = tmp_path / "token"
    # A disk that hangs: to open this for reading waits for a writer.
    os.mkfifo(token)
    process = _Process()
    admin = process.admin(_PUBLIC, f"file:{token}")
    request = _hosted("192.0.2.7:9100", "Authorization: Bearer right")
    assert await _hangs(request, admin)
    hung = token.rename(tmp_path / "hung")
    token.write_text("right\n")
    # Its thread is the only one for that: no number of requests costs more.
    assert await _hangs(request, admin)
    admin.renew_threads()
    line, *_ = await _answer(request, admin=admin)
    assert line.startswith("HTTP/1.1 200")
    # The thread ends.
    os.close(os.open(hung, os.O_RDWR | os.O_NONBLOCK))


async def _hangs(request: bytes, admin: Admin) -> bool:
    line, _, body = await _answer(request, admin=admin)
    assert line.startswith("HTTP/1.1 500")
    return body.startswith(b"admin_token: it was not read") and body.endswith(b"send SIGHUP\n")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_change_from_this_machine_needs_no_token_where_none_is_set(host: str) -> None:
    process = _Process()
    async with trio.open_nursery() as nursery:
        admin = process.admin(_PUBLIC)
        listeners = await trio.open_tcp_listeners(0, host=host)
        nursery.start_soon(trio.serve_listeners, admin.handle, listeners)
        port = listeners[0].socket.getsockname()[1]
        client = await trio.open_tcp_stream(host, port)
        await client.send_all(_hosted("192.0.2.7:9100"))
        with trio.fail_after(10):
            assert (await client.receive_some()).startswith(b"HTTP/1.1 200")
        nursery.cancel_scope.cancel()
    assert process.modes["a"] is Mode.OFF


async def test_where_a_token_is_set_this_machine_needs_it_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", "right")
    admin = _Process().admin(_LOOPBACK, "env:TOKEN_OF_TEST")
    line, *_ = await _answer(_hosted("127.0.0.1:9100"), admin=admin)
    assert line.startswith("HTTP/1.1 401")


@pytest.mark.parametrize("listen", [_LOOPBACK, _PUBLIC])
@pytest.mark.parametrize("header", ["X-Forwarded-For: 192.0.2.9", "Forwarded: for=192.0.2.9"])
async def test_what_a_proxy_on_this_machine_forwards_is_from_elsewhere(
    listen: Address, header: str
) -> None:
    process = _Process()
    async with trio.open_nursery() as nursery:
        admin = process.admin(listen)
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, admin.handle, listeners)
        client = await trio.open_tcp_stream(*listeners[0].socket.getsockname())
        await client.send_all(_hosted("127.0.0.1:9100", header))
        with trio.fail_after(10):
            assert (await client.receive_some()).startswith(b"HTTP/1.1 403")
        nursery.cancel_scope.cancel()
    assert process.modes["a"] is Mode.ON


@pytest.mark.parametrize("token", ["voilà", "pine…", "of a Secret\n", " between blanks \r\n"])
async def test_a_token_is_taken_as_a_header_can_have_it(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", token)
    admin = _Process().admin(_PUBLIC, "env:TOKEN_OF_TEST")
    given = f"Authorization: Bearer {token.strip()}"
    line, *_ = await _answer(_hosted("192.0.2.7:9100", given), admin=admin)
    assert line.startswith("HTTP/1.1 200")


async def test_a_token_of_blanks_alone_is_never_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_TEST", " \n")
    admin = _Process().admin(_PUBLIC, "env:TOKEN_OF_TEST")
    for blank in ("", "  "):
        given_ = f"Authorization: Bearer{blank}"
        line, *_ = await _answer(_hosted("192.0.2.7:9100", given_), admin=admin)
        assert line.startswith("HTTP/1.1 401")


async def test_descriptors_are_listed_while_links_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To list 20,000 took 13 to 24 ms of the event loop."""
    served, list_directory = threading.Event(), os.listdir

    def slow(path: str) -> list[str]:
        assert served.wait(10)
        return list_directory(path)

    monkeypatch.setattr(os, "listdir", slow)

    async def serve() -> None:
        await wait_all_tasks_blocked()
        served.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        status, _, body = await _answer(_get("/metrics"))
    assert status.startswith("HTTP/1.1 200")
    assert b"process_open_fds" in body


#: Bytes of more than a head.
_LARGE = 1000


class _TakesNothing(trio.abc.Stream):
    """Asks for a page, and takes nothing of the answer. ``sent``: what it was to take."""

    def __init__(self, request_: bytes) -> None:
        self._request = request_
        self.sent: list[bytes] = []

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        request_, self._request = self._request, b""
        return request_

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        assert isinstance(data, bytes)
        self.sent.append(data)
        if len(data) > _LARGE:
            await trio.sleep_forever()

    async def wait_send_all_might_not_block(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("path", ["/metrics", "/status"])
async def test_many_who_ask_for_a_page_together_share_it(path: str) -> None:
    """Each had two copies of its own, of 5 MB with 300 routes, and half a second of CPU."""
    asking = [
        # What it says that it takes makes no page of its own.
        _TakesNothing(_get(path, f"Accept: text/plain; q={number}"))
        for number in range(60)
    ]
    admin = _Process().admin()
    async with trio.open_nursery() as nursery:
        for stream in asking:
            nursery.start_soon(admin.handle, stream)
        await until_true(lambda: all(max(map(len, s.sent), default=0) > _LARGE for s in asking))
        kept = {id(data): len(data) for stream in asking for data in stream.sent}
        assert sum(kept.values()) < 2 * max(kept.values()) + _LARGE * len(asking)
        nursery.cancel_scope.cancel()
