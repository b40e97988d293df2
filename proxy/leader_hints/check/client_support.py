"""What each kind of client gets on a route: the versions offered to it, and hints."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import CURRENT_LEADER_FROM, NODE_ENDPOINTS_FROM
from leader_hints.core.mode import Mode
from leader_hints.core.versions.client_capabilities import (
    BUILT_IN,
    OTHERS,
    OWN_NAME,
    ClientTable,
    HintForm,
    HintForms,
)
from leader_hints.core.versions.plan import plan_for


class ClientKind(NamedTuple):
    """Clients that are served alike. ``software``: the name and version that the oldest reports."""

    name: str
    software: ClientSoftware
    remark: str


#: All others come last: to them a proxy offers what its broker offers.
KINDS = (
    ClientKind("Java 3.7 or newer", ClientSoftware("apache-kafka-java", "3.7.0"), ""),
    ClientKind(
        "librdkafka 2.5 or newer",
        ClientSoftware("librdkafka", "2.5.0"),
        "keeps its own back-off on Produce",
    ),
    ClientKind(
        "franz-go 1.17 or newer", ClientSoftware("kgo", "v1.17.0"), "NOT_LEADER_OR_FOLLOWER only"
    ),
    ClientKind("kafka-python 3.0 or newer", ClientSoftware("kafka-python", "3.0.0"), ""),
    ClientKind(
        "all other clients",
        ClientSoftware("librdkafka", "1.0.0"),
        "served as without the proxy",
    ),
)
PLAIN = KINDS[-1]
_SETTLED = "no byte changed; errors wait for settled Metadata"
_UNKNOWN = {OTHERS: "clients that are not known"}
#: As which another proxy is recognized: no configuration takes hints from it.
AS_PROXY = ClientKind("another proxy", ClientSoftware(OWN_NAME, "1"), "")


def kinds(clients: ClientTable) -> tuple[ClientKind, ...]:
    """Return the kinds of clients, with those of the configuration."""
    configured = (
        ClientKind(
            f"{rule.name} {version} or newer" if version else _UNKNOWN.get(rule.name, rule.name),
            ClientSoftware(rule.name, version or "0"),
            "by the setting clients",
        )
        for rule in clients.rules
        for version in (".".join(map(str, rule.since)),)
    )
    return *KINDS[:-1], *configured, PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSupport:
    """What one kind of client gets. Versions are the newest that are offered, -1 for none.

    ``produce_settles``, ``fetch_settles``: without a hint, its errors wait for settled Metadata;
    of Produce if it has a producer id.
    """

    client: str
    produce: int
    fetch: int
    produce_hints: bool
    fetch_hints: bool
    remark: str
    produce_settles: bool = False
    fetch_settles: bool = False


def offered(
    maxima: Mapping[int, int],
    used: HintForms,
    *,
    topic_ids: bool,
    synthetic: bool = False,
) -> dict[int, int]:
    """Return the maxima that a proxy with hints on offers in front of a broker of ``maxima``.

    ``used``: the hints that the client uses. ``topic_ids``: the cluster has them; ``synthetic``:
    the proxies of its brokers synthesize them.
    """
    plan = plan_for(maxima, synthetic=synthetic and HintForm.FETCH in used)
    return {**maxima, **plan.offers(used, topic_ids=topic_ids)}


def support_of_kinds(
    maxima: Mapping[int, int],
    mode: Mode,
    clients: ClientTable = BUILT_IN,
    *,
    topic_ids: bool,
    synthetic: bool = False,
    settle: bool = False,
) -> tuple[ClientSupport, ...]:
    """Return what each kind of client gets from a broker of ``maxima``; see :func:`offered`.

    ``settle``: the setting `hold.settle`.
    """
    supported = (
        _support(kind, clients.forms(kind.software), maxima, mode, topic_ids, synthetic)
        for kind in kinds(clients)
    )
    if not (settle and mode is Mode.ON and plan_for(maxima).rows):
        return tuple(supported)
    return tuple(
        replace(
            support,
            produce_settles=not support.produce_hints,
            fetch_settles=not support.fetch_hints,
            remark=_SETTLED if support.client == PLAIN.name else support.remark,
        )
        for support in supported
    )


def _support(
    kind: ClientKind,
    used: HintForms,
    maxima: Mapping[int, int],
    mode: Mode,
    topic_ids: bool,
    synthetic: bool,
) -> ClientSupport:
    plan = plan_for(maxima)
    newest = dict(maxima)
    if mode is Mode.ON:
        newest = offered(maxima, used, topic_ids=topic_ids, synthetic=synthetic)
    produce, fetch = newest.get(ApiKey.PRODUCE, -1), newest.get(ApiKey.FETCH, -1)
    gives = plan.native or (mode is Mode.ON and bool(plan.rows))
    at_fetch_16 = fetch >= NODE_ENDPOINTS_FROM[ApiKey.FETCH] and HintForm.FETCH in used
    at_fetch_12 = (
        fetch >= CURRENT_LEADER_FROM[ApiKey.FETCH] and HintForm.FETCH_WITHOUT_ENDPOINTS in used
    )
    return ClientSupport(
        client=kind.name,
        produce=produce,
        fetch=fetch,
        produce_hints=gives
        and produce >= CURRENT_LEADER_FROM[ApiKey.PRODUCE]
        and HintForm.PRODUCE in used,
        fetch_hints=gives and (at_fetch_16 or at_fetch_12),
        remark=kind.remark,
    )
