"""What libraries refuse with ValueError, TypeError or RuntimeError is reported, and ends nothing.

Each table has values for one kind of call that configuration, files or peers feed.
"""

import errno
import os
import ssl
import time
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trustme
from cryptography.hazmat.primitives import serialization
from pydantic import ValidationError
from trio.testing import memory_stream_pair

from leader_hints.address import Address
from leader_hints.core.events import CertificatesRefused, CertificatesReloaded, Event
from leader_hints.errors import BrokerError, ConfigurationError
from leader_hints.net.brokers.broker_stream import open_broker_stream
from leader_hints.net.brokers.connector import Connector
from leader_hints.net.brokers.sasl import Credentials
from leader_hints.net.brokers.secret import read_secret
from leader_hints.net.journal.journal_topic import KafkaSink
from leader_hints.net.tls.certificates import TlsFiles
from leader_hints.net.tls.route_security import Security
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.sasl import SaslSettings
from leader_hints.settings.tls import BrokerTlsSettings, ClientTlsSettings
from tests.settings.samples import ROUTE, settings_of

_PASSWORD = b"the password of the key"
_SURROGATES = os.fsdecode(b"\xff\xfe")


@pytest.fixture(scope="module")
def encrypted_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate, and its key under a password."""
    issued = trustme.CA().issue_cert("localhost")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    encryption = serialization.BestAvailableEncryption(_PASSWORD)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    file = tmp_path_factory.mktemp("tls") / "encrypted.pem"
    file.write_bytes(key.private_bytes(*form) + issued.cert_chain_pems[0].bytes())
    return file


def _route(certificate: Path, password: Path) -> RouteSettings:
    return RouteSettings(
        listen=Address("127.0.0.1", 0),
        upstream=Address("127.0.0.1", 9),
        name="r",
        client_tls=ClientTlsSettings(
            mode="terminate", certificate=str(certificate), key_password=f"file:{password}"
        ),
    )


async def test_a_new_password_file_alone_has_the_key_read_again(
    encrypted_key: Path, tmp_path: Path
) -> None:
    """A key that was encrypted again and its password do not change at the same moment."""
    password = tmp_path / "password"
    password.write_bytes(_PASSWORD)
    security = Security([_route(encrypted_key, password)], 1.0)
    assert await security.reload() == []
    password.write_bytes(b"not yet the right one")
    assert [type(event) for event in await security.reload()] == [CertificatesRefused]
    password.write_bytes(_PASSWORD + b"\n")
    expected: list[Event] = [CertificatesReloaded(route="r", group="client_tls")]
    assert await security.reload() == expected
    assert await security.reload() == []


async def test_files_that_could_not_be_read_once_are_read_again_without_a_change(
    encrypted_key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of descriptors, say: the files are right, and nothing about them will change."""
    password = tmp_path / "password"
    password.write_bytes(_PASSWORD)
    security = Security([_route(encrypted_key, password)], 1.0)
    password.write_bytes(_PASSWORD + b"\n")
    with monkeypatch.context() as short:
        short.setattr("leader_hints.net.tls.certificates.read_secret", _out_of_descriptors)
        assert [type(event) for event in await security.reload()] == [CertificatesRefused]
        # The same is not reported again and again.
        assert await security.reload() == []
        assert [type(e) for e in await security.reload(all_of_them=True)] == [CertificatesRefused]
    expected: list[Event] = [CertificatesReloaded(route="r", group="client_tls")]
    assert await security.reload() == expected
    assert await security.reload() == []


