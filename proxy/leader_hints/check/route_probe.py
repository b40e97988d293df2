"""Route probe: gathers the facts that :mod:`leader_hints.check.rules` judges. It changes nothing.

It first asks each upstream about its cluster. Then it listens on the free listening addresses, and
probes where the advertised addresses lead.

Tested in ``tests/real/test_doctor.py``.
"""

import contextlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import trio

from leader_hints.address import Address, overlap
from leader_hints.apis import describe_configs, metadata, sasl_handshake
from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata import ClusterMetadata
from leader_hints.check import endpoint_probe, host
from leader_hints.check.client_support import AS_PROXY, kinds
from leader_hints.check.facts import (
    KAFKA,
    Advertised,
    BrokerLimits,
    EndpointKind,
    Listening,
    ListeningFacts,
    MachineFacts,
    ProbeResult,
    RackFacts,
    RouteFacts,
    TopicFacts,
)
from leader_hints.check.self_connection import SelfConnections
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.mode import Mode
from leader_hints.core.replicas.racks import Racks
from leader_hints.core.route import Route, RouteConfig
from leader_hints.core.versions.client_capabilities import client_table
from leader_hints.errors import BrokerError
from leader_hints.net.brokers import name_look_ups
from leader_hints.net.brokers.connector import Connectors
from leader_hints.net.descriptors import allowed_descriptors
from leader_hints.net.tls.route_security import Security, make_route
from leader_hints.settings.route import RouteSettings
from leader_hints.settings.settings import Settings
from leader_hints.wire.errors import WireError

#: Most seconds for Metadata and for the probes behind a route; for all advertised addresses.
_LEARN, _ADDRESSES = 3.0, 9.0
#: Connections to an upstream address, to see whether all reach the same broker.
_LOOKS = 4
#: Most addresses of one name that are probed.
_MOST_ADDRESSES = 8
#: Advertised addresses that are probed at the same time.
_AT_ONCE = 50
#: Settings of brokers that limit a proxy.
_PER_ADDRESS, _OVERRIDES = "max.connections.per.ip", "max.connections.per.ip.overrides"
_REQUEST_BYTES = "socket.request.max.bytes"
_SELECTOR = "replica.selector.class"
_SETTINGS = (_PER_ADDRESS, _OVERRIDES, _REQUEST_BYTES, _SELECTOR)


@dataclass(slots=True)
class _RouteProbe:
    """What is known so far of a route. ``route`` has its view and endpoints."""

    settings: RouteSettings
    route: Route
    connectors: Connectors
    met: ProbeResult = field(default_factory=lambda: ProbeResult(kind=EndpointKind.NOT_KAFKA))
    mechanisms: tuple[str, ...] | None = None
    silence: str | None = None
    topics: TopicFacts = field(default_factory=TopicFacts)
    addresses: tuple[str, ...] = ()
    limits: BrokerLimits = field(default_factory=BrokerLimits)
    selector: str = ""
    looks: list[Route] = field(default_factory=list)
    listening: ListeningFacts = field(default_factory=ListeningFacts)
    brokers: dict[int, Advertised] = field(default_factory=dict)

    @property
    def nodes(self) -> frozenset[int]:
        """The nodes that connections to the upstream address reached."""
        return frozenset(look.broker.node for look in self.looks if look.broker.node is not None)

    def facts(self) -> RouteFacts:
        """Return what was found."""
        view, config = self.route.broker.view, self.route.config
        endpoints = self.route.broker.endpoints
        return RouteFacts(
            name=self.settings.name,
            listen=str(self.settings.listen),
            upstream=str(self.settings.upstream),
            mode=self.route.mode,
            met=self.met,
            mechanisms=self.mechanisms,
            silence=self.silence,
            cluster=view.cluster_id if view else "",
            topics=self.topics,
            nodes=self.nodes,
            others=frozenset().union(*(look.broker.others for look in self.looks)),
            limits=self.limits,
            listening=self.listening,
            clients=config.clients,
            settle=config.settle,
            racks=RackFacts(
                mode=config.closest_replica,
                nodes={node: config.racks.of(node, endpoints) for node in endpoints},
                selector=self.selector,
            ),
            brokers=tuple(broker for _, broker in sorted(self.brokers.items())),
        )


