"""`leader-hints move` and `broker` on the mock cluster of a running `leader-hints local`."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from leader_hints.mock.cluster import MockCluster
from tests.cli.commands import leader_hints
from tests.harness.ports import free_range
from tests.harness.proxyproc import LocalProcess
from tests.harness.waiting import until

_TOPIC = "made-by-a-client"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalProcess]:
    """A cluster of three brokers, with a topic that a client has created."""
    log = tmp_path_factory.mktemp("mock") / "log"
    arguments = ("--cluster", "mock:3")
    with LocalProcess("", free_range(5), log, brokers=3, arguments=arguments) as process:
        producer = Producer({"bootstrap.servers": process.bootstrap})
        producer.produce(_TOPIC, b"x")
        assert producer.flush(30) == 0
        until(lambda: process.status()["clusters"][0]["partitions"] == 4, "the topic is known")
        yield process


def _admin(local: LocalProcess) -> tuple[str, str]:
    return "--admin", local.admin.partition("//")[2]


def _route(local: LocalProcess, node: int) -> str:
    (found,) = (r for r in local.status()["routes"] if r["name"] == f"broker-{node}")
    return str(found["upstream"]["address"])


def _connects(address: str) -> bool:
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    try:
        producer.list_topics(timeout=2)
    except Exception:
        return False
    return True


def test_leaders_move_of_one_partition_and_of_all(local: LocalProcess) -> None:
    done = leader_hints("move", f"{_TOPIC}:1", "--to", "3", *_admin(local))
    assert (done.returncode, done.stdout) == (0, f"{_TOPIC}:1 is led by node 3\n")
    done = leader_hints("move", _TOPIC, "--to", "2", *_admin(local))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"{_TOPIC}:{partition} is led by node 2" for partition in range(4)
    ]
    found = Producer({"bootstrap.servers": local.bootstrap}).list_topics(_TOPIC, timeout=30)
    assert {p.leader for p in found.topics[_TOPIC].partitions.values()} == {2}


def test_a_broker_stops_and_starts(local: LocalProcess) -> None:
    address = _route(local, 1)
    assert leader_hints("broker", "stop", "1", *_admin(local)).returncode == 0
    assert not _connects(address)
    assert leader_hints("broker", "start", "1", *_admin(local)).returncode == 0
    until(lambda: _connects(address), "the broker takes connections")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("move", "none", "--to", "1"), f"no topic none; there are: {_TOPIC}"),
        (("move", f"{_TOPIC}:99", "--to", "1"), f"make node 1 leader of {_TOPIC}-99"),
        # Partition 0, to what takes 32 bits of it.
        (("move", f"{_TOPIC}:{1 << 32}", "--to", "1"), "partition: must be 2147483647 or less"),
        (("move", _TOPIC, "--to", "9"), "no node 9; there are [1, 2, 3]"),
        (("broker", "stop", "9"), "no node 9; there are [1, 2, 3]"),
    ],
)
def test_what_is_not_there_is_refused(
    local: LocalProcess, command: tuple[str, ...], reason: str
) -> None:
    done = leader_hints(*command, *_admin(local))
    assert (done.returncode, done.stdout) == (1, "")
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_partition_that_is_no_number_is_refused(local: LocalProcess) -> None:
    done = leader_hints("move", f"{_TOPIC}:x", "--to", "1", *_admin(local))
    assert (done.returncode, done.stderr) == (
        2,
        "leader-hints: TOPIC[:PARTITION]: the partition must be a number\n",
    )


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/mock/leaders", {"topic": _TOPIC, "to": "1"}, "to: must be a whole number"),
        ("/mock/leaders", {"topic": _TOPIC}, "to: it is missing"),
        (
            "/mock/brokers",
            {"node": 1, "running": True, "colour": 1},
            "colour: there is no such option",
        ),
    ],
)
def test_a_wrong_request_is_refused(
    local: LocalProcess, path: str, body: object, reason: str
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{local.admin}{path}", json.dumps(body).encode(), timeout=10)
    with refused.value as answer:
        assert answer.code == 400
        assert json.loads(answer.read()) == {"error": reason}


def test_a_real_cluster_is_not_changed(tmp_path: Path) -> None:
    with (
        MockCluster(1) as cluster,
        LocalProcess(cluster.bootstrap, free_range(3), tmp_path / "log", brokers=1) as local,
    ):
        done = leader_hints("broker", "stop", "1", *_admin(local))
    assert done.returncode == 1
    assert "it has no mock cluster; start `leader-hints local` with --cluster mock:N" in done.stderr
