"""Which upgrades bring hints."""

import pytest

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.core.versions.client_capabilities import BUILT_IN, KIP_951, OWN_NAME
from leader_hints_report.report.upgrades import SINCE, upgrade_to, uses_hints


@pytest.mark.parametrize(
    ("software", "version", "to", "uses"),
    [
        ("apache-kafka-java", "2.8.2", "3.7", False),
        ("apache-kafka-java", "3.7.0", "", True),
        ("apache-kafka-java", "7.6.1-ccs", "7.7", False),
        ("apache-kafka-java", "7.8.0-ce", "", True),
        ("apache-kafka-java", "unknown", "", False),
        ("kgo", "v1.16.1", "1.17", False),
        ("confluent-kafka-python", "2.3.0-rdkafka-2.3.0", "one with librdkafka 2.5", False),
        ("any-binding", "v0.1-librdkafka-v2.8.0", "", True),
        ("sarama", "1.43.0", "", False),
        ("", "", "", False),
    ],
)
def test_the_version_to_upgrade_to(software: str, version: str, to: str, *, uses: bool) -> None:
    assert upgrade_to(software, version) == to
    assert uses_hints(software, version) == uses


def test_versions_are_those_of_the_proxy() -> None:
    newest = {name: BUILT_IN.forms(ClientSoftware(name, "999.0")) for name in BUILT_IN.names}
    assert {name for name, forms in newest.items() if forms >= KIP_951} - {OWN_NAME} == set(SINCE)
    for name, since in SINCE.items():
        major, minor = map(int, since.split("."))
        assert BUILT_IN.forms(ClientSoftware(name, f"{since}.0")) >= KIP_951
        assert not BUILT_IN.forms(ClientSoftware(name, f"{major}.{minor - 1}.9"))
