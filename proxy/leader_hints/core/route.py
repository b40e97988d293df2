"""A listening address and the one broker behind it."""

from dataclasses import dataclass, field

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.link.latency_sampler import LatencySampler
from leader_hints.core.link.traffic_counters import TrafficCounters
from leader_hints.core.mode import Mode
from leader_hints.core.replicas.rack_traffic import RackTraffic
from leader_hints.core.replicas.racks import Racks
from leader_hints.core.sessions.fetch_by_name import FetchSessionsByName
from leader_hints.core.sessions.fetch_sessions import FetchSessions
from leader_hints.core.versions.address_rewriting import AddressRewriting
from leader_hints.core.versions.asked_versions import AskedVersions
from leader_hints.core.versions.client_capabilities import BUILT_IN, ClientTable
from leader_hints.core.versions.plan import PASS, READ_ONLY, Plan


@dataclass(frozen=True, slots=True)
class RouteConfig:
    """What stays the same as long as the process runs.

    ``clients``: which clients use hints. ``settle``: errors to the others wait until they are
    settled.
    ``synthesize``: topic ids are synthetic, if the brokers' proxies agree on it. ``relays_tls``: a
    link that begins in TLS is relayed unread, and not refused. ``latencies``: chooses the exchanges
    that are timed, ``None``: none is. ``address_rewriting``: of a virtual cluster, whose addresses
    replace the brokers'. ``closest_replica``: whether consumers are sent to a replica in their
    rack, where the route's mode allows it; ``racks``: of the nodes.
    """

    synthesize: bool = False
    relays_tls: bool = False
    latencies: LatencySampler | None = None
    address_rewriting: AddressRewriting | None = None
    clients: ClientTable = BUILT_IN
    settle: bool = False
    closest_replica: Mode = Mode.OFF
    racks: Racks = field(default_factory=Racks)


@dataclass(slots=True)
class Advertised:
    """Where the advertised addresses lead; :mod:`leader_hints.core.destination` alone writes it.

    ``crossed``: why clients meet another broker than they look for, "" if that is not proved;
    ``past``: the route's broker is advertised at an address without a proxy.
    """

    crossed: str = ""
    past: bool = False


@dataclass(slots=True)
class Route:
    """Joins the configuration, the state and the counters of a route.

    ``mode``: whether hints are given now; :meth:`switch` changes it. ``raised``: versions were
    offered here that the broker lacks, so clients may keep to them. ``sessions``: clients' fetch
    sessions, ``sessions_by_name``: those in which the broker is asked by name. ``traffic``: counts
    of the links, ``rack_traffic``: of consumers that name a rack. ``asked``: the versions that
    clients ask. ``awaited``: the next success of some client would end a recovery; written by
    :mod:`leader_hints.core.hints.recovery`.
    """

    name: str
    mode: Mode
    config: RouteConfig = RouteConfig()
    broker: BrokerState = field(default_factory=BrokerState)
    advertised: Advertised = field(default_factory=Advertised)
    sessions: FetchSessions = field(default_factory=FetchSessions)
    sessions_by_name: FetchSessionsByName = field(default_factory=FetchSessionsByName)
    traffic: TrafficCounters = field(default_factory=TrafficCounters)
    rack_traffic: RackTraffic = field(default_factory=RackTraffic)
    asked: AskedVersions = field(default_factory=AskedVersions)
    awaited: bool = False
    raised: bool = field(init=False)

    def __post_init__(self) -> None:
        self.raised = self.mode is Mode.ON

    def switch(self, mode: Mode) -> None:
        """Change the mode at run time.

        Versions that were offered to clients are still lowered from then on, in every mode, on new
        links too: clients skip ApiVersions on those (KIP-511).
        """
        self.mode = mode
        self.raised = self.raised or mode is Mode.ON
        # With hints off the sessions are not tracked. Epochs that are not known are judged by the
        # stricter rule; outdated epochs would make wrong hints.
        self.sessions = self.sessions.empty()

    @property
    def closest_replica(self) -> Mode:
        """What is done about consumers' racks: never more than about hints.

        So the kill switch ends it as well, and nothing is changed where hints are only counted. A
        native broker passes, also on links that began before its versions were known.
        """
        modes = self.mode, self.config.closest_replica
        plan = self.broker.plan or self.broker.former_plan
        if Mode.OFF in modes or (plan is not None and plan.native):
            return Mode.OFF
        return Mode.OBSERVE if Mode.OBSERVE in modes else Mode.ON

    @property
    def link_plan(self) -> Plan:
        """The plan that a new link starts with."""
        plan = self._plan
        return plan if self.config.address_rewriting is None else plan.reading()

    def endpoint(self, node: int) -> Endpoint | None:
        """Return where clients of this route find a broker, ``None`` if that is not known.

        ``None`` too if another broker is known to answer there: a hint would lead back to it.
        """
        endpoint = self.broker.endpoints.get(node)
        view = self.broker.view
        if endpoint is not None and view is not None and (node, endpoint) in view.misled:
            return None
        rewriting = self.config.address_rewriting
        if endpoint is None or rewriting is None:
            return endpoint
        return rewriting.endpoint(node, endpoint)

    @property
    def _plan(self) -> Plan:
        broker = self.broker
        if self.mode is Mode.OFF and not self.raised:
            return PASS
        if broker.plan is not None and not broker.plan.reads:
            return broker.plan
        # Clients keep to what they were offered on their next connections, of which the first may
        # come before the broker has answered: one that restarted takes what it took.
        plan = broker.plan or broker.former_plan
        if plan is None or not plan.reads or not self.raised:
            return READ_ONLY
        if broker.ids_everywhere and broker.synthetic_plan is not None:
            return broker.synthetic_plan
        return plan
