"""Rules about what clients can do after the upgrade of their brokers to Kafka 4.0 (KIP-896).

Tested in ``tests/check/test_upgrade_rules.py``.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.oldest_versions import OLDEST_IN_4_0
from leader_hints.core.versions.asked_versions import ClientName

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


class Verdict(StrEnum):
    """``REFUSED``: brokers of 4.0 refuse what it asks. ``IN_PART``: nothing that was seen is
    refused, but neither Produce nor Fetch was seen. ``READY``: all that was seen is served.
    """

    REFUSED = "refused"
    IN_PART = "in_part"
    READY = "ready"


class Refused(NamedTuple):
    """A request that a broker of 4.0 refuses. ``oldest``: what it takes at least."""

    api: str
    version: int
    oldest: int


class ClientVerdict(NamedTuple):
    """What becomes of a client. ``seen``: the APIs that it has asked, by name. ``remedy``: "" where
    nothing is to be done, or nothing is known.
    """

    software: str
    client_id: str
    verdict: Verdict
    refused: tuple[Refused, ...]
    seen: tuple[str, ...]
    remedy: str


def verdicts(asked: Iterable[tuple[ClientName, int, int]]) -> Iterator[ClientVerdict]:
    """Iterate over clients, those that will be refused first.

    ``asked``: an API key that a client has asked, and the oldest version of it.
    """
    clients: dict[ClientName, dict[int, int]] = {}
    for name, key, version in asked:
        oldest = clients.setdefault(name, {})
        oldest[key] = min(version, oldest.get(key, version))
    found = [_verdict(*name, oldest) for name, oldest in clients.items()]
    order = [*Verdict]
    yield from sorted(found, key=lambda one: (order.index(one.verdict), one[:2]))


def _verdict(software: str, client_id: str, asked: Mapping[int, int]) -> ClientVerdict:
    refused = tuple(
        Refused(api_name(key), version, OLDEST_IN_4_0[key])
        for key, version in sorted(asked.items())
        if version < OLDEST_IN_4_0.get(key, 0)
    )
    verdict = Verdict.READY
    if refused:
        verdict = Verdict.REFUSED
    elif asked.keys().isdisjoint(_TELLING):
        verdict = Verdict.IN_PART
    name = software.partition("/")[0]
    remedy = ""
    if refused and name in _GOES_ON:
        remedy = f"upgrade {name} to {_GOES_ON[name]} or newer{_ALSO.get(name, '')}"
    elif refused:
        remedy = "upgrade it to a release that takes brokers of Kafka 2.1 for the oldest"
    return ClientVerdict(
        software, client_id, verdict, refused, tuple(map(api_name, sorted(asked))), remedy
    )
