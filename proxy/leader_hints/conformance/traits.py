"""What a client does with leader hints, judged by what was seen of it; pure.

Sections are those of KIP-951. A difference is reported only for what a client asked for: one that
asks versions without hints has nothing to get wrong.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Final

from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.leader_hint import CURRENT_LEADER_FROM, NODE_ENDPOINTS_FROM
from leader_hints.conformance.wire_log import Seen

CLIENT = "Proposed Changes, Client"
#: By the question of a trait: what a client that differs there does, and what KIP-951 asks for.
DEVIATIONS: Final = {
    "recovery": "it was not served again within the time of the scenario. A client must go on when "
    "the new leader takes connections again",
    "hint used": "it waited for Metadata, and so stalled as it does without hints. KIP-951 has "
    "a client take the leader from the response itself",
    "Metadata asked as well": "it went to the hinted leader and did not ask for Metadata. KIP-951 "
    "has a client ask as well, so that it learns what else has changed",
    "skipped for a hint": "it waited for its back-off although the response named the leader. "
    "KIP-951 has a producer retry immediately",
    "ignores the hint": "it went where an outdated hint leads. KIP-951 has a client take a leader "
    "only with a newer epoch than it knows",
    "reached by NodeEndpoints": "it did not connect to a leader that Metadata had not named. "
    "KIP-951 has a client take the leader's address from NodeEndpoints",
}

#: Seconds. A client that retries sooner without a hint has no back-off that could be skipped.
_NO_BACK_OFF = 0.02
#: The requests with which a client comes to a hinted leader: some validate their position first.
_COMES_WITH = {
    ApiKey.PRODUCE: ("Produce",),
    ApiKey.FETCH: ("Fetch", "OffsetForLeaderEpoch", "ListOffsets"),
}


class Verdict(StrEnum):
    """OK: as KIP-951 specifies. DIFFERS: not so. NOT_APPLICABLE: nothing to judge."""

    OK = "ok"
    DIFFERS = "differs"
    NOT_APPLICABLE = "-"


@dataclass(frozen=True, slots=True)
class Trait:
    """One thing that a client does, in words. ``section``: of KIP-951, where it differs."""

    scenario: str
    api: str
    question: str
    answer: str
    verdict: Verdict
    section: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """How a client went on after its first refusal in a scenario. Times in seconds.

    ``hint``: the node that the refusal named, ``None`` without one. ``endpoint``: it said where.
    ``retried``: until its next request for the partition; ``came``: until that at the hinted node,
    ``before_metadata``: no Metadata came before. ``recovered``: until its next success.
    ``metadata``: it asked for Metadata at any time after the refusal.
    """

    version: int
    hint: int | None
    endpoint: bool
    retried: float | None
    came: float | None
    before_metadata: bool
    recovered: float | None
    metadata: bool


def follow(seen: Sequence[Seen], api: ApiKey, topic: str, since: float) -> Answered | None:
    """Find the first refusal of partition 0 of a topic after ``since``; ``None``: there is none.

    What other clients do in ``seen`` does not count.
    """
    name, at = api_name(api), (topic, 0)
    refusals = (
        s
        for s in seen
        if s.at >= since
        and s.api == name
        and s.response is not None
        and s.response.errors.get(at) in HINTABLE
    )
    refused = next(refusals, None)
    if refused is None or refused.response is None:
        return None
    later = [
        s
        for s in seen
        if s.at >= refused.at and s is not refused and s.client_id == refused.client_id
    ]
    hint = refused.response.hints.get(at, (None, 0))[0]
    retried = _first(later, lambda s: _asks(s, api, topic))
    came = _first(later, lambda s: _asks(s, api, topic) and s.route == f"broker-{hint}")
    answered = _first(later, lambda s: s.api == "Metadata" and s.response is not None)
    success = _first(
        later,
        lambda s: s.api == name and s.response is not None and s.response.errors.get(at) == 0,
    )
    asked = _first(later, lambda s: s.api == "Metadata" and s.response is None)
    return Answered(
        refused.version,
        hint,
        hint in refused.response.nodes,
        None if retried is None else retried - refused.at,
        None if came is None else came - refused.at,
        came is not None and (answered is None or came < answered),
        None if success is None else success - refused.at,
        asked is not None,
    )


def _first(seen: Iterable[Seen], chosen: Callable[[Seen], bool]) -> float | None:
    return next((s.at for s in seen if chosen(s)), None)


def _asks(seen: Seen, api: ApiKey, topic: str) -> bool:
    if seen.response is not None or seen.api not in _COMES_WITH[api]:
        return False
    return not seen.partitions or (topic, 0) in seen.partitions


def versions(seen: Iterable[Seen]) -> dict[str, list[int]]:
    """Return the versions that a client asked, by API."""
    found: dict[str, set[int]] = {}
    for s in seen:
        found.setdefault(s.api, set()).add(s.version)
    return {api: sorted(asked) for api, asked in sorted(found.items())}


def of_move(api: ApiKey, answered: Answered | None) -> list[Trait]:
    """Judge what a client does with a right hint while Metadata is slow."""
    name = api_name(api)
    used, asks = "hint used", "Metadata asked as well"
    if answered is None:
        return [Trait("move", name, used, "no refusal was seen", Verdict.NOT_APPLICABLE)]
    took = _ms(answered.recovered)
    traits = [Trait("move", name, "recovery", took, Verdict.NOT_APPLICABLE)]
    if answered.hint is None:
        without = answered.version < CURRENT_LEADER_FROM[api]
        why = f"asks v{answered.version}, which has no hints" if without else "none was given"
        return [*traits, Trait("move", name, used, why, Verdict.NOT_APPLICABLE)]
    if not answered.before_metadata:
        return [*traits, Trait("move", name, used, "no", Verdict.DIFFERS, CLIENT)]
    traits.append(Trait("move", name, used, f"yes, after {_ms(answered.came)}", Verdict.OK))
    return [*traits, _either("move", name, asks, good=answered.metadata)]


def of_back_off(
    api: ApiKey, unhinted: Sequence[Answered | None], hinted: Sequence[Answered | None]
) -> list[Trait]:
    """Judge whether a client skips its back-off for a hint.

    ``unhinted``: refusals without a hint, after which it keeps whatever back-off it has, while
    Metadata is quick. ``hinted``: right hints while Metadata is slow. Both are of the same time and
    machine, so what that adds is in both. Of ``hinted`` the soonest counts: who keeps a back-off
    never comes before it is over, and who skips it comes late only where the machine is.
    """
    scenario, name, question = "back-off", api_name(api), "skipped for a hint"
    kept = [found.retried for found in unhinted if found and found.retried is not None]
    came = [f.came for f in hinted if f and f.before_metadata and f.came is not None]
    if not kept or not came:
        return [Trait(scenario, name, question, "no hint was used", Verdict.NOT_APPLICABLE)]
    own, soonest = median(kept), min(came)
    figures = f"{_ms(soonest)} with a hint, {_ms(own)} without"
    if own < _NO_BACK_OFF:
        return [Trait(scenario, name, question, f"has none: {figures}", Verdict.NOT_APPLICABLE)]
    if soonest < own / 2:
        return [Trait(scenario, name, question, f"yes: {figures}", Verdict.OK)]
    # The KIP asks for it of producers; a consumer fetches when it is polled.
    if api is not ApiKey.PRODUCE:
        return [Trait(scenario, name, question, f"no: {figures}", Verdict.NOT_APPLICABLE)]
    return [Trait(scenario, name, question, f"no: {figures}", Verdict.DIFFERS, CLIENT)]


def of_old_hint(scenario: str, api: ApiKey, answered: Answered | None) -> list[Trait]:
    """Judge what a client does with a hint whose epoch is not newer than what it knows."""
    name, question = api_name(api), "ignores the hint"
    if answered is None or answered.hint is None:
        return [Trait(scenario, name, question, "no hint was seen", Verdict.NOT_APPLICABLE)]
    took = Trait(scenario, name, "recovery", _ms(answered.recovered), Verdict.NOT_APPLICABLE)
    return [took, _either(scenario, name, question, good=not answered.before_metadata)]


def of_unknown_node(api: ApiKey, answered: Answered | None) -> list[Trait]:
    """Judge whether a client reaches a leader of which only NodeEndpoints tells it."""
    name, question = api_name(api), "reached by NodeEndpoints"
    if answered is None or answered.hint is None or not answered.endpoint:
        return [Trait("unknown node", name, question, "none was seen", Verdict.NOT_APPLICABLE)]
    # Metadata never names that node here, so a client that connects to it used the hint.
    trait = _either("unknown node", name, question, good=answered.came is not None)
    return [
        Trait("unknown node", name, "recovery", _ms(answered.recovered), Verdict.NOT_APPLICABLE),
        trait,
    ]


def of_refusing_leader(api: ApiKey, answered: Answered | None) -> list[Trait]:
    """Tell how long a client takes where the hinted leader takes no connections for a while."""
    name = api_name(api)
    if answered is None:
        return [
            Trait("leader refuses", name, "recovery", "no refusal was seen", Verdict.NOT_APPLICABLE)
        ]
    verdict = Verdict.NOT_APPLICABLE if answered.recovered is not None else Verdict.DIFFERS
    section = CLIENT if verdict is Verdict.DIFFERS else ""
    return [Trait("leader refuses", name, "recovery", _ms(answered.recovered), verdict, section)]


def asks_for_hints(api: ApiKey, newest: int) -> str:
    """Say what hints the newest version that a client asks of an API can carry."""
    if newest >= NODE_ENDPOINTS_FROM[api]:
        return "leader and endpoint"
    return "leader" if newest >= CURRENT_LEADER_FROM[api] else "none"


def _either(scenario: str, api: str, question: str, *, good: bool) -> Trait:
    if good:
        return Trait(scenario, api, question, "yes", Verdict.OK)
    return Trait(scenario, api, question, "no", Verdict.DIFFERS, CLIENT)


def _ms(seconds: float | None) -> str:
    return "none" if seconds is None else f"{seconds * 1000:.0f} ms"
