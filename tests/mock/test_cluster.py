"""The mock cluster itself, without a proxy."""

import contextlib
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from demo.offered import offered_versions
from leader_hints.mock.cluster import MockCluster, MockClusterDiedError, MockClusterError
from tests.harness.waiting import until

_SECONDS = 10.0


def admin_of(cluster: MockCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})


def leader_by_metadata(admin: AdminClient, topic: str, partition: int) -> int:
    leader: int = admin.list_topics(topic, _SECONDS).topics[topic].partitions[partition].leader
    return leader


def listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _SECONDS).close()
    except ConnectionRefusedError:
        return False
    return True


def crash(cluster: MockCluster, how: signal.Signals) -> None:
    os.kill(cluster.pid, how)
    until(lambda: not cluster.alive, "the crash shows", _SECONDS)


def test_each_broker_offers_no_more_than_the_cap() -> None:
    with MockCluster(brokers=2, apiversions={"Produce": 9, "Fetch": 15}) as cluster:
        offered = [offered_versions(address) for address in cluster.brokers.values()]
    assert offered == [{"Produce": 9, "Fetch": 15}] * 2


def test_without_a_cap_the_mock_would_give_hints_itself() -> None:
    # The caps are what makes sure that a hint is the proxy's: this shows that they are needed.
    with MockCluster(brokers=1) as cluster:
        offered = offered_versions(cluster.brokers[1])
    assert offered["Produce"] >= 10
    assert offered["Fetch"] >= 16


def test_leaders_go_round_the_brokers_at_first() -> None:
    with MockCluster(brokers=2, topics={"t": 3}) as cluster:
        assert cluster.leaders == {("t", 0): (1, 1), ("t", 1): (2, 1), ("t", 2): (1, 1)}
        admin = admin_of(cluster)
        assert [leader_by_metadata(admin, "t", partition) for partition in range(3)] == [1, 2, 1]


def test_each_move_raises_the_epoch_by_one() -> None:
    with MockCluster(topics={"t": 1}) as cluster:
        assert cluster.set_leader("t", 0, 3) == (3, 2)
        assert cluster.set_leader("t", 0, 3) == (3, 3)
        assert cluster.leaders["t", 0] == (3, 3)
        assert leader_by_metadata(admin_of(cluster), "t", 0) == 3


def test_metadata_lags_a_move_when_asked_to() -> None:
    with MockCluster(topics={"t": 2}) as cluster:
        admin = admin_of(cluster)
        assert leader_by_metadata(admin, "t", 0) == 1
        cluster.set_leader("t", 0, 2, metadata_lag=2.0)
        assert leader_by_metadata(admin, "t", 0) == 1
        assert leader_by_metadata(admin, "t", 1) == 2
        cluster.set_leader("t", 1, 3)  # It waits for the end of the lag.
        assert leader_by_metadata(admin, "t", 0) == 2


def test_metadata_gives_the_advertised_addresses() -> None:
    with MockCluster(brokers=2, advertise={1: ("127.0.0.1", 7)}) as cluster:
        cluster.set_advertised(2, "localhost", 8)
        nodes = admin_of(cluster).list_topics(timeout=_SECONDS).brokers
    assert {node: (str(broker.host), broker.port) for node, broker in nodes.items()} == {
        1: ("127.0.0.1", 7),
        2: ("localhost", 8),
    }


def test_requests_are_counted() -> None:
    with MockCluster(topics={"t": 1}) as cluster:
        assert "Produce" not in cluster.request_counts()
        with Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0}) as producer:
            producer.produce("t", b"record")
            assert producer.flush(_SECONDS) == 0
        assert cluster.request_counts()["Produce"] == 1


REFUSED: list[tuple[Callable[[MockCluster], object], str]] = [
    (lambda cluster: cluster.set_leader("t", 0, 9), "node 9 leader of t-0"),
    (lambda cluster: cluster.set_leader("t", 1, 1), "no partition t-1"),
    (lambda cluster: cluster.set_leader("u", 0, 1), "no partition u-0"),
    (lambda cluster: cluster.set_advertised(9, "localhost", 1), "no node 9"),
]


