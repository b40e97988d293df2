"""GSSAPI of the proxy's own connections, with a real KDC and a broker that is an acceptor."""

import itertools
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from leader_hints.address import Address
from leader_hints.errors import BrokerError, ConfigurationError, LoginError
from leader_hints.net.brokers.kerberos import Kerberos
from leader_hints.net.brokers.sasl import Credentials
from leader_hints.net.tls.route_security import Security
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.sasl import SaslSettings
from tests.harness.kdc import REALM, Kdc, need_kerberos
from tests.harness.waiting import until
from tests.net.brokers.sasl_broker import (
    AUTHENTICATE,
    HANDSHAKE,
    Broker,
    Judge,
    RefusedError,
    ask,
    connected,
)
from tests.net.serving import until_true

PROXY = f"proxy@{REALM}"
_names = itertools.count(1)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A KDC that knows the proxy and the broker at localhost."""
    need_kerberos()
    with Kdc(tmp_path_factory.mktemp("kdc")) as running:
        running.add("proxy", "kafka/localhost")
        running.keytab("proxy", "proxy")
        running.keytab("broker", "kafka/localhost")
        yield running


@pytest.fixture
def kdc(shared: Kdc, monkeypatch: pytest.MonkeyPatch) -> Kdc:
    """The same, as the one of this process."""
    monkeypatch.setenv("KRB5_CONFIG", str(shared.config))
    return shared


def file(kdc: Kdc, name: str) -> str:
    """The path of a keytab that is there."""
    return str(kdc.config.with_name(f"{name}.keytab"))


def known(**settings: str) -> Credentials:
    """Credentials for GSSAPI."""
    return Credentials(SaslSettings(mechanism="GSSAPI", **settings))


def proxy(kdc: Kdc) -> Credentials:
    """The proxy's own."""
    return known(principal="proxy", keytab=file(kdc, "proxy"))


def acceptor(
    keytab: str, seen: list[str], layers: bytes = b"\1\0\0\0", *, tells: bool = False
) -> Judge:
    """A broker with the keys in a keytab; ``seen`` gets who authenticates."""
    import gssapi

    said = yield b""
    accepted = gssapi.Credentials(usage="accept", store={"keytab": keytab})
    context = gssapi.SecurityContext(creds=accepted, usage="accept")
    # Java's acceptors say nothing of an error; others send a token that has it.
    context.__DEFER_STEP_ERRORS__ = tells
    try:
        token = context.step(said)
    except gssapi.exceptions.GSSError:
        raise RefusedError("Authentication failed") from None
    said = yield token
    assert (said, context.complete) == (b"", True)
    said = yield context.wrap(layers, False).message
    # No layer, and no other identity than the principal.
    assert context.unwrap(said).message == b"\1\0\0\0"
    seen.append(str(context.initiator_name))
    yield b""


def broker_of(kdc: Kdc, seen: list[str], **others: Any) -> Broker:
    """A broker that has the keys of kafka/localhost."""
    return Broker("GSSAPI", lambda: acceptor(file(kdc, "broker"), seen), **others)


async def refusal(kdc: Kdc, credentials: Credentials, host: str = "localhost") -> str:
    """What an operator reads who cannot authenticate; nothing has been sent then."""
    broker = broker_of(kdc, [])
    async with connected(broker, credentials, host) as connection:
        with pytest.raises(BrokerError) as refused:
            await ask(connection)
    assert AUTHENTICATE not in broker.asked
    return str(refused.value)


async def test_a_keytab_authenticates(kdc: Kdc) -> None:
    seen: list[str] = []
    async with connected(broker_of(kdc, seen), proxy(kdc)) as connection:
        assert await ask(connection) == b"the answer"
        assert await ask(connection) == b"the answer"
    assert seen == [PROXY]


async def test_a_ticket_cache_authenticates(kdc: Kdc) -> None:
    cache = kdc.ticket("proxy", Path(file(kdc, "proxy")), "cache")
    for where in (str(cache), f"FILE:{cache}"):
        seen: list[str] = []
        known(ticket_cache=where).check()
        async with connected(broker_of(kdc, seen), known(ticket_cache=where)) as connection:
            assert await ask(connection) == b"the answer"
        assert seen == [PROXY]


