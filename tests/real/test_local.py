"""`leader-hints local` before real brokers on addresses of their own: no byte shows those."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from kio.index import load_request_schema, load_response_schema

from leader_hints.core.versions.address_rewriting import NEWEST
from tests.apis.messages import Entity, element, plain
from tests.apis.readdressing import addresses
from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ClientProcess, ConsumerSpec, ProducerSpec
from tests.harness.cluster import RealCluster
from tests.harness.connection import BrokerConnection, decode_response
from tests.harness.ports import free_range
from tests.harness.proxyproc import LocalProcess
from tests.harness.relay import Relay
from tests.harness.waiting import until
from tests.real.names import APART_24, APART_36, APART_39, CONFLUENT, JAVA
from tests.real.sandwich import stream_of, whole_responses

#: Where clients are sent: relays that record, before the virtual cluster's own listeners.
_SEEN = "127.0.0.9"
_BROKERS = (1, 2, 3)
_PRODUCE, _FETCH = 0, 1
_METADATA, _FIND_COORDINATOR, _API_VERSIONS, _DESCRIBE_CLUSTER = 3, 10, 18, 60
_ASKED = (_METADATA, _FIND_COORDINATOR, _DESCRIBE_CLUSTER)
#: The first versions of Produce and Fetch that tell where a leader is.
_TELLS_FROM = {_PRODUCE: 10, _FETCH: 16}
#: Moves after which a client must have met an error, at most.
_MOVES = 6


class _Virtual:
    """A virtual cluster, and relays before it that record what clients get."""

    def __init__(self, process: LocalProcess, relays: dict[int, Relay], base: int) -> None:
        self.process = process
        self.relays = relays
        self.base = base
        self.bootstrap = f"{_SEEN}:{base}"
        self.addresses = {node: (_SEEN, base + 1 + node) for node in _BROKERS}

    def told(self) -> bytes:
        """All bytes towards clients."""
        return stream_of([talk for relay in self.relays.values() for talk in relay.conversations])

    def hinted(self) -> set[int]:
        """The APIs whose errors told where a leader is; checks each address that they told."""
        found = set()
        for relay in self.relays.values():
            for request, frame in whole_responses(relay):
                key, version = request.api_key, request.api_version
                if version >= _TELLS_FROM.get(key, version + 1):
                    answer: Entity = decode_response(frame, load_response_schema(key, version))
                    for node, host, port in addresses(answer):
                        assert (host, port) == self.addresses[node]
                        found.add(key)
        return found


@contextmanager
def _before(cluster: RealCluster, folder: Path, *more: str) -> Iterator[_Virtual]:
    base = free_range(2 + len(_BROKERS) + 1)
    log = folder / "local.log"
    arguments = ("--advertise", _SEEN, *more)
    process = LocalProcess(cluster.bootstrap, base, log, brokers=len(_BROKERS), arguments=arguments)
    ports = [base, *(base + 1 + node for node in _BROKERS)]
    with ExitStack() as opened:
        opened.enter_context(process)
        relays = {
            port: opened.enter_context(Relay((_SEEN, port), ("127.0.0.1", port))) for port in ports
        }
        yield _Virtual(process, relays, base)


@pytest.mark.parametrize("cluster", [APART_24, APART_36, APART_39], indirect=True, scope="session")
def test_clients_stay_here_and_learn_of_no_broker(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_topic("local")
    # Before 2.8 there are no topic ids, and so no Fetch that tells where a leader is.
    tells = {_PRODUCE} if cluster.version < "2.8" else {_PRODUCE, _FETCH}
    with _before(cluster, tmp_path) as virtual:
        for library in (JAVA, CONFLUENT):
            process = clients(library)
            group = f"group-{library}"
            consumer = process.consume(ConsumerSpec(virtual.bootstrap, topic, group=group))
            producer = process.produce(ProducerSpec(virtual.bootstrap, topic))
            producer.wait_acked(10)
            admin.move_leader(topic)
            producer.wait_acked(10)
            for _ in range(_MOVES):
                if virtual.hinted() >= tells:
                    break
                admin.move_leader(topic)
                producer.wait_acked(10)
            producer.stop()
            consumer.wait_count(len(producer.acked))
            consumer.stop()
        assert virtual.hinted() == tells
        assert _ask_every_version((_SEEN, virtual.base)) > 10
        told = virtual.told()
        assert _SEEN.encode() in told
        for node in _BROKERS:
            host, _ = cluster.brokers[node].upstream
            assert host.encode() not in told, host
        if cluster.version < "3.7":
            until(lambda: virtual.process.events("hint_given"), "a hint was given")


@pytest.mark.parametrize("cluster", [APART_24], indirect=True, scope="session")
def test_fetch_hints_come_with_synthetic_topic_ids(
    cluster: RealCluster,
    admin: ClusterAdmin,
    clients: Callable[[str], ClientProcess],
    new_topics: Callable[..., list[str]],
    tmp_path: Path,
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        "topic_ids: synthesize\nhold: {deadline_ms: 5000, link_ms_per_second: 1000}\n"
    )
    # Each broker is known by what it leads.
    topic = new_topics("synthetic", partitions=len(_BROKERS))[0]
    with _before(cluster, tmp_path, "--config", str(settings)) as virtual:
        until(lambda: virtual.process.events("topic_ids_offered"), "topic ids are offered")
        process = clients(CONFLUENT)
        consumer = process.consume(ConsumerSpec(virtual.bootstrap, topic))
        producer = process.produce(ProducerSpec(virtual.bootstrap, topic))
        for _ in range(_MOVES):
            consumer.wait_count(len(consumer.consumed) + 10)
            if _FETCH in virtual.hinted():
                break
            admin.move_leader(topic)
        producer.stop()
        consumer.wait_count(len(producer.acked))
        consumer.stop()
        assert _FETCH in virtual.hinted()
        for node in _BROKERS:
            host, _ = cluster.brokers[node].upstream
            assert host.encode() not in virtual.told(), host


def _ask_every_version(address: tuple[str, int]) -> int:
    """Ask for brokers in every version that is offered, at the bootstrap listener.

    Checks each address in the answers; returns how many there are.
    """
    with BrokerConnection(address) as connection:
        offer = load_response_schema(_API_VERSIONS, 0)
        offers: Entity = connection.ask(plain(load_request_schema(_API_VERSIONS, 0)), offer)
        offered = {
            int(o.api_key): (int(o.min_version), int(o.max_version)) for o in offers.api_keys
        }
        assert all(newest <= NEWEST[key] for key, (_, newest) in offered.items())
        count = 0
        for key in _ASKED:
            oldest, newest = offered.get(key, (0, -1))
            for version in range(oldest, newest + 1):
                answer: Entity = connection.ask(
                    _question(key, version), load_response_schema(key, version)
                )
                for node, host, port in addresses(answer):
                    assert (host, port) == (address[0], address[1] + 1 + node)
                    count += 1
        return count


def _question(key: int, version: int) -> Entity:
    kind = load_request_schema(key, version)
    if key == _FIND_COORDINATOR:
        return plain(kind, **({"coordinator_keys": ("g",)} if version >= 4 else {"key": "g"}))
    if key == _METADATA and version < 4:
        return plain(kind, topics=(plain(element(kind, "topics"), name="no-such-topic"),))
    return plain(kind)


@pytest.mark.parametrize("cluster", [APART_24, APART_39], indirect=True, scope="session")
def test_over_ipv6(
    cluster: RealCluster,
    clients: Callable[[str], ClientProcess],
    new_topic: Callable[[str], str],
    tmp_path: Path,
) -> None:
    base, log = free_range(2 + len(_BROKERS)), tmp_path / "local.log"
    local = LocalProcess(cluster.bootstrap, base, log, brokers=len(_BROKERS), host="[::1]")
    with local:
        for library in (JAVA, CONFLUENT):
            topic = new_topic(f"ipv6-{library}")
            producer = clients(library).produce(ProducerSpec(local.bootstrap, topic, count=10))
            producer.wait_done()
            group = f"ipv6-{library}"
            consumer = clients(library).consume(ConsumerSpec(local.bootstrap, topic, group=group))
            consumer.wait_count(10)
            consumer.stop()
        assert _ask_every_version(("::1", base)) > 10


@pytest.mark.parametrize("cluster", [APART_36], indirect=True)
def test_a_broker_that_goes_and_comes_back_is_followed(
    cluster: RealCluster, admin: ClusterAdmin, tmp_path: Path
) -> None:
    with _before(cluster, tmp_path) as virtual:
        with cluster.without(3):
            until(lambda: _nodes(virtual) == {1, 2}, "broker 3 has left")
        until(lambda: _nodes(virtual) == {1, 2, 3}, "broker 3 is back")
        with BrokerConnection(virtual.addresses[3]) as connection:
            assert _ask_brokers(connection) == {1, 2, 3}


def _nodes(virtual: _Virtual) -> set[int]:
    with BrokerConnection(virtual.addresses[1]) as connection:
        return _ask_brokers(connection)


def _ask_brokers(connection: BrokerConnection) -> set[int]:
    answer: Entity = connection.ask(_question(_METADATA, 9), load_response_schema(_METADATA, 9))
    return {int(broker.node_id) for broker in answer.brokers}
