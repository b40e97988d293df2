"""Tokens for OAUTHBEARER: how they are fetched, kept and renewed, and what goes wrong."""

import base64
import json
import ssl
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h11
import pytest
import trio
import trustme
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from leader_hints.errors import BrokerError, ConfigurationError, LoginError
from leader_hints.net.brokers import token_endpoint
from leader_hints.net.brokers.sasl import Credentials
from leader_hints.net.brokers.token_endpoint import TokenEndpoint
from leader_hints.settings.sasl import SaslSettings
from tests.net.brokers.sasl_broker import (
    AUTHENTICATE,
    Broker,
    EndedError,
    Judge,
    RefusedError,
    ask,
    connected,
)
from tests.net.http_events import HttpEvents

SECRET = "s3cret/with+ü"
ID = "leader hints"
URL = "http://idp.test/token?a=b"


class Endpoint:
    """Answers each request by ``answer``: status and body; ``None``: it does not.

    ``forms`` and ``heads`` are what requests had.
    """

    def __init__(self, answer: Callable[[], tuple[int, bytes] | bytes | None]) -> None:
        self.answer = answer
        self.forms: list[dict[str, str]] = []
        self.heads: list[dict[bytes, bytes]] = []
        self.targets: list[bytes] = []

    async def serve(self, stream: trio.abc.Stream) -> None:
        http, form = h11.Connection(h11.SERVER), b""
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(bytes(await stream.receive_some(4096)))
            elif isinstance(event, h11.Request):
                self.heads.append(dict(event.headers))
                self.targets.append(event.target)
            elif isinstance(event, h11.Data):
                form += event.data
            else:
                break
        self.forms.append(dict(urllib.parse.parse_qsl(form.decode())))
        answer = self.answer()
        if answer is None:
            await trio.sleep_forever()
        if isinstance(answer, bytes):
            await stream.send_all(answer)
        elif answer:
            status, body = answer
            response = h11.Response(status_code=status, headers=[("Connection", "close")])
            for event in (response, h11.Data(body), h11.EndOfMessage()):
                await stream.send_all(http.send(event) or b"")
        await stream.aclose()


def issued(token: str = "header.claims.signature", life: Any = 100) -> tuple[int, bytes]:
    """An answer with a token."""
    return 200, json.dumps({"access_token": token, "expires_in": life}).encode()


