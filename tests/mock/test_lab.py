"""The lab of those who test clients: from where it may be used, and where it listens."""

import random
import socket
from collections.abc import Iterator

import pytest
import trio
from confluent_kafka import Producer

from leader_hints.conformance import lab as module
from leader_hints.conformance.lab import Lab, LabError
from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    """A mock cluster with a topic."""
    with MockCluster(2, {"t": 1}, BEFORE_HINTS) as running:
        yield running


def _produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("t", b"x", partition=0)
    assert producer.flush(60) == 0


def test_it_is_used_from_trio(cluster: MockCluster) -> None:
    """As in a test under pytest-trio: the caller's own loop is another than the lab's."""

    async def use() -> None:
        with Lab(cluster) as lab:
            number = lab.inject("drop", apis=["Produce"], times=1)
            await trio.to_thread.run_sync(_produce, lab.bootstrap)
            dropped = [seen for seen in lab.seen("Produce") if seen.response is None]
            assert len(dropped) == 2
            lab.end(number)
            lab.clear()

    trio.run(use)


def test_what_goes_wrong_in_it_is_raised_at_its_caller(cluster: MockCluster) -> None:
    with Lab(cluster) as lab, pytest.raises(ValueError, match="action"):
        lab.inject("explode")
    with pytest.raises(LabError, match="has ended"):
        lab.clear()


def test_it_neither_follows_nor_disturbs_what_a_test_seeds(cluster: MockCluster) -> None:
    random.seed(1)
    before = random.getstate()
    with Lab(cluster):
        assert random.getstate() == before


def test_ports_that_another_process_takes_meanwhile_are_given_up(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = module._free_base(3)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bases = [free, taken.getsockname()[1] - 1]
        monkeypatch.setattr(module, "_free_base", lambda span: bases.pop())
        with Lab(cluster) as lab:
            assert lab.bootstrap == f"127.0.0.1:{free}"
            _produce(lab.bootstrap)
