"""Which rules each client software follows when a leader moved: a table.

The rules were read from the clients' sources, and measured by `leader-hints conformance`
(docs/clients.md) and `make bench WHAT=settle` (docs/benchmarks.md).
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from leader_hints_report.errors import PipelineError
from leader_hints_report.text import shorten


class Rules(NamedTuple):
    """What a client does. Times are milliseconds.

    ``produce_hints`` and ``fetch_hints``: it uses hints of these APIs. ``skips``: a producer with
    a hint does not back off. ``fresh_skips``: it does not back off once Metadata names another
    leader. ``backoff``: until it tries a partition again (retry.backoff.ms); ``grows``: that
    doubles with each further refusal (KIP-580). ``refresh``: least time between two Metadata
    requests.

    ``fetch_backoff``: until a consumer tries a partition again, 0: as soon as Metadata names
    another leader; ``backs_off_again``: each refused Fetch begins that again, also one of an epoch
    that rose while the leader stayed. ``fetch_refresh``: least time between a consumer's Metadata
    requests. ``asks_late``: it asks for Metadata after its back-off, and not with the error.
    ``backs_off_metadata``: its retry.backoff.ms is the least time between Metadata requests, too;
    else that is another setting: MetadataMinAge, topic.metadata.refresh.fast.interval.ms,
    Metadata.Retry.Backoff.
    ``by_followers``: its Fetch (11 and newer) may be answered by followers (KIP-392).
    ``idempotent``: its producers with acks=all are, unless set otherwise (Java: KIP-679).
    """

    produce_hints: bool = False
    fetch_hints: bool = False
    skips: bool = True
    fresh_skips: bool = False
    backoff: float = 100
    refresh: float = 100
    fetch_backoff: float = 0
    fetch_refresh: float = 100
    asks_late: bool = False
    by_followers: bool = True
    backs_off_again: bool = False
    grows: bool = False
    backs_off_metadata: bool = True
    idempotent: bool = False


#: By software, from which version on; the newest that is not newer than the client counts.
_KNOWN: Final[dict[str, tuple[tuple[tuple[int, ...], Rules], ...]]] = {
    "apache-kafka-java": (
        ((0,), Rules()),
        ((3, 0), Rules(idempotent=True)),
        # KAFKA-15415: the producer retries at once where Metadata names another leader.
        ((3, 6), Rules(fresh_skips=True, idempotent=True)),
        (
            (3, 7),
            Rules(
                produce_hints=True,
                fetch_hints=True,
                fresh_skips=True,
                grows=True,
                idempotent=True,
            ),
        ),
    ),
    "librdkafka": (
        (
            (0,),
            Rules(
                fetch_backoff=1000,
                fetch_refresh=1000,
                by_followers=False,
                backs_off_again=True,
                backs_off_metadata=False,
            ),
        ),
        (
            (2, 5),
            Rules(
                produce_hints=True,
                fetch_hints=True,
                skips=False,
                fetch_backoff=100,
                by_followers=False,
                backs_off_metadata=False,
            ),
        ),
    ),
    "franz-go": (
        (
            (0,),
            Rules(refresh=5000, fetch_refresh=5000, backs_off_metadata=False, idempotent=True),
        ),
        (
            (1, 17),
            Rules(
                produce_hints=True,
                fetch_hints=True,
                refresh=5000,
                fetch_refresh=5000,
                backs_off_metadata=False,
                idempotent=True,
            ),
        ),
    ),
    "kafka-python": (
        ((0,), Rules(fetch_backoff=100, by_followers=False)),
        ((3, 0), Rules(fetch_hints=True, idempotent=True)),
    ),
    "aiokafka": (((0,), Rules(fetch_backoff=100)),),
    "sarama": (((0,), Rules(fetch_backoff=2100, asks_late=True, backs_off_metadata=False)),),
    "segmentio": (((0,), Rules()),),
}
#: Other names of these.
_NAMES: Final = {
    "java": "apache-kafka-java",
    "confluent-kafka": "librdkafka",
    "confluent-kafka-python": "librdkafka",
    "kgo": "franz-go",
}
NAMES: Final = (*_KNOWN, *_NAMES)
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_SHOWN: Final = 40


def all_rules() -> Iterator[tuple[str, str, Rules]]:
    """Iterate over each software, from which version on it has rules ("" for all), and these."""
    for software, versions in _KNOWN.items():
        for version, rules in versions:
            yield software, ".".join(map(str, version)) if any(version) else "", rules


def rules_of(software: str, version: str) -> Rules:
    """Return the rules of a client.

    :raises PipelineError: the software is not known, or the version is none.
    """
    versions = _KNOWN.get(_NAMES.get(software, software))
    if versions is None:
        known = ", ".join(NAMES)
        raise PipelineError(f"software {software!r} is not known; known are {known}")
    return max(one for one in versions if one[0] <= numbers_of(version))[1]


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a version.

    :raises PipelineError: it has others than numbers.
    """
    numbers = version.removeprefix("v").split("-")[0].split(".")
    if not all(_NUMBER.fullmatch(number) for number in numbers):
        raise PipelineError(f"version {shorten(version, _SHOWN)!r} is not one such as 3.6.2")
    return tuple(int(number) for number in numbers)