async def test_roots_of_the_system_that_cannot_be_read_once_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL says nothing: no broker was trusted any more until the next SIGHUP, and it was said
    that the files had been read."""
    roots = tmp_path / "roots.pem"
    trustme.CA().cert_pem.write_to_path(roots)
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    route = RouteSettings(
        listen=Address("127.0.0.1", 0),
        upstream=Address("127.0.0.1", 9),
        name="r",
        upstream_tls=BrokerTlsSettings(enabled=True),
    )
    security = Security([route], 1.0)
    there = roots.read_bytes()
    roots.unlink()
    (refused,) = await security.reload(all_of_them=True)
    assert isinstance(refused, CertificatesRefused)
    assert "authorities cannot be read" in refused.reason
    # A process, or a worker, that begins meanwhile would never read them.
    with pytest.raises(ConfigurationError, match="authorities cannot be read; set ca"):
        Security([route], 1.0)
    roots.write_bytes(there)
    expected: list[Event] = [CertificatesReloaded(route="r", group="upstream_tls")]
    assert await security.reload() == expected
    assert await security.reload() == []


def _refuses(folder: str) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


@pytest.mark.parametrize("how", ["two folders", "not listed"])
def test_roots_in_any_folders_that_openssl_takes_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    for name in ("empty", "roots"):
        (tmp_path / name).mkdir()
    trustme.CA().cert_pem.write_to_path(tmp_path / "roots" / "0123abcd.0")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("SSL_CERT_DIR", f"{tmp_path}/empty:{tmp_path}/roots")
    if how == "not listed":
        # Root may list all.
        monkeypatch.setattr(os, "scandir", _refuses)
    assert TlsFiles(BrokerTlsSettings(enabled=True)).refused == ""


async def test_files_that_hang_keep_no_others_from_being_read(
    encrypted_key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their disk hangs, say. No file was read again until the process was started again, if what
    hung never ended.
    """
    monkeypatch.setattr("leader_hints.net.tls.route_security._PATIENCE", 0.5)
    one, other = tmp_path / "one", tmp_path / "other"
    for password in (one, other):
        password.write_bytes(_PASSWORD)
    security = Security([_route(encrypted_key, password) for password in (one, other)], 1.0)
    one.unlink()
    # To open one waits for who writes.
    os.mkfifo(one)
    pipe = tmp_path / "pipe"
    try:
        (refused,) = await security.reload()
        assert isinstance(refused, CertificatesRefused)
        assert "hang" in refused.reason
        assert await security.reload() == []
        other.write_bytes(_PASSWORD + b"\n")
        reloaded: Event = CertificatesReloaded(route="r", group="client_tls")
        assert await security.reload() == [reloaded]
        one.rename(pipe)
        one.write_bytes(_PASSWORD)
        assert await security.reload(all_of_them=True) == [reloaded, reloaded]
    finally:
        # What hangs ends.
        os.close(os.open(pipe if pipe.exists() else one, os.O_RDWR | os.O_NONBLOCK))
    with trio.fail_after(10):
        while await security.reload() != [reloaded]:  # noqa: ASYNC110 - it is a thread that ends
            await trio.sleep(0.01)
    assert await security.reload() == []


