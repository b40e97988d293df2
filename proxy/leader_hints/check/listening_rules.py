"""Rules about the address that a route listens on: whether it is free, or what answers there."""

from collections.abc import Iterator

from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.check.client_support import kinds, offered
from leader_hints.check.facts import KAFKA, EndpointKind, Listening, ProbeResult, RouteFacts
from leader_hints.check.findings import Finding, Severity, finding
from leader_hints.core.mode import Mode
from leader_hints.core.versions.plan import plan_for


def judge_listening(route: RouteFacts) -> Iterator[Finding]:
    """Whether the address is free, or its own proxy listens there."""
    listen, listening = route.listen, route.listening
    if listening.state is Listening.FREE:
        yield finding("listen_free", route.name, listen=listen)
    elif listening.state is Listening.ANY:
        yield finding("listen_any_port", route.name, listen=listen)
    elif listening.state is Listening.REFUSED:
        yield finding("listen_refused", route.name, listen=listen, reason=listening.reason)
    elif listening.connection:
        yield finding("listen_connection", route.name, listen=listen, far=listening.connection)
    elif route.met.kind not in KAFKA:
        return  # Through a proxy that runs nothing better could be met than behind it.
    elif listening.met is None or listening.met.kind not in KAFKA:
        reason = listening.met.reason if listening.met else ""
        yield finding("listen_taken", route.name, listen=listen, reason=reason)
    elif route.known:
        yield from _listener(route, listening.met)


def listens_rightly(route: RouteFacts) -> bool:
    """Whether nothing is wrong with what listens at the route's address, or is to."""
    return not any(found.severity is Severity.PROBLEM for found in judge_listening(route))


def _listener(route: RouteFacts, listener: ProbeResult) -> Iterator[Finding]:
    """What is listened on already answers as Kafka does."""
    if listener.node is not None and route.node is not None and listener.node != route.node:
        yield finding(
            "listen_other_broker",
            route.name,
            listen=route.listen,
            upstream=route.upstream,
            found=listener.node,
            node=route.node,
        )
    elif route.mode is not Mode.ON and listener.kind is EndpointKind.BROKER:
        yield finding("listen_unread", route.name, listen=route.listen)
    elif (short := _not_raised(route, listener)) is not None:
        yield finding("listen_not_raised", route.name, listen=route.listen, **short)
    elif (silent := _unanswered(route, listener)) is not None:
        yield finding("listen_unanswered", route.name, listen=route.listen, client=silent)
    elif plan_for(route.met.maxima).rows:
        yield finding("listen_proxy", route.name, listen=route.listen)


def _not_raised(route: RouteFacts, listener: ProbeResult) -> dict[str, object] | None:
    """Return words for the first kind of client that is not offered what it should be."""
    # Where ids are synthetic, that begins when all proxies of the cluster do it.
    for synthetic in (False, route.topics.synthesized):
        short = _short(route, listener, synthetic=synthetic)
        if short is None:
            break
    return short


def _unanswered(route: RouteFacts, listener: ProbeResult) -> str | None:
    """Return the first kind of client as which the check was not answered."""
    names = (kind.name for kind in kinds(route.clients))
    return next((name for name in names if name not in listener.offers), None)


def _short(
    route: RouteFacts, listener: ProbeResult, *, synthetic: bool
) -> dict[str, object] | None:
    for kind in kinds(route.clients):
        if kind.name not in listener.offers:
            continue
        wanted = offered(
            route.met.maxima,
            route.clients.forms(kind.software),
            topic_ids=route.topics.have_names,
            synthetic=synthetic,
        )
        for key in (ApiKey.PRODUCE, ApiKey.FETCH):
            given = listener.offers[kind.name].get(key, -1)
            if given != wanted.get(key, -1):
                words = {"client": kind.name, "api": api_name(key)}
                return {**words, "offered": given, "expected": wanted.get(key, -1)}
    return None
