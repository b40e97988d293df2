"""The fleet's file: what is in it, and how mistakes are refused."""

import re
from pathlib import Path
from typing import Any

import pytest

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.fleet import RollingRestart, make_fleet, read_fleet
from tests.pipeline.simulation.fleets import SMALL


def test_a_file_is_read_with_defaults(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(
        "cluster: {brokers: 3}\n"
        "topics: [{name: t, partitions: 3}]\n"
        "clients: [{name: p, role: producer, records_per_second: 1}]\n"
    )
    fleet = read_fleet(file)
    assert isinstance(fleet.event, RollingRestart)
    assert fleet.cluster.mode == "zookeeper"
    assert fleet.clients[0].acks == "all"


_BAD: list[tuple[dict[str, Any], str]] = [
    ({"cluster": {"brokers": 1}}, "cluster.brokers: input should be greater than or equal to 2"),
    ({"bookers": 1}, "bookers: there is no such setting"),
    ({"parameters": {"rtt": 1}}, "parameters: rtt: there is no such setting"),
    ({"topics": [{"name": "t", "partitions": 3, "replication": 4}]}, "replication 4 is more than"),
    ({"topics": [{"name": "t", "partitions": 3, "replication": 1}]}, "has no other leader"),
    ({"topics": [{"name": "t", "partitions": 10**6, "count": 2}]}, "are more than"),
    (
        {"clients": [{"name": "p", "role": "producer"}]},
        "p: a producer needs records_per_second",
    ),
    (
        {"clients": [{"name": "c", "role": "consumer", "records_per_second": 1}]},
        "c: a consumer has no records_per_second",
    ),
    (
        {"clients": [{"name": "c", "role": "consumer", "software": "telnet"}]},
        "c: software 'telnet' is not known",
    ),
    (
        {"clients": [{"name": "c", "role": "consumer", "topics": ["x"]}]},
        "clients c: there is no topic 'x'",
    ),
    (
        {
            "clients": [
                {"name": "p", "role": "producer", "count": 1_000_000, "records_per_second": 1}
            ]
        },
        "pairs of client and partition are more than",
    ),
    ({"event": {"kind": "flood"}}, "event"),
    ({"cluster": {"brokers": 3, "version": "new"}}, "cluster.version: version 'new' is not one"),
    ({"topics": [{"name": "t", "partitions": 3}] * 2}, "topic t: it stands twice"),
    (
        {"clients": [{"name": "c", "role": "consumer", "acks": 1}]},
        "c: a consumer has no acks",
    ),
    (
        {"clients": [{"name": "c", "role": "consumer", "linger_ms": 5}]},
        "c: a consumer has no linger_ms",
    ),
    (
        {"clients": [{"name": "c", "role": "consumer", "idempotent": False}]},
        "c: a consumer has no idempotent",
    ),
    (
        {
            "clients": [
                {
                    "name": "p",
                    "role": "producer",
                    "records_per_second": 1,
                    "acks": 1,
                    "idempotent": True,
                }
            ]
        },
        "p: idempotent producers need acks all",
    ),
    (
        {"cluster": {"brokers": 3, "mode": "kraft", "version": "2.7"}},
        "cluster: brokers of 2.7 have no KRaft",
    ),
    (
        {"cluster": {"brokers": 3, "version": "4.0"}},
        "cluster: brokers of 4.0 have no ZooKeeper",
    ),
    (
        {"cluster": {"brokers": 3, "controllers": "brokers"}},
        "cluster: controllers are those of KRaft",
    ),
    ({"cluster": {"brokers": 3, "version": "3.²"}}, "cluster.version: version '3.²' is not one"),
    ({"cluster": {"brokers": 3, "version": "9" * 5000}}, "cluster.version: version '999"),
    ({"cluster": {"brokers": 3, "version": 3.6}}, "version: 3.6 is a number in YAML; put it in"),
    (
        {"event": {"kind": "rolling_restart", "pause_s": 5}},
        "fleet.yaml: event.rolling_restart: pause_s 5 is less",
    ),
    (
        {"event": {"kind": "rolling_restart", "pause_s": 10, "down_s": 30}},
        "the next broker would stop before the leaders are back",
    ),
]


@pytest.mark.parametrize(("changed", "words"), _BAD, ids=[words for _, words in _BAD])
def test_a_mistake_is_refused_with_its_place(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineError) as refused:
        make_fleet({**SMALL, **changed}, "fleet.yaml")
    assert str(refused.value).startswith("fleet.yaml: ")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_examples_of_the_page_are_fleets(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "simulation.md"
    examples = re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    fleets = []
    for text in examples:
        if text.startswith("# What a journal"):
            continue
        file = tmp_path / "fleet.yaml"
        file.write_text(text)
        fleets.append(read_fleet(file))
    assert [fleet.cluster.brokers for fleet in fleets] == [6, 6, 60, 1000]


@pytest.mark.parametrize(("given", "taken"), [(0, "0"), (1, "1"), ("1", "1"), ("all", "all")])
def test_acks_need_no_quotes(given: object, taken: str) -> None:
    clients = [{"name": "p", "role": "producer", "records_per_second": 1, "acks": given}]
    assert make_fleet({**SMALL, "clients": clients}, "f").clients[0].acks == taken


def test_a_partition_has_one_consumer_of_a_large_group() -> None:
    clients = [{"name": "c", "role": "consumer", "count": 3000}]
    topics = [{"name": "t", "partitions": 9000}]
    assert make_fleet({**SMALL, "topics": topics, "clients": clients}, "f").clients[0].count == 3000


def test_what_is_no_fleet_is_refused(tmp_path: Path) -> None:
    for text, words in (
        ("- 1", "a fleet has cluster"),
        ("{", "is not YAML"),
        ("\xff", "codec"),
        ("duration_s: 2024-13-45", "is not YAML: month must be in"),
        ("duration_s: " + "9" * 5000, "is not YAML: .* 5000 digits"),
        ("[" * 5000, "is not YAML: it is nested too deeply"),
        ("cluster: {brokers: 3}\ncluster: {brokers: 6}", "'cluster' stands twice"),
        ("cluster: {brokers: 3, brokers: 6}", "'brokers' stands twice"),
    ):
        file = tmp_path / "fleet.yaml"
        file.write_bytes(text.encode("latin-1"))
        with pytest.raises(PipelineError, match=words):
            read_fleet(file)
    with pytest.raises(PipelineError, match="No such file"):
        read_fleet(tmp_path / "none.yaml")
