"""What is done with each kind of request on a link, and with its responses.

Tested in ``tests/core/link/test_link.py``.
"""

from leader_hints.apis.header import FLEXIBLE_FROM
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import CURRENT_LEADER_FROM, NODE_ENDPOINTS_FROM
from leader_hints.apis.preferred_replica import SCANNED
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.client import LinkClient
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.address_rewriting import Rewriter
from leader_hints.core.versions.client_capabilities import HintForm
from leader_hints.core.versions.plan import READ_ONLY, Plan
from leader_hints.core.versions.request_policy import NOT_OFFERED, RequestPolicy

#: Of responses without hints: versions in which errors are counted, which are those that brokers
#: of 2.4 to 3.6 take and clients ask.
_COUNTED = {ApiKey.PRODUCE: range(3, 10), ApiKey.FETCH: range(4, 16)}
#: What a client needs to use a hint in a version that was raised.
_FORM = {ApiKey.PRODUCE: HintForm.PRODUCE, ApiKey.FETCH: HintForm.FETCH}

#: Kinds of requests that a link remembers: more than clients send. If one sends more, they are
#: decided again: a broker answers any version of ApiVersions before it has authenticated anybody,
#: so what is remembered must be little.
_MOST_KINDS = 64


class RequestPolicies:
    """The policies of a link under its plan, its client and the mode.

    ``by_kind``: those that were decided, by API key and version as 32 bits. ``plan``: what the
    link does about versions. ``mode``: the route's, when they were decided.
    """

    __slots__ = ("_client", "by_kind", "mode", "plan", "route")

    def __init__(self, route: Route, client: LinkClient) -> None:
        self.route = route
        self._client = client
        self.plan = route.link_plan
        self.mode = route.mode
        self.by_kind: dict[int, RequestPolicy] = {}

    @property
    def recodes(self) -> bool:
        """Whether the client may ask what is converted, so that its responses are."""
        return bool(self.plan.recoded and self._client.hint_forms)

    def agree(self, plan: Plan) -> None:
        """Take another plan."""
        self.plan = plan
        self.forget()

    def follow_mode(self) -> None:
        """Take the route's mode, which may be changed at run time."""
        self.mode = self.route.mode
        self.forget()

    def forget(self) -> None:
        """Have all kinds decided again: what they were decided by has changed."""
        self.by_kind.clear()

    def forget_hints(self) -> None:
        """Have those kinds decided again whose responses can carry hints."""
        self.by_kind = {
            kind: policy for kind, policy in self.by_kind.items() if policy.key not in _COUNTED
        }

    def note_again(self) -> None:
        """Have it noted once more that requests of each kind are answered."""
        for policy in self.by_kind.values():
            policy.noted = False
            if policy.rackless is not None:
                policy.rackless.noted = False

    def decide(self, kind: int) -> RequestPolicy:
        """Return what is done with requests of a kind that ``by_kind`` lacks, and put it there."""
        if self.plan is READ_ONLY and self.route.raised:
            # Nothing was known of the broker when the link began. By now another link of the client
            # may have been offered versions to which it keeps on this one (KIP-511).
            self.plan = self.route.link_plan
        key, version = kind >> 16, (kind & 0xFFFF ^ 0x8000) - 0x8000
        policy = self._decided(key, version, self.plan.sent.get((key, version), version))
        if key == ApiKey.FETCH and policy.recoded and self.plan.rackless is not None:
            policy.rackless = self._decided(key, version, self.plan.rackless)
        if len(self.by_kind) >= _MOST_KINDS:
            self.forget()
        self.by_kind[kind] = policy
        return policy

    def _decided(self, key: int, version: int, sent: int) -> RequestPolicy:
        hintable, unhinted = False, None
        if key in _COUNTED:
            hintable = self.hintable(ApiKey(key), version)
            if not hintable:
                unhinted = self._unhinted(ApiKey(key), version)
        return RequestPolicy(
            key if self._is_offered(key, version) else NOT_OFFERED,
            version,
            self.route.traffic.cell(key, version, sent),
            sent=sent,
            recoded=(key, version) in self.plan.recoded,
            hintable=hintable,
            unhinted=unhinted,
            settles=unhinted is not None and self._settles(key, version),
            rewriter=self._rewriter(key, version),
            places=key == ApiKey.FETCH and self._places(version, sent),
        )

    def _places(self, version: int, sent: int) -> bool:
        """Whether consumers may be sent to another replica: both versions have the field."""
        return self.route.closest_replica is not Mode.OFF and version in SCANNED and sent in SCANNED

    def _settles(self, key: int, version: int) -> bool:
        """Whether errors without a hint are to be settled: not where responses are recoded."""
        return self.route.config.settle and (key, version) not in self.plan.recoded

    def _is_offered(self, key: int, version: int) -> bool:
        """Whether a client may use it; to a virtual cluster none is sent that is not known."""
        rewriting = self.route.config.address_rewriting
        return rewriting is None or rewriting.offered(key, version)

    def _rewriter(self, key: int, version: int) -> Rewriter | None:
        """Return what rewrites the addresses in responses."""
        rewriting = self.route.config.address_rewriting
        if rewriting is None or (key in _COUNTED and (key, version) in self.plan.sent):
            # Of raised versions the endpoints are our own.
            return None
        return rewriting.rewriter(key, version)

    def hintable(self, key: ApiKey, version: int) -> bool:
        """Whether a response of ``version`` is to be looked at for errors.

        With hints on: where this client can use one. Where they are only counted no version
        is raised, so every version that can be read stands for the raised one; a link on which
        versions were raised before may go on with those.
        """
        mode = self.route.mode
        if mode is Mode.OFF:
            return False
        forms = self._client.hint_forms
        if mode is Mode.OBSERVE and version < NODE_ENDPOINTS_FROM[key]:
            alone = key is ApiKey.FETCH and HintForm.FETCH_WITHOUT_ENDPOINTS in forms
            return version >= FLEXIBLE_FROM[key] and (_FORM[key] in forms or alone)
        if version >= NODE_ENDPOINTS_FROM[key]:
            return _FORM[key] in forms and (key, version) in self.plan.sent
        return (
            bool(self.plan.rows)
            and version >= CURRENT_LEADER_FROM[key]
            and HintForm.FETCH_WITHOUT_ENDPOINTS in forms
        )

    def _unhinted(self, key: ApiKey, version: int) -> MissReason | None:
        """Return why an error in a response of ``version`` that is not hintable gets no hint.

        ``None``: it is not looked for.
        """
        off = self.route.mode is Mode.OFF
        counted = version in _COUNTED[key] or (key, version) in self.plan.sent
        if off or not self.plan.reads or not counted:
            return None
        if version < CURRENT_LEADER_FROM[key]:
            return MissReason.VERSION_WITHOUT_FIELD
        if HintForm.FETCH_WITHOUT_ENDPOINTS in self._client.hint_forms:
            # A broker of which nothing is known yet.
            return MissReason.NO_FRESHER_VIEW
        return MissReason.NOT_USABLE_BY_CLIENT
