"""Finds the brokers of a cluster from the addresses that a client would be given."""

import contextlib
from collections.abc import Sequence
from functools import partial

import trio

from proxy.apis import api_versions, metadata
from proxy.apis.keys import ApiKey
from proxy.errors import BrokerError
from proxy.net.broker_connection import BrokerConnection
from proxy.net.broker_stream import open_broker_stream
from proxy.settings import Address
from proxy.wire.errors import WireError

_CLIENT_ID = "leader-hints-local"
#: Seconds in which a broker must take a connection, and again for each of its answers.
_PATIENCE = 5.0


def discover(bootstrap: Sequence[Address]) -> dict[int, Address]:
    """Return where the brokers are by node id, as the first address that answers says it.

    :raises BrokerError: none of the addresses leads to a broker that can be used.
    """
    return trio.run(partial(_discover, bootstrap))


async def _discover(bootstrap: Sequence[Address]) -> dict[int, Address]:
    reasons = []
    for address in bootstrap:
        try:
            stream = await open_broker_stream(address, _PATIENCE)
            async with contextlib.aclosing(
                BrokerConnection(stream, _CLIENT_ID, _PATIENCE)
            ) as connection:
                return await _brokers(connection)
        except (BrokerError, WireError) as error:
            reasons.append(f"no cluster at {address}: {error}")
    raise BrokerError("\n".join(reasons))


async def _brokers(connection: BrokerConnection) -> dict[int, Address]:
    reader = await connection.ask(ApiKey.API_VERSIONS, 0, b"")
    offered = api_versions.read_ranges(reader, 0).get(ApiKey.METADATA)
    newest = -1 if offered is None else min(offered.maximum, metadata.NEWEST)
    if newest < metadata.OLDEST:
        raise BrokerError("its brokers are older than Kafka 2.4")
    reader = await connection.ask(
        ApiKey.METADATA, newest, metadata.write_request_body(newest, topics=())
    )
    endpoints = metadata.read_response(reader, newest).endpoints
    if not endpoints:
        raise BrokerError("it knows no broker")
    return {node: Address(found.host, found.port) for node, found in sorted(endpoints.items())}