async def test_it_authenticates_again_with_its_ticket_while_the_kdc_is_down(
    kdc: Kdc, mock_clock: MockClock
) -> None:
    seen: list[str] = []
    broker = broker_of(kdc, seen, lifetime_ms=60_000)
    async with connected(broker, proxy(kdc)) as connection:
        await ask(connection)
        kdc.close()
        try:
            mock_clock.jump(52)
            assert await ask(connection) == b"the answer"
        finally:
            kdc.start()
    assert broker.asked.count(HANDSHAKE) == 2
    assert seen == [PROXY, PROXY]


async def test_a_ticket_is_renewed_before_it_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_kerberos()
    with Kdc(tmp_path, life="6s") as kdc:
        monkeypatch.setenv("KRB5_CONFIG", str(kdc.config))
        kdc.add("proxy", "kafka/localhost")
        kdc.keytab("broker", "kafka/localhost")
        credentials = known(principal="proxy", keytab=str(kdc.keytab("proxy", "proxy")))
        log = tmp_path / "kdc-requests.log"

        def issued() -> int:
            return len(re.findall(rf"AS_REQ .* ISSUE: .* {PROXY} for", log.read_text()))

        before, seen = 0, list[str]()
        with trio.fail_after(60):
            while issued() < 3:
                async with connected(broker_of(kdc, seen), credentials) as connection:
                    # Never refused: each ticket has life left when the next one is got.
                    assert await ask(connection) == b"the answer"
                before += 1
                await trio.sleep(0.2)
        assert len(seen) == before
        kdc.close()
        async with connected(broker_of(kdc, seen), credentials) as connection:
            assert await ask(connection) == b"the answer"


@pytest.mark.parametrize(
    ("tells", "words"), [(False, "Authentication failed"), (True, "The ticket isn't for us")]
)
async def test_a_broker_that_refuses_a_ticket_is_explained(
    kdc: Kdc, tells: bool, words: str
) -> None:
    kdc.add(name := f"kafka/old-{next(_names)}")
    old = str(kdc.keytab("old", name))
    broker = Broker("GSSAPI", lambda: acceptor(old, [], tells=tells))
    async with connected(broker, proxy(kdc)) as connection:
        with pytest.raises(BrokerError) as refused:
            await ask(connection)
    assert str(refused.value) == (
        f"SASL: the broker refuses the ticket for kafka/localhost: {words}; its "
        "listener must have the present key of that very principal, and its clock must agree with "
        "the KDC's"
    )


async def test_a_broker_that_wants_a_security_layer_is_refused(kdc: Kdc) -> None:
    broker = Broker("GSSAPI", lambda: acceptor(file(kdc, "broker"), [], b"\6\0\1\0"))
    async with connected(broker, proxy(kdc)) as connection:
        with pytest.raises(BrokerError, match=r"^SASL: it wants a security layer"):
            await ask(connection)


@pytest.mark.parametrize("nonsense", [b"", b"x", b"\x60\x03abc", b"\xff" * 5000])
@pytest.mark.parametrize("at", [1, 2])
async def test_answers_that_break_gssapi_are_the_brokers_fault(
    kdc: Kdc, nonsense: bytes, at: int
) -> None:
    def judge() -> Judge:
        wise = acceptor(file(kdc, "broker"), [])
        said = yield next(wise)
        if at > 1:
            said = yield wise.send(said)
        yield nonsense

    async with connected(Broker("GSSAPI", judge), proxy(kdc)) as connection:
        with pytest.raises(BrokerError, match=r"^SASL: its answer breaks GSSAPI: ") as broken:
            await ask(connection)
    # What MIT's library calls the reason where its kind says all.
    assert not str(broken.value).endswith("Success")


