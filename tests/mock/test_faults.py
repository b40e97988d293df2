"""Faults on demand before real clients, with the mock cluster behind."""

import contextlib
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster
from tests.cli.commands import leader_hints
from tests.harness.ports import free_range
from tests.harness.proxyproc import LocalProcess
from tests.harness.waiting import until

_TOPIC = "t"


class _Lab:
    """A mock cluster and a `local --allow-faults` before it."""

    def __init__(self, cluster: MockCluster, local: LocalProcess, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.local = local

    def produced(self) -> int:
        """How many Produce requests reached the brokers."""
        return self.cluster.request_counts().get("Produce", 0)

    def producer(self, **settings: object) -> Producer:
        """A producer that backs off for long, so that hints show."""
        return Producer(
            {
                "bootstrap.servers": self.local.bootstrap,
                "client.id": "lab",
                "linger.ms": 0,
                **settings,
            }
        )


@pytest.fixture(scope="module")
def _lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Lab]:
    folder = tmp_path_factory.mktemp("faults")
    with MockCluster(3, {_TOPIC: 3}, BEFORE_HINTS) as cluster:
        base, log = free_range(5), folder / "local.log"
        arguments = ["--allow-faults", "--config", str(_journalling(folder))]
        with LocalProcess(cluster.bootstrap, base, log, brokers=3, arguments=arguments) as local:
            local.wait_plans(3)
            yield _Lab(cluster, local, folder)


@pytest.fixture
def lab(_lab: _Lab) -> Iterator[_Lab]:
    """The lab; no fault and no move outlives its test."""
    yield _lab
    _lab.local.end_faults()
    for partition in range(3):
        _lab.cluster.set_leader(_TOPIC, partition, partition + 1)


def _journalling(folder: Path) -> Path:
    (folder / "journal").mkdir()
    file = folder / "settings.yaml"
    journal = f"{{kind: files, path: {folder / 'journal'}, sample_latencies: 1}}"
    file.write_text(f"journal: {journal}\n", encoding="utf-8")
    return file


def _send(producer: Producer, partition: int = 0, value: bytes = b"x") -> list[str | None]:
    """Send one record; its outcome is appended when it is known."""
    outcome: list[str | None] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        outcome.append(None if error is None else error.name())

    producer.produce(_TOPIC, value, partition=partition, on_delivery=delivered)
    return outcome


def _acked(producer: Producer, outcome: list[str | None], seconds: float = 60.0) -> bool:
    producer.flush(seconds)
    return outcome == [None]


@pytest.mark.parametrize("hint", ["none", "right", "equal", "stale"])
def test_a_refused_record_reaches_no_broker_until_the_fault_is_over(lab: _Lab, hint: str) -> None:
    producer = lab.producer(**{"retry.backoff.ms": 50})
    partition = 1
    first, second = f"first-{hint}".encode(), f"second-{hint}".encode()
    assert _acked(producer, _send(producer, partition, first))
    before = lab.produced()
    number = lab.local.begin_fault("error", apis=["Produce"], topics=[_TOPIC], hint=hint, times=3)
    assert _acked(producer, _send(producer, partition, second))
    done = lab.local.faults_done(number)
    assert {(line["topic"], line["partition"], line["hint"]) for line in done} == {
        (_TOPIC, partition, hint)
    }
    assert len(done) == 3
    # A wrong hint may lead to one more request, which a broker refuses; nothing is written twice.
    assert lab.produced() - before <= 2
    assert _read(lab, partition)[-2:] == [first, second]


def _read(lab: _Lab, partition: int) -> list[bytes]:
    """All records of a partition, past the proxy."""
    consumer = Consumer({"bootstrap.servers": lab.cluster.bootstrap, "group.id": "past"})
    _, end = consumer.get_watermark_offsets(TopicPartition(_TOPIC, partition), 10)
    consumer.assign([TopicPartition(_TOPIC, partition, 0)])
    values: list[bytes] = []

    def read() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value() or b"")
        return len(values) == end

    try:
        until(read, "the records are read")
    finally:
        consumer.close()
    return values


