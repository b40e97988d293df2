"""Faults on demand before real brokers, and what real clients make of them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kio.schema.metadata.v9.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v9.response import MetadataResponse
from kio.schema.types import TopicName

from tests.harness.admin import ClusterAdmin
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerRun, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.connection import BrokerConnection
from tests.harness.maven import PYTHONPATH, ROOT
from tests.harness.ports import free_range
from tests.harness.proxyproc import LocalProcess
from tests.harness.stored import read_partition
from tests.harness.waiting import until
from tests.real.names import APART_36, CONFLUENT, JAVA

pytestmark = pytest.mark.parametrize("cluster", [APART_36], indirect=True)

_BROKERS = 3
#: Requests of a connection are answered in order. With one under way at most, a second refusal
#: tells that all that went before the first has been answered.
_ONE_AT_A_TIME = {
    JAVA: {"max.in.flight.requests.per.connection": "1"},
    CONFLUENT: {"max.in.flight": "1"},
}
_CONFORMANCE_S = 120


@pytest.fixture
def local(cluster: RealCluster, tmp_path: Path) -> Iterator[LocalProcess]:
    """A virtual cluster that allows faults."""
    base, log = free_range(2 + _BROKERS), tmp_path / "local.log"
    with LocalProcess(
        cluster.bootstrap, base, log, brokers=_BROKERS, arguments=["--allow-faults"]
    ) as process:
        process.wait_plans(_BROKERS)
        yield process


@pytest.mark.parametrize("library", [JAVA, CONFLUENT])
def test_a_refused_record_reaches_no_broker_and_none_is_lost(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    local: LocalProcess,
    library: str,
) -> None:
    topic = new_topic(f"refused-{library}")
    consumer = clients(library).consume(ConsumerSpec(local.bootstrap, topic))
    own = _ONE_AT_A_TIME[library]
    spec = ProducerSpec(local.bootstrap, topic, idempotent=True, settings=own)
    producer = clients(library).produce(spec)
    producer.wait_acked(10)
    for hint in ("none", "right", "equal", "stale"):
        _refuse_for_a_while(admin, local, producer, hint)
    # Until the epoch that the hint told is there, a client may believe no Metadata.
    unreachable = local.begin_fault(
        "error", apis=["Produce"], topics=[topic], hint="unreachable", times=1
    )
    until(lambda: local.faults_done(unreachable), "it is sent where nobody is")
    admin.move_leader(topic)
    producer.wait_acked(10)
    # Leaders are reported as they were, and as the proxy knew them: it has learnt of the last
    # move. What clients learn of the next, they learn from hints.
    leader = admin.leader(topic)
    until(lambda: _told_leader(local, topic) == leader, "clients learn of the leader")
    stale = local.begin_fault("stale_metadata")
    assert admin.move_leader(topic) != leader
    assert _told_leader(local, topic) == leader
    producer.wait_acked(10)
    assert local.faults_done(stale)
    local.end_faults()
    until(lambda: _told_leader(local, topic) == admin.leader(topic), "they learn the truth")
    fetch = local.begin_fault(
        "error", apis=["Fetch"], topics=[topic], error="FENCED_LEADER_EPOCH", times=2
    )
    until(lambda: len(local.faults_done(fetch)) == 2, "the consumer is refused")
    producer.wait_acked(10)
    check_produced(admin, producer.stop())
    check_consumed(admin, consumer)
    consumer.stop()


def _refuse_for_a_while(
    admin: ClusterAdmin, local: LocalProcess, producer: ProducerRun, hint: str
) -> None:
    """Refuse all that a producer sends: the partition must not grow. Then let it go on."""
    topic = producer.spec.topic
    fault = local.begin_fault("error", apis=["Produce"], topics=[topic], hint=hint)
    until(lambda: len(local.faults_done(fault)) >= 3, f"it is refused with hint {hint}")
    held = [record.offset for record in read_partition(admin, topic, 0)]
    refused = len(local.faults_done(fault))
    until(lambda: len(local.faults_done(fault)) >= refused + 3, "it is refused again")
    assert [record.offset for record in read_partition(admin, topic, 0)] == held
    local.end_faults()
    producer.wait_acked(10)


def _told_leader(local: LocalProcess, topic: str) -> int:
    """The leader of partition 0, as clients get it."""
    host, _, port = local.bootstrap.rpartition(":")
    request = MetadataRequest(
        topics=(MetadataRequestTopic(name=TopicName(topic)),),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    with BrokerConnection((host, int(port))) as connection:
        (answer,) = connection.ask(request, MetadataResponse).topics
    return int(answer.partitions[0].leader_id)


def test_clients_are_tried_before_a_real_cluster(cluster: RealCluster, admin: ClusterAdmin) -> None:
    client = [sys.executable, "-m", "tests.conformance.harness", CONFLUENT]
    options = ["--json", "--scenario", "move", "--scenario", "unknown"]
    options += ["--api", "Produce", "--api", "Fetch"]
    options += ["--bootstrap", cluster.bootstrap]
    ended = subprocess.run(
        [sys.executable, "-m", "leader_hints.cli.main", "conformance", *options, "--", *client],
        env=os.environ | {"PYTHONPATH": PYTHONPATH},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_CONFORMANCE_S,
        check=False,
    )
    assert ended.stdout, ended.stderr
    traits = json.loads(ended.stdout)["traits"]
    found = {(t["scenario"], t["api"], t["question"]): t["answer"] for t in traits}
    for api in ("Produce", "Fetch"):
        assert found["move", api, "hint used"].startswith("yes"), found
        assert found["unknown node", api, "reached by NodeEndpoints"] == "yes", found
    until(lambda: not _left(cluster), "the broker has heard that the topics are gone")


def _left(cluster: RealCluster) -> list[str]:
    """The topics of trials that a broker knows."""
    return [name for name in _all_topics(cluster) if name.startswith("leader-hints-conformance")]


def _all_topics(cluster: RealCluster) -> list[str]:
    request = MetadataRequest(
        topics=None,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    with cluster.connect(1) as connection:
        return [str(topic.name) for topic in connection.ask(request, MetadataResponse).topics]
