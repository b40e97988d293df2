"""Known bugs of clients around leader changes, each with what shows it.

A bug is shown by a release, or it is not; ``known`` says where it is expected, by its source. What
could not be shown is listed with what was tried.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.releases import FRANZ_GO, JAVA, LIBRDKAFKA

#: What was observed of a release, by the names of observations in :mod:`tests.conformance.index`.
Observed = Mapping[str, Any]
#: Milliseconds; librdkafka waited for 500 or 1000, less what had passed of that before.
_WAITS_MS: Final = 450


@dataclass(frozen=True)
class Bug:
    """A bug. ``expected``: releases that have it, in words; ``shows``: whether a release shows it,
    ``None`` where that was not observed. ``figure``: what it was judged by, in words.
    """

    name: str
    source: str
    family: str
    expected: str
    meaning: str
    shows: Callable[[Observed], bool | None]
    figure: Callable[[Observed], str]


def _moves(observed: Observed) -> Mapping[str, Any]:
    moves: Mapping[str, Any] = observed.get("moves") or {}
    return moves


def _waits(name: str, least: int) -> Callable[[Observed], bool | None]:
    def shows(observed: Observed) -> bool | None:
        waited = _moves(observed).get(name)
        return None if waited is None else waited >= least

    return shows


def _in_moves(name: str) -> Callable[[Observed], bool | None]:
    def shows(observed: Observed) -> bool | None:
        count = _moves(observed).get(name)
        return None if count is None else count > 0

    return shows


def _ms(name: str) -> Callable[[Observed], str]:
    return lambda observed: f"{_moves(observed).get(name)} ms"


def _of_rounds(name: str) -> Callable[[Observed], str]:
    return lambda observed: f"{_moves(observed).get(name)} of {_moves(observed).get('rounds')}"


def _stranded(observed: Observed) -> bool | None:
    if "equal_epoch_ms" not in observed or not _moves(observed).get("fetch_hints"):
        return None
    return observed["equal_epoch_ms"] is None


def _equal_epoch(observed: Observed) -> str:
    waited = observed.get("equal_epoch_ms")
    return "nothing for 20 s" if waited is None else f"{waited} ms"


def _without_ids(observed: Observed) -> bool | None:
    reads = observed.get("reads_without_topic_ids")
    return None if reads is None else not reads


BUGS: Final = (
    Bug(
        "KAFKA-16012",
        "https://github.com/apache/kafka/pull/15023",
        JAVA,
        "no release: it was fixed before 3.7.0",
        "a hint replaces what is known of other partitions, so that they stop",
        _in_moves("others_stopped"),
        _of_rounds("others_stopped"),
    ),
    Bug(
        "unrelated brokers",
        "https://github.com/twmb/franz-go/blob/master/CHANGELOG.md",
        FRANZ_GO,
        "1.17 to 1.20",
        "a hint ends the connections to all brokers that it does not name",
        _in_moves("torn"),
        _of_rounds("torn"),
    ),
    Bug(
        "zero topic ids",
        "https://github.com/confluentinc/librdkafka/issues/4806",
        LIBRDKAFKA,
        "2.5.0 to 2.5.3",
        "consumers read nothing where brokers offer Fetch 13 and Metadata has no topic ids",
        _without_ids,
        lambda observed: "reads" if observed.get("reads_without_topic_ids") else "reads nothing",
    ),
    Bug(
        "equal epoch",
        "https://github.com/confluentinc/librdkafka/issues/4804",
        LIBRDKAFKA,
        "2.4.0 to 2.6.1",
        "a partition stays where it is when Metadata names another leader under the epoch that is "
        "known",
        _stranded,
        _equal_epoch,
    ),
    Bug(
        "equal hint",
        "https://github.com/confluentinc/librdkafka/pull/4901",
        LIBRDKAFKA,
        "2.8.0 and newer: open",
        "a consumer goes where a hint leads although it knows the hint's epoch already",
        lambda observed: observed.get("follows_equal_hint"),
        lambda observed: "follows" if observed.get("follows_equal_hint") else "ignores it",
    ),
    Bug(
        "waits",
        "https://github.com/confluentinc/librdkafka/pull/4970",
        LIBRDKAFKA,
        "before 2.10.0",
        "a consumer waits up to a second before it reads from the new leader: "
        "`fetch.error.backoff.ms`, or a second after it has validated its position",
        _waits("fetch_ms", _WAITS_MS),
        _ms("fetch_ms"),
    ),
)

#: What could not be shown, and what was tried.
NOT_SHOWN: Final = (
    "[KAFKA-16012](https://github.com/apache/kafka/pull/15023): it was fixed before 3.7.0, so no "
    "release has it. Tried with each Java release above: the partitions that stay go on in every "
    "move.",
    "KAFKA-16226 (threads of a Java producer that wait for each other; 3.6.1 and 3.7.0): it is "
    "nothing that shows on the wire. Tried: 16 threads that send to 1,000 partitions of brokers of "
    "3.6.2 for 8 s, by 3.7.0 and 3.7.2 in turn, four times each, on two busy cores. 300,000 to "
    "651,000 records were acknowledged with 3.7.0, 389,000 to 644,000 with 3.7.2; threads waited "
    "for each other for 41 to 58 s in all, and for 35 to 49 s.",
    "franz-go 1.17.1 and 1.18.1: they did not write to and read from all partitions of the mock "
    "cluster within a minute, so nothing was observed of them.",
    "librdkafka 2.4.0 has the bug of the equal epoch too ([4804]"
    "(https://github.com/confluentinc/librdkafka/issues/4804)), but uses no hints, and the "
    "scenario leads a client astray by one. No other way to it was tried.",
)
