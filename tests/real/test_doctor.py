"""`leader-hints check` before real brokers that are set up wrongly, in each way that it can tell.

One cluster has a listener for each mistake. docs/troubleshooting.md lists what is found.
"""

import contextlib
import functools
import itertools
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from kio.schema.create_acls.v2.request import AclCreation, CreateAclsRequest
from kio.schema.create_acls.v2.response import CreateAclsResponse
from kio.static.primitive import i8

from leader_hints.check.findings import TABLE
from leader_hints.cli.main import cli
from leader_hints.mock.cluster import MockCluster
from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import HOST, RealCluster
from tests.harness.connection import Address
from tests.harness.maven import PYTHONPATH
from tests.harness.proxyproc import Hints, ProxyProcess
from tests.harness.relay import Gate, Relay
from tests.harness.waiting import until
from tests.matrix.brokers import CLOSEST_REPLICA
from tests.real.other_servers import Balancer, http_server, silent_server
from tests.real.wrong_listeners import Listener, add_listeners, free_address

METADATA, API_VERSIONS = 3, 18
NO_HOST = "no-such-host.invalid"
TOPIC = "two"
#: Anybody may do anything that no ACL speaks of.
AUTHORIZED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
#: Findings that no test here provokes, and why.
NOT_PROVOKED = {
    "clock_synchronised": "whether a clock is synchronised is a matter of the whole machine",
    "clock_not_synchronised": "the same: to change it needs privileges, and disturbs others",
    "clock_unknown": "only kernels other than Linux, and sandboxes, do not say",
}
_DEADLINE_S = 120


class Checked(NamedTuple):
    """What the command ended with. ``codes``: of the first route, without those that are fine."""

    exit_code: int
    report: Mapping[str, Any]

    @property
    def codes(self) -> set[str]:
        return self.of(0)

    def of(self, route: int) -> set[str]:
        """The codes of one route that are not fine."""
        found = self.report["routes"][route]["findings"]
        return {finding["code"] for finding in found if finding["severity"] != "fine"}

    def fine(self) -> set[str]:
        """The codes of the first route that are fine."""
        found = self.report["routes"][0]["findings"]
        return {finding["code"] for finding in found if finding["severity"] == "fine"}

    def text(self, code: str) -> str:
        """What a finding of the first route says."""
        found = self.report["routes"][0]["findings"]
        return next(str(finding["text"]) for finding in found if finding["code"] == code)


def check(*routes: tuple[Address, Address], arguments: tuple[str, ...] = ()) -> Checked:
    """Run the command to its end, in this process: that saves a second each time."""
    return _checked(*_run(_arguments(routes) + arguments))


def _run(arguments: tuple[str, ...]) -> tuple[int, str]:
    ran = CliRunner().invoke(cli, arguments)
    assert ran.stderr == ""
    return ran.exit_code, ran.stdout


