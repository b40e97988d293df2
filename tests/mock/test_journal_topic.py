"""The journal's Kafka sink on the mock cluster: all lines arrive, and as a rule once."""

import contextlib
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from leader_hints.errors import BrokerError
from leader_hints.mock.cluster import MockCluster
from leader_hints.net.journal.journal_topic import KafkaSink
from tests.harness.connection import Address
from tests.harness.ports import free_ports
from tests.harness.relay import Gate, Relay
from tests.harness.waiting import until

_PRODUCE = 0
_SECONDS = 60.0
_LINES = [b"%d" % number for number in range(1000)]


@contextlib.contextmanager
def _cluster() -> Iterator[tuple[MockCluster, Address, Gate]]:
    """One broker, the address of a relay before it, and the gate in that for Produce responses."""
    listen = ("127.0.0.1", free_ports(1)[0])
    gate = Gate(lambda request: request.api_key == _PRODUCE)
    with (
        MockCluster(1, {"journal": 1}, advertise={1: listen}) as cluster,
        Relay(listen, cluster.brokers[1], gate),
    ):
        yield cluster, listen, gate


def _sink(address: Address) -> KafkaSink:
    return KafkaSink(f"{address[0]}:{address[1]}", "journal", "c", "car", {})


def _read(address: Address, last: bytes) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values of all records up to the last, and what follows within a moment."""
    consumer = Consumer({"bootstrap.servers": f"{address[0]}:{address[1]}", "group.id": "g"})
    consumer.assign([TopicPartition("journal", 0, 0)])
    read: list[tuple[bytes | None, bytes | None]] = []

    def arrived() -> bool:
        messages = consumer.consume(2000, timeout=0.5)
        records = [message for message in messages if message.error() is None]
        read.extend((message.key(), message.value()) for message in records)
        return (b"car", last) in read and not messages

    until(arrived, "all lines arrive", _SECONDS)
    consumer.close()
    return read


def test_a_write_returns_when_all_is_acknowledged_in_order() -> None:
    with _cluster() as (_, address, _):
        sink = _sink(address)
        sink.write(_LINES)
        sink.write([])
        sink.write([b"last"])

        assert _read(address, b"last") == [(b"car", line) for line in [*_LINES, b"last"]]
        sink.close()


def test_what_is_not_acknowledged_yet_is_awaited_and_not_sent_again() -> None:
    with _cluster() as (_, address, gate):
        sink = _sink(address)
        sink.write([b"first"])
        gate.shut()
        with pytest.raises(BrokerError):
            sink.write(_LINES)
        gate.open()
        sink.write(_LINES)

        read = _read(address, _LINES[-1])
        assert read == [(b"car", line) for line in [b"first", *_LINES]]
        sink.close()


def test_absent_brokers_are_known_from_the_errors_of_librdkafka() -> None:
    sink = _sink(("127.0.0.1", free_ports(1)[0]))

    with pytest.raises(
        BrokerError, match=r"Connect to ipv4#127\.0\.0\.1:\d+ failed|brokers are down"
    ):
        sink.write([b"one"])


def test_after_a_fatal_error_all_goes_again() -> None:
    """Lines may be doubled then: their numbers tell it."""
    with _cluster() as (_, address, gate):
        sink = _sink(address)
        gate.shut()
        with pytest.raises(BrokerError):
            sink.write(_LINES)
        # What librdkafka's idempotent producer says when it has lost track of its sequence.
        sink.erred(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "lost", fatal=True))
        gate.open()
        sink.write(_LINES)

        assert set(_read(address, _LINES[-1])) == {(b"car", line) for line in _LINES}
        sink.close()
