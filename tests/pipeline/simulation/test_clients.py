"""The rules of each client software, by version."""

import pytest

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.clients import NAMES, rules_of


def test_hints_are_used_from_the_version_that_brought_them() -> None:
    assert not rules_of("apache-kafka-java", "3.6.2").produce_hints
    assert rules_of("apache-kafka-java", "3.7.0").produce_hints
    assert not rules_of("librdkafka", "2.4.0").fetch_hints
    assert rules_of("librdkafka", "2.5.3").fetch_hints
    assert not rules_of("librdkafka", "2.5.3").skips


def test_java_goes_on_with_fresh_metadata_from_3_6_on() -> None:
    assert not rules_of("java", "3.5.1").fresh_skips
    assert rules_of("java", "3.6.2").fresh_skips


def test_producers_are_idempotent_by_themselves_from_the_version_that_made_them_so() -> None:
    assert not rules_of("java", "2.8.2").idempotent
    assert rules_of("java", "3.0.0").idempotent
    assert not rules_of("librdkafka", "2.16.1").idempotent


def test_all_names_and_odd_versions_are_understood() -> None:
    assert all(rules_of(name, "v99.1-rc1") for name in NAMES)


@pytest.mark.parametrize(("software", "version"), [("netcat", "1"), ("java", "newest")])
def test_what_is_not_known_is_refused(software: str, version: str) -> None:
    with pytest.raises(PipelineError, match="is not"):
        rules_of(software, version)