class Scene:
    """An endpoint, and what asks it; ``down``: it cannot be reached."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery) -> None:
        self.endpoint = Endpoint(issued)
        self.down = False
        self._nursery = nursery
        monkeypatch.setattr(token_endpoint, "open_broker_stream", self._open)
        monkeypatch.setenv("CLIENT_SECRET", SECRET)

    async def _open(self, address: Any, patience: float) -> trio.abc.Stream:
        if self.down:
            raise BrokerError("cannot connect: connection refused")
        ours, theirs = memory_stream_pair()
        self._nursery.start_soon(self.endpoint.serve, theirs)
        return ours


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery) -> Scene:
    """An endpoint in memory."""
    return Scene(monkeypatch, nursery)


def settings(**others: str) -> SaslSettings:
    """Settings for it."""
    values = {
        "mechanism": "OAUTHBEARER",
        "token_endpoint": URL,
        "client_id": ID,
        "client_secret": "env:CLIENT_SECRET",
        **others,
    }
    return SaslSettings.model_validate(values)


def tokens(**others: str) -> TokenEndpoint:
    """What asks it."""
    threads = trio.CapacityLimiter(1)
    return TokenEndpoint(settings(**others), lambda: threads)


async def test_it_asks_as_the_grant_says(scene: Scene) -> None:
    used: list[str] = []
    assert await tokens(scope="kafka more").token(used) == "header.claims.signature"
    (form,), (head,), (target,) = (
        scene.endpoint.forms,
        scene.endpoint.heads,
        scene.endpoint.targets,
    )
    assert form == {"grant_type": "client_credentials", "scope": "kafka more"}
    assert target == b"/token?a=b"
    scheme, _, pair = head[b"authorization"].decode().partition(" ")
    name, _, secret = base64.b64decode(pair).decode().partition(":")
    assert scheme == "Basic"
    assert (urllib.parse.unquote_plus(name), urllib.parse.unquote_plus(secret)) == (ID, SECRET)
    assert used == [SECRET, "header.claims.signature"]


async def test_a_token_is_renewed_before_it_expires_and_shared(
    scene: Scene, mock_clock: MockClock
) -> None:
    asked = tokens()
    for seconds, requests in ((0, 1), (79, 1), (2, 2), (79, 2), (2, 3)):
        mock_clock.jump(seconds)
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(asked.token, [])
        assert len(scene.endpoint.forms) == requests


async def test_a_token_is_used_as_long_as_it_is_valid_while_there_is_no_other(
    scene: Scene, mock_clock: MockClock
) -> None:
    asked = tokens()
    await asked.token([])
    scene.down = True
    mock_clock.jump(99)
    assert await asked.token([]) == "header.claims.signature"
    mock_clock.jump(2)
    with pytest.raises(LoginError, match=r"^the token endpoint http://idp.test/token\?a=b: cannot"):
        await asked.token([])
    scene.down = False
    # An endpoint that cannot be reached, or refuses, is asked again after ten seconds.
    with pytest.raises(LoginError):
        await asked.token([])
    mock_clock.jump(10)
    assert await asked.token([]) == "header.claims.signature"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            (401, b'{"error": "invalid_client", "error_description": "no such client"}'),
            "it refuses (HTTP 401): invalid_client: no such client",
        ),
        ((302, b""), "it refuses (HTTP 302): it does not say why"),
        # Half a surrogate pair, which the status page could not have in its JSON.
        ((400, b'{"error": "\\ud800"}'), "it refuses (HTTP 400): ?"),
        ((200, b"<html>"), "its answer has no access_token; is this the URL of a token endpoint?"),
        ((200, b'["access_token"]'), "its answer has no access_token"),
        ((200, b'{"access_token": 5}'), "its answer has no access_token"),
        ((200, b'{"access_token": "a\\u0001b"}'), "its answer has no access_token"),
        # It would be kept for its life, and no broker could refuse it.
        (issued(""), "its answer has no access_token"),
        (issued(" "), "its answer has no access_token"),
        ((200, b"[" * 60_000), "its answer has no access_token"),
        (issued(life=None), "its answer does not say for how long the token is valid"),
        (issued(life=True), "its answer does not say for how long"),
        (issued(life=-1), "its answer does not say for how long"),
        (issued(life=float("nan")), "its answer does not say for how long"),
        ((200, b"x" * 70_000), "its answer has more than 65536 bytes"),
        (b"", "breaks off or breaks HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x0a", "breaks off or breaks HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 5000, "breaks off or breaks HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "breaks off or breaks HTTP"),
    ],
)
async def test_what_is_no_token_is_said(scene: Scene, answer: Any, said: str) -> None:
    scene.endpoint.answer = lambda: answer
    with pytest.raises(LoginError) as refused:
        await tokens().token([])
    assert said in str(refused.value)
    assert str(refused.value).startswith("the token endpoint http://idp.test/token?a=b")


@pytest.mark.parametrize("life", ["100", 1e300, 10**400, 100.5])
async def test_lives_that_servers_write_otherwise(scene: Scene, life: Any) -> None:
    scene.endpoint.answer = lambda: issued(life=life)
    assert await tokens().token([])


async def test_a_token_that_expires_on_its_way_is_said_and_not_asked_for_at_once_again(
    scene: Scene, mock_clock: MockClock
) -> None:
    def late() -> tuple[int, bytes]:
        mock_clock.jump(2)
        return issued(life=1)

    scene.endpoint.answer = late
    asked = tokens()
    for _ in range(3):
        with pytest.raises(LoginError, match=r"^the token endpoint .*: its token had expired when"):
            await asked.token([])
    assert len(scene.endpoint.forms) == 1
    scene.endpoint.answer = issued
    mock_clock.jump(10)
    assert await asked.token([]) == "header.claims.signature"


async def test_one_that_does_not_answer_is_not_waited_for(
    scene: Scene, autojump_clock: MockClock
) -> None:
    scene.endpoint.answer = lambda: None
    before = trio.current_time()
    with pytest.raises(LoginError, match="does not answer within 10 s"):
        await tokens().token([])
    assert trio.current_time() - before < 11


@pytest.mark.parametrize("refused", [False, True])
async def test_an_endpoint_that_hangs_keeps_no_connection_from_a_token_that_is_valid(
    scene: Scene, mock_clock: MockClock, refused: bool
) -> None:
    """All connections of a route waited for ten seconds, again and again: now one does. But where
    a broker has refused the token, the next one is worth waiting for.
    """
    asked = tokens()
    token = await asked.token([])
    mock_clock.jump(85)
    if refused:
        asked.refused(token)
    scene.endpoint.answer = lambda: None
    waited: list[float] = []

    async def take() -> None:
        before = trio.current_time()
        assert await asked.token([]) == token
        waited.append(trio.current_time() - before)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(take)
            await wait_all_tasks_blocked()
        mock_clock.jump(10)
    assert waited == ([10, 10, 10] if refused else [0, 0, 10])


async def test_a_refused_token_whose_time_is_over_is_said_to_be_refused(
    scene: Scene, mock_clock: MockClock
) -> None:
    asked = tokens()
    scene.endpoint.answer = lambda: issued("short", 5)
    asked.refused(await asked.token([]))
    mock_clock.jump(6)
    with pytest.raises(LoginError, match="the broker refuses the token"):
        await asked.token([])


def oauthbearer(token: str) -> Judge:
    """A broker that takes one token."""
    assert (yield b"") == f"n,,\1auth=Bearer {token}\1\1".encode()
    yield b""


async def test_a_broker_gets_the_token(scene: Scene) -> None:
    broker = Broker("OAUTHBEARER", lambda: oauthbearer("header.claims.signature"))
    async with connected(broker, Credentials(settings())) as connection:
        assert await ask(connection) == b"the answer"


def takes_only(token: str) -> Judge:
    """A broker that refuses all other tokens, as it does with a key that it does not know."""
    if (yield b"") != f"n,,\1auth=Bearer {token}\1\1".encode():
        yield b'{"status":"invalid_token"}'
        raise RefusedError("invalid token")
    yield b""


async def test_a_token_that_a_broker_refuses_is_not_used_until_it_expires(
    scene: Scene, mock_clock: MockClock
) -> None:
    """The endpoint signs with another key from some time on."""
    known, broker = Credentials(settings()), Broker("OAUTHBEARER", lambda: takes_only("new"))
    scene.endpoint.answer = lambda: issued("old", 3600)

    async def refused() -> int:
        async with connected(broker, known) as connection:
            with pytest.raises(BrokerError, match=r"^SASL: invalid token$"):
                await ask(connection)
        return len(scene.endpoint.forms)

    assert await refused() == 1
    # Brokers are tried again and again, and may refuse whatever the endpoint gives.
    assert await refused() == 1
    mock_clock.jump(10)
    assert [await refused(), await refused()] == [2, 2]
    scene.endpoint.answer = lambda: issued("new", 3600)
    mock_clock.jump(10)
    for _ in range(2):
        async with connected(broker, known) as connection:
            assert await ask(connection) == b"the answer"
    assert len(scene.endpoint.forms) == 3


def says_no_and_ends(token: str) -> Judge:
    """A broker that refuses a token as RFC 7628 says, and does not answer what is said to that."""
    said = yield b""
    if said == f"n,,\1auth=Bearer {token}\1\1".encode():
        yield b""
    yield b'{"status":"invalid_token"}'
    raise EndedError


def says_no_and_goes_on(token: str) -> Judge:
    """The same, with an answer that has no error."""
    said = yield b""
    if said == f"n,,\1auth=Bearer {token}\1\1".encode():
        yield b""
    yield b'{"status":"invalid_token"}'
    yield b""


@pytest.mark.parametrize("judge", [says_no_and_ends, says_no_and_goes_on])
async def test_a_token_that_is_refused_without_an_error_is_not_used_until_it_expires(
    scene: Scene, mock_clock: MockClock, judge: Callable[[str], Judge]
) -> None:
    """Brokers hold the error back (connection.failed.authentication.delay.ms), perhaps for longer
    than it is waited for.
    """
    known, broker = Credentials(settings()), Broker("OAUTHBEARER", lambda: judge("new"))
    scene.endpoint.answer = lambda: issued("old", 3600)
    async with connected(broker, known) as connection:
        with pytest.raises(BrokerError, match=r"^SASL: "):
            await ask(connection)
    scene.endpoint.answer = lambda: issued("new", 3600)
    mock_clock.jump(10)
    async with connected(broker, known) as connection:
        assert await ask(connection) == b"the answer"
    assert len(scene.endpoint.forms) == 2


async def test_a_token_that_is_refused_stays_in_use_while_there_is_no_other(
    scene: Scene, mock_clock: MockClock
) -> None:
    asked = tokens()
    token = await asked.token([])
    scene.down = True
    mock_clock.jump(10)
    asked.refused(token)
    assert await asked.token([]) == token
    # What was refused is another one by then.
    scene.down = False
    mock_clock.jump(10)
    await asked.token([])
    asked.refused("the one before")
    mock_clock.jump(10)
    await asked.token([])
    assert len(scene.endpoint.forms) == 2


async def test_an_answer_in_tiny_parts_is_read_in_short_steps(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 KB of parts of one byte took 19 ms of one step."""
    token = b'{"access_token": "header.claims.signature", "expires_in": 3600' + b" " * 5000 + b"}"
    parts = b"".join(b"1\r\n%c\r\n" % byte for byte in token)
    scene.endpoint.answer = lambda: (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"
    )
    taken = HttpEvents(monkeypatch)
    trio.lowlevel.add_instrument(taken)
    assert await tokens().token([]) == "header.claims.signature"
    trio.lowlevel.remove_instrument(taken)
    assert 100 < taken.in_step < 300


