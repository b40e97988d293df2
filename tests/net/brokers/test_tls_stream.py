"""A broker that speaks TLS with the proxy's own connection, and little else."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trustme
from trio.testing import MockClock, memory_stream_pair

from leader_hints.address import Address
from leader_hints.apis.keys import ApiKey
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.broker_connection import BrokerConnection
from leader_hints.net.brokers.connector import Connector
from leader_hints.net.tls.certificates import TlsFiles
from leader_hints.settings.tls import BrokerTlsSettings
from tests.net import messages
from tests.net.key_updates import key_updates

_SECONDS = 5.0
_BUSY = "connection broken: the other end keeps TLS busy and sends no data"
_ADDRESS = Address("broker.example", 9093)


class _Broker:
    """The far end. ``sizes``: of what the proxy has sent at once, since the handshake.

    ``more``: how often its authority's certificate stands behind its own.
    """

    def __init__(self, folder: Path, more: int) -> None:
        self.near, self.stream = memory_stream_pair()
        self.sizes: list[int] = []
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.authority = trustme.CA()
        certificate = self.authority.issue_cert(_ADDRESS.host)
        shown = folder / "shown.pem"
        certificate.private_key_and_cert_chain_pem.write_to_path(shown)
        for _ in range(more):
            self.authority.cert_pem.write_to_path(shown, append=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(shown)
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def open(self, *_: object) -> trio.abc.Stream:
        """Connect to it."""
        return self.near

    async def do_handshake(self) -> None:
        """Do its part."""
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                await self.say(self._outgoing.read())
                self._incoming.write(await self.stream.receive_some())
            else:
                break
        await self.say(self._outgoing.read())
        self.near.send_stream.send_all_hook = self._note

    async def say(self, encrypted: bytes) -> None:
        """Have the proxy receive bytes."""
        await self.stream.send_all(encrypted)

    def encrypted(self, data: bytes) -> bytes:
        """Return the bytes that say ``data``."""
        self.tls.write(data)
        return self._outgoing.read()

    async def _note(self) -> None:
        self.sizes.append(len(self.near.send_stream.get_data_nowait()))


@asynccontextmanager
async def _connected(
    folder: Path, more: int = 0
) -> AsyncIterator[tuple[BrokerConnection, _Broker]]:
    """Yield a connection of the proxy's own, and its broker."""
    broker = _Broker(folder, more)
    broker.authority.cert_pem.write_to_path(folder / "ca.pem")
    files = TlsFiles(BrokerTlsSettings(enabled=True, ca=str(folder / "ca.pem")))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(broker.do_handshake)
        connector = Connector(files, open_tcp=broker.open)
        connection = await connector.connect(_ADDRESS, _SECONDS, "leader-hints", _SECONDS)
    yield connection, broker
    await connection.aclose()


def _answer(body: bytes) -> bytes:
    return messages.response(messages.METADATA, 12, 1, body)


@pytest.mark.parametrize("asks", [True, False])
async def test_a_broker_that_only_changes_keys_loses_the_connection_before_that_takes_long(
    tmp_path: Path, autojump_clock: MockClock, *, asks: bool
) -> None:
    async with _connected(tmp_path) as (connection, broker):
        await broker.say(key_updates(broker.tls, 9000, asks=asks))
        with trio.fail_after(_SECONDS), pytest.raises(BrokerError) as caught:
            await connection.wait(trio.Event())
        assert str(caught.value) == _BUSY
        # Each has its answer: links are served in between, and no more was looked at than takes
        # some milliseconds.
        assert max(broker.sizes, default=0) < 17_000
        assert sum(broker.sizes) <= 40_000


async def test_so_does_one_that_is_asked(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with _connected(tmp_path) as (connection, broker):
        await broker.say(key_updates(broker.tls, 9000))
        with pytest.raises(BrokerError) as caught:
            await connection.ask(ApiKey.METADATA, 12, b"")
        assert str(caught.value) == _BUSY


async def test_data_between_changes_of_keys_makes_up_for_them(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with _connected(tmp_path) as (connection, broker):
        whole = _answer(b"xx" * 3000)
        begun = broker.encrypted(whole[:-6000])
        await broker.say(begun + key_updates(broker.tls, 3000, b"xx"))
        reader = await connection.ask(ApiKey.METADATA, 12, b"")
        assert bytes(reader.buffer[reader.at :]) == b"xx" * 3000


async def test_large_answers_are_read_whole(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with _connected(tmp_path) as (connection, broker):
        body = bytes(range(256)) * 2000
        await broker.say(broker.encrypted(_answer(body)))
        reader = await connection.ask(ApiKey.METADATA, 12, b"")
        assert bytes(reader.buffer[reader.at :]) == body


async def test_the_handshake_may_have_a_long_chain_of_certificates(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with _connected(tmp_path, more=150) as (connection, broker):
        await broker.say(broker.encrypted(_answer(b"an answer")))
        reader = await connection.ask(ApiKey.METADATA, 12, b"")
        assert bytes(reader.buffer[reader.at :]) == b"an answer"
