"""TLS towards clients and brokers: an app between real TLS ends."""

import contextlib
import gc
import math
import os
import re
import signal
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtensionOID, NameOID

from leader_hints import app
from leader_hints.address import Address
from leader_hints.app import certificate_watch
from leader_hints.errors import ConfigurationError
from leader_hints.net.clients import preamble
from leader_hints.net.clients.handshake import Handshake, RefusedError
from leader_hints.net.pump.pump import Pump
from leader_hints.net.tls.certificates import TlsFiles
from leader_hints.net.tls.handshake_turns import HandshakeTurns, Rank
from leader_hints.settings.settings import Settings
from leader_hints.wire import client_hello
from tests.harness.waiting import until
from tests.net import messages
from tests.net.fake_broker import FakeBroker
from tests.net.messages import Broker
from tests.net.serving import ANY, Log, Rounds, exchange, serving, until_true
from tests.wire.hellos import openssl_hello, with_groups

_SECONDS = 10.0
ASKED = messages.api_versions_request(7)


class Papers:
    """An authority, and certificates of it as files."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.folder = folder
        self.ca = str(folder / "ca.pem")
        self.authority.cert_pem.write_to_path(self.ca)

    def issue(self, name: str, *hosts: str, until: datetime | None = None) -> str:
        """Write a certificate with its key to a file; return its path."""
        path = self.folder / f"{name}.pem"
        new = self.folder / f"{name}.new"
        new.write_bytes(self._pem(hosts, until))
        new.replace(path)
        return str(path)

    def _pem(self, hosts: tuple[str, ...], until: datetime | None) -> bytes:
        issued = self.authority.issue_cert(*hosts, not_after=until)
        return issued.private_key_and_cert_chain_pem.bytes()

    def issue_with_names(self, name: str, names: bytes) -> str:
        """Write a certificate with its key whose further names are these bytes; return the path."""
        authority = x509.load_pem_x509_certificate(self.authority.cert_pem.bytes())
        signs = load_pem_private_key(self.authority.private_key_pem.bytes(), None)
        assert isinstance(signs, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(authority.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(authority.not_valid_before_utc)
            .not_valid_after(authority.not_valid_after_utc)
            .add_extension(
                x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, names), False
            )
            .sign(signs, SHA256())
        )
        path = self.folder / f"{name}.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        return str(path)

    def chain(self, name: str, more: int) -> str:
        """Write a certificate with its key and so many of its authority; return the path."""
        path = Path(self.issue(name, f"{name}.example"))
        path.write_text(path.read_text() + more * Path(self.ca).read_text())
        return str(path)

    def spoil(self, path: str) -> None:
        """Write what is no certificate over one."""
        Path(path).write_text("no certificate")

    def client(self, certificate: str | None = None) -> ssl.SSLContext:
        """A client that trusts the authority."""
        context = ssl.create_default_context(cafile=self.ca)
        if certificate:
            context.load_cert_chain(certificate)
        return context

    def server(self, certificate: str, *, ask: bool = False) -> ssl.SSLContext:
        """A server that shows a certificate, and may ask for one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        if ask:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.ca)
        return context


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    """An authority of the test's own."""
    return Papers(tmp_path)


@asynccontextmanager
async def broker_at(context: ssl.SSLContext | None) -> AsyncIterator[tuple[FakeBroker, Address]]:
    """A broker that leads what there is, behind TLS or not."""
    broker = FakeBroker(1, [Broker(1, "localhost", 9092)], {"t": [(1, 5)]})

    async def serve(stream: trio.SocketStream) -> None:
        secured: trio.abc.Stream = stream
        if context is not None:
            secured = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        await broker.serve(secured)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        host, port = listeners[0].socket.getsockname()
        yield broker, Address(host, port)
        nursery.cancel_scope.cancel()


def _settings(upstream: Address, **route: Any) -> Settings:
    routes = [{"listen": str(ANY), "upstream": str(upstream), "name": "r", **route}]
    return Settings.model_validate(
        {"routes": routes, "admin": "127.0.0.1:0", "log": {"level": "debug"}}
    )


def _ends_tls(papers: Papers) -> Settings:
    """Of a TLS route without hints, and without a broker."""
    files = {"mode": "terminate", "certificate": papers.issue("p", "localhost")}
    settings = _settings(Address("127.0.0.1", 9), client_tls=files)
    return settings.model_copy(update={"hints": "off"})


async def _connect(address: Address, context: ssl.SSLContext, name: str) -> trio.SSLStream[Any]:
    stream = await trio.open_tcp_stream(address.host, address.port)
    secured = trio.SSLStream(stream, context, server_hostname=name, https_compatible=True)
    with trio.fail_after(_SECONDS):
        await secured.do_handshake()
    return secured


