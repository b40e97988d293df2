"""Facts: what the probes found about routes, the brokers behind them, and this machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from leader_hints.check.client_support import PLAIN
from leader_hints.core.mode import Mode
from leader_hints.core.versions.client_capabilities import BUILT_IN, ClientTable


class EndpointKind(StrEnum):
    """What answers at an address.

    ``BROKER``: it offers all clients the same: a broker, or a proxy that raises no version.
    ``PROXY``: it offers more to clients that use hints. ``ROUTE``: the connection reached a route's
    own listening address, where the check listens while no proxy runs.
    """

    BROKER = "broker"
    PROXY = "proxy"
    ROUTE = "route"
    UNRESOLVED = "unresolved"
    UNREACHABLE = "unreachable"
    TLS = "tls"
    HTTP = "http"
    NOT_KAFKA = "not kafka"


#: Those that answer as Kafka does.
KAFKA = frozenset({EndpointKind.BROKER, EndpointKind.PROXY})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What a probe of an address found.

    ``reason``: why it is not a broker. ``offers``: maximum version by API key, by the name of each
    kind of client (:func:`leader_hints.check.client_support.kinds`). ``node``: of the broker behind
    it, where that is proved. ``route``: the route that was reached, for ``EndpointKind.ROUTE``.
    """

    kind: EndpointKind
    reason: str = ""
    offers: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    node: int | None = None
    route: str | None = None

    @property
    def maxima(self) -> Mapping[int, int]:
        """The maxima that the broker itself offers."""
        return self.offers.get(PLAIN.name, {})


class Listening(StrEnum):
    """Whether a route's address can be listened on. ``ANY``: its port is chosen at start."""

    FREE = "free"
    TAKEN = "taken"
    REFUSED = "refused"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertised:
    """A broker of the cluster as the route's listener advertises it.

    ``addresses``: what the host name resolves to; ``here``: some of them are this machine's,
    ``loopback``: all are loopback addresses. ``is_listen``, ``is_upstream``: it is
    certainly the route's listening address, or its upstream.
    """

    node: int
    address: str
    met: ProbeResult
    addresses: tuple[str, ...] = ()
    port: int = 0
    here: bool = False
    loopback: bool = False
    is_listen: bool = False
    is_upstream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """What the proxy can learn of the cluster's topics.

    ``visible``: how many it sees, ``without_ids`` of them have no id. ``synthesized``: the proxy is
    to synthesize ids; ``hidden``: ACLs hide some topics.
    """

    visible: int = 0
    without_ids: int = 0
    synthesized: bool = False
    hidden: bool = False

    @property
    def have_ids(self) -> bool:
        """Whether the cluster has topic ids, as the proxy sees it."""
        return 0 == self.without_ids < self.visible

    @property
    def have_names(self) -> bool:
        """Whether the proxy knows the names of all ids. Otherwise it does not offer them."""
        return self.have_ids and not self.hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLimits:
    """What the broker has and takes; ``None`` where that is not known.

    ``connections``: that it has now; ``most_connections``: that it takes from this machine's
    address; ``largest_request``: that it takes, in bytes.
    """

    connections: int | None = None
    most_connections: int | None = None
    largest_request: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RackFacts:
    """What ``closest_replica`` has to go by; ``mode``: what it does.

    ``nodes``: the rack of each broker, "" where none is known. ``selector``: the broker's
    `replica.selector.class`, "" if it has none, or does not tell.
    """

    mode: Mode = Mode.OFF
    nodes: Mapping[int, str] = field(default_factory=dict)
    selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningFacts:
    """Whether the route's address can be listened on, or why not.

    ``met``: what answers at an address that is taken. ``connection``: where an outgoing connection
    leads that has taken the port, "" where none has.
    """

    state: Listening = Listening.FREE
    reason: str = ""
    met: ProbeResult | None = None
    connection: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteFacts:
    """What was found about a route.

    ``mechanisms``: the SASL mechanisms that its listener asks for, ``None`` where it asks for none.
    ``silence``: why Metadata was not answered, ``None`` where it was. ``nodes``: all that several
    connections reached; ``others``: proved to be none of them. ``clients``: which use hints;
    ``settle``: errors to the others wait for settled Metadata.

    Large because all rules about a route are pure functions of it.
    """

    name: str
    listen: str
    upstream: str
    mode: Mode
    met: ProbeResult
    mechanisms: tuple[str, ...] | None = None
    silence: str | None = None
    cluster: str = ""
    topics: TopicFacts = field(default_factory=TopicFacts)
    nodes: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()
    limits: BrokerLimits = field(default_factory=BrokerLimits)
    listening: ListeningFacts = field(default_factory=ListeningFacts)
    brokers: tuple[Advertised, ...] = ()
    clients: ClientTable = BUILT_IN
    settle: bool = False
    racks: RackFacts = field(default_factory=RackFacts)

    @property
    def node(self) -> int | None:
        """The broker's node, if it is proved: all connections reached the same."""
        return next(iter(self.nodes)) if len(self.nodes) == 1 else None

    @property
    def known(self) -> bool:
        """Whether the broker reported its leaders: only then are there more rules to apply."""
        return self.met.kind in KAFKA and self.mechanisms is None and self.silence is None

    @property
    def own(self) -> Advertised | None:
        """The route's broker as it is advertised, if it is proved which one that is."""
        return next((broker for broker in self.brokers if broker.node == self.node), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What was found about this machine.

    ``descriptors``: how many the proxy can have. ``connections``: the brokers' now, ``None``
    where they are on other machines. ``synchronised``: whether the kernel reports its clock as
    right, to within ``clock_error_ms``; ``None`` if it does not report that.
    """

    descriptors: int
    connections: int | None
    synchronised: bool | None
    clock_error_ms: int = 0
