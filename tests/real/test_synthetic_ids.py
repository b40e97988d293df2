"""Fetch hints in front of brokers that have no topic ids, by synthetic ids."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kio.schema.metadata.v11.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v11.response import MetadataResponse
from kio.schema.types import TopicName

from tests.harness.admin import ClusterAdmin, TopicPartition
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import (
    ClientProcess,
    ConsumerRun,
    ConsumerSpec,
    ProducerRun,
    ProducerSpec,
)
from tests.harness.cluster import HOST, RealCluster
from tests.harness.franz_go import go_clients
from tests.harness.ports import free_ports
from tests.harness.proxyproc import ProxyFleet, ProxyProcess
from tests.harness.relay import Gate, Relay, RequestHeader
from tests.harness.waiting import never, until
from tests.matrix.brokers import BrokerKind
from tests.matrix.cell import run_cell
from tests.matrix.roster import CLIENTS, newest
from tests.real.names import CONFLUENT, JAVA, ZK_24
from tests.real.sandwich import Sandwich
from tests.real.test_client_families import need_go

FETCH, METADATA, OFFSET_FOR_LEADER_EPOCH = 1, 3, 23
FIRST_AT_LEADER = {FETCH, OFFSET_FOR_LEADER_EPOCH}
WITHOUT_HINT_S = 2.0
#: Whether a client asks so depends on which is sooner, each time again.
_LACKING_S = 120
IBP = "inter.broker.protocol.version"
PARTITIONS = (0, 1, 2)
LAYOUT = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
REQUESTS = "leader_hints_requests_total"


def settings(folder: Path, topic_ids: str) -> list[str]:
    """Arguments of a proxy with ``topic_ids``, which waits for elections as long as they take."""
    file = folder / f"{topic_ids}.yaml"
    file.write_text(
        f"topic_ids: {topic_ids}\nhold: {{deadline_ms: 5000, link_ms_per_second: 1000}}\n"
        "subscription: {poll_interval_ms: 2000}\n"
    )
    return ["--config", str(file)]


@pytest.fixture
def go(tmp_path: Path) -> Iterator[ClientProcess]:
    """The process of franz-go's clients."""
    need_go()
    with go_clients(tmp_path) as process:
        yield process


