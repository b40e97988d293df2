"""Which upgrades bring hints."""

import pytest

from leader_hints_report.report.upgrades import ON_FETCH_ALONE, raised, upgrade_to, uses_hints


@pytest.mark.parametrize(
    ("software", "version", "to", "uses"),
    [
        ("apache-kafka-java", "2.8.2", "3.7", False),
        ("apache-kafka-java", "3.7.0", "", True),
        ("apache-kafka-java", "7.6.1-ccs", "7.7", False),
        ("apache-kafka-java", "7.8.0-ce", "", True),
        # Most likely built from new sources: the proxy gives hints to it.
        ("apache-kafka-java", "unknown", "", True),
        ("kgo", "v1.16.1", "1.17", False),
        ("confluent-kafka-python", "2.3.0-rdkafka-2.3.0", "one with librdkafka 2.5", False),
        ("any-binding", "v0.1-librdkafka-v2.8.0", "", True),
        ("kafka-python", "2.0.2", "3.0", False),
        ("kafka-python", "3.0.12", "", True),
        ("sarama", "1.43.0", "", False),
        ("", "", "", False),
    ],
)
def test_the_version_to_upgrade_to(software: str, version: str, to: str, *, uses: bool) -> None:
    assert upgrade_to(software, version) == to
    assert uses_hints(software, version) == uses


@pytest.mark.parametrize(
    ("uses", "words"),
    [
        ("", ""),
        ("none", "no"),
        ("none; unknown", "no"),
        ("fetch_without_endpoints", "yes"),
        ("fetch,produce; unknown", "in part"),
    ],
)
def test_clients_that_are_raised(uses: str, words: str) -> None:
    assert raised(uses) == words


def test_software_that_gains_on_fetch_alone() -> None:
    assert ON_FETCH_ALONE == ("kafka-python",)
