"""What becomes of clients when their brokers are upgraded to 4.0."""

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.check.upgrade_rules import (
    AskedVersion,
    Clients,
    ClientVerdict,
    Refused,
    Seen,
    Verdict,
)
from leader_hints.core.versions.asked_versions import OTHERS, ClientName

_OFFSET_COMMIT = 8
_SHARE_FETCH = 78
_KEYS = {
    **{key.name: int(key) for key in ApiKey},
    "OFFSET_COMMIT": _OFFSET_COMMIT,
    "OFFSET_FETCH": 9,
    "SHARE_FETCH": _SHARE_FETCH,
}


def _verdict(software: str, **oldest: int) -> ClientVerdict:
    asked = {_KEYS[api]: (version, version) for api, version in oldest.items()}
    (found,) = _verdicts(Seen(ClientName(software, "c"), asked))
    return found


def _verdicts(*seen: Seen) -> list[ClientVerdict]:
    clients = Clients()
    for one in seen:
        clients.add(one)
    return [*clients.verdicts()]


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        ({"PRODUCE": 3, "METADATA": 0}, Verdict.READY),
        ({"FETCH": 4, "LIST_OFFSETS": 1}, Verdict.READY),
        ({"PRODUCE": 2, "METADATA": 9}, Verdict.REFUSED),
        ({"PRODUCE": 9, "FETCH": 3}, Verdict.REFUSED),
        ({"FETCH": 11, "LIST_OFFSETS": 0}, Verdict.REFUSED),
        # It has not written or read yet.
        ({"METADATA": 1}, Verdict.IN_PART),
        ({"METADATA": 1, "LIST_OFFSETS": 0}, Verdict.REFUSED),
        # It has not committed an offset yet: sarama asks an old version for that.
        ({"FETCH": 11, "JOIN_GROUP": 5}, Verdict.IN_PART),
        ({"FETCH": 11, "JOIN_GROUP": 5, "OFFSET_COMMIT": 2}, Verdict.READY),
        ({"FETCH": 11, "JOIN_GROUP": 5, "OFFSET_COMMIT": 1}, Verdict.REFUSED),
        # It may commit without being in a group.
        ({"FETCH": 11, "OFFSET_FETCH": 5}, Verdict.IN_PART),
        ({"FETCH": 11, "OFFSET_FETCH": 5, "OFFSET_COMMIT": 2}, Verdict.READY),
    ],
)
def test_what_becomes_of_a_client(asked: dict[str, int], verdict: Verdict) -> None:
    assert _verdict("a/1", **asked).verdict is verdict


def test_what_is_refused_is_named_with_what_to_do() -> None:
    old = _verdict("sarama/1.19.0", PRODUCE=2, METADATA=1)
    assert old.refused == (Refused("Produce", 2, 3, "4.0"),)
    assert old.seen == ("Produce", "Metadata")
    assert old.remedy.startswith("upgrade sarama to 1.30.1 or newer, and set its Config.Version")
    assert _verdict("kafkajs/1.0", PRODUCE=2).remedy == "upgrade kafkajs to 1.15.0 or newer"
    assert "Kafka 2.1" in _verdict("", FETCH=2).remedy
    assert not _verdict("sarama/1.43.0", PRODUCE=7).remedy


def test_a_client_of_several_routes_is_one_and_those_that_are_refused_come_first() -> None:
    one, other = ClientName("b/1", "writes"), ClientName("a/1", "waits")
    found = _verdicts(
        Seen(other, {ApiKey.METADATA: (5, 5)}, ("192.0.2.9",)),
        Seen(one, {ApiKey.PRODUCE: (7, 7)}, ("192.0.2.1", OTHERS), ("CN=b",)),
        Seen(one, {_OFFSET_COMMIT: (6, 6)}, ("192.0.2.2",)),
        Seen(one, {_OFFSET_COMMIT: (1, 2)}, ("192.0.2.1",), ("CN=a",)),
    )
    assert [(client.client_id, client.verdict) for client in found] == [
        ("writes", Verdict.REFUSED),
        ("waits", Verdict.IN_PART),
    ]
    assert found[0].refused == (Refused("OffsetCommit", 1, 2, "4.0"),)
    assert found[0].asked == (AskedVersion("Produce", 7, 7), AskedVersion("OffsetCommit", 1, 6))
    assert found[0].addresses == ("192.0.2.1", "192.0.2.2", OTHERS)
    assert found[0].principals == ("CN=b", "CN=a")


def test_clients_that_have_not_asked_since_a_day_are_left_out() -> None:
    produce = {int(ApiKey.PRODUCE): (2, 2)}
    seen = [
        Seen(ClientName("a/1", "c"), produce, last_day="2026-01-04"),
        Seen(ClientName("b/1", "c"), produce, last_day="2026-01-05"),
        Seen(ClientName("b/1", "c"), produce, last_day="2026-01-07"),
        Seen(ClientName("b/1", "c"), produce, last_day="2026-01-06"),
        # A proxy of an earlier version does not say when.
        Seen(ClientName("c/1", "c"), produce),
    ]
    found = {}
    for since in ("", "2026-01-05"):
        clients = Clients(since)
        for one in seen:
            clients.add(one)
        found[since] = {client.software: client.last_day for client in clients.verdicts()}
    later = {"b/1": "2026-01-07", "c/1": ""}
    assert found == {"": {"a/1": "2026-01-04", **later}, "2026-01-05": later}


@pytest.mark.parametrize(
    ("asked", "releases"),
    [
        ({"PRODUCE": 9}, "ready ready ready"),
        ({"PRODUCE": 2}, "ready refused refused"),
        ({"METADATA": 1}, "ready in_part in_part"),
        # As the preview of share groups in 4.0 had it.
        ({"SHARE_FETCH": 0, "FETCH": 17}, "ready ready refused"),
        ({"SHARE_FETCH": 1, "FETCH": 17}, "ready ready ready"),
    ],
)
def test_each_release_has_its_verdict(asked: dict[str, int], releases: str) -> None:
    found = _verdict("a/1", **asked)
    assert dict(found.releases) == dict(zip(("3.7", "4.0", "4.1"), releases.split(), strict=True))
    assert found.verdict == releases.split()[-1]


def test_clients_that_are_not_distinguished_are_never_said_to_be_served() -> None:
    found = _verdict(OTHERS, PRODUCE=9, FETCH=11)
    assert found.verdict is Verdict.IN_PART
    assert found.lacks
    assert _verdict(OTHERS, PRODUCE=2).verdict is Verdict.REFUSED


@pytest.mark.parametrize(
    ("software", "uses", "since"),
    [
        ("apache-kafka-java/3.6.2", "", "3.7"),
        ("apache-kafka-java/7.6.1-ccs", "", "7.7"),
        ("apache-kafka-java/3.9.1", "fetch fetch_without_endpoints produce", ""),
        ("confluent-kafka-python/2.3.0-rdkafka-2.3.0", "", "one with librdkafka 2.5"),
        ("kafka-python/2.0.2", "", "3.0"),
        ("kgo/v1.16.1", "", "1.17"),
        ("sarama/1.43.0", "", ""),
        ("", "", ""),
    ],
)
def test_who_gains_hints_by_an_upgrade(software: str, uses: str, since: str) -> None:
    found = _verdict(software, PRODUCE=9)
    assert (" ".join(found.uses), found.hints_from) == (uses, since)
