"""A KRaft broker that restarts: it answers before any Metadata lists it.

It takes requests once the controller has unfenced it, and hears later from the metadata quorum that
it was: until then it is missing in its own Metadata too. Where the only other broker
that could not be ruled out leads nothing, it must not be taken for that one.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.history import LeaderHistory
from tests.harness.judge import judge
from tests.harness.proxyproc import ProxyFleet
from tests.harness.waiting import POLL_S, never, until
from tests.real.names import JAVA

RESTARTED = 1
TOPIC = "restarted"
#: What a broker writes just before it takes requests: its own Metadata lists it a little later.
UNFENCED = "The broker has been unfenced"
#: It is to be asked while it is not listed.
SOON = {
    "LEADER_HINTS_SUBSCRIPTION__RECONNECT_MIN_MS": "10",
    "LEADER_HINTS_SUBSCRIPTION__RECONNECT_MAX_MS": "10",
}


def test_it_is_not_taken_for_another_node(
    clients: Callable[[str], ClientProcess], tmp_path: Path
) -> None:
    with RealCluster("3.6.2", "kraft", folder=tmp_path / "cluster") as cluster:
        admin = ClusterAdmin(cluster)
        # Node 3 leads nothing, and has no replica of either.
        admin.create_topics({TOPIC: [[1, 2]], "led-by-another": [[2, 1]]})
        routes = [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]
        fleet = ProxyFleet.before(routes, tmp_path, sidecars=True)
        for process in fleet.processes:
            process.environment |= SOON
        proxy = fleet.processes[RESTARTED - 1]

        def node() -> int | None:
            found: int | None = proxy.status()["routes"][0]["upstream"]["node"]
            return found

        with fleet:
            until(lambda: node() == RESTARTED, "the proxy knows its broker")
            cluster.brokers[RESTARTED].stop()
            with _started_and_not_listed(cluster):
                until(lambda: len(proxy.events("route_plan")) > 1, "the broker answers again")
                never(lambda: node() not in (None, RESTARTED), "taken for another node", 2.0)
            cluster.wait_until_ready()
            never(lambda: node() not in (None, RESTARTED), "taken for another node", 1.0)
            client = clients(JAVA)
            consumer = client.consume(ConsumerSpec(cluster.bootstrap, TOPIC))
            producer = client.produce(ProducerSpec(cluster.bootstrap, TOPIC))
            for leader in (1, 2, 1, 2):
                admin.wait_in_sync(TOPIC)
                admin.move_leader(TOPIC, to=leader)
                consumer.wait_count(len(consumer.consumed) + 10)
            producer.stop()
            consumer.stop()
            judgement = judge(fleet, LeaderHistory(cluster))
            assert not judgement.wrong
            assert judgement.given
            assert node() == RESTARTED
            # Whom a proxy takes for another broker it asks where that is advertised.
            (host, port), _ = proxy.routes[0]
            asked = {line["broker"] for line in proxy.events("subscription_ready")}
            assert f"{host}:{port}" not in asked


@contextlib.contextmanager
def _started_and_not_listed(cluster: RealCluster) -> Iterator[None]:
    """Start the broker, and keep from it meanwhile what the metadata quorum says of it."""
    broker = cluster.brokers[RESTARTED]
    before = broker.log.read_text().count(UNFENCED)
    broker.start()
    # Others may list it a moment later.
    until(
        lambda: broker.log.read_text().count(UNFENCED) > before,
        "it is unfenced",
        longest_poll_s=POLL_S,
    )
    with cluster.brokers[2].frozen(), cluster.brokers[3].frozen():
        yield
