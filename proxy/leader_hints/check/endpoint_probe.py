"""Endpoint probe: what answers at an address. It changes nothing on a broker, and is bounded."""

import contextlib
import ssl
from collections.abc import Collection, Mapping
from dataclasses import replace

import trio

from leader_hints.address import Address
from leader_hints.apis import api_versions, list_offsets
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.list_offsets import Partition
from leader_hints.check.client_support import AS_PROXY, PLAIN, ClientKind
from leader_hints.check.facts import EndpointKind, ProbeResult
from leader_hints.check.self_connection import SelfConnections
from leader_hints.core import destination
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster import broker_identity
from leader_hints.core.cluster.broker_identity import Probe
from leader_hints.core.cluster.doubts import Source
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.route import Route
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.broker_connection import BrokerConnection
from leader_hints.net.brokers.broker_stream import LONGEST_HOST, open_broker_stream
from leader_hints.net.brokers.connector import Connector
from leader_hints.wire.errors import WireError

#: Seconds for a connection, for an answer, and for the answer of what is no broker.
CONNECT, ANSWER, _PROBE = 2.0, 2.0, 1.0
#: Seconds for a whole probe; for asking again as the kinds of client that were not answered.
_WHOLE, _AGAIN = 4.0, 4.0
#: Kinds of client as which is asked at the same time: each TLS handshake costs both processes.
_AT_ONCE = 4
#: Enough to tell a proxy that raises versions.
_TELLING = (AS_PROXY,)
_CLIENT_ID = "leader-hints-check"
#: The first bytes of a TLS record: a handshake message or an alert.
_TLS = (b"\x16\x03", b"\x15\x03")
_HTTP = b"HTTP/"
_GET = b"GET / HTTP/1.0\r\n\r\n"


async def resolve(host: str, port: int) -> tuple[str, ...]:
    """Return the IP addresses that a host name leads to.

    :raises BrokerError: it leads to none; the text says why.
    """
    if len(host) > LONGEST_HOST:
        raise BrokerError(f"a host of {len(host)} letters")
    try:
        with trio.fail_after(CONNECT):
            found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    except trio.TooSlowError:
        raise BrokerError(f"no answer within {CONNECT:g} s") from None
    except (OSError, ValueError, OverflowError, RuntimeError) as error:
        # The last: names are looked up in a thread, which the system may refuse.
        raise BrokerError((getattr(error, "strerror", None) or str(error)).lower()) from None
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


async def connect(
    connector: Connector, address: Address, token: str = "", *, answer: float = ANSWER
) -> BrokerConnection:
    """Open a connection that names its client; ``answer``: seconds for each of its answers.

    :raises BrokerError: there is none.
    """
    client_id = f"{_CLIENT_ID}-{token}" if token else _CLIENT_ID
    return await connector.connect(address, CONNECT, client_id, answer)


async def meet(
    connector: Connector,
    address: Address,
    self_connections: SelfConnections,
    known: Route | None = None,
    kinds: Collection[ClientKind] = _TELLING,
) -> ProbeResult:
    """Find out what answers at an address whose name resolves.

    ``known``: a route whose view and endpoints are known; with it the node is looked for too.
    ``kinds``: of client, for each of which is asked what it is offered.
    """
    met = ProbeResult(kind=EndpointKind.NOT_KAFKA, reason=f"no answer within {_WHOLE:g} s")
    deadline = trio.current_time() + _WHOLE
    with trio.move_on_at(deadline):
        met = await _meet(connector, address, self_connections, known)
    if met.kind is EndpointKind.BROKER:
        offers = dict(met.offers)
        # The second time on a busy machine, as those kinds only that were not answered.
        for until in (deadline, deadline + _AGAIN):
            silent = [kind for kind in kinds if kind.name not in offers]
            await _ask_as(connector, address, silent, offers, until)
        raised = any(offer != offers[PLAIN.name] for offer in offers.values())
        kind = EndpointKind.PROXY if raised else EndpointKind.BROKER
        met = replace(met, kind=kind, offers=offers)
    return met


async def _meet(
    connector: Connector, address: Address, self_connections: SelfConnections, known: Route | None
) -> ProbeResult:
    token = self_connections.token()
    try:
        connection = await connect(connector, address, token)
    except BrokerError as error:
        if (
            connector.speaks_tls
            and (route := await _route_reached(address, self_connections)) is not None
        ):
            return ProbeResult(kind=EndpointKind.ROUTE, route=route)
        return ProbeResult(kind=EndpointKind.UNREACHABLE, reason=str(error))
    try:
        async with contextlib.aclosing(connection):
            offers = {PLAIN.name: await offered(connection, PLAIN)}
            node = None
            if known is not None:
                with contextlib.suppress(BrokerError, WireError):
                    node = (await prove(connection, known)).broker.node
    except (BrokerError, WireError) as error:
        route = self_connections.route(token)
        if route is not None:
            return ProbeResult(kind=EndpointKind.ROUTE, route=route)
        return await _what_else(address, str(error))
    return ProbeResult(kind=EndpointKind.BROKER, offers=offers, node=node)