def _hello(papers: Papers) -> bytes:
    """The first message of a client."""
    outgoing = ssl.MemoryBIO()
    tls = papers.client().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def _distrust(address: Address, context: ssl.SSLContext) -> None:
    with (
        socket.create_connection((address.host, address.port), _SECONDS) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        context.wrap_socket(plain, server_hostname="localhost")


def _raised(broker: FakeBroker) -> bytes:
    return messages.api_versions_response(7, 3, {**broker.maxima, 0: 10, 1: 16})


@pytest.mark.parametrize("towards_broker", [False, True], ids=["plain-broker", "tls-broker"])
@pytest.mark.parametrize("towards_client", [False, True], ids=["plain-client", "tls-client"])
async def test_versions_are_raised_whichever_side_speaks_tls(
    log: Log, papers: Papers, towards_broker: bool, towards_client: bool
) -> None:
    route: dict[str, Any] = {}
    inside = None
    if towards_broker:
        inside = papers.server(papers.issue("broker", "broker.example"))
        route["upstream_tls"] = {
            "enabled": True,
            "ca": papers.ca,
            "server_name": "broker.example",
        }
    if towards_client:
        certificate = papers.issue("proxy", "proxy.example")
        route["client_tls"] = {"mode": "terminate", "certificate": certificate}
    async with (
        broker_at(inside) as (broker, upstream),
        serving(_settings(upstream, **route), log) as (address,),
    ):
        await until_true(lambda: log.events("route_plan"))
        client: trio.abc.Stream
        if towards_client:
            client = await _connect(address, papers.client(), "proxy.example")
        else:
            client = await trio.open_tcp_stream(address.host, address.port)
        answer = _raised(broker)
        assert await exchange(client, ASKED, len(answer)) == answer
        await client.aclose()
    assert log.events("client_refused") == log.events("upstream_unreachable") == []


async def test_both_sides_can_demand_certificates(log: Log, papers: Papers) -> None:
    inside = papers.server(papers.issue("broker", "127.0.0.1"), ask=True)
    own = papers.issue("proxy", "proxy.example")
    route = {
        "upstream_tls": {"enabled": True, "ca": papers.ca, "certificate": own},
        "client_tls": {"mode": "terminate", "certificate": own, "ca": papers.ca},
    }
    async with (
        broker_at(inside) as (broker, upstream),
        serving(_settings(upstream, **route), log) as (address,),
    ):
        await until_true(lambda: log.events("route_plan"))
        known = papers.client(papers.issue("client", "client.example"))
        client = await _connect(address, known, "proxy.example")
        answer = _raised(broker)
        assert await exchange(client, ASKED, len(answer)) == answer
        await client.aclose()
        # In TLS 1.3 a client hears that it is refused only after its handshake.
        with contextlib.suppress(trio.BrokenResourceError):
            other = await _connect(address, papers.client(), "proxy.example")
            assert await exchange(other, ASKED, 1) == b""
        (line,) = await until_true(lambda: log.events("client_refused"))
        assert line["reason"] == "shows no certificate, and must"
        assert line["client"].startswith("127.0.0.1:")


@pytest.mark.parametrize("asks", [False, True])
async def test_the_subject_of_a_clients_certificate_goes_with_its_link(
    log: Log, papers: Papers, monkeypatch: pytest.MonkeyPatch, *, asks: bool
) -> None:
    principals: list[str] = []
    adopt = Pump.adopt

    def noted(*arguments: Any) -> None:
        principals.append(arguments[-1])
        adopt(*arguments)

    monkeypatch.setattr(Pump, "adopt", noted)
    inside = papers.server(papers.issue("broker", "127.0.0.1"))
    own = papers.issue("proxy", "proxy.example")
    ca = papers.ca if asks else ""
    route = {
        "upstream_tls": {"enabled": True, "ca": papers.ca},
        "client_tls": {"mode": "terminate", "certificate": own, "ca": ca},
    }
    async with (
        broker_at(inside) as (_, upstream),
        serving(_settings(upstream, **route), log) as (address,),
    ):
        known = papers.client(papers.issue("client", "client.example"))
        client = await _connect(address, known, "proxy.example")
        await client.send_all(ASKED)
        (principal,) = await until_true(lambda: principals)
        await client.aclose()
    if asks:
        assert re.fullmatch(r"OU=Testing cert #\S+,O=trustme \S+", principal), principal
    else:
        assert principal == ""


async def test_a_client_whose_certificate_has_a_name_that_is_not_utf_8_comes_in(
    log: Log, papers: Papers
) -> None:
    """Old authorities write e-mail addresses in Latin-1; OpenSSL and brokers take them."""
    address = "müller@client.example".encode("latin-1")
    names = bytes((0x30, len(address) + 2, 0x81, len(address))) + address
    own = papers.issue("proxy", "proxy.example")
    route = {"client_tls": {"mode": "terminate", "certificate": own, "ca": papers.ca}}
    async with (
        broker_at(None) as (broker, upstream),
        serving(_settings(upstream, **route), log) as (listens,),
    ):
        await until_true(lambda: log.events("route_plan"))
        known = papers.client(papers.issue_with_names("client", names))
        client = await _connect(listens, known, "proxy.example")
        answer = _raised(broker)
        assert await exchange(client, ASKED, len(answer)) == answer
        await client.aclose()
    assert log.events("task_failed") == []


@pytest.mark.parametrize(
    ("first_bytes", "reason"),
    [
        (ASKED, "speaks no TLS on a TLS listener"),
        (b"GET / HTTP/1.1\r\n\r\n", "speaks no TLS on a TLS listener"),
        (b"\x16\x03\x01\xff\xff" + b"\xff" * 100, "speaks no TLS"),
    ],
    ids=["kafka", "http", "garbage"],
)
async def test_a_client_without_tls_is_distinguished(
    log: Log, papers: Papers, first_bytes: bytes, reason: str
) -> None:
    route = {"client_tls": {"mode": "terminate", "certificate": papers.issue("p", "localhost")}}
    async with (
        broker_at(None) as (_, upstream),
        serving(_settings(upstream, **route), log) as (address,),
    ):
        client = await trio.open_tcp_stream(address.host, address.port)
        await client.send_all(first_bytes)
        with trio.fail_after(_SECONDS):
            while await client.receive_some():
                pass
        (line,) = await until_true(lambda: log.events("client_refused"))
        assert line["reason"].startswith(reason)
        # A health check that only connects is nothing to tell.
        await (await trio.open_tcp_stream(address.host, address.port)).aclose()
        healthy = await _connect(address, papers.client(), "localhost")
        await healthy.aclose()
        assert len(log.events("client_refused")) == 1


async def test_too_old_a_version_of_tls_is_refused(log: Log, papers: Papers) -> None:
    certificate = papers.issue("p", "localhost")
    tls = {"mode": "terminate", "certificate": certificate, "minimum_version": "1.3"}
    old = papers.client()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with (
        broker_at(None) as (_, upstream),
        serving(_settings(upstream, client_tls=tls), log) as (address,),
    ):
        with pytest.raises(trio.BrokenResourceError):
            await _connect(address, old, "localhost")
        (line,) = await until_true(lambda: log.events("client_refused"))
        assert line["reason"] == "speaks only versions of TLS that are too old"


async def test_a_client_that_does_not_trust_the_proxy_is_reported(
    log: Log, papers: Papers, tmp_path: Path
) -> None:
    (tmp_path / "others").mkdir()
    other = Papers(tmp_path / "others").client()
    tls = {"mode": "terminate", "certificate": papers.issue("p", "localhost")}
    async with (
        broker_at(None) as (_, upstream),
        serving(_settings(upstream, client_tls=tls), log) as (address,),
    ):
        # Trio's own client would not say why it goes away.
        await trio.to_thread.run_sync(_distrust, address, other)
        (line,) = await until_true(lambda: log.events("client_refused"))
        assert line["reason"] == "does not trust the proxy's certificate"


@pytest.mark.parametrize("first_bytes", [b"", b"\x16\x03\x01"], ids=["nothing", "a-beginning"])
async def test_a_handshake_has_bounded_time(log: Log, papers: Papers, first_bytes: bytes) -> None:
    tls = {"mode": "terminate", "certificate": papers.issue("p", "localhost")}
    settings = _settings(Address("127.0.0.1", 9), client_tls=tls)
    settings = settings.model_copy(update={"greeting_timeout_ms": 50, "hints": "off"})
    async with serving(settings, log) as (address,):
        client = await trio.open_tcp_stream(address.host, address.port)
        await client.send_all(first_bytes)
        with trio.fail_after(_SECONDS):
            assert await client.receive_some() == b""
        (line,) = await until_true(lambda: log.events("client_refused"))
        assert line["reason"] == "has not finished its handshake within 0.05 s"


async def test_links_are_served_between_handshakes_that_come_together(
    log: Log, papers: Papers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step may be a signature, and thousands of clients may ask for one at the same time."""
    rounds, begun, steps = Rounds(), 0, Counter[int]()
    step, admit = preamble._step, Handshake.admit

    def counted(tls: ssl.SSLObject) -> bool:
        steps[rounds.now] += 1
        return step(tls)

    async def noted(*arguments: Any) -> Any:
        nonlocal begun
        begun += 1
        return await admit(*arguments)

    monkeypatch.setattr(preamble, "_step", counted)
    monkeypatch.setattr(Handshake, "admit", noted)
    hello, settings = _hello(papers), _ends_tls(papers)
    async with serving(settings, log) as (address,), trio.open_nursery() as nursery:
        clients = [await trio.open_tcp_stream(address.host, address.port) for _ in range(20)]
        await until_true(lambda: begun == len(clients))
        # Those that are silent cost no step, which would take 40 KB of memory for each.
        assert not steps
        nursery.start_soon(rounds.count)
        await trio.lowlevel.checkpoint()
        for client in clients:
            client.socket._sock.send(hello)  # type: ignore[attr-defined]
        await until_true(lambda: steps.total() == len(clients))
        nursery.cancel_scope.cancel()
    # The counter may have its turn before or after a step in the same round.
    assert max(steps.values()) <= 2


async def test_links_are_served_between_clients_that_go_together_in_their_handshake(
    log: Log, papers: Papers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 9,000 that went, all were refused in one round of the event loop, of 0.7 s of CPU."""
    rounds, begun, refused = Rounds(), 0, Counter[int]()
    admit = Handshake.admit

    async def counted(*arguments: Any) -> Any:
        nonlocal begun
        begun += 1
        try:
            return await admit(*arguments)
        except RefusedError:
            refused[rounds.now] += 1
            raise

    monkeypatch.setattr(Handshake, "admit", counted)
    settings = _ends_tls(papers)
    async with serving(settings, log) as (address,), trio.open_nursery() as nursery:
        clients = [await trio.open_tcp_stream(address.host, address.port) for _ in range(20)]
        await until_true(lambda: begun == len(clients))
        nursery.start_soon(rounds.count)
        for client in clients:
            client.socket.close()
        await until_true(lambda: refused.total() == len(clients))
        nursery.cancel_scope.cancel()
    # The counter may have its turn before or after a refusal in the same round.
    assert max(refused.values()) <= 2


async def test_links_are_served_between_clients_that_send_a_byte_together(
    log: Log, papers: Papers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To wake the tasks of 9,000 clients, before anybody was authenticated, took one round of the
    event loop, of 0.2 to 0.4 s."""
    rounds, begun, received = Rounds(), 0, Counter[int]()
    admit, receive = Handshake.admit, trio.SocketStream.receive_some

    async def noted(*arguments: Any) -> Any:
        nonlocal begun
        begun += 1
        return await admit(*arguments)

    async def counted(stream: trio.SocketStream, most: int | None = None) -> Any:
        data = await receive(stream, most)
        received[rounds.now] += 1
        return data

    monkeypatch.setattr(Handshake, "admit", noted)
    monkeypatch.setattr(trio.SocketStream, "receive_some", counted)
    settings = _ends_tls(papers)
    async with serving(settings, log) as (address,), trio.open_nursery() as nursery:
        clients = [await trio.open_tcp_stream(address.host, address.port) for _ in range(20)]
        await until_true(lambda: begun == len(clients))
        nursery.start_soon(rounds.count)
        for _ in range(2):
            received.clear()
            for client in clients:
                client.socket._sock.send(b"\x16")  # type: ignore[attr-defined]
            await until_true(lambda: received.total() == len(clients))
            # The counter may have its turn before or after a client in the same round.
            assert max(received.values()) <= 2
        nursery.cancel_scope.cancel()


async def test_no_client_has_keys_exchanged_over_a_finite_field(log: Log, papers: Papers) -> None:
    """With ffdhe8192 a step took 0.12 s, before anybody was authenticated; a client that makes up
    its share has hardly anything to do."""
    costly = with_groups(openssl_hello(), [0x104], [0x104])
    async with serving(_ends_tls(papers), log) as (address,):
        client = await trio.open_tcp_stream(address.host, address.port)
        await client.send_all(costly)
        with trio.fail_after(_SECONDS):
            assert await client.receive_some() == b""
        (line,) = await until_true(lambda: log.events("client_refused"))
        assert "(ffdhe)" in line["reason"]


@pytest.mark.parametrize("curve", ["prime256v1", "secp384r1", "secp521r1"])
async def test_clients_that_have_a_curve_are_let_in(papers: Papers, curve: str) -> None:
    server, client = papers.server(papers.issue("p", "localhost")), papers.client()
    client.set_ecdh_curve(curve)
    far, near = trio.testing.memory_stream_pair()
    secured = trio.SSLStream(far, client, server_hostname="localhost")
    with trio.fail_after(_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(preamble.do_tls_handshake, near, server)
            await secured.do_handshake()


@pytest.mark.parametrize("at_once", [1, 100, 10_000])
async def test_a_client_that_is_asked_for_its_first_message_again_is_let_in(
    papers: Papers, at_once: int
) -> None:
    server, client = papers.server(papers.issue("p", "localhost")), papers.client()
    # The client's share is of another one.
    server.set_ecdh_curve("secp384r1")
    far, near = trio.testing.memory_stream_pair()
    here, there = trio.testing.memory_stream_pair()
    asked: list[bytes] = []

    async def relay(source: trio.abc.ReceiveStream, target: trio.abc.SendStream, most: int) -> None:
        while data := await source.receive_some(most):
            asked.append(bytes(data))
            await target.send_all(data)

    secured = trio.SSLStream(far, client, server_hostname="localhost")
    with trio.fail_after(_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(relay, near, here, at_once)
            nursery.start_soon(relay, here, near, 10_000)
            nursery.start_soon(preamble.do_tls_handshake, there, server)
            await secured.do_handshake()
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert any(map(client_hello.is_asked_again, asked))


async def test_openssl_has_no_part_of_a_first_message_that_is_not_whole(
    log: Log, papers: Papers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the memory for all of it at once: ten bytes of a client cost 154 KB."""
    steps, step = 0, preamble._step

    def counted(tls: ssl.SSLObject) -> bool:
        nonlocal steps
        steps += 1
        return step(tls)

    monkeypatch.setattr(preamble, "_step", counted)
    async with serving(_ends_tls(papers), log) as (address,):
        slow = await trio.open_tcp_stream(address.host, address.port)
        await slow.send_all(_hello(papers)[:-1])
        claims = await trio.open_tcp_stream(address.host, address.port)
        size = 131_000
        await claims.send_all(b"\x16\x03\x01\x00\x05\x01" + size.to_bytes(3, "big") + b"\x03")
        with trio.fail_after(_SECONDS):
            assert await claims.receive_some() == b""
        (line,) = await until_true(lambda: log.events("client_refused"))
        assert "131000 bytes" in line["reason"]
        assert not steps


async def test_a_client_with_very_many_certificates_is_refused(log: Log, papers: Papers) -> None:
    """Each of them cost a step that was long already: 43 ms for 280, before anybody was
    authenticated."""
    tls = {"mode": "terminate", "certificate": papers.issue("p", "localhost"), "ca": papers.ca}
    settings = _settings(Address("127.0.0.1", 9), client_tls=tls)
    settings = settings.model_copy(update={"hints": "off"})
    few, many = (papers.client(papers.chain("client", more)) for more in (5, 100))
    async with serving(settings, log) as (address,):
        client = await _connect(address, few, "localhost")
        await until_true(lambda: log.events("upstream_unreachable"))
        # In TLS 1.3 a client hears that it is refused only after its handshake.
        with contextlib.suppress(trio.BrokenResourceError):
            other = await _connect(address, many, "localhost")
            await other.receive_some()
        (line,) = await until_true(lambda: log.events("client_refused"))
        assert line["reason"] == "sends more in its TLS handshake than certificates have"
        await client.aclose()


async def test_clients_that_are_refused_leave_no_garbage_in_circles(
    log: Log, papers: Papers
) -> None:
    """To look for that of 9,000 clients took 0.3 s at once."""
    settings = _ends_tls(papers)
    async with serving(settings, log) as (address,):
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                client = await trio.open_tcp_stream(address.host, address.port)
                await client.send_all(b"GET")
                with contextlib.suppress(trio.BrokenResourceError):
                    await client.receive_some()
                await client.aclose()
            await until_true(lambda: len(log.events("client_refused")) == 5)
            await trio.lowlevel.checkpoint()
            left = [one for one in gc.get_objects() if isinstance(one, RefusedError)]
        finally:
            gc.enable()
    assert left == []


async def test_a_client_that_is_answered_goes_first_and_one_of_many_pieces_last(
    papers: Papers,
) -> None:
    """So that no signature is in vain, and nobody is kept waiting by those who send byte by
    byte."""
    server = papers.server(papers.issue("p", "localhost"))
    ranks: list[Rank] = []

    async def arrival(rank: Rank) -> None:
        ranks.append(rank)

    with trio.fail_after(_SECONDS):
        async with trio.open_nursery() as nursery:
            far, near = trio.testing.memory_stream_pair()
            shake = partial(preamble.do_tls_handshake, context=server, arrival=arrival)
            nursery.start_soon(shake, near)
            client = trio.SSLStream(far, papers.client(), server_hostname="localhost")
            await client.do_handshake()
        assert ranks == [Rank.NEW, Rank.ANSWERED]
        ranks.clear()
        async with trio.open_nursery() as nursery:
            far, near = trio.testing.memory_stream_pair()
            nursery.start_soon(shake, near)
            for byte in b"\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03":
                await far.send_all(bytes([byte]))
                await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert ranks[:8] == [Rank.NEW] * 8
    assert set(ranks[8:]) == {Rank.SLOW}


async def test_no_link_is_kept_waiting_by_bytes_of_clients_that_wait_for_their_turn(
    log: Log, papers: Papers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poller reports some sockets at a time. Those of 3,000 clients that had sent more than is
    received at once kept a link waiting for 0.6 s, before anybody was authenticated."""
    steps = waiting = 0
    step = Pump.step

    def counted(pump: Pump, wait: float = 0.0, begun: float = math.inf) -> int:
        nonlocal steps
        steps += 1
        return step(pump, wait, begun)

    @asynccontextmanager
    async def never(turns: HandshakeTurns) -> AsyncIterator[None]:
        nonlocal waiting
        waiting += 1
        await trio.sleep_forever()
        yield

    monkeypatch.setattr(Pump, "step", counted)
    monkeypatch.setattr(HandshakeTurns, "turn", never)
    settings = _ends_tls(papers)
    async with serving(settings, log) as (address,):
        client = await trio.open_tcp_stream(address.host, address.port)
        await client.send_all(_hello(papers) + b"\x16\x03\x01")
        await until_true(lambda: waiting)
        before = steps
        for _ in range(50):
            await trio.lowlevel.checkpoint()
        # The connection itself was reported.
        assert steps - before < 5
        await client.aclose()


async def test_of_clients_that_come_together_some_are_in_although_all_would_take_too_long(
    papers: Papers, autojump_clock: trio.testing.MockClock
) -> None:
    """When each had its first steps before any had its last, nobody was in when time was over, and
    so it was again when they came back: 115 of 1,200 clients were in after 40 s."""
    turns = HandshakeTurns(contextlib.nullcontext)
    server = papers.server(papers.issue("p", "localhost"))
    done: list[float] = []

    @asynccontextmanager
    async def slow() -> AsyncIterator[None]:
        async with turns.turn():
            await trio.sleep(1)
            yield

    async def admit(stream: trio.abc.Stream) -> None:
        with trio.move_on_after(_SECONDS):
            await preamble.do_tls_handshake(stream, server, turn=slow)
            done.append(trio.current_time())

    async def come(stream: trio.abc.HalfCloseableStream) -> None:
        await trio.SSLStream(stream, papers.client(), server_hostname="localhost").do_handshake()

    async with trio.open_nursery() as nursery:
        for _ in range(int(_SECONDS)):
            far, near = trio.testing.memory_stream_pair()
            nursery.start_soon(admit, near)
            nursery.start_soon(come, far)
        await trio.sleep(_SECONDS)
        nursery.cancel_scope.cancel()
    assert len(done) >= 2


async def test_a_client_that_goes_while_it_waits_for_its_turn_keeps_nobody_waiting() -> None:
    turns, order = HandshakeTurns(contextlib.nullcontext), list[int]()

    async def take(number: int, scope: trio.CancelScope) -> None:
        with scope:
            async with turns.turn():
                order.append(number)

    async with trio.open_nursery() as nursery, turns.turn():
        scopes = [trio.CancelScope() for _ in range(3)]
        for number, scope in enumerate(scopes):
            nursery.start_soon(take, number, scope)
            await trio.testing.wait_all_tasks_blocked()
        scopes[1].cancel()
        await trio.testing.wait_all_tasks_blocked()
    assert order == [2, 0]
    gone = trio.CancelScope()
    gone.cancel()
    await take(3, gone)
    await take(4, trio.CancelScope(deadline=trio.current_time() + _SECONDS))
    assert order == [2, 0, 4]


@pytest.mark.parametrize(
    ("hosts", "wrong", "reason"),
    [
        (["elsewhere.example"], {}, "is not valid for '127.0.0.1'"),
        (["127.0.0.1"], {"ca": ""}, "not accepted: "),
        (["127.0.0.1"], {"server_name": "b.example"}, "is not valid for 'b.example'"),
    ],
    ids=["another-host", "unknown-root", "another-name"],
)
async def test_a_broker_that_is_not_who_it_must_be_gets_no_client(
    log: Log, papers: Papers, hosts: list[str], wrong: dict[str, str], reason: str
) -> None:
    inside = papers.server(papers.issue("broker", *hosts))
    tls = {"enabled": True, "ca": papers.ca, **wrong}
    async with (
        broker_at(inside) as (broker, upstream),
        serving(_settings(upstream, upstream_tls=tls), log) as (address,),
    ):
        client = await trio.open_tcp_stream(address.host, address.port)
        await client.send_all(ASKED)
        with trio.fail_after(_SECONDS), contextlib.suppress(trio.BrokenResourceError):
            assert await client.receive_some() == b""
        (line,) = await until_true(lambda: log.events("upstream_unreachable"))
        assert line["error"].startswith("TLS: the broker has a certificate")
        assert reason in line["error"]
        (lost,) = await until_true(lambda: log.events("subscription_lost"))
        assert reason in lost["error"]
        assert broker.asked == []


async def test_a_broker_without_tls_is_distinguished(log: Log, papers: Papers) -> None:
    listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
    upstream = Address(*listener.socket.getsockname())

    async def answer(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(messages.api_versions_response(1, 3, {18: 3}))
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, answer, [listener])
        tls = {"enabled": True, "ca": papers.ca}
        async with serving(_settings(upstream, upstream_tls=tls), log):
            (lost,) = await until_true(lambda: log.events("subscription_lost"))
            assert lost["error"] == "TLS: the broker speaks no TLS"
        nursery.cancel_scope.cancel()


async def _metric(log: Log, name: str) -> float:
    """The value of the one series that a metric has."""
    address = Address.parse(log.events("admin_listening")[0]["listen"])
    stream = await trio.open_tcp_stream(address.host, address.port)
    await stream.send_all(f"GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
    text = b""
    with trio.fail_after(_SECONDS):
        while chunk := await stream.receive_some():
            text += bytes(chunk)
    (line,) = (ln for ln in text.decode().splitlines() if ln.startswith(f"leader_hints_{name}{{"))
    return float(line.rpartition(" ")[2])


async def test_metrics_say_whether_certificates_can_be_used_and_until_when(
    log: Log, papers: Papers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate_watch, "LOOK_SECONDS", 0.02)
    certificate = papers.issue("proxy", "proxy.example")

    def expiry() -> float:
        pem = Path(certificate).read_bytes()
        found = x509.load_pem_x509_certificates(pem[pem.index(b"-----BEGIN CERT") :])
        return min(one.not_valid_after_utc.timestamp() for one in found)

    settings = _settings(
        Address("127.0.0.1", 9), client_tls={"mode": "terminate", "certificate": certificate}
    )
    async with serving(settings, log):
        first = expiry()
        assert await _metric(log, "certificates_unusable") == 0
        assert await _metric(log, "certificate_expiry_timestamp_seconds") == first

        papers.spoil(certificate)
        await until_true(lambda: log.events("certificates_refused"))
        assert await _metric(log, "certificates_unusable") == 1
        # What holds is what was read before.
        assert await _metric(log, "certificate_expiry_timestamp_seconds") == first

        papers.issue("proxy", "proxy.example", until=datetime(2031, 2, 3, tzinfo=UTC))
        await until_true(lambda: log.events("certificates_reloaded"))
        assert await _metric(log, "certificates_unusable") == 0
        assert await _metric(log, "certificate_expiry_timestamp_seconds") == expiry() != first


@pytest.mark.parametrize("by_signal", [False, True], ids=["as-it-changes", "sighup"])
async def test_new_certificates_are_given_to_new_links_and_old_links_stay(
    log: Log, papers: Papers, by_signal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate_watch, "LOOK_SECONDS", 3600 if by_signal else 0.02)

    async def written(event: str) -> dict[str, Any]:
        if by_signal:
            os.kill(os.getpid(), signal.SIGHUP)
        line: dict[str, Any] = (await until_true(lambda: log.events(event)))[0]
        return line

    certificate = papers.issue("proxy", "old.example")
    tls = {"mode": "terminate", "certificate": certificate}
    async with broker_at(None) as (broker, upstream):
        settings = _settings(upstream, client_tls=tls)
        async with serving(settings, log) as (address,):
            await until_true(lambda: log.events("route_plan"))
            before = await _connect(address, papers.client(), "old.example")
            papers.issue("proxy", "new.example")
            await written("certificates_reloaded")
            after = await _connect(address, papers.client(), "new.example")
            for client in (before, after):
                answer = _raised(broker)
                assert await exchange(client, ASKED, len(answer)) == answer
            papers.spoil(certificate)
            line = await written("certificates_refused")
            assert line["level"] == "warning"
            assert certificate in line["reason"]
            again = await _connect(address, papers.client(), "new.example")
            for client in (before, after, again):
                await client.aclose()


async def test_tls_passes_unread_where_that_is_wanted(log: Log, papers: Papers) -> None:
    inside = papers.server(papers.issue("broker", "localhost"))
    async with (
        broker_at(inside) as (broker, upstream),
        serving(_settings(upstream, client_tls={"mode": "pass"}), log) as (address,),
    ):
        client = await _connect(address, papers.client(), "localhost")
        answer = messages.api_versions_response(7, 3, broker.maxima)
        assert await exchange(client, ASKED, len(answer)) == answer
        await client.aclose()
        assert len(broker.asked) == 1
    assert log.events("bad_client_bytes") == []


def test_files_that_cannot_be_used_are_a_configuration_error(papers: Papers) -> None:
    certificate = papers.issue("proxy", "localhost")
    other = papers.issue("other", "localhost")
    junk = papers.folder / "junk.pem"
    junk.write_text("junk")
    for tls, said in (
        ({"certificate": f"{certificate}x"}, r"certificate .*proxy\.pemx: no such file"),
        ({"certificate": certificate, "key": other}, "the key is not that of the certificate"),
        ({"certificate": certificate, "key": str(junk)}, "no such PEM in it or in its key file"),
        ({"certificate": certificate, "key": "/none"}, r"certificate /none: no such file"),
        ({"certificate": certificate, "ca": str(junk)}, r"ca .*junk\.pem: no PEM certificate"),
    ):
        settings = _settings(Address("127.0.0.1", 9), client_tls={"mode": "terminate", **tls})
        with pytest.raises(ConfigurationError, match=f"^route r: client_tls: .*{said}"):
            app.run(settings)


_HEADER_1 = b"PROXY TCP4 192.0.2.1 198.51.100.7 56324 9092\r\n"
_HEADER_2 = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x07\xdc\x04\x23\x84"
)


@pytest.mark.parametrize("header", [_HEADER_1, _HEADER_2], ids=["version-1", "version-2"])
@pytest.mark.parametrize("secured", [False, True], ids=["plain", "tls"])
async def test_a_load_balancer_says_where_a_client_comes_from(
    log: Log, papers: Papers, header: bytes, secured: bool
) -> None:
    route: dict[str, Any] = {"proxy_protocol": True}
    if secured:
        certificate = papers.issue("p", "localhost")
        route["client_tls"] = {"mode": "terminate", "certificate": certificate}
    async with (
        broker_at(None) as (broker, upstream),
        serving(_settings(upstream, **route), log) as (address,),
    ):
        await until_true(lambda: log.events("route_plan"))
        client: trio.abc.Stream = await trio.open_tcp_stream(address.host, address.port)
        await client.send_all(header)
        if secured:
            context = papers.client()
            client = trio.SSLStream(client, context, server_hostname="localhost")
        answer = _raised(broker)
        assert await exchange(client, ASKED, len(answer)) == answer
        # Who it is is reported once its broker has served it.
        await exchange(client, messages.metadata_request(12, 8), 1)
        (seen,) = await until_true(lambda: log.events("client_seen"))
        assert seen["address"] == "192.0.2.1:56324"
        await trio.aclose_forcefully(client)


@pytest.mark.parametrize(
    ("first_bytes", "reason"),
    [
        (ASKED, "sends no PROXY header that can be read: no PROXY header"),
        (b"PROXY " + b"x" * 200, "sends no PROXY header that can be read: PROXY header without"),
        (_HEADER_1[:20], "has not finished its handshake within 0.05 s"),
    ],
    ids=["kafka", "endless", "cut"],
)
async def test_without_its_header_nobody_comes_through(
    log: Log, first_bytes: bytes, reason: str
) -> None:
    async with broker_at(None) as (broker, upstream):
        settings = _settings(upstream, proxy_protocol=True)
        # Only what is cut waits for its end; the others are refused by what they sent.
        timeout_ms = 50 if "has not finished" in reason else int(_SECONDS * 1000)
        settings = settings.model_copy(update={"greeting_timeout_ms": timeout_ms, "hints": "off"})
        async with serving(settings, log) as (address,):
            client = await trio.open_tcp_stream(address.host, address.port)
            await client.send_all(first_bytes)
            with trio.fail_after(_SECONDS), contextlib.suppress(trio.BrokenResourceError):
                assert await client.receive_some() == b""
            (line,) = await until_true(lambda: log.events("client_refused"))
            assert line["reason"].startswith(reason)
            assert broker.asked == []


@pytest.mark.parametrize("is_asked", [False, True], ids=["by-the-clock", "SIGHUP"])
def test_a_disk_that_hangs_does_not_keep_the_process_from_ending(
    log: Log, papers: Papers, monkeypatch: pytest.MonkeyPatch, is_asked: bool
) -> None:
    """A pipe without a writer is read as a file of a server that is gone: for ever."""
    monkeypatch.setattr(certificate_watch, "LOOK_SECONDS", 600 if is_asked else 0.01)
    certificate = papers.issue("proxy", "localhost")
    reading, let_go = threading.Event(), threading.Event()

    def interrupt() -> None:
        until(lambda: log.events("listening"), "it listens", _SECONDS)
        os.remove(certificate)
        os.mkfifo(certificate)
        if is_asked:
            os.kill(os.getpid(), signal.SIGHUP)
        until(reading.is_set, "the file is read", _SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)
        if not let_go.wait(_SECONDS / 2):
            with open(certificate, "w") as file:
                file.write("at last")

    reload = TlsFiles.reload

    def tell(files: TlsFiles) -> None:
        reading.set()
        reload(files)

    monkeypatch.setattr(TlsFiles, "reload", tell)
    thread = threading.Thread(target=interrupt)
    thread.start()
    upstream = Address("127.0.0.1", 9)
    settings = _settings(upstream, client_tls={"mode": "terminate", "certificate": certificate})
    begun = time.monotonic()
    assert app.run(settings) == 0
    assert time.monotonic() - begun < _SECONDS / 2
    assert log.events("stopped")
    let_go.set()
    thread.join()
    # What still reads ends.
    with contextlib.suppress(OSError):
        os.close(os.open(certificate, os.O_WRONLY | os.O_NONBLOCK))
