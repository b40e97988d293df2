"""What a client can do with a hint, by what it says of itself (KIP-511).

Only clients that are known to use hints are offered newer versions than their broker's. Others may
break at what these versions add: @platformatic/kafka 1.35 misreads tagged fields, and ends.
A client that names nothing is offered the broker's versions, too: all clients in the table name
themselves in their first request on a connection, also in front of SASL.
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import NamedTuple

from leader_hints.apis.api_versions import ClientSoftware


class HintForm(Enum):
    """A form in which a client takes hints.

    ``PRODUCE``: Produce 10. ``FETCH``: Fetch 16. ``FETCH_WITHOUT_ENDPOINTS``: CurrentLeader in
    Fetch 12 to 15, without NodeEndpoints; others get such a hint in vain, or break.
    """

    PRODUCE = auto()
    FETCH = auto()
    FETCH_WITHOUT_ENDPOINTS = auto()


HintForms = frozenset[HintForm]


class ClientRule(NamedTuple):
    """Clients that call themselves ``name`` take hints in ``forms``.

    ``since``: from that version on; () for every version.
    """

    name: str
    since: tuple[int, ...]
    forms: HintForms


#: In a configuration, all names that are not known, and none at all.
OTHERS = "*"
#: What the proxies themselves say that they are, where they ask brokers.
OWN_NAME = "leader-hints"

NO_HINTS: HintForms = frozenset()
#: What KIP-951 has. A link that begins without ApiVersions belongs to a client that asked on
#: another link (franz-go before 1.21 does that): if it then uses a raised version, it was offered
#: that one.
KIP_951: HintForms = frozenset({HintForm.PRODUCE, HintForm.FETCH})

_JAVA = "apache-kafka-java"
_LIBRDKAFKA = "librdkafka"
#: Their sources say so, and the client matrix (docs/compatibility.md) holds it against them.
_BUILT_IN = (
    ClientRule(_JAVA, (3, 7), KIP_951 | {HintForm.FETCH_WITHOUT_ENDPOINTS}),
    ClientRule(_LIBRDKAFKA, (2, 5), KIP_951),
    # These report librdkafka's version as theirs, or behind theirs.
    ClientRule("confluent-kafka-python", (2, 5), KIP_951),
    ClientRule("confluent-kafka-go", (2, 5), KIP_951),
    ClientRule("kgo", (1, 17), KIP_951),
    ClientRule("kafka-python", (3, 0), frozenset({HintForm.FETCH_WITHOUT_ENDPOINTS})),
    # Proxies and `check` ask a peer what it offers to a client that uses hints.
    ClientRule(OWN_NAME, (), KIP_951),
)
#: Bindings put librdkafka's version behind their own: 1.4.0-librdkafka-2.10.0 (JavaScript),
#: 2.5.0-rdkafka-2.5.0 (Python), v2.5.0-rdkafka-ruby-v0.19.5-librdkafka-v2.8.0 (Karafka).
_BINDING = re.compile(r"(?:.*-)?(?:lib)?rdkafka-v?(?=[0-9])", re.ASCII | re.DOTALL)
#: Of Java clients in Confluent Platform, whose 7.7 is Kafka 3.7.
_CONFLUENT_PLATFORM = ("-ccs", "-ce")
_AHEAD_OF_KAFKA = 4
#: No number of a version has more; Python refuses to read one of thousands.
_MOST_DIGITS = 9


def form_names(forms: HintForms) -> tuple[str, ...]:
    """Return the names of forms as settings, status and journal have them, sorted."""
    return tuple(sorted(form.name.lower() for form in forms))


class ClientTable:
    """Which clients use hints, by name and version.

    ``rules``: of the configuration. From its version on, a rule replaces what is built in for its
    name; the name ``OTHERS`` stands for clients that are not known. ``names``: those that are
    known, whatever the version.
    """

    def __init__(self, rules: Iterable[ClientRule] = ()) -> None:
        self.rules = tuple(rules)
        self._configured = _by_name(rule for rule in self.rules if rule.name != OTHERS)
        self._others = next((rule.forms for rule in self.rules if rule.name == OTHERS), None)
        self.names = frozenset(self._configured) | frozenset(_BY_NAME)

    def forms(self, software: ClientSoftware | None) -> HintForms:
        """Return the forms in which a client uses hints, an empty set if it is not known to."""
        return self.known_forms(software) or NO_HINTS

    def known_forms(self, software: ClientSoftware | None) -> HintForms | None:
        """Return the same as :meth:`forms`, but ``None`` if nothing is known of such clients."""
        if software is None:
            return self._others
        forms = self._configured_forms(software)
        if forms is not None:
            return forms
        binding = _BINDING.match(software.version)
        if binding is not None:
            software = ClientSoftware(_LIBRDKAFKA, software.version[binding.end() :])
            forms = self._configured_forms(software)
            if forms is not None:
                return forms
        if software.name not in self.names:
            return self._others
        return _newest(_BY_NAME.get(software.name, ()), _kafka_version(software)) or NO_HINTS

    def _configured_forms(self, software: ClientSoftware) -> HintForms | None:
        return _newest(self._configured.get(software.name, ()), _version(software.version))


def _by_name(rules: Iterable[ClientRule]) -> dict[str, list[ClientRule]]:
    """Return the rules of each name, the newest version first."""
    by_name: dict[str, list[ClientRule]] = {}
    for rule in sorted(rules, key=lambda rule: rule.since, reverse=True):
        by_name.setdefault(rule.name, []).append(rule)
    return by_name


def _newest(rules: Sequence[ClientRule], version: tuple[int, ...]) -> HintForms | None:
    """Return the forms of the newest rule that covers ``version``, ``None`` if none does."""
    if rules and rules[0].since and not version:
        # Built from sources, and most likely new; but nothing is known.
        return rules[0].forms & KIP_951
    return next((rule.forms for rule in rules if version >= rule.since), None)


def _kafka_version(software: ClientSoftware) -> tuple[int, ...]:
    """Return the version of Kafka that a client's version stands for."""
    version = _version(software.version)
    if software.name == _JAVA and software.version.endswith(_CONFLUENT_PLATFORM) and version:
        return version[0] - _AHEAD_OF_KAFKA, *version[1:]
    return version


def _version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version such as 3.9.1, v1.17.0 or 4.0.0-rc1."""
    numbers = []
    for part in text.removeprefix("v").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not 0 < len(digits) <= _MOST_DIGITS:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def upgrade_to(software: ClientSoftware) -> str:
    """Return from which version on a client's software uses hints; "" where this one does, or none
    is known to."""
    if BUILT_IN.forms(software):
        return ""
    if _BINDING.match(software.version):
        return f"one with librdkafka {_since(_LIBRDKAFKA)}"
    if software.name == _JAVA and software.version.endswith(_CONFLUENT_PLATFORM):
        major, minor = _BY_NAME[_JAVA][-1].since
        return f"{major + _AHEAD_OF_KAFKA}.{minor}"
    return _since(software.name) if software.name in _BY_NAME else ""


def _since(name: str) -> str:
    return ".".join(map(str, _BY_NAME[name][-1].since))


def client_table(
    configured: Iterable[tuple[str, tuple[int, ...], Iterable[str]]],
) -> ClientTable:
    """Return the table with a configuration: names, first versions and names of forms."""
    return ClientTable(
        ClientRule(name, since, frozenset(HintForm[form.upper()] for form in forms))
        for name, since, forms in configured
    )


_BY_NAME = _by_name(_BUILT_IN)
#: The table without a configuration.
BUILT_IN = ClientTable()
