"""The journal's Kafka sink on the mock cluster: all lines arrive, and as a rule once."""

import contextlib
import subprocess
import sys
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


#: Has a sink write to a broker that has librdkafka call an error fatal once.
_FATAL = """
import ctypes
import sys
import trio
from leader_hints.mock.embedded import EmbeddedCluster
from leader_hints.net.journal.journal_topic import KafkaSink

cluster = EmbeddedCluster(1)
cluster.create_topic("journal", 1)
host, port = cluster.addresses()[1]
sink = KafkaSink(f"{host}:{port}", "journal", "c", "car", {})
sink.write([b"0"])
errors = (ctypes.c_int * 1)(int(sys.argv[2]))
cluster._lib.rd_kafka_mock_push_request_errors_array(
    ctypes.c_void_p(cluster._cluster), ctypes.c_int16(int(sys.argv[1])), ctypes.c_size_t(1), errors
)
if sys.argv[1] == "22":
    sink = KafkaSink(f"{host}:{port}", "journal", "c", "car", {})

async def write():
    failed = 0
    while True:
        try:
            # As the journal does it: a thread that ends without a word is waited for without end.
            await trio.to_thread.run_sync(sink.write, [b"%d" % number for number in range(1, 6)])
            break
        except Exception as error:
            failed += 1
            print(type(error).__name__, flush=True)
            assert failed < 5
            await trio.sleep(0.2)

trio.run(write)
sink.close()
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": f"{host}:{port}", "group.id": "g"})
consumer.assign([TopicPartition("journal", 0, 0)])
read = set()
while len(read) < 6:
    read |= {message.value() for message in consumer.consume(100, timeout=1) if not message.error()}
print("all", flush=True)
consumer.close()
cluster.close()
"""


@pytest.mark.parametrize(
    ("api", "error"),
    [
        pytest.param(0, 45, id="a broker that has lost records"),
        pytest.param(22, 31, id="a right that is granted later"),
    ],
)
def test_what_librdkafka_calls_fatal_ends_no_journal(api: int, error: int) -> None:
    """confluent-kafka raised it as what is no exception: nothing was written again, for good, or
    the thread ended without a word; and a line was lost that was taken for written.
    """
    command = [sys.executable, "-c", _FATAL, str(api), str(error)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    *failed, last = done.stdout.split()
    assert last == "all"
    assert {*failed} == {"BrokerError"}


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
