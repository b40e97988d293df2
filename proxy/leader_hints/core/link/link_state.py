"""What the two flows of a link share."""

from collections import deque
from collections.abc import Collection

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.header import FLEXIBLE_FROM, read_request_header
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.leader_hint import CURRENT_LEADER_FROM, NODE_ENDPOINTS_FROM, Failure
from leader_hints.apis.response_scan import Answered
from leader_hints.core.cluster.unknown_ids import Client
from leader_hints.core.events import (
    ClientSeen,
    ErrorAnswered,
    Event,
    LatencySampled,
    NotUnderstood,
)
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.latency_sampler import LatencySampler
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.address_rewriting import AddressRewriting
from leader_hints.core.versions.client_capabilities import (
    KIP_951,
    NO_HINTS,
    OWN_NAME,
    HintForm,
    form_names,
)
from leader_hints.core.versions.plan import Plan
from leader_hints.core.versions.request_policy import NOT_OFFERED, RequestPolicy
from leader_hints.wire.errors import WireError

#: Of responses without hints: versions in which errors are counted, which are those that brokers
#: of 2.4 to 3.6 take and clients ask.
_COUNTED = {ApiKey.PRODUCE: range(3, 10), ApiKey.FETCH: range(4, 16)}
#: What a client needs to use a hint in a version that was raised.
_FORM = {ApiKey.PRODUCE: HintForm.PRODUCE, ApiKey.FETCH: HintForm.FETCH}
#: Letters of what a client may say of itself. Brokers take any number (KIP-511).
_LONGEST_TEXT = 255

#: Kinds of requests that a link remembers: more than clients send. Who sends more has them decided
#: again: a broker answers any version of ApiVersions before it has authenticated anybody, so what
#: is remembered must be little.
_MOST_KINDS = 64

Failed = Failure | Answered


