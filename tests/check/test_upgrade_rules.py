"""What becomes of clients when their brokers are upgraded to 4.0."""

import pytest

from leader_hints.apis.keys import ApiKey
from leader_hints.check.upgrade_rules import ClientVerdict, Refused, Verdict, verdicts
from leader_hints.core.versions.asked_versions import ClientName

_OFFSET_COMMIT = 8


def _verdict(software: str, **oldest: int) -> ClientVerdict:
    name = ClientName(software, "c")
    keys = {key.name: key for key in ApiKey}
    (found,) = verdicts((name, keys[api], version) for api, version in oldest.items())
    return found


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
    ],
)
def test_what_becomes_of_a_client(asked: dict[str, int], verdict: Verdict) -> None:
    assert _verdict("a/1", **asked).verdict is verdict


def test_what_is_refused_is_named_with_what_to_do() -> None:
    old = _verdict("sarama/1.19.0", PRODUCE=2, METADATA=1)
    assert old.refused == (Refused("Produce", 2, 3),)
    assert old.seen == ("Produce", "Metadata")
    assert old.remedy.startswith("upgrade sarama to 1.30.1 or newer, and set its Config.Version")
    assert _verdict("kafkajs/1.0", PRODUCE=2).remedy == "upgrade kafkajs to 1.15.0 or newer"
    assert "Kafka 2.1" in _verdict("", FETCH=2).remedy
    assert not _verdict("sarama/1.43.0", PRODUCE=7).remedy


def test_a_client_of_several_routes_is_one_and_those_that_are_refused_come_first() -> None:
    one, other = ClientName("b/1", "writes"), ClientName("a/1", "waits")
    found = [
        *verdicts(
            [
                (other, ApiKey.METADATA, 5),
                (one, ApiKey.PRODUCE, 7),
                (one, _OFFSET_COMMIT, 6),
                (one, _OFFSET_COMMIT, 1),
            ]
        )
    ]
    assert [(client.client_id, client.verdict) for client in found] == [
        ("writes", Verdict.REFUSED),
        ("waits", Verdict.IN_PART),
    ]
    assert found[0].refused == (Refused("OffsetCommit", 1, 2),)
