"""Errors wait until all brokers name the leader: clients that use no hint go there at once.

The back-off of the clients here is seconds long, so one that had to wait for a second Metadata
response, or for its own retry, would show it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.clients import (
    ClientProcess,
    Consumed,
    ConsumerRun,
    ConsumerSpec,
    Outcome,
    ProducerRun,
    ProducerSpec,
)
from tests.harness.cluster import RealCluster
from tests.harness.franz_go import go_clients
from tests.harness.proxyproc import LogLine
from tests.harness.waiting import until
from tests.real.names import CONFLUENT, JAVA_36, ZK_24, ZK_36
from tests.real.sandwich import API_VERSIONS, Sandwich, of_client
from tests.real.test_client_families import need_go

_RATE = 50
_BACK_OFF_S = 3
_SETTINGS = {"retry.backoff.ms": f"{_BACK_OFF_S}000"}
#: More is a back-off, on a busy machine too.
_AT_ONCE_MS = 2400
#: How fast the cluster elects is not what is tested.
_HOLD = "hold: {settle: true, deadline_ms: 10000, link_ms_per_second: 1000}\n"


def _flow(records: Sequence[Outcome | Consumed], more: int) -> None:
    count = len(records) + more
    until(lambda: len(records) >= count, f"{more} more records")


def _errors(sandwich: Sandwich, client: str) -> list[LogLine]:
    missed = sandwich.fleet.events("hint_missed")
    return [line for line in missed if line["client_id"] == client]


@pytest.mark.parametrize("side", ["produce", "fetch"])
@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
def test_an_old_client_goes_to_the_new_leader_without_its_back_off(
    cluster: RealCluster,
    side: str,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic, java = new_topic(f"settled-{side}"), clients(JAVA_36)
    (tmp_path / "settled.yaml").write_text(_HOLD)
    arguments = ["--config", str(tmp_path / "settled.yaml")]
    with Sandwich(cluster, tmp_path, arguments=arguments) as sandwich:
        watched: ProducerRun | ConsumerRun
        records: Sequence[Outcome | Consumed]
        runs: list[ProducerRun | ConsumerRun] = []
        if side == "produce":
            # The errors of others do not wait.
            spec = ProducerSpec(
                cluster.bootstrap, topic, rate=_RATE, idempotent=True, settings=_SETTINGS
            )
            watched = producer = java.produce(spec)
            records = producer.acked
        else:
            # The records to read come past the proxies.
            feed = ProducerSpec(cluster.direct_bootstrap, topic, acks="1", rate=_RATE)
            runs.append(clients(CONFLUENT).produce(feed))
            reader = ConsumerSpec(cluster.bootstrap, topic, settings=_SETTINGS)
            watched = consumer = java.consume(reader)
            records = consumer.consumed
        _flow(records, 5)
        # The epoch goes up beforehand. That has a client ask for Metadata, too, and then it may
        # not ask again for its back-off.
        targets = admin.raise_epochs({TopicPartition(topic, 0): 2})
        _flow(records, _RATE * 2 * _BACK_OFF_S)
        before, errors = len(records), len(_errors(sandwich, watched.name))
        admin.elect_preferred(targets)
        _flow(records, _RATE * _BACK_OFF_S)
        for run in (watched, *runs):
            run.stop()
        first = _errors(sandwich, watched.name)[errors]
        assert first["settling"] == "settled"
        assert first["hold_ms"] > 0
        assert max(record.latency_ms for record in records[before:]) < _AT_ONCE_MS
        assert sandwich.wait_unchanged(of_client(watched.name)) >= 2


@pytest.mark.parametrize("cluster", [ZK_24], indirect=True)
def test_errors_of_a_client_that_uses_hints_in_newer_versions_alone_are_settled(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """librdkafka needs Fetch 16 for a hint, and brokers of 2.4 have no topic ids for that."""
    topic, library = new_topic("settled-between"), clients(CONFLUENT)
    _settle_between(cluster, admin, topic, library, library, 11, tmp_path)


def test_errors_of_franz_go_are_settled_where_its_fetch_takes_no_hint(
    clients: Callable[[str], ClientProcess], tmp_path: Path
) -> None:
    """It needs Fetch 16, too. In front of 2.4 its session gets no error when the leader moves."""
    need_go()
    with RealCluster("2.7.2", folder=tmp_path / "cluster") as cluster, go_clients(tmp_path) as go:
        admin = ClusterAdmin(cluster)
        admin.create_topic("settled-go", [[1, 2, 3]])
        _settle_between(cluster, admin, "settled-go", go, clients(CONFLUENT), 12, tmp_path)


def _settle_between(
    cluster: RealCluster,
    admin: ClusterAdmin,
    topic: str,
    reading: ClientProcess,
    feeding: ClientProcess,
    version: int,
    folder: Path,
) -> None:
    """Move a leader under a consumer, and see that its errors at ``version`` are settled.

    The records to read come past the proxies.
    """
    (folder / "settled.yaml").write_text(_HOLD)
    arguments = ["--config", str(folder / "settled.yaml")]
    with Sandwich(cluster, folder, arguments=arguments) as sandwich:
        feed = feeding.produce(ProducerSpec(cluster.direct_bootstrap, topic, acks="1", rate=_RATE))
        consumer = reading.consume(ConsumerSpec(cluster.bootstrap, topic))
        _flow(consumer.consumed, 5)
        admin.move_leader(topic)
        _flow(consumer.consumed, _RATE)
        for run in (consumer, feed):
            run.stop()
        errors = _errors(sandwich, consumer.name)
        assert {line["version"] for line in errors} == {version}
        assert "settled" in {line["settling"] for line in errors}
        assert sandwich.wait_unchanged(of_client(consumer.name), API_VERSIONS) >= 2
