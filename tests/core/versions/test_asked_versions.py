"""What is kept of the versions that clients ask, and how much."""

from leader_hints.apis.keys import ApiKey
from leader_hints.core.versions import asked_versions
from leader_hints.core.versions.asked_versions import OTHERS, AskedVersions, ClientName


def test_the_oldest_and_the_newest_version_of_each_api_are_kept() -> None:
    asked = AskedVersions()
    for version in (7, 3, 9):
        asked.note("sarama/1.27.0", "billing", ApiKey.PRODUCE, version)
    asked.note("sarama/1.27.0", "billing", ApiKey.FETCH, 11)
    asked.note("", "", ApiKey.FETCH, 2)

    assert dict(asked) == {
        ClientName("sarama/1.27.0", "billing"): {ApiKey.PRODUCE: (3, 9), ApiKey.FETCH: (11, 11)},
        ClientName("", ""): {ApiKey.FETCH: (2, 2)},
    }


def test_what_no_kafka_has_and_what_any_broker_takes_is_not_kept() -> None:
    asked = AskedVersions()
    asked.note("a/1", "c", ApiKey.API_VERSIONS, 0)
    asked.note("a/1", "c", ApiKey.PRODUCE, -1)
    asked.note("a/1", "c", ApiKey.PRODUCE, 99)
    asked.note("a/1", "c", 20_000, 0)

    assert not [*asked]


def test_clients_beyond_the_most_are_kept_together() -> None:
    asked = AskedVersions()
    for number in range(asked_versions._MOST + 300):
        asked.note("a/1", f"c-{number}", ApiKey.PRODUCE, 7)
    asked.note("b/1", "late", ApiKey.PRODUCE, 0)
    asked.note("a/1", "c-0", ApiKey.PRODUCE, 2)

    kept = dict(asked)
    assert len(kept) == asked_versions._MOST + 1
    assert kept[ClientName(OTHERS, OTHERS)] == {ApiKey.PRODUCE: (0, 7)}
    assert kept[ClientName("a/1", "c-0")] == {ApiKey.PRODUCE: (2, 7)}
