"""Where no hint may be given, not a byte changes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.admin import ClusterAdmin
from tests.harness.clients import (
    ClientProcess,
    ConsumerRun,
    ConsumerSpec,
    ProducerRun,
    ProducerSpec,
)
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import Hints
from tests.real.names import CONFLUENT, JAVA, KAFKA_PYTHON, OLD_JAVA, ZK_36, ZK_37
from tests.real.sandwich import API_VERSIONS, Sandwich, of_client


def work_through_a_move(
    process: ClientProcess, bootstrap: str, topic: str, admin: ClusterAdmin
) -> tuple[ProducerRun, ConsumerRun]:
    """Produce and consume a little before and after a leader move, and close."""
    consumer = process.consume(ConsumerSpec(bootstrap, topic))
    producer = process.produce(ProducerSpec(bootstrap, topic, idempotent=True))
    producer.wait_acked(10)
    admin.move_leader(topic)
    producer.wait_acked(10)
    producer.stop()
    consumer.wait_count(len(producer.acked))
    return producer, consumer.stop()


@pytest.mark.parametrize("library", [JAVA, CONFLUENT])
@pytest.mark.parametrize(
    ("cluster", "hints"),
    [(ZK_37, "on"), (ZK_36, "off"), (ZK_36, "observe")],
    indirect=["cluster"],
    scope="session",  # or pytest would start the cluster again for each test
)
def test_pure_passthrough(
    cluster: RealCluster,
    hints: Hints,
    library: str,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    with Sandwich(cluster, tmp_path, hints) as sandwich:
        for run in work_through_a_move(
            clients(library), cluster.bootstrap, new_topic("untouched"), admin
        ):
            assert sandwich.wait_unchanged(of_client(run.name)) >= 2
        if hints == "observe":
            observed = [*sandwich.fleet.events("hint_given"), *sandwich.fleet.events("hint_missed")]
            assert observed
            assert all(line["observed"] for line in observed)


@pytest.mark.parametrize(
    ("library", "sides"),
    [(KAFKA_PYTHON, ("producer",)), (OLD_JAVA, ("producer", "consumer"))],
)
@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
def test_clients_that_use_no_hints_get_what_the_broker_said(
    cluster: RealCluster,
    library: str,
    sides: tuple[str, ...],
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    """All but the answer to ApiVersions: there the raised maxima stand. But errors are counted."""
    with Sandwich(cluster, tmp_path) as sandwich:
        runs = work_through_a_move(
            clients(library), cluster.bootstrap, new_topic("unhinted"), admin
        )
        for run in runs:
            if run.name.startswith(sides):
                assert sandwich.wait_unchanged(of_client(run.name), API_VERSIONS) >= 2
        missed = [
            line
            for line in sandwich.fleet.events("hint_missed")
            if (line["client_id"], line["api"]) == (runs[0].name, "Produce")
        ]
        assert {line["reason"] for line in missed} == {"version_without_field"}
        assert all(line["version"] < 10 for line in missed)
        assert not any(line["observed"] for line in missed)
