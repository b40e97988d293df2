"""What a journal cannot tell, laid over what it tells."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.fleet import RollingRestart
from leader_hints_report.simulation.journal.assumed import Assumptions, read_assumptions
from leader_hints_report.simulation.journal.from_journal import Move, Recovery, Taken, fleet_from

_WRITER = "apache-kafka-java 3.6.2 Produce orders"
_READER = "apache-kafka-java 3.6.2 Fetch orders"
_ROLL = {"kind": "rolling_restart", "pause_s": 300}


def _taken(given: object = None, lost_ms: float = 150) -> Taken:
    """Return the fleet of a small journal: topics orders and other, both with a producer."""
    moves = [
        Move(topic, number, 2 + turn % 2, 3 - turn % 2, 1000.0 + 60 * turn + number / 100)
        for topic in ("orders", "other")
        for turn in range(4)
        for number in range(5)
    ]
    recoveries = [
        Recovery("a", "apache-kafka-java", "3.6.2", api, topic, number % 5, lost_ms, False)
        for api, topic in (("Produce", "orders"), ("Produce", "other"), ("Fetch", "orders"))
        for number in range(20)
    ]
    return fleet_from(moves, recoveries, Assumptions(given))


def test_nothing_given_is_assumed_and_said() -> None:
    taken = _taken()
    assert taken.fleet.cluster.mode == "zookeeper"
    assert taken.notes[1] == (
        "Assumed, since no journal tells it and it was not given: cluster.mode zookeeper, "
        "cluster.version 3.6, cluster.racks 3, topics.replication 2, clients.acks all, "
        "clients.linger_ms 0, clients.idempotent as the client's software has it, "
        "clients.retry_backoff_ms the client's own, "
        "clients.records_per_second by the share of moves that had errors."
    )


def test_what_is_given_is_in_the_fleet_and_not_among_what_is_assumed() -> None:
    given = {
        "cluster": {"mode": "kraft", "version": "3.4", "controllers": "brokers", "racks": 1},
        "topics": [{"replication": 2}],
        "clients": [
            {
                "acks": 1,
                "idempotent": False,
                "linger_ms": 5,
                "retry_backoff_ms": 50,
                "records_per_second": 100,
            }
        ],
        "duration_s": 7200,
    }
    taken = _taken(given)
    fleet = taken.fleet
    assert (fleet.cluster.mode, fleet.cluster.version) == ("kraft", "3.4")
    assert fleet.cluster.brokers == 2
    assert fleet.duration_s == 7200
    assert [(one.role, one.acks, one.records_per_second) for one in fleet.clients] == [
        ("consumer", "all", 0),
        ("producer", "1", 100),
        ("producer", "1", 100),
    ]
    assert [one.retry_backoff_ms for one in fleet.clients] == [50, 50, 50]
    assert len(taken.notes) == 1


def test_what_is_named_goes_before_what_is_for_all() -> None:
    clients = [{"name": _WRITER, "acks": "0"}, {"acks": "1"}]
    fleet = _taken({"clients": clients}).fleet
    assert {one.name: one.acks for one in fleet.clients if one.role == "producer"} == {
        _WRITER: "0",
        "apache-kafka-java 3.6.2 Produce other": "1",
    }


def test_metadata_is_fitted_to_the_mode_that_is_given() -> None:
    late = [
        _taken({"cluster": {"mode": mode}}, lost_ms=400).fleet.parameters.late_metadata_ms
        for mode in ("zookeeper", "kraft")
    ]
    assert late[0] != late[1]


def test_the_event_is_any_and_the_fit_is_of_the_journals_moves() -> None:
    plain, rolled = _taken(lost_ms=400), _taken({"event": _ROLL}, lost_ms=400)
    assert isinstance(rolled.fleet.event, RollingRestart)
    assert rolled.fleet.event.pause_s == 300
    assert rolled.fleet.parameters == plain.fleet.parameters
    assert "the event is the one given" in rolled.notes[0]
    # 40 moves, ten together, of ten partitions: a reassignment moves each once.
    assert "the event moves 10 partitions drawn at random, 10 at once" in plain.notes[0]


_BAD: list[tuple[object, str]] = [
    ([], "it has none of cluster, topics, clients, event, parameters, duration_s"),
    ({"claster": {}}, "claster: there is no such setting"),
    ({"cluster": {"brokers": 3}}, "cluster.brokers: the journal tells it; leave it out"),
    ({"cluster": {"mood": 3}}, "cluster.mood: there is no such setting"),
    ({"cluster": 3}, "cluster: it is to be settings"),
    ({"cluster": {"mode": "raft"}}, "cluster.mode: input should be 'zookeeper' or 'kraft'"),
    ({"topics": [{"partitions": 3}]}, "topics.partitions: the journal tells it"),
    ({"topics": {"replication": 3}}, "topics: it is to be a list"),
    ({"topics": ["orders"]}, "topics: 'orders' is no setting"),
    ({"topics": [{"name": 3}]}, "topics.name: it is to be a text"),
    ({"topics": [{"replication": 1}]}, "replication 1 has no other leader"),
    ({"topics": [{"name": "x", "replication": 2}]}, "there is no 'x'; the journal has orders, oth"),
    ({"topics": [{"replication": 3}]}, "replication 3 is more than the 2 brokers"),
    ({"clients": [{"software": "sarama"}]}, "clients.software: the journal tells it"),
    ({"clients": [{"acks": 2}]}, "clients.0.acks: input should be '0', '1' or 'all'"),
    (
        {"clients": [{"name": _READER, "records_per_second": 9}]},
        "a consumer has no records_per_second",
    ),
    ({"parameters": {"late_metadata_ms": 9}}, "parameters.late_metadata_ms: the journal tells it"),
    ({"parameters": {"rtt": 9}}, "parameters: rtt: there is no such setting"),
    ({"event": {"kind": "flood"}}, "event"),
    ({"duration_s": "long"}, "duration_s: "),
]


@pytest.mark.parametrize(("given", "words"), _BAD, ids=[words for _, words in _BAD])
def test_a_mistake_is_refused_in_a_line(given: object, words: str) -> None:
    with pytest.raises(PipelineError) as refused:
        _taken(given)
    assert str(refused.value).startswith("--assume: ")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_example_of_the_page_is_laid_over_a_journal(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "simulation.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(# What a journal.*?)```", page, re.DOTALL)
    file = tmp_path / "known.yaml"
    file.write_text(text)
    given: dict[str, Any] = yaml.safe_load(text)
    read_assumptions(file)
    fleet = _taken(given).fleet
    assert (fleet.cluster.mode, fleet.event.kind) == ("kraft", "rolling_restart")
    assert {one.name: one.acks for one in fleet.clients if one.role == "producer"}[_WRITER] == "1"


def test_a_file_that_is_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="No such file"):
        read_assumptions(tmp_path / "none.yaml")
    file = tmp_path / "known.yaml"
    file.write_text("cluster: {brokers: 3}")
    with pytest.raises(PipelineError, match=r"known\.yaml: cluster\.brokers"):
        read_assumptions(file)
    file.write_text("")
    assert read_assumptions(file).left(3) == Assumptions().left(3)