def check_with(descriptors: int, *routes: tuple[Address, Address]) -> Checked:
    """Run the command in a process of its own that may have so many descriptors."""
    limits = (descriptors, descriptors)
    done = subprocess.run(
        [sys.executable, "-m", "leader_hints.cli.main", *_arguments(routes)],
        env=os.environ | {"PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits),
    )
    assert done.stderr == ""
    return _checked(done.returncode, done.stdout)


def _arguments(routes: tuple[tuple[Address, Address], ...]) -> tuple[str, ...]:
    given = (f"--route={_text(listen)}={_text(upstream)}" for listen, upstream in routes)
    return ("check", "--json", *given)


def _checked(exit_code: int, output: str) -> Checked:
    checked = Checked(exit_code, json.loads(output))
    parts = [*(route["findings"] for route in checked.report["routes"]), checked.report["machine"]]
    found = [finding for part in parts for finding in part]
    assert {finding["code"] for finding in found} <= TABLE.keys()
    mend = any(finding["severity"] == "mend" for finding in found)
    assert (exit_code, checked.report["mend"]) == (int(mend), mend)
    return checked


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


class Crowd:
    """Two brokers of 3.6 with a listener for each mistake, each by its name and node."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.listeners: dict[tuple[str, int], Listener] = {}
        addresses = {node: free_address() for node in cluster.brokers}
        shared = free_address()
        for node, other in ((1, 2), (2, 1)):
            own = {name: free_address() for name in ("PAST", "MIXED")}
            for listener in (
                Listener("PAST", own["PAST"], own["PAST"]),
                # Only broker 1 has its proxy yet.
                Listener("MIXED", own["MIXED"], free_address() if node == 1 else own["MIXED"]),
                Listener("SEEN", free_address(), free_address()),
                Listener("LOST", free_address(), (NO_HOST, addresses[node][1])),
                Listener("DEAD", free_address(), free_address()),
                Listener("CROSSED", free_address(), addresses[other]),
                Listener("SHARED", free_address(), (("", HOST, "localhost")[node], shared[1])),
            ):
                self.listeners[listener.name, node] = listener
            if node == 1:
                tls = Listener("TLS", free_address(), free_address(), "SSL")
                self.listeners[tls.name, node] = tls
            mine = [listener for (_, of), listener in self.listeners.items() if of == node]
            add_listeners(folder, node, mine)

    def right(self, node: int) -> tuple[Address, Address]:
        """A route as it should be: listening where the broker says."""
        broker = self.cluster.brokers[node]
        return broker.advertised, broker.upstream

    def route(self, name: str, node: int = 1) -> tuple[Address, Address]:
        """A route that listens where the broker says, on one of the wrong listeners."""
        listener = self.listeners[name, node]
        return listener.advertised, listener.bound

    def bound(self, name: str, node: int = 1) -> Address:
        """Where a listener really is."""
        return self.listeners[name, node].bound

    def advertised(self, name: str, node: int = 1) -> Address:
        """What a listener says of itself."""
        return self.listeners[name, node].advertised

    def crossed(self) -> tuple[tuple[Address, Address], ...]:
        """Routes that each lead to the other's broker."""
        return (
            (self.advertised("CROSSED", 1), self.bound("CROSSED", 2)),
            (self.advertised("CROSSED", 2), self.bound("CROSSED", 1)),
        )


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    """The brokers before they have any topic."""
    folder = tmp_path_factory.mktemp("crowd")
    cluster = RealCluster("3.6.2", "zk", folder=folder, brokers=2, sasl=True, overrides=AUTHORIZED)
    crowd = Crowd(cluster, folder)
    with cluster:
        yield crowd


@pytest.fixture(scope="module")
def crowd(bare: Crowd) -> Crowd:
    """The brokers with a topic of which each leads a partition."""
    ClusterAdmin(bare.cluster).create_topic(TOPIC, [[1, 2], [2, 1]])
    return bare


@pytest.fixture(scope="module")
def past() -> Address:
    """Where a proxy listens that the broker does not advertise."""
    return free_address()


@pytest.fixture(scope="module")
def other() -> Address:
    """Where a proxy listens that is in front of broker 2."""
    return free_address()


@pytest.fixture(scope="module")
def proxy(
    crowd: Crowd, past: Address, other: Address, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """A proxy with right and wrong routes; the tests before its first use find none running."""
    routes = (
        *(crowd.right(1), crowd.right(2), *crowd.crossed()),
        *((past, crowd.bound("PAST")), (other, crowd.cluster.brokers[2].upstream)),
    )
    with _proxy(tmp_path_factory.mktemp("proxy"), *routes):
        yield


@contextlib.contextmanager
def _proxy(folder: Path, *routes: tuple[Address, Address], hints: Hints = "on") -> Iterator[None]:
    """A proxy that knows the versions of its brokers."""
    with ProxyProcess(routes, folder / "proxy.log", hints=hints) as running:
        running.wait_plans(len(routes))
        yield


def test_a_cluster_without_topics(bare: Crowd) -> None:
    found = check((free_address(), bare.bound("PAST")))

    assert found.codes == {"no_topics", "broker_not_identified", "advertised_none"}


def test_all_is_right_before_the_proxy_runs(crowd: Crowd) -> None:
    found = check(crowd.right(1), crowd.right(2))

    assert found.exit_code == 0
    assert found.of(0) == found.of(1) == {"advertised_loopback"}
    assert found.fine() == {"versions_raised", "listen_free", "advertised_right"}


def test_what_each_client_gets(crowd: Crowd) -> None:
    route = check(crowd.right(1)).report["routes"][0]

    assert route["node"] == 1
    shown = {
        client["client"].split()[0]: tuple(
            client[key] for key in ("produce_version", "fetch_version")
        )
        for client in route["clients"]
    }
    assert shown == {
        "Java": (10, 16),
        "librdkafka": (10, 16),
        "franz-go": (10, 16),
        "kafka-python": (9, 15),
        "all": (9, 15),
    }


def test_the_other_broker_is_not_reached(crowd: Crowd) -> None:
    found = check(crowd.right(1))

    assert found.exit_code == 1
    assert found.codes == {"advertised_loopback", "broker_unreachable"}


def test_traffic_goes_past_the_proxy(crowd: Crowd) -> None:
    assert "advertised_past_proxy" in check((free_address(), crowd.bound("PAST"))).codes


def test_routes_are_crossed(crowd: Crowd) -> None:
    found = check(*crowd.crossed())

    assert "routes_crossed" in found.of(0) & found.of(1)


def test_the_advertised_name_does_not_resolve(crowd: Crowd) -> None:
    found = check((free_address(), crowd.bound("LOST")))

    assert {"advertised_unresolved", "broker_unreachable"} <= found.codes
    assert NO_HOST in found.text("advertised_unresolved")


def test_nobody_is_at_the_advertised_address(crowd: Crowd) -> None:
    found = check((free_address(), crowd.bound("DEAD")))

    assert {"advertised_unreachable", "broker_unreachable"} <= found.codes


def test_something_else_is_at_the_advertised_address(crowd: Crowd) -> None:
    with http_server(crowd.advertised("DEAD")):
        found = check((free_address(), crowd.bound("DEAD")))

    assert "advertised_elsewhere" in found.codes
    assert "HTTP" in found.text("advertised_elsewhere")


def test_two_brokers_advertise_one_address_under_two_names(crowd: Crowd) -> None:
    found = check((crowd.advertised("SHARED"), crowd.bound("SHARED")))

    assert "advertised_twice" in found.codes


def test_the_other_broker_has_no_proxy_yet(crowd: Crowd) -> None:
    found = check(crowd.route("MIXED"))

    assert found.exit_code == 0
    assert found.codes == {"advertised_loopback", "broker_without_proxy"}


def test_a_listener_with_tls(crowd: Crowd) -> None:
    assert check(crowd.route("TLS")).codes == {"upstream_tls"}


def test_a_listener_with_sasl(crowd: Crowd) -> None:
    sasl = crowd.cluster.brokers[1].sasl
    assert sasl is not None

    found = check((free_address(), sasl))

    assert found.codes == {"upstream_sasl"}
    assert "(PLAIN)" in found.text("upstream_sasl")


def test_a_load_balancer_behind_the_route(crowd: Crowd) -> None:
    place = free_address()
    with Balancer(place, [crowd.cluster.brokers[node].upstream for node in (1, 2)]):
        found = check((free_address(), place))

    assert "several_brokers" in found.codes


def test_metadata_is_not_answered(crowd: Crowd) -> None:
    gate = Gate(lambda request: request.api_key == METADATA)
    gate.shut()
    place = free_address()
    with Relay(place, crowd.cluster.brokers[1].upstream, gate):
        found = check((free_address(), place))

    assert found.codes == {"upstream_metadata"}


def test_upstreams_that_are_no_brokers() -> None:
    web, mute = free_address(), free_address()
    with http_server(web), silent_server(mute):
        found = check(
            (free_address(), free_address()),
            (free_address(), (NO_HOST, 9092)),
            (free_address(), web),
            (free_address(), mute),
        )

    assert [found.of(route) for route in range(4)] == [
        {"upstream_unreachable"},
        {"upstream_unresolved"},
        {"upstream_http"},
        {"upstream_not_kafka"},
    ]


def test_a_broker_that_is_down_behind_a_proxy_that_runs(tmp_path: Path) -> None:
    route = (free_address(), free_address())
    with ProxyProcess([route], tmp_path / "proxy.log"):
        assert check(route).codes == {"upstream_unreachable"}


def test_a_listening_port_that_an_outgoing_connection_has(crowd: Crowd) -> None:
    listen, upstream = free_address(), crowd.cluster.brokers[1].upstream
    with socket.create_connection(upstream, source_address=listen):
        found = check((listen, upstream))

    assert "listen_connection" in found.codes
    assert "listen_taken" not in found.codes


def test_listening_addresses_that_cannot_be_had(crowd: Crowd) -> None:
    web = free_address()
    upstream = crowd.cluster.brokers[1].upstream
    with http_server(web):
        found = check((web, upstream), (("203.0.113.1", 19092), upstream), ((HOST, 0), upstream))

    assert "listen_taken" in found.of(0)
    assert "listen_refused" in found.of(1)
    assert "listen_any_port" in found.of(2)


def test_descriptors_are_fewer_than_the_clients_need(crowd: Crowd) -> None:
    upstream = crowd.cluster.brokers[1].upstream
    with contextlib.ExitStack() as clients:
        for _ in range(40):
            clients.enter_context(socket.create_connection(upstream))
        few = check_with(320, (free_address(), upstream))
        enough = check_with(512, (free_address(), upstream))

    assert _machine_codes(few) == {"descriptors_few"}
    assert _machine_codes(enough) == {"descriptors_enough"}


def test_where_the_broker_is_elsewhere_its_clients_cannot_be_counted() -> None:
    few = check_with(256, (free_address(), ("203.0.113.1", 9092)))

    assert _machine_codes(few) == {"descriptors_unknown"}


def _machine_codes(found: Checked) -> set[str]:
    codes = {finding["code"] for finding in found.report["machine"]}
    assert len(codes) == 2
    return {code for code in codes if code.startswith("descriptors_")}


@pytest.mark.usefixtures("proxy")
def test_all_is_right_while_the_proxy_runs(crowd: Crowd) -> None:
    found = check(crowd.right(1), crowd.right(2))

    assert found.exit_code == 0
    assert found.of(0) == found.of(1) == {"advertised_loopback"}
    assert found.fine() == {"versions_raised", "listen_proxy", "advertised_right"}


@pytest.mark.usefixtures("proxy")
def test_traffic_goes_past_a_proxy_that_runs(crowd: Crowd, past: Address) -> None:
    assert "advertised_past_proxy" in check((past, crowd.bound("PAST"))).codes


@pytest.mark.usefixtures("proxy")
def test_routes_of_a_proxy_that_runs_are_crossed(crowd: Crowd) -> None:
    found = check(*crowd.crossed())

    assert "routes_crossed" in found.of(0) & found.of(1)


@pytest.mark.usefixtures("proxy")
def test_a_proxy_behind_the_proxy(crowd: Crowd) -> None:
    found = check((free_address(), crowd.cluster.brokers[1].advertised))

    assert "upstream_is_proxy" in found.codes


@pytest.mark.usefixtures("proxy")
def test_the_proxy_that_runs_has_another_route(crowd: Crowd, other: Address) -> None:
    found = check((other, crowd.cluster.brokers[1].upstream))

    assert "listen_other_broker" in found.codes


def test_a_proxy_that_only_observes(crowd: Crowd, tmp_path: Path) -> None:
    seen = crowd.route("SEEN", 1), crowd.route("SEEN", 2)
    unsure = (free_address(), crowd.bound("DEAD"))
    observing = ("--hints", "observe")
    with (
        Relay(crowd.advertised("DEAD"), crowd.bound("DEAD")),
        _proxy(tmp_path, *seen, unsure, hints="observe"),
    ):
        hinting = check(*seen)
        found = check(*seen, arguments=observing)
        other = check(unsure, arguments=observing)

    assert "listen_not_raised" in hinting.codes
    assert found.exit_code == 0
    assert found.codes == {"hints_not_given", "listen_unread", "advertised_loopback"}
    assert "advertised_right" in found.fine()
    assert "advertised_unsure" in other.codes


def test_a_proxy_that_does_not_answer_each_kind_of_client(crowd: Crowd, tmp_path: Path) -> None:
    asked = itertools.count()
    # The check's first question is answered, and one of those that come together.
    gate = Gate(lambda request: request.api_key == API_VERSIONS and next(asked) > 1)
    gate.shut()
    place, behind, (_, broker) = free_address(), free_address(), crowd.right(1)
    with _proxy(tmp_path, (behind, broker)), Relay(place, behind, gate):
        found = check((place, broker))

    assert "listen_unanswered" in found.codes
    assert "listen_not_raised" not in found.codes


def test_topics_that_acls_hide(crowd: Crowd) -> None:
    ask = functools.partial(check, crowd.right(1), crowd.right(2))

    # Where one ACL speaks of all topics, only those may see a topic who are allowed to.
    _allow(crowd, "User:somebody", "*")
    until(lambda: "topics_hidden" in ask().codes, "the ACL is in force")
    _allow(crowd, "User:*", TOPIC)
    until(lambda: "topics_partly_hidden" in ask().codes, "the other ACL is in force")


def _allow(crowd: Crowd, principal: str, topic: str) -> None:
    creation = AclCreation(
        resource_type=i8(2),
        resource_name=topic,
        resource_pattern_type=i8(3),
        principal=principal,
        host="*",
        operation=i8(8),
        permission_type=i8(3),
    )
    with crowd.cluster.connect(1) as connection:
        connection.ask(CreateAclsRequest(creations=(creation,)), CreateAclsResponse)


@pytest.mark.parametrize(
    ("version", "mode", "settings", "codes"),
    [
        ("2.8.2", "zk", {"inter.broker.protocol.version": "2.7"}, {"topic_ids_off"}),
        ("3.6.2", "kraft", {}, {"kraft_hold"}),
        ("3.7.2", "zk", {}, {"broker_native"}),
    ],
)
def test_what_brokers_are(
    version: str,
    mode: Any,
    settings: dict[str, str],
    codes: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LEADER_HINTS_HOLD__KRAFT_MS", "499")
    cluster = RealCluster(version, mode, folder=tmp_path, brokers=1, overrides=settings)
    with cluster:
        ClusterAdmin(cluster).create_topic(TOPIC, [[1]])
        broker = cluster.brokers[1]
        found = check((broker.advertised, broker.upstream))

    assert found.exit_code == 0
    assert found.codes - {"advertised_loopback"} == codes


def test_a_broker_that_allows_less_than_is_needed_and_more_than_is_relayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"max.connections.per.ip": "50", "socket.request.max.bytes": "2000000000"}
    cluster = RealCluster("2.4.1", "zk", folder=tmp_path, brokers=1, overrides=settings)
    with cluster, contextlib.ExitStack() as clients:
        ClusterAdmin(cluster).create_topic(TOPIC, [[1]])
        broker = cluster.brokers[1]
        few = check((broker.advertised, broker.upstream))
        with monkeypatch.context() as environment:
            environment.setenv("LEADER_HINTS_TOPIC_IDS", "synthesize")
            synthetic = check((broker.advertised, broker.upstream))
        for number in range(60):
            source = (f"127.0.0.{2 + number % 2}", 0)
            client = socket.create_connection(broker.upstream, source_address=source)
            clients.enter_context(client)
        many = check((broker.advertised, broker.upstream))

    always = {"no_topic_ids", "requests_limited", "advertised_loopback"}
    assert few.codes == always
    assert synthetic.codes == always - {"no_topic_ids"} | {"topic_ids_made_up"}
    assert many.codes == always | {"connections_limited"}


def test_what_there_is_to_find_the_closest_replica_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEADER_HINTS_CLOSEST_REPLICA", "on")
    plain = RealCluster("2.4.1", "zk", folder=tmp_path / "plain", brokers=1, racks=False)
    with plain:
        ClusterAdmin(plain).create_topic(TOPIC, [[1]])
        broker = plain.brokers[1]
        unknown = check((broker.advertised, broker.upstream))
        with monkeypatch.context() as environment:
            environment.setenv("LEADER_HINTS_RACKS", "1=a")
            known = check((broker.advertised, broker.upstream))
    selecting = RealCluster(
        "2.4.1", "zk", folder=tmp_path / "selecting", brokers=1, overrides=CLOSEST_REPLICA
    )
    with selecting:
        ClusterAdmin(selecting).create_topic(TOPIC, [[1]])
        broker = selecting.brokers[1]
        selected = check((broker.advertised, broker.upstream))

    always = {"no_topic_ids", "advertised_loopback"}
    assert unknown.codes == always | {"racks_unknown"}
    assert known.codes == always
    assert "racks_known" in known.fine()
    assert selected.codes == always | {"replica_selector"}


def test_a_broker_that_is_too_old() -> None:
    # Brokers before 2.4 are not built for the Scala version of the others; the mock says what
    # they say.
    old = {"Metadata": 8, "Produce": 7}
    with MockCluster(brokers=1, topics={TOPIC: 1}, apiversions=old) as cluster:
        found = check((free_address(), cluster.brokers[1]))

    assert found.codes == {"broker_too_old"}
