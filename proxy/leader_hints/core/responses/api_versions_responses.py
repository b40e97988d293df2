"""ApiVersions responses: they decide the link's plan, and offer the versions that it raises.

Tested in ``tests/core/link/test_link.py``.
"""

from collections.abc import Mapping

from leader_hints.apis import api_versions
from leader_hints.apis.api_versions import VersionRange
from leader_hints.apis.keys import ApiKey
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.responses.outcome import GATHER, GATHER_ANYWAY, Fault, Instead, Outcome
from leader_hints.core.responses.response_notes import ResponseNotes
from leader_hints.core.versions.address_rewriting import NEWEST
from leader_hints.core.versions.plan import plan_for
from leader_hints.wire.errors import WireError
from leader_hints.wire.reader import Reader
from leader_hints.wire.splice import spliced

#: A response lists some sixty APIs, so in a turn of the link it counts as so many others. Anybody
#: may ask for hundreds before the broker has authenticated anybody.
_COST = 6


def read(notes: ResponseNotes, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
    """Agree on versions by a whole response, and change the maxima in it."""
    link, version = notes.link, exchange.policy.version
    rewriting = link.route.config.address_rewriting
    if len(frame) < length:
        return GATHER if rewriting is None else GATHER_ANYWAY
    try:
        reader = Reader(frame, api_versions.BODY)
        ranges = api_versions.read_ranges(reader, version)
    except WireError as error:
        reason = f"ApiVersions v{version}: {error}"
        if rewriting is not None:
            # What it offers might say addresses.
            return Fault(reason)
        link.misunderstood("broker", reason)
        return Instead([frame], cost=_COST)
    if ranges:
        _agree(link, frame, ranges)
    if rewriting is None:
        return Instead([frame], cost=_COST)
    if ranges:
        withheld = api_versions.withhold(frame, version, NEWEST)
        return Instead(spliced(frame, withheld), cost=_COST)
    return Instead([api_versions.fixed_refusal(frame) or frame])


def _agree(link: LinkState, frame: memoryview, ranges: Mapping[int, VersionRange]) -> None:
    route, client, policies = link.route, link.client, link.policies
    if route.raised:
        maxima = {key: versions.maximum for key, versions in ranges.items()}
        plan = plan_for(maxima, synthetic=link.topic_ids.synthesized)
        if route.broker.plan is None:
            # The client's other links may keep to what this one is offered.
            route.broker.former_plan = plan_for(maxima)
        policies.agree(plan if route.config.address_rewriting is None else plan.reading())
        link.topic_ids.agreed()
    if route.mode is Mode.ON:
        offers = policies.plan.offers(client.hint_forms, topic_ids=link.topic_ids.have_names)
        link.topic_ids.by_ids = ApiKey.FETCH in offers and not policies.plan.synthetic
        api_versions.raise_maxima(frame, ranges, offers)