@pytest.mark.parametrize("topic_ids", ["synthesize", "broker"])
@pytest.mark.parametrize("cluster", [ZK_24], indirect=True)
def test_librdkafka_fetches_at_the_hinted_broker(
    cluster: RealCluster,
    topic_ids: str,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    """Metadata is held back from the move on, so that only a hint can lead there."""
    # Three partitions: a proxy knows its broker by what that leads.
    topic, name = new_topics("synthetic", partitions=3)[0], ""
    gate = Gate(lambda request: request.api_key == METADATA and request.client_id == name)

    def at_leader(request: RequestHeader) -> bool:
        return request.client_id == name and request.api_key in FIRST_AT_LEADER

    # One process with all routes; the other tests here have one for each broker.
    with Sandwich(
        cluster, tmp_path, gate=gate, arguments=settings(tmp_path, topic_ids)
    ) as sandwich:
        if topic_ids == "synthesize":
            sandwich.fleet.wait_ids_offered()
        process = clients(CONFLUENT)
        feed = process.produce(ProducerSpec(cluster.direct_bootstrap, topic, acks="1"))
        consumer = process.consume(ConsumerSpec(cluster.bootstrap, topic))
        name = consumer.name

        def flow() -> None:
            consumer.wait_count(len(consumer.consumed) + 5)

        flow()
        targets = admin.raise_epochs({TopicPartition(topic, 0): 2})
        flow()
        assert sandwich.requests(2, at_leader) == 0
        gate.shut()
        admin.elect_preferred(targets)
        if topic_ids == "synthesize":
            until(lambda: sandwich.requests(2, at_leader) > 0, f"{name} asks the hinted broker")
            assert sandwich.fleet.events("hint_given")
            assert sandwich.fleet.metric(REQUESTS, api="Fetch", asked="16", sent="10") > 0
        else:
            until(lambda: gate.held, f"{name} asks for Metadata")
            never(
                lambda: sandwich.requests(2, at_leader),
                "requests at broker 2 without hint or Metadata",
                WITHOUT_HINT_S,
            )
            assert not sandwich.fleet.metric(REQUESTS, api="Fetch", asked="16")
        gate.open()
        flow()
        consumer.stop()
        feed.stop()


def test_franz_go_fetches_at_the_hinted_broker(
    clients: Callable[[str], ClientProcess], go: ClientProcess, tmp_path: Path
) -> None:
    """It takes hints with NOT_LEADER_OR_FOLLOWER alone, which a broker without a replica answers.

    So its Fetch answer is held back until the old leader's replica is gone.
    """
    cluster = RealCluster("2.7.2", folder=tmp_path / "cluster")
    name = ""
    described = Gate(lambda request: request.api_key == METADATA and request.client_id == name)
    fetched = Gate(lambda request: request.api_key == FETCH and request.client_id == name)

    def at_leader(request: RequestHeader) -> bool:
        return request.client_id == name and request.api_key in FIRST_AT_LEADER

    with cluster:
        admin = ClusterAdmin(cluster)
        admin.create_topic("go-led", LAYOUT)
        for topic_ids in ("synthesize", "broker"):
            topic = f"go-{topic_ids}"
            admin.create_topic(topic, [[1, 3]])
            ports = [(HOST, port) for port in free_ports(6)]
            brokers = [*cluster.brokers.values()]
            before = [
                Relay(b.advertised, port, described)
                for b, port in zip(brokers, ports[:3], strict=True)
            ]
            behind = [
                Relay(port, b.upstream, fetched) for b, port in zip(brokers, ports[3:], strict=True)
            ]
            arguments = settings(tmp_path, topic_ids)
            (tmp_path / topic).mkdir()
            with contextlib.ExitStack() as stack:
                for relay in (*behind, *before):
                    stack.enter_context(relay)
                fleet = stack.enter_context(
                    ProxyFleet.before(
                        list(zip(ports[:3], ports[3:], strict=True)),
                        tmp_path / topic,
                        arguments=arguments,
                    )
                )
                if topic_ids == "synthesize":
                    fleet.wait_ids_offered()
                spec = ProducerSpec(cluster.direct_bootstrap, topic, acks="1")
                feed = clients(CONFLUENT).produce(spec)
                consumer = go.consume(ConsumerSpec(cluster.bootstrap, topic))
                name = consumer.name
                consumer.wait_count(10)
                fetched.shut()
                until(lambda: fetched.held, f"an answer to {name} is held back")
                admin.reassign(TopicPartition(topic, 0), (2, 3))
                assert not any(map(at_leader, before[1].requests()))
                described.shut()
                fetched.open()

                def asked(relay: Relay = before[1]) -> bool:
                    return any(map(at_leader, relay.requests()))

                if topic_ids == "synthesize":
                    until(asked, f"{name} asks the hinted broker")
                    assert fleet.events("hint_given")
                else:
                    until(lambda: described.held, f"{name} asks for Metadata")
                    never(asked, "requests at broker 2 without hint or Metadata", WITHOUT_HINT_S)
                described.open()
                consumer.wait_count(len(consumer.consumed) + 10)
                consumer.stop()
                feed.stop()
                name = ""


@pytest.mark.parametrize("family", ["java", "confluent-kafka"])
@pytest.mark.parametrize("cluster", [ZK_24], indirect=True)
def test_all_features(
    cluster: RealCluster,
    family: str,
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    # Each broker leads something: by that a proxy knows its own.
    new_topics("led-by-each", partitions=3)
    kind = BrokerKind(cluster.version, cluster.mode, synthesize=True)
    cell = run_cell(kind, cluster, newest(family), tmp_path, moves=1)
    assert not cell.failures
    # A consumer with a rack may be answered by a follower, others by leaders alone.
    assert "16 as 10, 11" in cell.versions["Fetch"]


class Load:
    """Producers and consumers of several libraries, each on a topic of its own."""

    def __init__(self, admin: ClusterAdmin, label: str) -> None:
        self._admin = admin
        self._label = label
        self.topics: list[str] = []
        self.producers: list[ProducerRun] = []
        self.consumers: list[ConsumerRun] = []
        self._returning: list[ConsumerRun] = []

    def start(self, name: str, process: ClientProcess, *, returns: bool = False) -> None:
        """Let a library's clients work."""
        topic, bootstrap = f"{self._label}-{name}", self._admin.cluster.bootstrap
        self._admin.create_topic(topic, LAYOUT, {"min.insync.replicas": "2"})
        self.topics.append(topic)
        # Learns of changes soon, so that the test need not wait for its usual minutes.
        soon = {} if name == "franz-go" else {"metadata.max.age.ms": "2000"}
        self.consume(process, ConsumerSpec(bootstrap, topic, PARTITIONS, settings=soon), returns)
        self.producers.append(
            process.produce(ProducerSpec(bootstrap, topic, PARTITIONS, idempotent=True))
        )

    def consume(self, process: ClientProcess, spec: ConsumerSpec, returns: bool) -> ConsumerRun:
        """Start a consumer alone; ``returns`` as in the roster of clients."""
        consumer = process.consume(spec)
        self.consumers.append(consumer)
        if returns:
            self._returning.append(consumer)
        return consumer

    def flow(self, records: int = 8) -> None:
        """Wait until all of them have worked on."""
        for producer in self.producers:
            producer.wait_acked(records)
        for consumer in self.consumers:
            consumer.wait_count(len(consumer.consumed) + records)

    def wait_in_sync(self) -> None:
        """Wait until the brokers have all replicas again, as between the steps of an upgrade."""
        for topic in self.topics:
            self._admin.wait_in_sync(topic)

    def move(self) -> None:
        """Move all leaders."""
        moves = {TopicPartition(topic, n): None for topic in self.topics for n in PARTITIONS}
        self._admin.move_leaders(moves)

    def finish(self) -> None:
        """Stop them; nothing may be lost or doubled."""
        for producer in self.producers:
            check_produced(self._admin, producer.stop())
        for consumer in self.consumers:
            check_consumed(self._admin, consumer, returns=consumer in self._returning)
            consumer.stop()
        self._admin.cluster.check()


def routes_of(cluster: RealCluster) -> list[tuple[tuple[str, int], tuple[str, int]]]:
    """A route in front of each broker."""
    return [(broker.advertised, broker.upstream) for broker in cluster.brokers.values()]


def asked_by_id(processes: Sequence[ProxyProcess]) -> float:
    """How many Fetch requests came in versions that go by topic ids."""
    return sum(
        process.metric(REQUESTS, api="Fetch", asked=str(version))
        for process in processes
        for version in range(13, 17)
    )


def asked_by_name(processes: Sequence[ProxyProcess]) -> float:
    """How many Fetch requests came in versions that go by names."""
    return sum(
        process.metric(REQUESTS, api="Fetch", asked=str(version))
        for process in processes
        for version in range(13)
    )


@pytest.mark.parametrize("cluster", [ZK_24], indirect=True)
def test_half_the_brokers_are_proxied(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    go: ClientProcess,
    tmp_path: Path,
) -> None:
    """No id is synthesized then; nor are clients broken if it comes to that while they run."""
    admin.create_topic("half-led", LAYOUT)
    *routes, (shown, broker) = routes_of(cluster)
    proxied = (HOST, free_ports(1)[0])
    arguments = settings(tmp_path, "synthesize")
    client = CLIENTS["confluent-kafka-2.5.0"]
    old = client.start(tmp_path)
    with contextlib.ExitStack() as stack:
        stack.enter_context(old)
        third = ProxyProcess([(proxied, broker)], tmp_path / "third.log", arguments=arguments)
        stack.enter_context(third)
        way = stack.enter_context(Relay(shown, broker))
        fleet = stack.enter_context(
            ProxyFleet.before(routes, tmp_path, sidecars=True, arguments=arguments)
        )
        for process in fleet.processes:
            until(lambda p=process: p.events("topic_ids_withheld"), "somebody is warned")  # type: ignore[misc]
        warned = [line["broker"] for line in fleet.events("topic_ids_withheld")]
        assert warned == [f"3 at {':'.join(map(str, shown))}"] * 2

        load = Load(admin, "half")
        load.start("java", clients(JAVA))
        load.start("confluent", clients(CONFLUENT))
        load.start("confluent-2.5.0", old, returns=client.returns)
        load.start("franz-go", go)
        load.flow()
        load.move()
        load.flow()
        assert not asked_by_id(fleet.processes)
        assert not fleet.events("topic_ids_offered")

        # Now all are, and clients that come fetch by id.
        way.upstream = proxied
        way.cut()
        fleet.wait_ids_offered()
        load.start("java-later", clients(JAVA))
        load.start("confluent-later", clients(CONFLUENT))
        load.start("confluent-2.5.0-later", old, returns=client.returns)
        load.flow()
        assert asked_by_id(fleet.processes)

        # And now they are not again, but nobody sees it on an old connection. A new client of 2.5.0
        # learns of a topic from the third broker, and asks the others for it without an id, unless
        # one of these tells it the id before.
        way.upstream = broker
        numbers = itertools.count()

        def lacking() -> bool:
            topic = f"half-lacking-{next(numbers)}"
            admin.create_topic(topic, LAYOUT)
            wanted = ConsumerSpec(":".join(map(str, shown)), topic, PARTITIONS)
            consumer = load.consume(old, wanted, client.returns)
            spec = ProducerSpec(cluster.direct_bootstrap, topic, PARTITIONS, idempotent=True)
            load.topics.append(topic)
            load.producers.append(clients(CONFLUENT).produce(spec))
            consumer.wait_count(20)
            return len(fleet.events("topic_ids_withheld")) > len(warned)

        until(lacking, "a client of 2.5.0 asks for a topic without its id", _LACKING_S)
        # It was asked on a new connection, and its answer counts: what the client says is no proof.
        assert {line["broker"] for line in fleet.events("topic_ids_withheld")} == set(warned)
        load.flow()
        load.move()
        load.flow()
        load.finish()


@pytest.mark.parametrize("cluster", [ZK_24], indirect=True)
def test_restarted_and_switched_off_under_load(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    go: ClientProcess,
    tmp_path: Path,
) -> None:
    admin.create_topic("off-led", LAYOUT)
    routes = routes_of(cluster)
    synthesizing = settings(tmp_path, "synthesize")
    # Clients come back within milliseconds. A slow broker must not have them go without ids.
    with Path(synthesizing[-1]).open("a") as file:
        file.write("topic_ids_wait_ms: 30000\n")
    first, second, third = (
        [
            ProxyProcess([route], tmp_path / f"{stage}-{n}.log", arguments=arguments)
            for n, route in enumerate(routes)
        ]
        for stage, arguments in (
            ("first", synthesizing),
            ("second", synthesizing),
            ("third", settings(tmp_path, "broker")),
        )
    )
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(contextlib.ExitStack()) for _ in routes]

        def restart(as_: Sequence[ProxyProcess], load: Load) -> None:
            for one, process in zip(running, as_, strict=True):
                one.close()
                one.enter_context(process)
                load.flow()
            load.move()
            load.flow()

        for one, process in zip(running, first, strict=True):
            one.enter_context(process)
        ProxyFleet(first).wait_ids_offered()
        load = Load(admin, "off")
        load.start("java", clients(JAVA))
        load.start("confluent", clients(CONFLUENT))
        load.start("franz-go", go)
        load.flow()
        assert asked_by_id(first)

        restart(second, load)
        assert asked_by_id(second)
        assert not asked_by_name(second), "a client that came back early went without ids"

        # franz-go's consumers do not let go of ids that they had.
        load.consumers.pop().stop()
        restart(third, load)
        assert asked_by_name(third)
        assert not asked_by_id(third)
        load.finish()


def test_an_upgrade_to_real_ids_under_load(
    clients: Callable[[str], ClientProcess], go: ClientProcess, tmp_path: Path
) -> None:
    """Clients keep the ids that they have, whatever brokers come to say."""
    overrides = {IBP: "2.7", "log.message.format.version": "2.7"}
    cluster = RealCluster("2.7.2", folder=tmp_path / "cluster", overrides=overrides)
    with (
        cluster,
        ProxyFleet.before(
            routes_of(cluster), tmp_path, sidecars=True, arguments=settings(tmp_path, "synthesize")
        ) as fleet,
    ):
        admin = ClusterAdmin(cluster)
        admin.create_topic("upgrade-led", LAYOUT)
        fleet.wait_ids_offered()
        load = Load(admin, "upgrade")
        load.start("java", clients(JAVA))
        load.start("confluent", clients(CONFLUENT))
        load.start("franz-go", go)
        load.flow()
        assert asked_by_id(fleet.processes)
        for changes in ({}, {IBP: "2.8"}):
            for node in cluster.brokers:
                cluster.upgrade(node, "2.8.2", changes)
                load.wait_in_sync()
                load.flow()
        until(lambda: has_real_id(cluster, load.topics[0]), "the brokers have topic ids")
        load.move()
        load.flow()
        load.finish()
        assert not asked_by_name(fleet.processes)
        assert not fleet.events("topic_ids_withheld")


def has_real_id(cluster: RealCluster, topic: str) -> bool:
    """Whether a broker itself gives an id for a topic."""
    request = MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    with cluster.connect(1) as connection:
        answer = connection.ask(request, MetadataResponse)
    return answer.topics[0].topic_id is not None
