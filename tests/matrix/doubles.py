"""``python -m tests.matrix.doubles``: how often idempotent librdkafka writes records again.

The same producers write past all proxies and through one in front of each broker, in the same
cluster, while the same leaders move and other processes keep the processors busy. What is lost, or
there twice within one producer epoch, is printed: neither may happen.

Requests behind a failed one are answered OUT_OF_ORDER_SEQUENCE_NUMBER by a broker that has come to
lead in between. librdkafka then begins a new producer epoch for all its partitions
(rd_kafka_handle_idempotent_Produce_error in rdkafka_request.c) and sends what was not acknowledged
once more, also what the former leader had replicated before it answered NOT_LEADER_OR_FOLLOWER
(librdkafka's issue 4953). Java retries in the same producer epoch.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import written_last
from tests.harness.clients import ProducerRun, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.proxyproc import ProxyFleet
from tests.harness.python_client import CONFLUENT, python_clients
from tests.harness.stored import read_partition

_ARMS = ("direct", "proxied")
_TOPICS = 5
_LAYOUT = [[1, 2, 3], [2, 3, 1]]
_PARTITIONS = tuple(range(len(_LAYOUT)))
_MOVES = 12
_REST_S = 0.3
_SPIN = "while True: pass"


class Written:
    """What one arm wrote in all rounds: records, records written again, and in how many places."""

    def __init__(self) -> None:
        self.records = self.again = self.partitions = 0

    def add(self, admin: ClusterAdmin, run: ProducerRun) -> None:
        """Count what one producer wrote, and print what no producer epoch explains."""
        for partition in _PARTITIONS:
            log = read_partition(admin, run.spec.topic, partition)
            once = written_last(log)
            acked = {outcome.seq for outcome in run.acked if outcome.partition == partition}
            lost = acked - {record.seq for record in once}
            twice = [seq for seq, count in Counter(r.seq for r in once).items() if count > 1]
            if lost or twice or run.failed:
                print(f"{run.spec.topic}-{partition}: {lost=} {twice=} failed={run.failed[:3]}")
            self.records += len(log)
            self.again += len(log) - len(once)
            self.partitions += len(log) > len(once)

    def __str__(self) -> str:
        return f"{self.records} records, {self.again} again, in {self.partitions} partitions"


def main() -> None:
    """Move leaders under both arms, round by round, with new topics and producers in each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", default="3.6.2", help="a version that runs with ZooKeeper")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--busy", type=int, default=4, help="processes that only take time")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="leader-hints-doubles-"))
    written = {arm: Written() for arm in _ARMS}
    with ExitStack() as stack:
        cluster = stack.enter_context(RealCluster(options.broker, folder=folder / "cluster"))
        routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
        stack.enter_context(ProxyFleet.before(routes, folder, sidecars=True))
        for _ in range(options.busy):
            busy = stack.enter_context(subprocess.Popen([sys.executable, "-c", _SPIN]))
            stack.callback(busy.kill)
        for number in range(options.rounds):
            _round(cluster, folder, number, written)
            for arm, found in written.items():
                print(f"round {number + 1}, {arm}: {found}", flush=True)


def _round(cluster: RealCluster, folder: Path, number: int, written: dict[str, Written]) -> None:
    admin = ClusterAdmin(cluster)
    bootstraps = dict(zip(_ARMS, (cluster.direct_bootstrap, cluster.bootstrap), strict=True))
    topics = {f"doubles-{number}-{arm}-{n}": arm for n in range(_TOPICS) for arm in _ARMS}
    admin.create_topics(dict.fromkeys(topics, _LAYOUT), {"min.insync.replicas": "2"})
    with ExitStack() as stack:
        clients = {
            arm: stack.enter_context(python_clients(folder / arm, CONFLUENT)) for arm in _ARMS
        }
        runs = {
            topic: clients[arm].produce(
                ProducerSpec(bootstraps[arm], topic, _PARTITIONS, idempotent=True)
            )
            for topic, arm in topics.items()
        }
        for _ in range(_MOVES):
            time.sleep(_REST_S)
            admin.move_leaders(
                {TopicPartition(topic, n): None for topic in topics for n in _PARTITIONS}
            )
        for run in runs.values():
            run.ask_to_stop()
        for topic, run in runs.items():
            written[topics[topic]].add(admin, run.wait_done())
    for topic in topics:
        admin.delete_topic(topic)


if __name__ == "__main__":
    main()