async def test_files_that_hung_and_are_wrong_then_are_looked_at_again(
    encrypted_key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were not until the next SIGHUP, whatever came to be in them."""
    monkeypatch.setattr("leader_hints.net.tls.route_security._PATIENCE", 0.5)
    password, pipe = tmp_path / "password", tmp_path / "pipe"
    password.write_bytes(_PASSWORD)
    security = Security([_route(encrypted_key, password)], 1.0)
    password.unlink()
    os.mkfifo(password)
    try:
        assert [type(event) for event in await security.reload()] == [CertificatesRefused]
        password.rename(pipe)
        password.write_bytes(b"wrong")
        (refused,) = await security.reload(all_of_them=True)
        assert isinstance(refused, CertificatesRefused)
        assert "not the right one" in refused.reason
        password.write_bytes(_PASSWORD)
        reloaded: Event = CertificatesReloaded(route="r", group="client_tls")
        assert await security.reload() == [reloaded]
    finally:
        os.close(os.open(pipe if pipe.exists() else password, os.O_RDWR | os.O_NONBLOCK))


async def test_secrets_whose_reading_hangs_for_good_are_read_again_at_sighup(
    tmp_path: Path,
) -> None:
    """Four that hung were all that were ever read, until the process was started again."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    sasl = {"mechanism": "PLAIN", "username": "u", "password": f"file:{secret}"}
    route = settings_of(routes=[{**ROUTE, "sasl": sasl}]).routes[0]
    security = Security([route], 1.0)
    (credentials,) = security._credentials
    for _ in range(4):
        credentials.threads.acquire_on_behalf_of_nowait(object())

    async def read() -> bool:
        with trio.move_on_after(0.2):
            await trio.to_thread.run_sync(
                credentials.check, abandon_on_cancel=True, limiter=credentials.threads
            )
            return True
        return False

    assert not await read()
    await security.reload(all_of_them=True)
    assert await read()


def _out_of_descriptors(setting: str) -> str:
    raise ConfigurationError("too many open files")


@pytest.mark.parametrize(
    ("password", "said"),
    [
        (b"x" * 1025, r"is longer than OpenSSL takes, 1024 bytes"),
        ("é".encode() * 513, r"is longer than OpenSSL takes, 1024 bytes"),
        (b"x" * 65_537, r"is larger than a secret may be"),
        (b"\xff\xfe", r"is not UTF-8"),
        (b"", r"is empty"),
        (b"\n" + _PASSWORD, r"is empty"),
        (b"pass\0word", r"the key's password is not the right one"),
        (b"x" * 1024, r"the key's password is not the right one"),
    ],
)
async def test_a_password_of_a_key_that_is_not_to_be_used_is_reported_and_the_old_one_holds(
    encrypted_key: Path, tmp_path: Path, password: bytes, said: str
) -> None:
    file = tmp_path / "password"
    file.write_bytes(_PASSWORD)
    security = Security([_route(encrypted_key, file)], 1.0)
    file.write_bytes(password)
    (refused,) = await security.reload()
    assert isinstance(refused, CertificatesRefused)
    assert said in refused.reason
    assert str(file) in refused.reason or str(encrypted_key) in refused.reason
    with pytest.raises(ConfigurationError, match=r"^route r: client_tls: "):
        Security([_route(encrypted_key, file)], 1.0)


@pytest.mark.parametrize("what", ["certificate", "key", "ca"])
@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"-----BEGIN CERTIFICATE-----\n!", None])
def test_files_of_any_content_are_read_or_refused(
    encrypted_key: Path, tmp_path: Path, what: str, content: bytes | None
) -> None:
    file = tmp_path / "file"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    password = tmp_path / "password"
    password.write_bytes(_PASSWORD)
    tls = _route(encrypted_key, password).client_tls
    with pytest.raises(ConfigurationError):
        TlsFiles(tls.model_copy(update={what: str(file)}))


@pytest.mark.parametrize(
    "name", [".example.com", "a..b", "...", "x" * 64, "-a", ":::", "a:b", "1.2.3"]
)
def test_a_name_that_no_certificate_can_have_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(ValidationError, match="neither a host name nor an IP address"):
        BrokerTlsSettings(enabled=True, server_name=name)


@pytest.mark.parametrize("name", ["", "b-1.example.com", "B_1", "example.com.", "192.0.2.1", "::1"])
def test_other_names_are_taken_and_can_be_asked_for(name: str) -> None:
    assert BrokerTlsSettings(enabled=True, server_name=name).server_name == name
    context = ssl.create_default_context()
    context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=name or "localhost")


@pytest.mark.parametrize("host", [".example.com", ""])
async def test_an_advertised_host_that_no_certificate_can_have_costs_one_connection(
    host: str,
) -> None:
    """Such as the name that a broker advertises and this machine's hosts file knows."""
    ours, theirs = memory_stream_pair()

    async def open_tcp(address: Address, patience: float) -> trio.abc.Stream:
        return ours

    connector = Connector(TlsFiles(BrokerTlsSettings(enabled=True)), open_tcp=open_tcp)
    with pytest.raises(BrokerError, match=r"^TLS: the broker cannot be verified by the name"):
        await connector.open_stream(Address(host, 9092), 1.0)
    assert await theirs.receive_some() == b""


