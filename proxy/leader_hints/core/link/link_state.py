"""What the two flows of a link share.

Tested in ``tests/core/link/test_link.py``.
"""

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.leader_hint import Failure
from leader_hints.apis.response_scan import Answered
from leader_hints.core.events import (
    ClientSeen,
    ErrorAnswered,
    Event,
    LatencySampled,
    NotUnderstood,
)
from leader_hints.core.link.client import LONGEST_TEXT, LinkClient
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.exchanges import Exchanges
from leader_hints.core.link.request_policies import RequestPolicies
from leader_hints.core.link.topic_ids import LinkTopicIds
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.client_capabilities import form_names
from leader_hints.core.versions.request_policy import RequestPolicy

Failed = Failure | Answered


class LinkState:
    """Joins the parts of a link's state, and reports what happens on it.

    ``number``: unique in the process. ``traffic``: counts of the link's route. ``events``: what
    the flows want reported; ``snooped``: Metadata responses that went by, as (version, payload),
    for the view. What drives the link takes both out.
    """

    __slots__ = (
        "_reported",
        "_seen",
        "client",
        "events",
        "exchanges",
        "number",
        "policies",
        "route",
        "snooped",
        "topic_ids",
        "traffic",
    )

    def __init__(self, route: Route, number: int, address: str = "", principal: str = "") -> None:
        self.route = route
        self.traffic = route.traffic
        self.number = number
        self.client = LinkClient(address, route.config.clients, principal)
        self.policies = RequestPolicies(route, self.client)
        self.topic_ids = LinkTopicIds(route, self.client)
        self.exchanges = Exchanges(route.config.latencies)
        self.events: list[Event] = []
        self.snooped: list[tuple[int, bytes]] = []
        #: Sides of which it was reported that they could not be understood.
        self._reported: frozenset[str] = frozenset()
        #: Who the client is, until the broker has served it: before that anybody may say anything.
        self._seen: ClientSeen | None = None

    def sampled(self, exchange: Exchange, seconds: float) -> None:
        """Report the time of an exchange."""
        self.events.append(
            LatencySampled(
                route=self.route.name,
                link=self.number,
                client_id=self.client.id or "",
                software=self.client.software,
                api=api_name(exchange.policy.key),
                version=exchange.policy.version,
                latency_ms=seconds * 1000,
            )
        )

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
        """Return what is reported of an error that this link's client is answered.

        ``version``: as the client asked. ``epoch``: which it used, -1 where that is not known.
        ``observed``: whether hints were only counted when it came; ``None``: as they are now.
        """
        return ErrorAnswered(
            route=self.route.name,
            link=self.number,
            client_id=self.client.id or "",
            software=self.client.software,
            api=api_name(key),
            version=version,
            topic=self.route.broker.topic_name(failed.topic),
            partition=failed.partition,
            error=failed.error,
            client_epoch=epoch,
            hold_ms=hold_ms,
            observed=self.route.mode is Mode.OBSERVE if observed is None else observed,
        )

    def hintable(self, key: ApiKey, version: int) -> bool:
        """Whether a response of ``version`` is to be looked at for errors."""
        return self.policies.hintable(key, version)

    def note_asked(self, policy: RequestPolicy) -> None:
        """Note that this client asks what ``policy`` is for, and is not refused."""
        policy.noted = True
        client = self.client
        self.route.asked.note(
            client.software, client.id or "", policy.key, policy.version, client.origin
        )
        if self._seen is not None:
            self.events.append(self._seen)
            self._seen = None

    def asked_without_name(self) -> None:
        """Note that the client asked for versions in a request that names no software."""
        if self.client.asked_without_name():
            self.policies.forget_hints()

    def introduce(self, software: ClientSoftware) -> None:
        """Take what the client says of itself; its id is known by then."""
        client, is_first = self.client, not self.client.software
        known = client.introduce(software)
        self.policies.forget()
        if is_first:
            self._seen = ClientSeen(
                route=self.route.name,
                link=self.number,
                client_id=client.id or "",
                software=software.name[:LONGEST_TEXT],
                version=software.version[:LONGEST_TEXT],
                address=client.address,
                uses=None if known is None else form_names(known),
            )

    def misunderstood(self, side: str, reason: str) -> None:
        """Count a message of ``side`` that could not be read and is forwarded unchanged.

        The first of each side is reported: where one cannot be read, none of its like can.
        """
        self.traffic.raw["not understood"] += 1
        if side not in self._reported:
            self._reported |= {side}
            self.events.append(
                NotUnderstood(route=self.route.name, link=self.number, side=side, reason=reason)
            )
