"""A journal in a topic of the very cluster behind the proxy, written through the proxy itself."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyProcess
from tests.harness.waiting import until
from tests.mock.journals import TopicReader
from tests.observe.journal_lines import Line, in_order
from tests.real.names import CONFLUENT, ZK_36

_MOVES = 3


@pytest.mark.parametrize("cluster", [ZK_36], indirect=True)
def test_it_reports_every_move_while_its_own_partition_moves_too(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    topic, journal = new_topics("moved", "journal")
    targets: dict[TopicPartition, int | None] = {
        TopicPartition(name, 0): None for name in (topic, journal)
    }
    routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
    with ProxyProcess(
        routes, tmp_path / "proxy.log", arguments=_config(cluster, journal, tmp_path)
    ):
        process = clients(CONFLUENT)
        consumer = process.consume(ConsumerSpec(cluster.bootstrap, topic))
        producer = process.produce(ProducerSpec(cluster.bootstrap, topic))
        leaders = []
        for _ in range(_MOVES):
            producer.wait_acked(10)
            consumer.wait_count(len(consumer.consumed) + 10)
            leaders.append(admin.move_leaders(targets)[TopicPartition(topic, 0)])
        producer.wait_acked(10)
        consumer.wait_count(len(consumer.consumed) + 10)
        names = {producer.name, consumer.name}
        producer.stop()
        consumer.stop()
        last = admin.partitions(topic)[0]
    with TopicReader(cluster.direct_bootstrap, journal) as reader:
        until(lambda: reader.until(_is_stopped), "the journal's end")

    run = in_order(reader.lines)
    assert reader.keys == {b"car"}
    assert (run[0]["event"], run[-1]["event"]) == ("start", "stop")
    moves = [line for line in run if line["event"] == "leader_change" and line["topic"] == topic]
    changes = [line for line in moves if line["leader"] != line["leader_before"]]
    assert [line["leader"] for line in changes] == leaders
    assert (moves[-1]["leader"], moves[-1]["epoch"]) == (last.leader, last.epoch)
    for line, following in itertools.pairwise(moves):
        assert line["epoch"] == following["epoch_before"]
    errors = [line for line in run if line["event"] == "error"]
    assert {line["client_id"] for line in errors} <= names
    assert {line["node"] for line in errors} <= set(cluster.brokers)
    assert {line["topic"] for line in errors} == {topic}
    assert any(line["hinted"] for line in errors)
    # All brokers are behind this one process, so it sees each client refused and served again.
    recoveries = [line for line in run if line["event"] == "recovery"]
    assert {line["topic"] for line in recoveries} == {topic}
    assert {line["client_id"] for line in recoveries} <= names
    timed = [line for line in recoveries if "recovery_ms" in line]
    assert {line["api"] for line in timed} >= {"Produce"}
    assert any(line["hinted"] for line in timed)
    assert all(0 < line["recovery_ms"] < 30_000 for line in timed)


def _config(cluster: RealCluster, topic: str, folder: Path) -> list[str]:
    file = folder / "proxy.yaml"
    journal = {
        "kind": "topic",
        "bootstrap": cluster.bootstrap,
        "topic": topic,
        "sidecar": "car",
        # Its partition has just moved: how long its end takes is not what is tested.
        "flush_ms": 30_000,
    }
    file.write_text(yaml.safe_dump({"journal": journal}), encoding="utf-8")
    return ["--config", str(file)]


def _is_stopped(lines: list[Line]) -> bool:
    return any(line["event"] == "stop" for line in lines)