def examine(settings: Settings) -> tuple[tuple[RouteFacts, ...], MachineFacts]:
    """Gather the facts about all routes and this machine, in about 15 seconds at most."""
    return trio.run(_examine, settings)


async def _examine(settings: Settings) -> tuple[tuple[RouteFacts, ...], MachineFacts]:
    name_look_ups.install()
    mode = Mode(settings.hints)
    synthesize = settings.topic_ids == "synthesize" and mode is Mode.ON
    config = RouteConfig(
        synthesize=synthesize,
        clients=client_table(settings.client_uses),
        settle=settings.hold.settle,
        closest_replica=Mode(settings.closest_replica),
        racks=Racks(settings.racks_by_node),
    )
    security = Security(settings.routes, settings.greeting_timeout)
    probes = [
        _RouteProbe(
            route,
            make_route(route, mode, config),
            security.connectors[route.name],
            topics=TopicFacts(synthesized=synthesize),
        )
        for route in settings.routes
    ]
    self_connections = SelfConnections()
    async with trio.open_nursery() as nursery:
        for probe in probes:
            nursery.start_soon(_meet_upstream, probe, self_connections, settings)
    async with trio.open_nursery() as held:
        for probe in probes:
            state, reason = await self_connections.listen(
                held, probe.settings.name, probe.settings.listen
            )
            probe.listening = _listening(probe.settings.listen.port, state, reason)
        limit = trio.CapacityLimiter(_AT_ONCE)
        with trio.move_on_after(_ADDRESSES):
            async with trio.open_nursery() as nursery:
                for probe in probes:
                    nursery.start_soon(_meet_listener, probe, self_connections)
                    for node in probe.route.broker.endpoints:
                        nursery.start_soon(_meet_advertised, probe, node, self_connections, limit)
        held.cancel_scope.cancel()
    return tuple(probe.facts() for probe in probes), _machine(probes)


def _listening(port: int, state: Listening, reason: str) -> ListeningFacts:
    """Return the facts about a route's listening address before it is looked at from outside."""
    far = host.connection_from(port) if state is Listening.TAKEN else None
    return ListeningFacts(state=state, reason=reason, connection=far or "")


async def _meet_upstream(
    probe: _RouteProbe, self_connections: SelfConnections, settings: Settings
) -> None:
    upstream = probe.settings.upstream
    try:
        probe.addresses = await endpoint_probe.resolve(upstream.host, upstream.port)
    except BrokerError as error:
        probe.met = ProbeResult(kind=EndpointKind.UNRESOLVED, reason=str(error))
        return
    probe.met = await endpoint_probe.meet(probe.connectors.upstream, upstream, self_connections)
    if probe.met.kind in KAFKA and all(map(host.is_here, probe.addresses)):
        probe.limits = BrokerLimits(connections=host.connections_to(upstream.port))
    newest = probe.met.maxima.get(ApiKey.METADATA, -1)
    if newest < metadata.OLDEST:
        return
    patience = min(settings.subscription.answer_timeout, _LEARN)
    with trio.move_on_after(_LEARN) as scope:
        try:
            await _learn(probe, min(newest, metadata.NEWEST), patience)
            await _ask_settings(probe)
        except (BrokerError, WireError) as error:
            probe.silence = str(error)
            probe.mechanisms = await _mechanisms(probe) or None
    if scope.cancelled_caught and probe.silence is None and not probe.route.broker.endpoints:
        silent = {
            "GSSAPI": "the KDC or the broker",
            "OAUTHBEARER": "the token endpoint or the broker",
        }
        who = silent.get(probe.settings.sasl.mechanism, "the broker")
        probe.silence = f"{who} does not answer within {_LEARN:g} s"