async def _route_reached(address: Address, self_connections: SelfConnections) -> str | None:
    """Return the route that a plain connection reaches, if any: its listener here has no TLS."""
    token = self_connections.token()
    with contextlib.suppress(BrokerError, WireError):
        async with contextlib.aclosing(await connect(Connector(), address, token)) as connection:
            await offered(connection, PLAIN)
    return self_connections.route(token)


async def _ask_as(
    connector: Connector,
    address: Address,
    kinds: Collection[ClientKind],
    offers: dict[str, Mapping[int, int]],
    deadline: float,
) -> None:
    """Ask as kinds of client, each on a connection of its own, and add what each is offered.

    A listener with SASL takes one question for its versions on each connection, no more.
    """
    limit = trio.CapacityLimiter(_AT_ONCE)

    async def ask(kind: ClientKind) -> None:
        async with limit:
            with contextlib.suppress(BrokerError, WireError):
                async with contextlib.aclosing(await connect(connector, address)) as connection:
                    offers[kind.name] = await offered(connection, kind)

    with trio.move_on_at(deadline):
        async with trio.open_nursery() as nursery:
            for kind in kinds:
                nursery.start_soon(ask, kind)


async def prove(connection: BrokerConnection, known: Route) -> Route:
    """Return what is proved of the broker (see :mod:`leader_hints.core.cluster.broker_identity`):
    its node and others.

    ``known``: a route whose view and endpoints are known.

    :raises BrokerError: it does not answer.
    :raises WireError: its answer is not well formed.
    """
    route = Route(
        known.name,
        known.mode,
        broker=BrokerState(view=known.broker.view, endpoints=known.broker.endpoints),
    )
    view = known.broker.view if known.broker.view is not None else LeaderView("")
    broker_identity.conclude(route.broker, *await _ask_leadership(connection, view))
    return route


async def led_by(connection: BrokerConnection, view: LeaderView) -> int | None:
    """Return the node that a broker proves to be by what it leads, ``None``: it proves nothing.

    :raises BrokerError: it does not answer.
    :raises WireError: its answer is not well formed.
    """
    asked, errors = await _ask_leadership(connection, view)
    return destination.proved(asked, errors)


async def _ask_leadership(
    connection: BrokerConnection, view: LeaderView
) -> tuple[Probe, dict[Partition, int]]:
    """Ask a broker for one partition of each leader."""
    asked: Probe = {}
    for _ in broker_identity.probing(view, asked, Source(None)):
        # Of a process that runs, links have their turn in between.
        await trio.lowlevel.checkpoint()
    epochs = {partition: leader.epoch for partition, leader in asked.items()}
    body = list_offsets.write_request_body(epochs)
    reader = await connection.ask(ApiKey.LIST_OFFSETS, list_offsets.VERSION, body)
    return asked, list_offsets.read_errors(reader, epochs)


async def offered(connection: BrokerConnection, kind: ClientKind) -> dict[int, int]:
    """Return the maxima that are offered to a kind of client.

    :raises BrokerError: there is no answer, or one that offers nothing.
    """
    for version, body in ((3, api_versions.write_request_body(kind.software)), (0, b"")):
        reader = await connection.ask(ApiKey.API_VERSIONS, version, body)
        ranges = api_versions.read_ranges(reader, version)
        if ranges:
            return {key: offered.maximum for key, offered in ranges.items()}
    raise BrokerError("it offers no versions")


async def _what_else(address: Address, reason: str) -> ProbeResult:
    """Tell what answers where no broker does."""
    first: dict[EndpointKind, bytes] = {}

    async def ask(kind: EndpointKind, question: bytes) -> None:
        first[kind] = await _first_bytes(address, question)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, EndpointKind.TLS, _client_hello())
        nursery.start_soon(ask, EndpointKind.HTTP, _GET)
    if first[EndpointKind.TLS].startswith(_TLS):
        return ProbeResult(kind=EndpointKind.TLS, reason="it speaks TLS")
    if first[EndpointKind.HTTP].startswith(_HTTP):
        return ProbeResult(kind=EndpointKind.HTTP, reason="it is an HTTP server")
    return ProbeResult(kind=EndpointKind.NOT_KAFKA, reason=reason)


async def _first_bytes(address: Address, question: bytes) -> bytes:
    """Return the first bytes that come in answer, none if none come in time."""
    answer = b""
    with (
        contextlib.suppress(BrokerError, trio.BrokenResourceError, trio.ClosedResourceError),
        trio.move_on_after(_PROBE),
    ):
        async with await open_broker_stream(address, CONNECT) as stream:
            await stream.send_all(question)
            while len(answer) < len(_HTTP):
                chunk = await stream.receive_some()
                if not chunk:
                    break
                answer += chunk
    return answer


def _client_hello() -> bytes:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()
