"""SASL of the proxy's own connections, against a broker that checks it."""

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramException, ScramMechanism
from trio.testing import MockClock

from leader_hints.apis import sasl_authenticate
from leader_hints.apis.keys import ApiKey
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.sasl import Credentials
from leader_hints.settings.sasl import SaslSettings
from leader_hints.wire.errors import WireError
from leader_hints.wire.reader import Reader
from tests.net.brokers.sasl_broker import (
    AUTHENTICATE,
    HANDSHAKE,
    Broker,
    Judge,
    RefusedError,
    ask,
    connected,
)

USER, PASSWORD, TOKEN = "alice", "pässword, with = in it", "header.claims.signature"
METADATA, API_VERSIONS = 3, 18


def plain() -> Judge:
    """A broker that knows one user."""
    said = yield b""
    if said != f"\0{USER}\0{PASSWORD}".encode():
        raise RefusedError("Authentication failed: Invalid username or password")
    yield b""


def scram(mechanism: str, password: str = PASSWORD) -> Judge:
    """The same by SCRAM, as scramp does it."""
    known = ScramMechanism(mechanism)
    stored = known.make_auth_info(password, iteration_count=4096)
    server = known.make_server(lambda user: stored)
    said = yield b""
    server.set_client_first(said.decode())
    said = yield server.get_server_first().encode()
    try:
        server.set_client_final(said.decode())
    except ScramException:
        raise RefusedError("Authentication failed: Invalid user credentials") from None
    yield server.get_server_final().encode()


def oauthbearer() -> Judge:
    """A broker that takes one token."""
    said = yield b""
    if said != f"n,,\1auth=Bearer {TOKEN}\1\1".encode():
        assert (yield b'{"status":"invalid_token"}') == b"\1"
        raise RefusedError("Authentication failed")
    yield b""


def credentials(folder: Path, mechanism: str, **wrong: str) -> Credentials:
    """Credentials whose secrets stand in files."""
    secrets = {"password": PASSWORD, "token": TOKEN, **wrong}
    for name, secret in secrets.items():
        (folder / name).write_text(f"{secret}\nnot the first line\n", encoding="utf-8")
    return Credentials(
        SaslSettings(
            mechanism=mechanism,  # type: ignore[arg-type]
            username=USER,
            password=f"file:{folder / 'password'}",
            token=f"file:{folder / 'token'}",
        )
    )


_JUDGES: list[Any] = [
    pytest.param("PLAIN", plain, id="plain"),
    pytest.param("SCRAM-SHA-256", lambda: scram("SCRAM-SHA-256"), id="scram-256"),
    pytest.param("SCRAM-SHA-512", lambda: scram("SCRAM-SHA-512"), id="scram-512"),
    pytest.param("OAUTHBEARER", oauthbearer, id="oauthbearer"),
]


@pytest.mark.parametrize(("mechanism", "judge"), _JUDGES)
async def test_it_authenticates_once_before_it_asks(
    tmp_path: Path, mechanism: str, judge: Callable[[], Judge]
) -> None:
    broker = Broker(mechanism, judge)
    async with connected(broker, credentials(tmp_path, mechanism)) as connection:
        await connection.ask(ApiKey.API_VERSIONS, 0, b"")
        assert await ask(connection) == b"the answer"
        assert await ask(connection) == b"the answer"
    assert broker.asked[:2] == [API_VERSIONS, HANDSHAKE]
    assert broker.asked.count(HANDSHAKE) == 1
    assert broker.asked[-2:] == [METADATA, METADATA]


@pytest.mark.parametrize(("mechanism", "judge"), _JUDGES)
async def test_a_wrong_secret_is_the_brokers_word_and_not_shown(
    tmp_path: Path, mechanism: str, judge: Callable[[], Judge]
) -> None:
    broker = Broker(mechanism, judge)
    wrong = credentials(tmp_path, mechanism, password="guessed-wrong", token="forged.wrong")
    async with connected(broker, wrong) as connection:
        with pytest.raises(BrokerError, match=r"^SASL: Authentication failed") as refused:
            await ask(connection)
    assert "wrong" not in str(refused.value)
    assert METADATA not in broker.asked


async def test_a_broker_that_quotes_the_secret_does_not_get_it_into_the_log(tmp_path: Path) -> None:
    def judge() -> Judge:
        yield b""
        raise RefusedError(f"wrong password: {PASSWORD} " + "x" * 1000)

    async with connected(Broker("PLAIN", judge), credentials(tmp_path, "PLAIN")) as connection:
        with pytest.raises(BrokerError, match=r"^SASL: wrong password: \*\*\* x+$") as refused:
            await ask(connection)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
@pytest.mark.parametrize("meanwhile", ["replaced", "removed"])
async def test_a_secret_that_was_used_is_hidden_whatever_became_of_its_file(
    tmp_path: Path, mechanism: str, meanwhile: str
) -> None:
    def judge() -> Judge:
        said = yield b""
        for name in ("password", "token"):
            (tmp_path / name).write_text("a new one")
            if meanwhile == "removed":
                (tmp_path / name).unlink()
        raise RefusedError(f"wrong: {said.decode()}; it is 'a new one'")

    async with connected(Broker(mechanism, judge), credentials(tmp_path, mechanism)) as connection:
        with pytest.raises(BrokerError, match=r"^SASL: wrong: .*\*\*\*") as refused:
            await ask(connection)
    assert PASSWORD not in str(refused.value)
    assert TOKEN not in str(refused.value)
    assert ("a new one" in str(refused.value)) is (meanwhile == "removed")