@pytest.mark.parametrize(("command", "words"), REFUSED)
def test_what_cannot_be_is_refused(command: Callable[[MockCluster], object], words: str) -> None:
    with MockCluster(topics={"t": 1}) as cluster:
        with pytest.raises(MockClusterError, match=words):
            command(cluster)
        assert cluster.alive
        assert cluster.leaders == {("t", 0): (1, 1)}


def test_an_unknown_api_is_refused() -> None:
    with pytest.raises(MockClusterError, match="unknown API 'Prodcue'; known: Produce"):
        MockCluster(apiversions={"Prodcue": 9})


def test_a_crash_is_noticed_by_the_next_command() -> None:
    cluster = MockCluster(topics={"t": 1})
    assert cluster.alive
    crash(cluster, signal.SIGSEGV)
    with pytest.raises(MockClusterDiedError, match=f"{cluster.pid}.* killed by SIGSEGV"):
        cluster.set_leader("t", 0, 2)
    cluster.close()


def test_a_crash_is_noticed_at_the_end_of_the_block() -> None:
    def crash_in_a_block() -> None:
        with MockCluster() as cluster:
            crash(cluster, signal.SIGABRT)

    with pytest.raises(MockClusterDiedError, match="killed by SIGABRT"):
        crash_in_a_block()


def test_a_crash_does_not_hide_the_error_that_it_led_to() -> None:
    def fail_after_a_crash() -> None:
        with MockCluster() as cluster:
            crash(cluster, signal.SIGKILL)
            raise KeyError

    with pytest.raises(KeyError):
        fail_after_a_crash()


def test_the_last_words_of_the_process_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nonexistent")  # So the interpreter ends with a message.
    with pytest.raises(MockClusterDiedError, match=r"exit code 1; its last words: .+"):
        MockCluster()


def test_the_process_ends_with_its_parent() -> None:
    program = (
        "import sys\n"
        "from leader_hints.mock.cluster import MockCluster\n"
        "with MockCluster(brokers=1) as cluster:\n"
        "    print(cluster.brokers[1][1], flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        broker = ("127.0.0.1", int(parent.stdout.readline()))
        assert listens(broker)
        parent.kill()
    until(lambda: not listens(broker), "the broker is gone", _SECONDS)


def test_one_that_did_not_answer_in_time_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each later command got the answer to the one before it."""
    cluster = MockCluster(1, {"t": 1})
    os.kill(cluster.pid, signal.SIGSTOP)
    # Only now: to start takes longer on a machine that has much else to do.
    monkeypatch.setattr("leader_hints.mock.cluster._ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("leader_hints.mock.cluster._CLOSE_SECONDS", 0.2)
    with pytest.raises(MockClusterError, match="did not answer"):
        cluster.set_leader("t", 0, 1)
    until(lambda: not cluster.alive, "it is ended", _SECONDS)
    cluster.close()


def test_close_ends_the_brokers() -> None:
    cluster = MockCluster(brokers=1)
    assert listens(cluster.brokers[1])
    cluster.close()
    assert not listens(cluster.brokers[1])


def test_it_starts_in_a_process_with_many_descriptors() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, before[1]))
    try:
        with contextlib.ExitStack() as opened:
            while opened.enter_context(Path(os.devnull).open("rb")).fileno() < 1100:
                pass
            with MockCluster(1, {"t": 1}) as cluster:
                assert cluster.set_leader("t", 0, 1) == (1, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_process_that_cannot_be_started_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """`local` tries to start it again; anything else that is raised would end that process."""

    def short(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(subprocess, "Popen", short)
    with pytest.raises(MockClusterError, match="Too many open files"):
        MockCluster(1)
