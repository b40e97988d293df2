"""Rules about what clients can do after an upgrade of their brokers, or their own (KIP-896).

Tested in ``tests/check/test_upgrade_rules.py``.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.oldest_versions import RELEASES
from leader_hints.core.versions.asked_versions import OTHERS, ClientName
from leader_hints.core.versions.client_capabilities import BUILT_IN, form_names, upgrade_to

#: The releases that KIP-896 looked at when it chose what to keep: these and newer ones go on.
_GOES_ON: Final[Mapping[str, str]] = {
    "apache-kafka-java": "2.1",
    "librdkafka": "1.8.2",
    "confluent-kafka-python": "1.8.2",
    "kafka-python": "2.0.2",
    "sarama": "1.30.1",
    "kafkajs": "1.15.0",
}
#: What a newer release alone does not change. sarama's versions follow its configuration: by
#: default 1.30.1 and 1.38.1 commit offsets in one that 4.1 refuses (python -m tests.readiness).
_ALSO: Final[Mapping[str, str]] = {"sarama": ", and set its Config.Version to V2_1_0_0 or newer"}
#: Which request tells that a client writes or reads.
_TELLING: Final = (ApiKey.PRODUCE, ApiKey.FETCH)
_OFFSET_COMMIT: Final = 8
_OFFSET_FETCH: Final = 9


class Verdict(StrEnum):
    """``REFUSED``: brokers refuse what it asks. ``IN_PART``: nothing that was seen is refused, but
    the client was seen in part only. ``READY``: all that was seen is served.
    """

    REFUSED = "refused"
    IN_PART = "in_part"
    READY = "ready"


class Seen(NamedTuple):
    """What one proxy, or one line of a journal, says of a client. ``asked``: by API key the oldest
    and the newest version. ``last_day``: on which it was seen last, "" if that is not known."""

    name: ClientName
    asked: Mapping[int, tuple[int, int]]
    addresses: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    last_day: str = ""


class AskedVersion(NamedTuple):
    """An API with the oldest and the newest version that a client asked."""

    api: str
    oldest: int
    newest: int

    def __str__(self) -> str:
        """As people read it: "Produce 3-9"."""
        versions = (
            str(self.oldest) if self.oldest == self.newest else f"{self.oldest}-{self.newest}"
        )
        return f"{self.api} {versions}"


class Refused(NamedTuple):
    """A request that brokers refuse. ``oldest``: what they take at least; ``release``: from which
    one on."""

    api: str
    version: int
    oldest: int
    release: str


class ClientVerdict(NamedTuple):
    """What becomes of a client.

    ``verdict``: of the newest release. ``releases``: of each, by the first one that differs.
    ``seen``: the APIs that it has asked, by name; ``asked``: with their versions. ``lacks``: why it
    was seen in part. ``remedy``: "" where nothing is to be done, or nothing is known. ``uses``: the
    forms of hints that its software is known to use. ``hints_from``: the release that uses them, ""
    where this one does, or none is known to. ``last_day``: see :class:`Seen`.
    """

    software: str
    client_id: str
    verdict: Verdict
    refused: tuple[Refused, ...]
    seen: tuple[str, ...]
    remedy: str
    asked: tuple[AskedVersion, ...]
    releases: Mapping[str, Verdict]
    lacks: str
    addresses: tuple[str, ...]
    principals: tuple[str, ...]
    uses: tuple[str, ...]
    hints_from: str
    last_day: str


class _Client:
    """What is known of one."""

    def __init__(self) -> None:
        self.asked: dict[int, tuple[int, int]] = {}
        self.addresses: dict[str, None] = {}
        self.principals: dict[str, None] = {}
        self.last_day = ""

    def add(self, seen: Seen) -> None:
        for key, (oldest, newest) in seen.asked.items():
            before = self.asked.get(key, (oldest, newest))
            self.asked[key] = min(oldest, before[0]), max(newest, before[1])
        self.addresses |= dict.fromkeys(seen.addresses)
        self.principals |= dict.fromkeys(seen.principals)
        self.last_day = max(self.last_day, seen.last_day)


class Clients:
    """All that was seen, by client: one of several proxies is one. ``since``: what was last seen
    before that day, as 2026-01-31, is left out; "": nothing is."""

    def __init__(self, since: str = "") -> None:
        self.since = since
        self._clients: dict[ClientName, _Client] = {}

    def add(self, seen: Seen) -> None:
        """Add what was seen of one."""
        if seen.last_day and seen.last_day < self.since:
            return
        self._clients.setdefault(seen.name, _Client()).add(seen)

    def verdicts(self) -> Iterator[ClientVerdict]:
        """Iterate over the clients, those that will be refused first."""
        found = [_verdict(name, client) for name, client in self._clients.items()]
        order = [*Verdict]
        yield from sorted(found, key=lambda one: (order.index(one.verdict), one[:2]))


def _verdict(name: ClientName, client: _Client) -> ClientVerdict:
    asked = client.asked
    refused = tuple(_refused(asked))
    lacks = _lacks(name, asked)
    releases: dict[str, Verdict] = {}
    for release in RELEASES:
        if any(one.release == release for one in refused) or Verdict.REFUSED in releases.values():
            releases[release] = Verdict.REFUSED
        else:
            # Where brokers refuse nothing, it does not matter what was not seen.
            releases[release] = Verdict.IN_PART if lacks and RELEASES[release] else Verdict.READY
    software = ClientSoftware(*name.software.partition("/")[::2])
    verdict = [*releases.values()][-1]
    return ClientVerdict(
        software=name.software,
        client_id=name.client_id,
        verdict=verdict,
        refused=refused,
        seen=tuple(map(api_name, sorted(asked))),
        remedy=_remedy(software.name) if refused else "",
        asked=tuple(AskedVersion(api_name(key), *asked[key]) for key in sorted(asked)),
        releases=releases,
        lacks=lacks if verdict is Verdict.IN_PART else "",
        addresses=_others_last(client.addresses),
        principals=_others_last(client.principals),
        uses=form_names(BUILT_IN.forms(software)),
        hints_from=upgrade_to(software),
        last_day=client.last_day,
    )


def _refused(asked: Mapping[int, tuple[int, int]]) -> Iterator[Refused]:
    """Iterate over what is refused, each with the first release that does."""
    for key, (version, _) in sorted(asked.items()):
        for release, oldest in RELEASES.items():
            if version < oldest.get(key, 0):
                yield Refused(api_name(key), version, oldest[key], release)
                break


def _lacks(name: ClientName, asked: Mapping[int, tuple[int, int]]) -> str:
    """Return why a client was seen in part; "" if it was not."""
    if name.software == OTHERS:
        return "these are all clients of a route beyond 500"
    if asked.keys().isdisjoint(_TELLING):
        return "it has not written or read yet"
    if ApiKey.JOIN_GROUP in asked and _OFFSET_COMMIT not in asked:
        return "it is in a group, and has not committed an offset yet"
    if _OFFSET_FETCH in asked and _OFFSET_COMMIT not in asked:
        return "it asks for a group's offsets, and has not committed one yet"
    return ""


def _remedy(name: str) -> str:
    if name in _GOES_ON:
        return f"upgrade {name} to {_GOES_ON[name]} or newer{_ALSO.get(name, '')}"
    return "upgrade it to a release that takes brokers of Kafka 2.1 for the oldest"


def _others_last(origins: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(origins, key=lambda origin: origin == OTHERS))