async def test_a_broker_that_does_not_know_the_password_is_found_out(tmp_path: Path) -> None:
    def judge() -> Judge:
        said = yield b""
        nonce = said.decode().rpartition("r=")[2]
        salt = base64.b64encode(bytes(16)).decode()
        yield f"r={nonce}abc,s={salt},i=4096".encode()
        yield b"v=" + base64.b64encode(bytes(32))

    known = credentials(tmp_path, "SCRAM-SHA-256")
    async with connected(Broker("SCRAM-SHA-256", judge), known) as connection:
        with pytest.raises(BrokerError, match=r"^SASL: it does not prove that it knows the user"):
            await ask(connection)


@pytest.mark.parametrize(
    "challenge",
    [b"", b"nonsense", b"\xff\xfe", b"r=abc,s=AAAA,i=4096", b"r=,s=,i=", b"e=other-error"],
)
async def test_a_challenge_that_breaks_scram_is_the_brokers_fault(
    tmp_path: Path, challenge: bytes
) -> None:
    def judge() -> Judge:
        yield b""
        yield challenge

    known = credentials(tmp_path, "SCRAM-SHA-512")
    async with connected(Broker("SCRAM-SHA-512", judge), known) as connection:
        with pytest.raises(BrokerError, match=r"^SASL: its answer breaks SCRAM-SHA-512"):
            await ask(connection)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (33, "the listener does not take PLAIN; it takes GSSAPI"),
        (34, "the listener has no SASL; set sasl.mechanism: none"),
        (7, "error 7"),
    ],
)
async def test_a_handshake_that_is_refused_says_why(tmp_path: Path, error: int, said: str) -> None:
    broker = Broker("GSSAPI", plain, handshake_error=error)
    async with connected(broker, credentials(tmp_path, "PLAIN")) as connection:
        with pytest.raises(BrokerError, match=f"^SASL: {said}$"):
            await ask(connection)


async def test_without_a_secret_nothing_is_sent(tmp_path: Path) -> None:
    broker = Broker("PLAIN", plain)
    known = credentials(tmp_path, "PLAIN")
    (tmp_path / "password").unlink()
    async with connected(broker, known) as connection:
        with pytest.raises(BrokerError, match=r"^SASL: cannot read the secret in .*/password: No"):
            await ask(connection)
    assert AUTHENTICATE not in broker.asked


async def test_a_new_secret_is_used_by_the_next_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "former")
    settings = SaslSettings(mechanism="PLAIN", username=USER, password="env:KAFKA_PASSWORD")
    known = Credentials(settings)
    async with connected(Broker("PLAIN", plain), known) as connection:
        with pytest.raises(BrokerError):
            await ask(connection)
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    async with connected(Broker("PLAIN", plain), known) as connection:
        assert await ask(connection) == b"the answer"


async def test_it_authenticates_again_before_the_session_ends(
    tmp_path: Path, mock_clock: MockClock
) -> None:
    broker = Broker("PLAIN", plain, lifetime_ms=60_000)
    async with connected(broker, credentials(tmp_path, "PLAIN")) as connection:
        for seconds in (0, 40, 12):
            mock_clock.jump(seconds)
            assert await ask(connection) == b"the answer"
        again = [HANDSHAKE, AUTHENTICATE, METADATA]
        assert broker.asked == [*again[:2], METADATA, METADATA, *again]


async def test_a_secret_that_is_never_read_ends_the_connection(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Its disk hangs, say. The broker counted as answering for as long, and nothing said why not;
    and the threads that hung were all that there are."""
    known = credentials(tmp_path, "PLAIN")
    (tmp_path / "password").unlink()
    # To open one waits for who writes.
    os.mkfifo(tmp_path / "password")

    async def fail() -> None:
        async with connected(Broker("PLAIN", plain), known) as connection:
            with pytest.raises(BrokerError, match=r"^SASL: the secret was not read"):
                await ask(connection)

    try:
        with trio.fail_after(3600):
            async with trio.open_nursery() as nursery:
                for _ in range(100):
                    nursery.start_soon(fail)
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
    finally:
        # Those that hang end.
        os.close(os.open(tmp_path / "password", os.O_RDWR | os.O_NONBLOCK))


async def test_a_secret_that_is_never_read_again_ends_the_connection(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """It is read to hide it in the broker's words. It was called a defect of the proxy, and ended
    the test of all advertised addresses.
    """

    def judge() -> Judge:
        yield b""
        (tmp_path / "password").unlink()
        os.mkfifo(tmp_path / "password")
        raise RefusedError("wrong")

    try:
        known = credentials(tmp_path, "PLAIN")
        async with connected(Broker("PLAIN", judge), known) as connection:
            with pytest.raises(BrokerError, match=r"^SASL: the secret was not read"):
                await ask(connection)
    finally:
        os.close(os.open(tmp_path / "password", os.O_RDWR | os.O_NONBLOCK))


def test_no_secret_is_shown_by_settings_or_credentials(tmp_path: Path) -> None:
    known = credentials(tmp_path, "PLAIN")
    for text in (repr(known), repr(vars(known)), json.dumps(known._settings.model_dump())):
        assert PASSWORD not in text
        assert TOKEN not in text


@given(st.binary(max_size=200))
def test_any_answer_is_read_or_refused(data: bytes) -> None:
    try:
        answer = sasl_authenticate.read_response(Reader(data))
    except WireError:
        return
    assert len(answer.token) <= len(data)
