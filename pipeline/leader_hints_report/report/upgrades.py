"""Upgrades: from which version on a client's software uses hints.

The proxy decides by a table of its own, which its setting ``clients`` adds to; a test holds this
one against it. Of kafka-python and others that use hints for Fetch alone nothing is said.
"""

import re
from typing import Final

#: By the name that clients give.
SINCE: Final = {
    "apache-kafka-java": "3.7",
    "librdkafka": "2.5",
    "confluent-kafka-python": "2.5",
    "confluent-kafka-go": "2.5",
    "kgo": "1.17",
}
#: Bindings put librdkafka's version behind their own.
_BINDING: Final = re.compile(r"rdkafka-v?(?=[0-9])", re.ASCII)
#: Java clients of Confluent Platform, whose 7.7 is Kafka 3.7.
_PLATFORM: Final = ("-ccs", "-ce")
_NUMBERS: Final = re.compile(r"v?([0-9]{1,9})(?:\.([0-9]{1,9}))?", re.ASCII)


def upgrade_to(software: str, version: str) -> str:
    """The first version of a client's software that uses hints; empty where this one does, or none
    is known to."""
    since, own = _since(software, version)
    if not since or not _is_older(own, since):
        return ""
    return since if own == version else f"one with librdkafka {since}"


def uses_hints(software: str, version: str) -> bool:
    """Whether a client's software is known to use hints in this version."""
    since, own = _since(software, version)
    return bool(since and _numbers(own)) and not _is_older(own, since)


def _since(software: str, version: str) -> tuple[str, str]:
    """The first version that uses hints, and the one to compare with it."""
    binding = _BINDING.search(version)
    if binding is not None:
        return SINCE["librdkafka"], version[binding.end() :]
    if software == "apache-kafka-java" and version.endswith(_PLATFORM):
        return "7.7", version
    return SINCE.get(software, ""), version


def _is_older(version: str, since: str) -> bool:
    """Of a version without a number nothing is known."""
    numbers = _numbers(version)
    return bool(numbers) and numbers < _numbers(since)


def _numbers(version: str) -> tuple[int, ...]:
    found = _NUMBERS.match(version)
    return tuple(int(number or 0) for number in found.groups()) if found else ()
