"""Routes of `run` whose upstreams are exchanged, or past which clients go, before real brokers."""

import json
import urllib.error
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster
from tests.harness.connection import Address
from tests.harness.ports import free_ports
from tests.harness.proxyproc import LogLine, ProxyProcess
from tests.harness.waiting import until
from tests.real.wrong_listeners import Listener, add_listeners, free_address

TOPIC = "three"
PARTITIONS = (0, 1, 2)
Route = tuple[Address, Address]


class Cluster:
    """Three brokers of 3.6; each leads a partition. A listener of broker 1 advertises itself."""

    def __init__(self, folder: Path) -> None:
        self.cluster = RealCluster("3.6.2", "zk", folder=folder)
        own, elsewhere = free_address(), [free_address() for _ in range(3)]
        self.past = own
        for node, bound in enumerate((own, *elsewhere[1:]), 1):
            add_listeners(folder, node, [Listener("PAST", bound, bound)])

    def route(self, listens_for: int, leads_to: int) -> Route:
        """A route that listens where one node is advertised and leads to another, or the same."""
        brokers = self.cluster.brokers
        return brokers[listens_for].advertised, brokers[leads_to].upstream


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster with its topic."""
    brokers = Cluster(tmp_path_factory.mktemp("crossed"))
    with brokers.cluster:
        ClusterAdmin(brokers.cluster).create_topic(TOPIC, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        yield brokers


def readiness(proxy: ProxyProcess) -> tuple[int, dict[str, str]]:
    """What /readyz answers: its status, and why which route is not ready."""
    try:
        body = proxy.get("/readyz")
    except urllib.error.HTTPError as refused:
        return refused.code, dict(json.loads(refused.read())["not_ready"])
    return 200, dict(json.loads(body)["not_ready"])


def wait_for(proxy: ProxyProcess, event: str, count: int = 1) -> Sequence[LogLine]:
    """Wait for so many log lines of an event."""
    until(lambda: len(proxy.events(event)) >= count, f"{count} lines {event}")
    return proxy.events(event)


def name(route: Route) -> str:
    return f"{route[0][0]}:{route[0][1]}"


def text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


def test_two_routes_are_crossed(brokers: Cluster, tmp_path: Path) -> None:
    crossed, right = [brokers.route(1, 2), brokers.route(2, 1)], brokers.route(3, 3)
    producer = Producer({"bootstrap.servers": name(right), "message.timeout.ms": 3000})
    with ProxyProcess([*crossed, right], tmp_path / "proxy.log") as proxy:
        lines = wait_for(proxy, "route_crossed", 2)
        seen = len(proxy.lines())

        assert {
            (line["route"], line["node"], line["leads_to"], line["found"]) for line in lines
        } == {
            (name(crossed[0]), 2, name(crossed[1]), 1),
            (name(crossed[1]), 1, name(crossed[0]), 2),
        }
        assert {line["level"] for line in lines} == {"warning"}
        for route in crossed:
            assert proxy.metric("leader_hints_advertised_wrong", route=name(route), how="crossed")
        assert not proxy.metric("leader_hints_advertised_wrong", route=name(right))
        status, reasons = readiness(proxy)
        assert status == 503
        assert reasons.keys() == set(map(name, crossed))
        assert "node 1 answers" in reasons[name(crossed[0])]

        # A client meets the wrong broker, and a hint to the right one leads it there again.
        def missed() -> float:
            for partition in PARTITIONS:
                producer.produce(TOPIC, b"x", partition=partition)
            assert producer.flush(10) == 0
            return proxy.metric("leader_hints_hints_missed_total", reason="no_endpoint")

        # Where brokers answer slowly the first holds expire before the leader is certain.
        until(missed, "an error has no hint because the leader's address leads elsewhere")
        assert proxy.metric("leader_hints_errors_seen_total", api="Produce") > 0
        hinted = [line for line in proxy.lines()[seen:] if line["event"] == "hint_given"]
        assert {line["leader"] for line in hinted} <= {3}


def test_sidecars_are_crossed(brokers: Cluster, tmp_path: Path) -> None:
    first, second = brokers.route(1, 2), brokers.route(2, 1)
    with (
        ProxyProcess([first], tmp_path / "first.log") as one,
        ProxyProcess([second], tmp_path / "second.log") as two,
    ):
        for proxy, route in ((one, first), (two, second)):
            # Where its broker is advertised, or that it listens where another is: it sees both.
            lines = wait_for(proxy, "route_crossed")
            assert {(line["node"], line["found"]) for line in lines} <= {(1, 2), (2, 1)}
            status, reasons = readiness(proxy)
            assert (status, {*reasons}) == (503, {name(route)})


def test_two_routes_lead_to_one_broker(brokers: Cluster, tmp_path: Path) -> None:
    wrong, right = brokers.route(1, 2), brokers.route(2, 2)
    with ProxyProcess([wrong, right], tmp_path / "proxy.log") as proxy:
        (line,) = wait_for(proxy, "route_crossed")

        assert (line["route"], line["node"], line["found"]) == (name(wrong), 1, 2)
        status, reasons = readiness(proxy)
        assert (status, {*reasons}) == (503, {name(wrong)})


def test_clients_go_past_the_proxy(brokers: Cluster, tmp_path: Path) -> None:
    route = (("127.0.0.1", free_ports(1)[0]), brokers.past)
    with ProxyProcess([route], tmp_path / "proxy.log") as proxy:
        (line,) = wait_for(proxy, "advertised_past")

        assert (line["node"], line["address"], line["level"]) == (1, text(brokers.past), "warning")
        assert proxy.metric("leader_hints_advertised_wrong", route=name(route), how="past") == 1
        # Clients that come are served, and a roll-out begins like this.
        assert readiness(proxy) == (200, {})
