"""`leader-hints local --cluster mock:3`: a Kafka with hints, of nothing but this package."""

import os
import signal
from pathlib import Path

from confluent_kafka import Consumer, Producer

from tests.harness.ports import free_range
from tests.harness.proxyproc import LocalProcess
from tests.harness.waiting import until

_BROKERS, _RECORDS = 3, 12


def _local(folder: Path, *arguments: str) -> LocalProcess:
    base = free_range(2 + _BROKERS + 1)
    arguments = ("--cluster", f"mock:{_BROKERS}", *arguments)
    return LocalProcess("", base, folder / "local.log", brokers=_BROKERS, arguments=arguments)


def _produce(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "topic.metadata.refresh.interval.ms": 500})
    for number in range(_RECORDS):
        producer.produce(topic, f"{number}".encode())
    assert producer.flush(60) == 0


def _consume(bootstrap: str, topic: str) -> set[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    read: set[bytes] = set()

    def all_read() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            read.add(message.value() or b"")
        return len(read) == _RECORDS

    try:
        until(all_read, "all records are read")
    finally:
        consumer.close()
    return read


def test_it_takes_records_and_gives_them_back(tmp_path: Path) -> None:
    with _local(tmp_path) as local:
        _produce(local.bootstrap, "t")
        assert _consume(local.bootstrap, "t") == {f"{n}".encode() for n in range(_RECORDS)}
        raised = [line["raised"] for line in local.events("route_plan")]
        assert {"Produce": [9, 10], "Fetch": [15, 16]} in raised


def test_it_is_started_again_when_it_crashes(tmp_path: Path) -> None:
    with _local(tmp_path) as local:
        _produce(local.bootstrap, "before")
        os.kill(_child_of(local.pid), signal.SIGSEGV)
        until(lambda: local.events("cluster_restarted"), "the mock cluster was started again")
        _produce(local.bootstrap, "after")
        assert _consume(local.bootstrap, "after")


def _child_of(parent: int) -> int:
    (child,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(child)


def test_a_sighup_takes_hints_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("hints: observe")
    with _local(tmp_path, "--config", str(file)) as local:

        def hints() -> set[str]:
            return {route["hints"] for route in local.status()["routes"]}

        assert hints() == {"observe"}
        file.write_text("hints: on")
        local.signal(signal.SIGHUP)
        until(lambda: hints() == {"on"}, "all routes give hints")
        (line,) = local.events("settings_reloaded")
        assert line["keys"] == ["hints"]
