"""What a client can do with a hint, by what it says of itself (KIP-511)."""

from enum import Enum, auto

from leader_hints.apis.api_versions import ClientSoftware


class HintForm(Enum):
    """A form in which a client takes hints.

    ``PRODUCE``: Produce 10. ``FETCH``: Fetch 16. ``FETCH_WITHOUT_ENDPOINTS``: CurrentLeader in
    Fetch 12 to 15, without NodeEndpoints; others get such a hint in vain, or break.
    """

    PRODUCE = auto()
    FETCH = auto()
    FETCH_WITHOUT_ENDPOINTS = auto()


#: What the proxies themselves say that they are, where they ask brokers.
OWN_NAME = "leader-hints"

_BOTH = frozenset({HintForm.PRODUCE, HintForm.FETCH})
_NONE: frozenset[HintForm] = frozenset()
#: Clients that say nothing, or that are not known here, are offered what KIP-951 has.
_UNKNOWN = _BOTH
#: Name, the first version that uses hints, and how. Their sources say so, and the client matrix
#: (docs/compatibility.md) holds it against them. Bindings name themselves with a version that
#: is librdkafka's.
_KNOWN: dict[str, tuple[tuple[int, ...], frozenset[HintForm]]] = {
    "apache-kafka-java": ((3, 7), _BOTH | {HintForm.FETCH_WITHOUT_ENDPOINTS}),
    "librdkafka": ((2, 5), _BOTH),
    "confluent-kafka-python": ((2, 5), _BOTH),
    "kgo": ((1, 17), _BOTH),
    "kafka-python": ((3, 0), frozenset({HintForm.FETCH_WITHOUT_ENDPOINTS})),
}


#: Names that are known, whatever the version.
KNOWN_NAMES = frozenset(_KNOWN)


def hint_forms(software: ClientSoftware | None) -> frozenset[HintForm]:
    """Return what a client can use, an empty set where it is known to use no hints."""
    if software is None or software.name not in _KNOWN:
        return _UNKNOWN
    since, known = _KNOWN[software.name]
    version = _version(software.version)
    if not version:
        # Built from sources, and most likely new; but nothing is known.
        return known & _UNKNOWN
    return known if version >= since else _NONE


#: No number of a version has more; Python refuses to read one of thousands.
_MOST_DIGITS = 9


def _version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version such as 3.9.1, v1.17.0 or 4.0.0-rc1."""
    numbers = []
    for part in text.removeprefix("v").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not 0 < len(digits) <= _MOST_DIGITS:
            break
        numbers.append(int(digits))
    return tuple(numbers)