async def _learn(probe: _RouteProbe, version: int, patience: float) -> None:
    """Read the cluster's Metadata from the broker, and find out which node it is.

    :raises BrokerError: it does not answer Metadata.
    :raises WireError: its answer is not well formed.
    """
    connector, upstream = probe.connectors.upstream, probe.settings.upstream
    connection = await endpoint_probe.connect(connector, upstream, answer=patience)
    async with contextlib.aclosing(connection):

        async def ask(topics: tuple[str, ...] | None) -> ClusterMetadata:
            body = metadata.write_request_body(version, topics)
            reader = await connection.ask(ApiKey.METADATA, version, body)
            return metadata.read_response(reader, version)

        answer = await ask(None)
        view = LeaderView(answer.cluster_id)
        topics = [topic for topic in answer.topics if not topic.error or topic.partitions]
        for topic in topics:
            view.learn(topic, None, poll=False)
        without_ids = sum(topic.id == metadata.ZERO_ID for topic in topics)
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        hidden = [topic.error == refused for topic in (await ask((metadata.ANY_TOPIC,))).topics]
    probe.route.broker.view = view
    visible = len(view.topics.names)
    probe.topics = replace(
        probe.topics, visible=visible, without_ids=without_ids, hidden=any(hidden)
    )
    probe.route.broker.endpoints = answer.endpoints
    # With no partition led nothing is proved, unless there is but one broker.
    await _look_behind(probe)