class LinkState:
    """Exchanges under way, the client and what it can use, and the link's plan.

    ``latencies``: times some of the exchanges; ``timed``: the one under way, since ``timed_at``.
    ``number``: unique in the process. ``address``: where the client comes from, "" if not known.
    ``traffic``: counts of the link's route. ``events``: what
    the flows want told; who drives the link takes them out. ``unread``: requests are no longer
    looked at, so neither are the responses to come. ``lacking``: ids whose names were not known, of
    requests that the broker has answered, so that the client may ask it; who drives the link has
    them looked for. ``by_ids``: this link's client was offered to name topics by ids that the
    broker does not take. ``outdated``: it would be better served by name. It is to be offered other
    versions, so who drives the link ends it when no request is under way. ``without_ids``: a client
    that may have synthetic ids had none for a topic, so some broker may have given none; who drives
    the link has it looked for.
    ``software``: what the client says of itself, as name/version, "" while it has said nothing.
    ``policies``: what is done with each kind of request under plan, client and ``mode``.
    """

    __slots__ = (
        "_own",
        "_plan",
        "_told",
        "address",
        "by_ids",
        "client_id",
        "events",
        "exchanges",
        "hint_forms",
        "lacking",
        "latencies",
        "mode",
        "number",
        "outdated",
        "policies",
        "route",
        "software",
        "timed",
        "timed_at",
        "traffic",
        "unread",
        "without_ids",
    )

    def __init__(self, route: Route, number: int, address: str = "") -> None:
        self.route = route
        self.address = address
        self.traffic = route.traffic
        self.number = number
        self.mode = route.mode
        self.policies: dict[int, RequestPolicy] = {}
        self._plan = route.link_plan
        self.exchanges: deque[Exchange] = deque()
        self.client_id: str | None = None
        self.software = ""
        self.hint_forms = KIP_951
        self.events: list[Event] = []
        self.unread = False
        self.lacking: list[bytes] = []
        self.by_ids = False
        self.outdated = False
        self.without_ids = False
        self._own = False
        self.latencies = route.config.latencies
        self.timed: Exchange | None = None
        self.timed_at = 0.0
        self._told: frozenset[str] = frozenset()

    @property
    def synthesizes_ids(self) -> bool:
        """Whether this client is to be offered synthetic topic ids.

        Other proxies always are: from that they detect that this one synthesizes them.
        """
        route = self.route
        wanted = route.config.synthesize and HintForm.FETCH in self.hint_forms
        return wanted and (route.broker.ids_everywhere or self._own)

    @property
    def ids_have_names(self) -> bool:
        """Whether the ids that this client may use can be named, as far as that is known.

        Where brokers hide topics from the proxy, clients know ids that it does not.
        """
        view = self.route.broker.view
        if view is None or not view.topics.have_ids or not view.hidden.none:
            return False
        return not view.unknown_ids.withheld(self._client, view.topics.name)

    @property
    def _client(self) -> Client:
        return self.address.rpartition(":")[0], (self.client_id or "")[:_LONGEST_TEXT]

    def lack(self, ids: Collection[bytes]) -> None:
        """Take note that the broker has answered a request with ids that have no names here."""
        self.lacking += ids
        view = self.route.broker.known
        for topic_id in ids if self.by_ids else ():
            if view.unknown_ids.unnameable(topic_id, hides=bool(view.hidden)):
                view.unknown_ids.withhold(self._client, topic_id)
                self.outdated = True

    def begin_sample(self, sampler: LatencySampler, exchange: Exchange) -> None:
        """Take the time of an exchange whose request goes on now, if it is chosen."""
        if sampler.chooses(exchange.policy.key, busy=self.timed is not None):
            self.timed = exchange
            self.timed_at = sampler.clock()

    def end_sample(self, sampler: LatencySampler) -> None:
        """Report the timed exchange, whose response has begun."""
        timed, self.timed = self.timed, None
        assert timed is not None
        self.events.append(
            LatencySampled(
                route=self.route.name,
                link=self.number,
                client_id=self.client_id or "",
                software=self.software,
                api=api_name(timed.policy.key),
                version=timed.policy.version,
                latency_ms=(sampler.clock() - self.timed_at) * 1000,
            )
        )

    @property
    def plan(self) -> Plan:
        """What the link does about versions."""
        return self._plan

    def agree(self, plan: Plan) -> None:
        """Take another plan."""
        self._plan = plan
        self.policies.clear()

    def follow_mode(self) -> None:
        """Take the route's mode, which may be changed at run time."""
        self.mode = self.route.mode
        self.policies.clear()

    def decide(self, kind: int) -> RequestPolicy:
        """Return what is done with requests of ``kind``, which is API key and version as 32 bits.

        It is remembered in ``policies``, where the flow looks first.
        """
        key, version = kind >> 16, (kind & 0xFFFF ^ 0x8000) - 0x8000
        policy = self._sending(key, version, self.plan.sent.get((key, version), version))
        if key == ApiKey.FETCH and policy.recoded and self.plan.rackless is not None:
            policy.rackless = self._sending(key, version, self.plan.rackless)
        if self.route.config.address_rewriting is not None:
            self._readdress(policy, self.route.config.address_rewriting)
        if len(self.policies) >= _MOST_KINDS:
            self.policies.clear()
        self.policies[kind] = policy
        return policy

    def _sending(self, key: int, version: int, sent: int) -> RequestPolicy:
        policy = RequestPolicy(key, version, self.traffic.cell(key, version, sent), sent=sent)
        policy.recoded = (key, version) in self.plan.recoded
        if key in _COUNTED:
            policy.hintable = self.hintable(ApiKey(key), version)
            if not policy.hintable:
                policy.unhinted = self.unhinted(ApiKey(key), version)
        return policy

    def _readdress(self, policy: RequestPolicy, rewriting: AddressRewriting) -> None:
        """Have the addresses in responses rewritten, and refuse where that is not known."""
        key, version = policy.key, policy.version
        if not rewriting.offered(key, version):
            policy.key = NOT_OFFERED
        elif key not in _COUNTED or (key, version) not in self.plan.sent:
            # Of raised versions the endpoints are our own.
            policy.rewriter = rewriting.rewriter(key, version)

    def hintable(self, key: ApiKey, version: int) -> bool:
        """Whether a response of ``version`` is to be looked at for errors.

        With hints on: where this client can use one. Where they are only counted no version
        is raised, so every version that can be read stands for the raised one; a link on which
        versions were raised before may go on with those.
        """
        if self.route.mode is Mode.OFF:
            return False
        uses = _FORM[key] in self.hint_forms
        if self.route.mode is Mode.OBSERVE and version < NODE_ENDPOINTS_FROM[key]:
            alone = key is ApiKey.FETCH and HintForm.FETCH_WITHOUT_ENDPOINTS in self.hint_forms
            return version >= FLEXIBLE_FROM[key] and (uses or alone)
        if version >= NODE_ENDPOINTS_FROM[key]:
            return uses and (key, version) in self.plan.sent
        return (
            bool(self.plan.rows)
            and version >= CURRENT_LEADER_FROM[key]
            and HintForm.FETCH_WITHOUT_ENDPOINTS in self.hint_forms
        )

    def unhinted(self, key: ApiKey, version: int) -> MissReason | None:
        """Return why an error in a response of ``version`` that is not hintable gets no hint.

        ``None``: it is not looked for.
        """
        off = self.route.mode is Mode.OFF
        counted = version in _COUNTED[key] or (key, version) in self.plan.sent
        if off or not self.plan.reads or not counted:
            return None
        if version < CURRENT_LEADER_FROM[key]:
            return MissReason.VERSION_WITHOUT_FIELD
        if HintForm.FETCH_WITHOUT_ENDPOINTS in self.hint_forms:
            # A broker of which nothing is known yet.
            return MissReason.NO_FRESHER_VIEW
        return MissReason.NOT_USABLE_BY_CLIENT

    def answered(
        self,
        key: ApiKey,
        version: int,
        failed: Failed,
        epoch: int,
        hold_ms: float,
        *,
        observed: bool | None = None,
    ) -> ErrorAnswered:
        """Return what is told of an error that this link's client is answered.

        ``version``: as the client asked. ``epoch``: which it used, -1 where that is not known.
        ``observed``: whether hints were only counted when it came; ``None``: as they are now.
        """
        return ErrorAnswered(
            route=self.route.name,
            link=self.number,
            client_id=self.client_id or "",
            software=self.software,
            api=api_name(key),
            version=version,
            topic=self.route.broker.topic_name(failed.topic),
            partition=failed.partition,
            error=failed.error,
            client_epoch=epoch,
            hold_ms=hold_ms,
            observed=self.route.mode is Mode.OBSERVE if observed is None else observed,
        )

    def asked_versions(self) -> None:
        """Note that the client asked for versions in a request that names no software.

        A client that named itself on this link stays known: a broker refused its newer request.
        """
        forms = self.route.config.clients.forms(None)
        if not self.software and self.hint_forms != forms:
            self.hint_forms = forms
            # It is remembered which requests for versions cannot be read.
            self.policies = {
                kind: policy
                for kind, policy in self.policies.items()
                if policy.key == ApiKey.API_VERSIONS
            }

    def introduce(self, software: ClientSoftware) -> None:
        """Take what the client says of itself; its id is known by then."""
        known = self.route.config.clients.known_forms(software)
        self.hint_forms = known or NO_HINTS
        self.policies.clear()
        self._own = software.name == OWN_NAME
        name, version = software.name[:_LONGEST_TEXT], software.version[:_LONGEST_TEXT]
        if not self.software:
            self.events.append(
                ClientSeen(
                    route=self.route.name,
                    link=self.number,
                    client_id=self.client_id or "",
                    software=name,
                    version=version,
                    address=self.address,
                    uses=None if known is None else form_names(known),
                )
            )
        self.software = f"{name}/{version}"

    def meet(self, frame: memoryview) -> None:
        """Take the client id from a request.

        It is kept as long as the link lasts, so of a long one no more than tells that it is long.
        """
        try:
            self.client_id = (read_request_header(frame).client_id or "")[: _LONGEST_TEXT + 1]
        except WireError:
            self.client_id = ""

    def misunderstood(self, side: str, reason: str) -> None:
        """Count a message of ``side`` that could not be read and is forwarded unchanged.

        The first of each side is reported: where one cannot be read, none of its like can.
        """
        self.traffic.raw["not understood"] += 1
        if side not in self._told:
            self._told |= {side}
            self.events.append(
                NotUnderstood(route=self.route.name, link=self.number, side=side, reason=reason)
            )

    def stop_matching(self) -> None:
        """Keep no further exchanges: responses are no longer looked at."""
        self.exchanges = deque(maxlen=0)
