"""The version plan: which maxima are raised, and what goes to the broker instead.

A client uses a hint only in versions whose schema has the field. So ApiVersions is answered
with raised maxima, and a request of such a version is brought down to what the broker takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from proxy.apis import metadata
from proxy.apis.keys import ApiKey

#: (API, the broker's maximum) -> the maximum that is offered to clients. In each row the
#: body of the offered version is that of the broker's: only the version number changes
#: (Produce 10 and Fetch 16, KIP-951).
RESTAMPED: Mapping[tuple[ApiKey, int], int] = MappingProxyType(
    {
        (ApiKey.PRODUCE, 9): 10,
        (ApiKey.FETCH, 15): 16,
    }
)
#: A broker that takes this version gives hints of its own.
_NATIVE_PRODUCE = 10


@dataclass(frozen=True, slots=True)
class Plan:
    """What a link does about versions; fixed once its broker's versions are known.

    ``reads``: whether frames are looked at; where not, the link is a plain relay.
    ``native``: the broker gives hints of its own.
    ``raised``: offered maximum by API key. ``sent``: version sent by (API key, version asked).
    """

    reads: bool
    native: bool = False
    raised: Mapping[int, int] = field(default_factory=dict)
    sent: Mapping[tuple[int, int], int] = field(default_factory=dict)


#: Nothing is raised, frames are looked at: until the broker's versions are known, and where
#: hints are only counted.
READ_ONLY = Plan(reads=True)
#: A plain relay.
PASS = Plan(reads=False)


def plan_for(maxima: Mapping[int, int]) -> Plan:
    """Return the plan for a broker that takes ``maxima`` (maximum version by API key).

    A broker that is native, or whose Metadata has no reliable epochs, passes through.
    """
    if maxima.get(ApiKey.PRODUCE, -1) >= _NATIVE_PRODUCE:
        return Plan(reads=False, native=True)
    if maxima.get(ApiKey.METADATA, -1) < metadata.OLDEST:
        return PASS
    rows = {
        key: (maximum, offered)
        for (key, maximum), offered in RESTAMPED.items()
        if maxima.get(key) == maximum
    }
    return Plan(
        reads=True,
        raised={key: offered for key, (_, offered) in rows.items()},
        sent={(key, offered): maximum for key, (maximum, offered) in rows.items()},
    )