@pytest.mark.parametrize("host", [".example.com", "a..b", "x" * 64])
async def test_the_same_for_a_clients_link(host: str) -> None:
    ours, theirs = memory_stream_pair()

    async def open_tcp(address: Address, patience: float) -> trio.SocketStream:
        return cast(trio.SocketStream, ours)

    connector = Connector(TlsFiles(BrokerTlsSettings(enabled=True)))
    with pytest.raises(BrokerError, match=r"^TLS: the broker cannot be verified by the name"):
        await connector.open_for_link(Address(host, 9092), 1.0, open_tcp)
    assert await theirs.receive_some() == b""


@pytest.mark.parametrize("port", [1, 0, -1, 70_000, 2**31, -(2**31)])
@pytest.mark.parametrize(
    "host", ["", "a\0b", "\ud800", "x" * 300, ".a", "a..b", "[::1]", "::1%none", "é", " ", "\n"]
)
async def test_what_is_no_address_is_the_brokers_fault(host: str, port: int) -> None:
    with pytest.raises(BrokerError):
        await open_broker_stream(Address(host, port), 5.0)


async def test_a_thread_that_the_system_refuses_costs_one_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names are looked up in threads; CPython's words, when a limit of processes is met."""

    async def refused(host: str, port: int) -> trio.SocketStream:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(trio, "open_tcp_stream", refused)
    with pytest.raises(BrokerError, match=r"^cannot connect: can't start new thread$"):
        await open_broker_stream(Address("broker.example", 9092), 5.0)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (_SURROGATES, "the secret in environment variable KAFKA_SECRET is not UTF-8"),
        ("", "the environment variable KAFKA_SECRET has no secret"),
    ],
)
def test_a_secret_in_the_environment_that_cannot_be_sent_is_reported(
    monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    monkeypatch.setenv("KAFKA_SECRET", value)
    with pytest.raises(ConfigurationError, match=f"^{said}$"):
        read_secret("env:KAFKA_SECRET")


def _secret(mechanism: Any, monkeypatch: pytest.MonkeyPatch, secret: str) -> Credentials:
    monkeypatch.setenv("KAFKA_SECRET", secret)
    source = "env:KAFKA_SECRET"
    return Credentials(
        SaslSettings(mechanism=mechanism, username="u", password=source, token=source)
    )


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
@pytest.mark.parametrize("secret", [_SURROGATES, "\u0627a", "\x01", "\u200b", "x" * 65_536])
def test_any_secret_makes_a_first_token_or_is_reported(
    monkeypatch: pytest.MonkeyPatch, mechanism: str, secret: str
) -> None:
    known = _secret(mechanism, monkeypatch, secret)
    reported = ""
    try:
        assert next(known.converse([], ""))
    except ConfigurationError as error:
        reported = str(error)
    assert secret[:9] not in reported
    assert known.hidden("its words", []) == "its words"


@pytest.mark.parametrize("rounds", ["10000001", "9" * 30, "9" * 5000, "-1", "0", "1e3", "", "²²²²"])
def test_an_absurd_number_of_rounds_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, rounds: str
) -> None:
    """A hash of so many would keep a thread for minutes, or for ever."""
    talk = _secret("SCRAM-SHA-256", monkeypatch, "secret").converse([], "")
    nonce = next(talk).decode().rpartition("r=")[2]
    before = time.thread_time()
    with pytest.raises(BrokerError, match=r"^its answer breaks SCRAM-SHA-256: "):
        talk.send(f"r={nonce}more,s=AAAA,i={rounds}".encode())
    assert time.thread_time() - before < 0.5


@pytest.mark.parametrize(
    "name", ["throttle_cb", "stats_cb", "default.topic.config", "delivery.report.only.error", "é"]
)
def test_a_property_that_is_for_programs_is_reported_without_its_value(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^journal\.properties_file: ") as refused:
        KafkaSink("127.0.0.1:1", "t", "c", "k", {name: "its-value"})
    assert "its-value" not in str(refused.value)