async def _look_behind(probe: _RouteProbe) -> None:
    """Ask on several connections, and at each address of the name, which node answers."""
    upstream = probe.settings.upstream
    places = [Address(ip, upstream.port) for ip in probe.addresses[:_MOST_ADDRESSES]]
    async with trio.open_nursery() as nursery:
        for place in places * (1 + _LOOKS // len(places)):
            nursery.start_soon(_look, probe, place)


async def _look(probe: _RouteProbe, place: Address) -> None:
    # A name may have addresses without a listener, such as ::1 for localhost.
    with contextlib.suppress(BrokerError, WireError):
        connector = probe.connectors.upstream.to(probe.settings.upstream)
        async with contextlib.aclosing(
            await endpoint_probe.connect(connector, place)
        ) as connection:
            look = await endpoint_probe.prove(connection, probe.route)
            probe.looks.append(look)


async def _ask_settings(probe: _RouteProbe) -> None:
    """Ask the broker for its limits and selector, where its node is known; it may not answer."""
    (node,) = probe.nodes if len(probe.nodes) == 1 else (None,)
    if node is None:
        return
    with contextlib.suppress(BrokerError, WireError):
        connection = await endpoint_probe.connect(
            probe.connectors.upstream, probe.settings.upstream
        )
        async with contextlib.aclosing(connection):
            body = describe_configs.write_request_body(node, _SETTINGS)
            key, version = ApiKey.DESCRIBE_CONFIGS, describe_configs.VERSION
            values = describe_configs.read_values(await connection.ask(key, version, body))
        probe.selector = values.get(_SELECTOR, "")
        probe.limits = replace(probe.limits, largest_request=_number(values.get(_REQUEST_BYTES)))
        own = host.address_towards(probe.addresses[0])
        overrides = values.get(_OVERRIDES, "").replace(" ", "").split(",")
        override = await _override(overrides, own) if own is not None else None
        most = values.get(_PER_ADDRESS) if override is None else override
        probe.limits = replace(probe.limits, most_connections=_number(most))


async def _override(overrides: Sequence[str], own: str) -> str | None:
    """Return what stands for an IP address in a broker's overrides, ``None``: nothing.

    They are of addresses or names, which brokers look up.
    """
    for entry in filter(None, overrides):
        name, _, most = entry.rpartition(":")
        with contextlib.suppress(BrokerError):
            if own in await endpoint_probe.resolve(name, 0):
                return most
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


async def _mechanisms(probe: _RouteProbe) -> tuple[str, ...]:
    """Return the SASL mechanisms that a listener asks for; none if it asks for no SASL.

    Nor where the proxy authenticates: the outcome of that is more exact.
    """
    if probe.settings.sasl.mechanism != "none":
        return ()
    connector, upstream = probe.connectors.upstream, probe.settings.upstream
    with contextlib.suppress(BrokerError, WireError):
        async with contextlib.aclosing(
            await endpoint_probe.connect(connector, upstream)
        ) as connection:
            # A mechanism of no name is none that is enabled: the answer lists those that are.
            body = sasl_handshake.write_request_body("")
            key, version = ApiKey.SASL_HANDSHAKE, sasl_handshake.VERSION
            reader = await connection.ask(key, version, body)
            return sasl_handshake.read_response(reader).mechanisms
    return ()


async def _meet_listener(probe: _RouteProbe, self_connections: SelfConnections) -> None:
    """Probe the route's listening address, if another process listens there."""
    if probe.listening.state is not Listening.TAKEN or probe.listening.connection:
        return
    listen = probe.settings.listen
    if listen.is_wildcard:
        listen = Address("::1" if ":" in listen.host else "127.0.0.1", listen.port)
    asked = *kinds(probe.route.config.clients), AS_PROXY
    met = await endpoint_probe.meet(
        probe.connectors.advertised, listen, self_connections, probe.route, asked
    )
    probe.listening = replace(probe.listening, met=met)


async def _meet_advertised(
    probe: _RouteProbe, node: int, self_connections: SelfConnections, limit: trio.CapacityLimiter
) -> None:
    endpoint = probe.route.broker.endpoints[node]
    address = Address(endpoint.host, endpoint.port)
    known = partial(Advertised, node=node, address=str(address), port=address.port)
    late = ProbeResult(
        kind=EndpointKind.UNREACHABLE, reason="not looked at: there was no time left"
    )
    probe.brokers[node] = known(met=late)
    async with limit:
        try:
            found = await endpoint_probe.resolve(address.host, address.port)
        except BrokerError as error:
            met = ProbeResult(kind=EndpointKind.UNRESOLVED, reason=str(error))
            probe.brokers[node] = known(met=met)
            return
        here = tuple(filter(host.is_here, found))
        known = partial(
            known,
            addresses=found,
            here=bool(here),
            loopback=all(ipaddress.ip_address(ip).is_loopback for ip in found),
            is_listen=await _is_same(probe.settings.listen, address.port, here),
            is_upstream=address.port == probe.settings.upstream.port
            and bool(set(found) & set(probe.addresses)),
        )
        probe.brokers[node] = known(met=late)
        met = await endpoint_probe.meet(
            probe.connectors.advertised, address, self_connections, probe.route
        )
        probe.brokers[node] = known(met=met)


async def _is_same(listen: Address, port: int, addresses: tuple[str, ...]) -> bool:
    """Whether a port at addresses of this machine is plainly the one listened on."""
    if port != listen.port:
        return False
    if listen.is_wildcard:
        # Of its own family only: an IPv6 listener takes no IPv4 here.
        return any(overlap(listen, Address(ip, port)) for ip in addresses)
    with contextlib.suppress(BrokerError):
        return bool(set(addresses) & set(await endpoint_probe.resolve(listen.host, listen.port)))
    return False


def _machine(probes: list[_RouteProbe]) -> MachineFacts:
    clock = host.clock()
    counted = [probe.limits.connections for probe in probes]
    known = [connections for connections in counted if connections is not None]
    return MachineFacts(
        descriptors=allowed_descriptors(),
        connections=sum(known) if len(known) == len(probes) else None,
        synchronised=clock.synchronised if clock else None,
        clock_error_ms=clock.error_ms if clock else 0,
    )