async def test_an_endpoint_that_announces_its_answer_for_ever_is_not_waited_for(
    scene: Scene,
) -> None:
    scene.endpoint.answer = lambda: b"HTTP/1.1 100 Continue\r\n\r\n" * 1000
    with pytest.raises(LoginError, match="announced its answer more than 10 times"):
        await tokens().token([])


async def test_a_secret_that_the_endpoint_quotes_is_not_shown(scene: Scene) -> None:
    words = json.dumps({"error": "no", "error_description": f"wrong: {SECRET}"}).encode()
    scene.endpoint.answer = lambda: (401, words)
    broker = Broker("OAUTHBEARER", lambda: oauthbearer(""))
    async with connected(broker, Credentials(settings())) as connection:
        with pytest.raises(BrokerError, match=r"^SASL: the token endpoint .*: no: wrong: \*\*\*$"):
            await ask(connection)
    assert AUTHENTICATE not in broker.asked


async def test_its_certificate_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    other.cert_pem.write_to_path(str(tmp_path / "other.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    endpoint = Endpoint(issued)

    async def serve(stream: trio.SocketStream) -> None:
        try:
            await endpoint.serve(trio.SSLStream(stream, context, server_side=True))
        except trio.BrokenResourceError:
            await stream.aclose()

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, serve, [listener])
    port = listener.socket.getsockname()[1]

    def by(ca: str, host: str = "localhost", scheme: str = "https") -> TokenEndpoint:
        url = f"{scheme}://{host}:{port}/token"
        return tokens(token_endpoint=url, token_endpoint_ca=str(tmp_path / ca))

    assert await by("ca.pem").token([]) == "header.claims.signature"
    for asked, said in (
        (by("other.pem"), "it has a certificate that is not accepted"),
        (by("ca.pem", "127.0.0.1"), "it has a certificate that is not accepted: .*127"),
        (by("none.pem"), r"ca .*/none\.pem: no such file"),
    ):
        with pytest.raises(LoginError, match=said):
            await asked.token([])
    assert len(endpoint.forms) == 1


def test_check_reads_and_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://idp.test/token"
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    Credentials(settings(token_endpoint=url)).check()
    with pytest.raises(ConfigurationError, match=r"none\.pem: no such file"):
        Credentials(settings(token_endpoint=url, token_endpoint_ca="/none.pem")).check()
    monkeypatch.delenv("CLIENT_SECRET")
    with pytest.raises(ConfigurationError, match="variable CLIENT_SECRET has no secret"):
        Credentials(settings()).check()