def test_a_fetch_is_refused_and_recovers(lab: _Lab) -> None:
    producer = lab.producer()
    assert _acked(producer, _send(producer))
    number = lab.local.begin_fault("error", apis=["Fetch"], error="FENCED_LEADER_EPOCH", times=2)
    consumer = Consumer({"bootstrap.servers": lab.local.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition(_TOPIC, 0, 0)])

    def read() -> bool:
        message = consumer.poll(0.2)
        return message is not None and message.error() is None

    try:
        until(read, "it is read")
    finally:
        consumer.close()
    assert {line["error"] for line in lab.local.faults_done(number)} == {74}


@pytest.mark.parametrize("action", ["drop", "cut"])
def test_a_connection_ends_and_the_record_is_sent_again(lab: _Lab, action: str) -> None:
    producer = lab.producer()
    before = lab.produced()
    number = lab.local.begin_fault(action, apis=["Produce"], times=1)
    assert _acked(producer, _send(producer))
    assert len(lab.local.faults_done(number)) == 1
    assert lab.produced() - before == 2


def _seconds(act: Callable[[], bool]) -> float:
    begun = time.monotonic()
    assert act()
    return time.monotonic() - begun


def test_responses_are_delayed_and_throttled(lab: _Lab) -> None:
    producer = lab.producer()
    assert _acked(producer, _send(producer))
    delay = lab.local.begin_fault("delay", apis=["Produce"], client_ids=["lab"], delay_ms=400)
    other = lab.local.begin_fault("delay", apis=["Produce"], client_ids=["another"], delay_ms=60000)
    assert _seconds(lambda: _acked(producer, _send(producer))) >= 0.4
    lab.local.end_faults()
    throttle = lab.local.begin_fault("throttle", apis=["Produce"], bytes_per_second=100)
    assert _seconds(lambda: _acked(producer, _send(producer))) >= 0.4
    assert lab.local.faults_done(delay)
    assert not lab.local.faults_done(other)
    assert lab.local.faults_done(throttle)


def test_the_command_begins_lists_and_ends_faults(lab: _Lab) -> None:
    def fault(command: str, *arguments: str) -> str:
        admin = lab.local.admin.removeprefix("http://")
        ended = leader_hints("fault", command, "--admin", admin, *arguments)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    producer = lab.producer(**{"message.timeout.ms": 300_000, "reconnect.backoff.max.ms": 200})
    assert _acked(producer, _send(producer))
    number = fault("begin", "refuse", "--route", "broker-1")
    outcome = _send(producer)
    producer.flush(1)
    assert outcome == []
    begun = {"number": int(number), "action": "refuse", "routes": ["broker-1"]}
    assert json.loads(fault("list")) == begun
    fault("end", number)
    assert _acked(producer, outcome)
    assert fault("list") == ""
    assert lab.local.faults_done(int(number))


def test_metadata_stays_as_it_was(lab: _Lab) -> None:
    def leaders(of: Producer) -> list[int]:
        told = of.list_topics(_TOPIC, 10).topics[_TOPIC].partitions
        return [told[partition].leader for partition in sorted(told)]

    # Broker 3 leads two of them: reports must not end at one for each broker.
    client = lab.producer()
    assert _acked(client, _send(client, 1))
    lab.cluster.set_leader(_TOPIC, 1, 3)
    # The error of what is sent now has the proxy ask, a minute before its next poll.
    assert _acked(client, _send(client, 1))
    until(lambda: _known(lab, 1) == 3, "the proxy has learnt of the move")
    assert leaders(lab.producer()) == [1, 3, 3]
    lab.local.begin_fault("stale_metadata", hide_nodes=[2])
    for partition in range(3):
        lab.cluster.set_leader(_TOPIC, partition, 2)
    stale = lab.producer()
    assert leaders(stale) == [1, 3, 3]
    assert 2 not in stale.list_topics(_TOPIC, 10).brokers
    lab.local.end_faults()
    fresh = lab.producer()
    assert leaders(fresh) == [2, 2, 2]
    assert set(fresh.list_topics(_TOPIC, 10).brokers) >= {1, 2, 3}


