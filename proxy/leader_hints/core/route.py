"""A listening address and the one broker behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.link.latency_sampler import LatencySampler
from leader_hints.core.link.traffic_counters import TrafficCounters
from leader_hints.core.mode import Mode
from leader_hints.core.sessions.fetch_by_name import FetchSessionsByName
from leader_hints.core.sessions.fetch_sessions import FetchSessions
from leader_hints.core.versions.address_rewriting import AddressRewriting
from leader_hints.core.versions.plan import PASS, READ_ONLY, Plan


@dataclass(slots=True)
class Route:
    """What is known about a route and its broker.

    ``latencies``: times some of the exchanges, where that is wanted.
    ``plan``: by the broker's newest answer to ApiVersions, ``None`` before the first, and while
    nobody knows what comes back in its place; ``former``: the one before that.
    ``endpoints``: the cluster's brokers on the route's own listener, by node id; hints take
    addresses from here only, so that no other listener's leak. ``node``: the broker's node id,
    ``guessed``: it is the only one left, and not proved; ``others``: node ids proved to be other
    brokers', ``refused``: since when it answers as none of these would; see
    :mod:`leader_hints.core.cluster.broker_identity`.
    ``serves_anybody``: the broker has answered the proxy's own questions without authenticating it,
    so it does so for whoever connects. ``reachable``: some broker of the cluster can be asked for a
    fresher view. ``awaited``: a success of some client would tell something; see
    :mod:`leader_hints.core.hints.recovery`.
    ``synthesize``: topic ids are synthetic, where ``ids_everywhere``: every broker of the cluster
    is behind a proxy that does the same; see
    :mod:`leader_hints.core.cluster.synthetic_id_agreement`.
    ``synthetic_plan``: the ``plan`` for that. ``raised``: versions were offered here that the
    broker lacks, so clients may keep to them. ``relays_tls``: a link that begins in TLS is
    relayed unread, and not refused. ``address_rewriting``: of a virtual cluster, whose addresses
    replace the brokers'. ``crossed``: why clients meet another broker than they look for, ""
    where that is not proved; ``misled``: where nodes are advertised although others answer there;
    ``past``: the route's broker is advertised where no proxy is; see
    :mod:`leader_hints.core.destination`.
    """

    name: str
    mode: Mode
    plan: Plan | None = None
    former: Plan | None = None
    view: LeaderView | None = None
    endpoints: Mapping[int, Endpoint] = field(default_factory=dict)
    node: int | None = None
    guessed: bool = False
    others: frozenset[int] = frozenset()
    refused: Mapping[int, float] = field(default_factory=dict)
    serves_anybody: bool = False
    reachable: bool = False
    awaited: bool = False
    synthesize: bool = False
    ids_everywhere: bool = False
    synthetic_plan: Plan | None = None
    sessions: FetchSessions = field(default_factory=FetchSessions)
    sessions_by_name: FetchSessionsByName = field(default_factory=FetchSessionsByName)
    traffic: TrafficCounters = field(default_factory=TrafficCounters)
    latencies: LatencySampler | None = None
    address_rewriting: AddressRewriting | None = None
    relays_tls: bool = False
    crossed: str = ""
    misled: Mapping[int, Endpoint] = field(default_factory=dict)
    past: bool = False
    raised: bool = field(init=False)

    def __post_init__(self) -> None:
        self.raised = self.mode is Mode.ON

    def switch(self, mode: Mode) -> None:
        """Change the mode at run time.

        What was agreed with clients stays: versions that were offered are brought down from then
        on, whatever the mode, on new links too. Clients skip ApiVersions on those (KIP-511).
        """
        self.mode = mode
        self.raised = self.raised or mode is Mode.ON
        # Where hints are off nobody follows the sessions. Epochs that are not known are judged by
        # the stricter rule; epochs that are out of date would make wrong hints.
        self.sessions = self.sessions.empty()

    @property
    def link_plan(self) -> Plan:
        """The plan that a new link starts with."""
        plan = self._plan
        return plan if self.address_rewriting is None else plan.reading()

    def endpoint(self, node: int) -> Endpoint | None:
        """Return where clients of this route find a broker, ``None`` where that is not known.

        Nor where another broker is known to answer: a hint would have clients ask that one again.
        """
        endpoint = self.endpoints.get(node)
        if endpoint is not None and self.misled.get(node) == endpoint:
            return None
        if endpoint is None or self.address_rewriting is None:
            return endpoint
        return self.address_rewriting.endpoint(node, endpoint)

    @property
    def _plan(self) -> Plan:
        if self.mode is Mode.OFF and not self.raised:
            return PASS
        if self.plan is not None and not self.plan.reads:
            return self.plan
        # What clients were offered they keep to on their next connections, of which the first may
        # come before the broker's answer: a broker that restarted takes what it took.
        plan = self.plan or self.former
        if plan is None or not plan.reads or not self.raised:
            return READ_ONLY
        if self.ids_everywhere and self.synthetic_plan is not None:
            return self.synthetic_plan
        return plan

    def lose(self) -> None:
        """Take note that what answers next may be a broker of another version."""
        if self.plan is not None:
            self.former = self.plan
        self.plan = None
        self.reachable = False

    @property
    def known(self) -> LeaderView:
        """The view; an empty one where nothing is known yet."""
        return self.view if self.view is not None else LeaderView("")

    @property
    def proved_node(self) -> int | None:
        """The broker's node id, ``None`` where it is not proved."""
        return None if self.guessed else self.node

    def is_self(self, node: int) -> bool | None:
        """Whether ``node`` is the broker behind this route, ``None`` where that is not known."""
        if node == self.node:
            return True
        return False if node in self.others or self.proved_node is not None else None

    def topic_name(self, topic: Topic) -> str:
        """Return the name of a topic given by name or id; of an unknown id its hex digits."""
        name = self.view.name(topic) if self.view is not None else None
        if name is None:
            name = topic.hex() if isinstance(topic, bytes) else topic
        return name
