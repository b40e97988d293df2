"""What a client does with leader hints, judged by what was seen of it; pure.

Sections are those of KIP-951. A difference is told only of what a client asked for: one that asks
versions without hints has nothing to get wrong.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from proxy.apis.error_codes import HINTABLE
from proxy.apis.keys import ApiKey, api_name
from proxy.apis.leader_hint import CURRENT_LEADER_FROM, NODE_ENDPOINTS_FROM
from proxy.core.wire_log import Seen

CLIENT = "Proposed Changes, Client"


#: A retry that comes sooner than this did not wait for any client's default back-off, which is
#: 100 ms or more.
SOON = 0.06
#: The requests with which a client comes to a hinted leader: some validate their position first.
_COMES_WITH = {
    ApiKey.PRODUCE: ("Produce",),
    ApiKey.FETCH: ("Fetch", "OffsetForLeaderEpoch", "ListOffsets"),
}


class Verdict(StrEnum):
    """OK: as KIP-951 says. DIFFERS: not so. NOT_APPLICABLE: nothing that could be judged."""

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
    ``came``: until its next request at that node; ``before_metadata``: no Metadata came before.
    ``recovered``: until its next success. ``metadata``: it asked for Metadata before that.
    """

    version: int
    hint: int | None
    endpoint: bool
    came: float | None
    before_metadata: bool
    recovered: float | None
    metadata: bool


def follow(seen: Sequence[Seen], api: ApiKey, topic: str, since: float) -> Answered | None:
    """Find the first refusal of partition 0 of a topic after ``since``; ``None``: there is none."""
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
    later = [s for s in seen if s.at >= refused.at and s is not refused]
    hint = refused.response.hints.get(at, (None, 0))[0]
    came = _first(later, lambda s: hint is not None and _comes(s, api, hint, topic))
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
        None if came is None else came - refused.at,
        came is not None and (answered is None or came < answered),
        None if success is None else success - refused.at,
        asked is not None and (success is None or asked < success),
    )


def _first(seen: Iterable[Seen], chosen: Callable[[Seen], bool]) -> float | None:
    return next((s.at for s in seen if chosen(s)), None)


def _comes(seen: Seen, api: ApiKey, node: int, topic: str) -> bool:
    if seen.response is not None or seen.route != f"broker-{node}":
        return False
    if seen.api not in _COMES_WITH[api]:
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
    used, backed_off, asks = "hint used", "back-off", "Metadata asked as well"
    if answered is None:
        return [Trait("move", name, used, "no refusal was seen", Verdict.NOT_APPLICABLE)]
    took = _ms(answered.recovered)
    traits = [Trait("move", name, "recovery", took, Verdict.NOT_APPLICABLE)]
    if answered.hint is None:
        why = f"asks v{answered.version}, which has no hints"
        return [*traits, Trait("move", name, used, why, Verdict.NOT_APPLICABLE)]
    if not answered.before_metadata:
        return [*traits, Trait("move", name, used, "no", Verdict.DIFFERS, CLIENT)]
    came = answered.came or 0.0
    traits.append(Trait("move", name, used, f"yes, after {_ms(came)}", Verdict.OK))
    skipped = came < SOON
    # The KIP asks for it of producers; a consumer fetches when it is polled.
    verdict = Verdict.OK if skipped or api is not ApiKey.PRODUCE else Verdict.DIFFERS
    word = "skipped" if skipped else f"kept, {_ms(came)}"
    traits.append(
        Trait("move", name, backed_off, word, verdict, "" if verdict is Verdict.OK else CLIENT)
    )
    return [*traits, _either("move", name, asks, good=answered.metadata)]


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
    # Metadata never names that node here, so who comes to it took the hint.
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
