"""Clients of whom the broker has answered nothing yet, where it answers everybody and where not."""

import contextlib
import struct
from typing import Any

import pytest
import trio

from leader_hints.address import Address
from leader_hints.settings.settings import Settings
from tests.net import messages
from tests.net.fake_broker import FakeBroker
from tests.net.messages import Broker
from tests.net.serving import ANY, Log, serving, until_true

_SECONDS = 10.0
#: What a broker of 2.7 takes: Produce 10 is kept until its last partition begins.
_BEFORE_2_8 = {0: 8, 1: 12, 2: 5, 3: 9, 18: 3}
_CLIENTS = 20
_RECORDS = bytes(1_000_000)


def _produce(correlation: int, acks: int) -> bytes:
    """A Produce request v10 with two partitions."""
    body = messages.text(None) + struct.pack(">hi", acks, 1000)
    partitions = [
        struct.pack(">i", number) + messages.varint(len(records) + 1) + records + b"\0"
        for number, records in enumerate((_RECORDS, b"few"))
    ]
    topic = messages.text("t") + messages.array(partitions) + b"\0"
    body += messages.array([topic]) + b"\0"
    return messages.request(messages.PRODUCE, 10, correlation, body)


async def _broker(nursery: trio.Nursery) -> tuple[FakeBroker, Address]:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    broker = FakeBroker(
        1, [Broker(1, "localhost", 9092)], {"t": [(1, 5), (1, 5)]}, maxima=_BEFORE_2_8
    )
    nursery.start_soon(trio.serve_listeners, broker.serve, listeners)
    return broker, Address(*listeners[0].socket.getsockname())


@pytest.mark.parametrize("acks", [0, 1])
async def test_many_large_first_requests_are_served_where_brokers_authenticate_nobody(
    acks: int, log: Log
) -> None:
    """As when producers come back to a broker that was restarted, over a network that is full."""
    async with trio.open_nursery() as nursery:
        broker, upstream = await _broker(nursery)
        broker.answers[messages.PRODUCE] = lambda correlation, version: messages.response(
            messages.PRODUCE, 8, correlation, struct.pack(">ii", 0, 0)
        )
        values: Any = {"routes": [{"listen": str(ANY), "upstream": str(upstream), "name": "r"}]}
        async with serving(Settings.model_validate(values), log) as (address,):
            await until_true(lambda: log.events("subscription_ready"))
            await until_true(broker.metadata)
            asked = _produce(7, acks)
            clients = []
            with trio.fail_after(_SECONDS):
                for _ in range(_CLIENTS):
                    client = await trio.open_tcp_stream(address.host, address.port)
                    await client.send_all(asked[:-20])
                    clients.append(client)
                for client in clients:
                    with contextlib.suppress(trio.BrokenResourceError):
                        await client.send_all(asked[-20:])
            await until_true(
                lambda: (
                    log.events("bad_client_bytes")
                    or len([a for a in broker.asked if a.key == messages.PRODUCE]) == _CLIENTS
                )
            )
            assert log.events("bad_client_bytes") == []
            for client in clients:
                await client.aclose()
        nursery.cancel_scope.cancel()