def _known(lab: _Lab, partition: int) -> int:
    """The leader that the proxy knows of."""
    moves = [m for m in lab.local.events("leader_moved") if m["partition"] == partition]
    return int(moves[-1]["leader"]) if moves else 0


def _journalled(lab: _Lab, event: str) -> list[dict[str, Any]]:
    """The journal's lines of an event, of the client of that id."""
    texts = []
    for file in (lab.folder / "journal").iterdir():
        with contextlib.suppress(FileNotFoundError):  # It was finished, and so renamed, since.
            texts.append(file.read_text(encoding="utf-8"))
    lines = [json.loads(line) for text in texts for line in text.splitlines() if line.endswith("}")]
    wanted = {"client_id": "journalled", "event": event}
    return [line for line in lines if wanted.items() <= line.items()]


def test_latencies_are_sampled(lab: _Lab) -> None:
    producer = lab.producer(**{"client.id": "journalled"})
    assert _acked(producer, _send(producer))
    sampled = until(lambda: _journalled(lab, "latency"), "it is written")
    assert {line["api"] for line in sampled} == {"Produce"}


def test_each_fault_is_in_the_journal(lab: _Lab) -> None:
    producer = lab.producer(**{"client.id": "journalled"})
    lab.local.begin_fault("error", apis=["Produce"], hint="right", times=1)
    assert _acked(producer, _send(producer))

    faults = until(lambda: _journalled(lab, "fault"), "it is written")
    wanted = {
        "action": "error",
        "hint": "right",
        "error": 6,
        "topic": _TOPIC,
        "partition": 0,
        "route": "broker-1",
        "api": "Produce",
    }
    assert [wanted.items() <= line.items() for line in faults] == [True]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"action": "explode"}', "action: must be 'error', 'delay'"),
        (b'{"action": "drop", "apis": ["Poduce"]}', "no such API: Poduce"),
        (b'{"action": "drop", "colour": 1}', "colour: there is no such option"),
        (b'{"action": "throttle", "bytes_per_second": 1%s}' % (b"0" * 400), "bytes_per_second"),
        (b'{"action": "error", "apis": ["Metadata"]}', "error is only done to Fetch and Produce"),
        (b"no json", "fault: no JSON"),
    ],
)
def test_a_wrong_fault_is_reported(lab: _Lab, body: bytes, told: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{lab.local.admin}/faults", body, timeout=10)
    assert refused.value.code == 400
    assert told in json.loads(refused.value.read())["error"]


@contextlib.contextmanager
def _answering(data: bytes) -> Iterator[str]:
    """A server that answers one connection with these bytes, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(data)

        thread = threading.Thread(target=answer)
        thread.start()
        host, port = listener.getsockname()
        yield f"{host}:{port}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]",
    ],
)
def test_what_is_no_admin_server_is_reported_in_one_line(answer: bytes) -> None:
    with _answering(answer) as address:
        ended = leader_hints("fault", "list", "--admin", address)
    assert ended.returncode == 1
    reason = "it answers as no admin server does"
    assert ended.stderr == f"leader-hints: no proxy at {address}: {reason}\n"


def test_the_admin_server_is_not_asked_by_a_proxy_of_the_environment() -> None:
    """It cannot reach a loopback address here, or it answers in place of the admin server."""
    answers = [
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        for body in (b'["ours"]', b'["theirs"]')
    ]
    with _answering(answers[0]) as ours, _answering(answers[1]) as theirs:
        variables = {"http_proxy": f"http://{theirs}", "no_proxy": ""}
        ended = leader_hints("fault", "list", "--admin", ours, variables=variables)
    assert ended.stdout == '"ours"\n'