async def test_each_reason_for_no_ticket_says_what_to_do(kdc: Kdc, tmp_path: Path) -> None:
    kdc.add("gone", "other")
    gone, other = str(kdc.keytab("gone", "gone")), str(kdc.keytab("other", "other"))
    kdc.remove("gone")
    kdc.change_keys("other")
    (tmp_path / "damaged").write_bytes(b"no keytab at all")
    keytab = file(kdc, "proxy")
    for credentials, said in (
        (known(principal="gone", keytab=gone), "the KDC does not know the principal gone: create"),
        (known(principal="other", keytab=other), f"the key in {other} is not the present one of"),
        (known(principal="who", keytab=keytab), f"the keytab {keytab} has no key of who: `klist"),
        (known(principal="who", keytab="/none"), "cannot read the keytab /none: No such file"),
        (
            known(principal="who", keytab=str(tmp_path / "damaged")),
            f"the keytab {tmp_path}/damaged cannot be used: Unsupported key table format",
        ),
        (known(principal="a@b@c", keytab=keytab), "a@b@c is no name of a principal: correct"),
        (known(ticket_cache="/none"), "/none has no ticket: get one, as kinit does"),
        (known(ticket_cache="XYZ:a"), "no ticket: Unknown credential cache type"),
    ):
        assert (await refusal(kdc, credentials)).startswith(f"SASL: {said}")
    with pytest.raises(ConfigurationError, match=r"^a@b@c is no name of a principal: correct"):
        known(principal="a@b@c", keytab=keytab).check()
    unknown = await refusal(kdc, proxy(kdc), "other.localhost")
    assert unknown.startswith("SASL: the KDC does not know the broker's principal kafka/other.")
    assert "sasl.server_name" in unknown


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (14, "the KDC takes none of the encryption types in"),
        (18, "the principal proxy is locked or has expired at the KDC"),
        (23, "the key of proxy has expired at the KDC"),
        (24, "the key in .* is not the present one of proxy: export the keytab again"),
        (37, "the clocks of this machine and the KDC differ by more than Kerberos allows"),
        (136, "krb5.conf is not well formed"),
        (154, "krb5.conf and DNS have no KDC of the realm"),
        (220, "the name of the KDC cannot be resolved"),
        (-5, "no ticket: "),
    ],
)
async def test_reasons_of_the_library_are_explained(
    kdc: Kdc, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    """Its codes are those of krb5_err.et; a KDC that was an hour ahead gave the one for clocks."""
    import gssapi

    def fail(kerberos: Kerberos, host: str, store: Mapping[str, str]) -> None:
        raise gssapi.exceptions.GSSError(851_968, 2_529_638_912 + code)

    monkeypatch.setattr(Kerberos, "_begin", fail)
    assert re.match(f"SASL: {said}", await refusal(kdc, proxy(kdc)))


async def test_a_host_that_no_principal_has_is_the_brokers_fault(kdc: Kdc) -> None:
    for host in ("\udcff", "a\0b", "x" * 255):
        assert (await refusal(kdc, proxy(kdc), host)).startswith("SASL: ")


async def test_a_ticket_that_has_expired(kdc: Kdc) -> None:
    cache = kdc.ticket("proxy", Path(file(kdc, "proxy")), "short", life="1s")
    credentials = known(ticket_cache=str(cache))

    def problem() -> str:
        try:
            next(credentials.converse([], "localhost"))
        except LoginError as error:
            return str(error)
        return ""

    until(lambda: "Ticket expired" in problem(), "the KDC has seen that the ticket has expired")
    said = f"the ticket in {cache} has expired: renew it, as kinit does"
    assert (await refusal(kdc, credentials)).startswith(f"SASL: {said}")
    with pytest.raises(ConfigurationError, match=said):
        credentials.check()


async def test_a_kdc_that_is_down_is_said_and_check_needs_none(kdc: Kdc) -> None:
    kdc.close()
    try:
        proxy(kdc).check()
        said = await refusal(kdc, proxy(kdc))
        assert said.startswith("SASL: no KDC answers: see [realms] of krb5.conf")
        assert REALM in said
    finally:
        kdc.start()
    async with connected(broker_of(kdc, []), proxy(kdc)) as connection:
        assert await ask(connection) == b"the answer"


async def test_a_silent_kdc_stops_nothing_else(kdc: Kdc) -> None:
    silent = proxy(kdc)

    async def wait() -> None:
        async with connected(broker_of(kdc, []), silent) as connection:
            await ask(connection)

    with kdc.frozen():
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(wait)
            # As many threads wait as one route may have, and the event loop goes on.
            await until_true(lambda: silent.threads.borrowed_tokens == 4)
            assert silent.threads.available_tokens == 0
            assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
            # Cancelled, they leave no more than these behind.
            nursery.cancel_scope.cancel()
        assert silent.threads.borrowed_tokens <= 4
    await until_true(lambda: silent.threads.borrowed_tokens == 0)
    await wait()


@pytest.mark.parametrize("kind", ["keytab", "ticket_cache"])
async def test_what_hangs_for_good_is_read_again_at_sighup(
    kdc: Kdc, tmp_path: Path, kind: str
) -> None:
    """One that hung was the last that was read, until the process was started again."""
    keytab = Path(file(kdc, "proxy"))
    right = keytab if kind == "keytab" else kdc.ticket("proxy", keytab, "for-a-pipe")
    path, pipe = tmp_path / "path", tmp_path / "pipe"
    os.mkfifo(pipe)
    path.symlink_to(pipe)
    credentials = known(principal="proxy", **{kind: str(path)})
    seen: list[str] = []

    async def authenticate() -> None:
        async with connected(broker_of(kdc, seen), credentials) as connection:
            assert await ask(connection) == b"the answer"

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(authenticate)
            assert credentials._kerberos is not None
            await until_true(credentials._kerberos._tickets.lock.locked)
            nursery.cancel_scope.cancel()
        path.unlink()
        path.write_bytes(right.read_bytes())
        credentials.renew_threads()
        with trio.fail_after(20):
            await authenticate()
        assert seen == [PROXY]
    finally:
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


async def test_other_brokers_are_known_by_the_hosts_that_they_advertise(kdc: Kdc) -> None:
    """The principal's host in the settings is that of the route's own broker alone."""
    seen: list[str] = []
    async with trio.open_nursery() as nursery:
        broker = broker_of(kdc, seen)
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, broker.serve, [listener])
        port = listener.socket.getsockname()[1]
        route = RouteSettings(
            listen=Address("127.0.0.1", 0),
            upstream=Address("127.0.0.1", port),
            sasl=SaslSettings(
                mechanism="GSSAPI",
                principal="proxy",
                keytab=file(kdc, "proxy"),
                server_name="localhost",
            ),
        )
        upstream, advertised = Security([route], 1.0).connectors[route.name]
        by_address, by_name = Address("127.0.0.1", port), Address("localhost", port)
        for connector, address in (
            (upstream, by_address),
            (upstream.to(by_address), by_address),
            (advertised, by_name),
            (advertised.to(by_name), by_address),
        ):
            connection = await connector.connect(address, 10, "leader-hints", 10)
            assert await ask(connection) == b"the answer"
            await connection.aclose()
        connection = await advertised.connect(by_address, 10, "leader-hints", 10)
        with pytest.raises(BrokerError, match=r"principal kafka/127\.0\.0\.1: "):
            await ask(connection)
        await connection.aclose()
        nursery.cancel_scope.cancel()
    assert seen == [PROXY] * 4


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (None, "mechanism GSSAPI needs the extra kerberos: pip install"),
        ("raise ImportError('libgssapi_krb5.so.2: no such file')", "cannot be loaded: libgssapi_"),
    ],
)
def test_without_the_library_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str | None, said: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "gssapi"]:
        monkeypatch.delitem(sys.modules, name)
    if module is None:
        monkeypatch.setattr(sys, "path", [])
        monkeypatch.setattr(sys, "meta_path", [])
    else:
        (tmp_path / "gssapi.py").write_text(module)
        monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigurationError, match=said):
        known(ticket_cache=os.devnull)
