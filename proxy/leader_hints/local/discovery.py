"""Finds the brokers of a cluster from the addresses that a client would be given.

Tested in ``tests/mock/test_local.py``.
"""

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import trio

from leader_hints.address import Address
from leader_hints.apis import api_versions, metadata
from leader_hints.apis.keys import ApiKey
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.broker_connection import BrokerConnection
from leader_hints.net.brokers.connector import Connector
from leader_hints.wire.errors import WireError

_CLIENT_ID = "leader-hints-local"
#: Seconds in which a broker must take a connection, and again for each of its answers.
_PATIENCE = 5.0


class Discovered(NamedTuple):
    """The brokers' addresses by node id, and the id of their cluster, "" if it has none."""

    cluster: str
    brokers: dict[int, Address]


def discover(bootstrap: Sequence[Address], connector: Connector) -> Discovered:
    """Return the brokers of a cluster, from the first address that answers.

    :raises BrokerError: none of the addresses leads to a broker that can be used.
    """
    return trio.run(partial(seek, bootstrap, connector))


async def seek(bootstrap: Sequence[Address], connector: Connector) -> Discovered:
    """Do as :func:`discover`.

    :raises BrokerError: none of the addresses leads to a broker that can be used.
    """
    reasons = []
    for address in bootstrap:
        try:
            opened = await connector.connect(address, _PATIENCE, _CLIENT_ID, _PATIENCE)
        except BrokerError as error:
            reasons.append(f"no cluster at {address}: {error}")
            continue
        try:
            async with contextlib.aclosing(opened) as connection:
                return await _brokers(connection)
        except (BrokerError, WireError) as error:
            reasons.append(f"no cluster at {address}: {error}{_advice(connector)}")
    raise BrokerError("\n".join(reasons))


def _advice(connector: Connector) -> str:
    """What a listener may want that was not given; it ends the connection then, or says garbage."""
    given = {"--tls": connector.speaks_tls, "--sasl": connector.authenticates}
    lacking = " or ".join(flag for flag, is_given in given.items() if not is_given)
    return f"; perhaps its listener needs {lacking}" if lacking else ""


async def _brokers(connection: BrokerConnection) -> Discovered:
    reader = await connection.ask(ApiKey.API_VERSIONS, 0, b"")
    offered = api_versions.read_ranges(reader, 0).get(ApiKey.METADATA)
    newest = -1 if offered is None else min(offered.maximum, metadata.NEWEST)
    if newest < metadata.OLDEST:
        raise BrokerError("its brokers are older than Kafka 2.4")
    reader = await connection.ask(
        ApiKey.METADATA, newest, metadata.write_request_body(newest, topics=())
    )
    answer = metadata.read_response(reader, newest)
    if not answer.endpoints:
        raise BrokerError("it knows no broker")
    brokers = {node: Address(at.host, at.port) for node, at in sorted(answer.endpoints.items())}
    return Discovered(answer.cluster_id, brokers)
