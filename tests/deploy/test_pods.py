"""The rendered pods' proxies as they stand there, in namespaces before real brokers."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.deploy.containers import Container, Containers
from tests.deploy.network import OUTSIDE, Machine, Network
from tests.deploy.rendered import Rendered, brokers_chart, kustomized
from tests.deploy.tools import need
from tests.harness import processes
from tests.harness.admin import ClusterAdmin
from tests.harness.checker import check_consumed, check_produced
from tests.harness.clients import ConsumerSpec, ProducerSpec
from tests.harness.cluster import Place, RealCluster
from tests.harness.waiting import until

ADMIN = "http://127.0.0.1:9100"
TOPIC = "pods"
_MOVES = 6


def places(network: Network, kind: str) -> dict[int, Place]:
    """Where the brokers listen, and what they advertise, as the settings of each kind say."""
    port, advertised = (19092, 9092) if kind == "daemonset" else (9092, 19092)
    return {
        number: Place(node.address, port, advertised, node.inside, "0.0.0.0")
        for number, node in network.nodes.items()
    }


@contextlib.contextmanager
def running(
    rendered: Rendered, containers: Containers, node: Machine, folder: Path
) -> Iterator[Container]:
    """The proxy's container as it is rendered, in the network of a node or pod."""
    proxy = rendered.proxy
    fields = {"status.hostIP": node.address, "metadata.name": f"kafka-{node.name[-1]}"}
    context = rendered.pod["spec"].get("securityContext", {}) | proxy["securityContext"]
    options = [
        f"--user={context['runAsUser']}:{context['runAsGroup']}",
        f"--memory={proxy['resources']['limits']['memory'].removesuffix('Mi')}m",
        *(f"--env={name}={value}" for name, value in rendered.environment(fields).items()),
        *(f"--volume={at}:{place}:ro" for place, at in rendered.mount(folder).items()),
    ]
    with containers.start(*proxy["args"], options=options, network=f"ns:{node.path}") as container:
        yield container


def hints_given(network: Network) -> float:
    """How many hints the proxies gave."""
    return sum(
        sample.value
        for node in network.nodes.values()
        for family in text_string_to_metric_families(node.ask(f"{ADMIN}/metrics"))
        for sample in family.samples
        if sample.name == "leader_hints_hints_given_total" and sample.labels["mode"] == "on"
    )


@pytest.mark.parametrize("kind", ["daemonset", "example"])
def test_a_client_gets_a_hint(kind: str, containers: Containers, tmp_path: Path) -> None:
    need("ip", "java", "kustomize", root=True)
    rendered = kustomized(kind)
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Network())
        cluster = stack.enter_context(
            RealCluster(
                "3.6.2",
                folder=tmp_path / "cluster",
                brokers=2,
                places=places(network, kind),
                quorum_host=OUTSIDE,
            )
        )
        for node in network.nodes.values():
            folder = tmp_path / node.name
            stack.enter_context(running(rendered, containers, node, folder))
        for node in network.nodes.values():
            until(lambda n=node: n.ask(f"{ADMIN}/readyz"), f"{node.name} is ready")  # type: ignore[misc]
            for route in node.status(ADMIN)["routes"]:
                node.ask(f"{ADMIN}/routes/{route['name']}/hints", put="on")

        admin = ClusterAdmin(cluster)
        admin.create_topic(TOPIC, [[1, 2]])
        clients = stack.enter_context(network.client.clients(tmp_path))
        consumer = clients.consume(ConsumerSpec(cluster.bootstrap, TOPIC))
        producer = clients.produce(ProducerSpec(cluster.bootstrap, TOPIC, idempotent=True))
        for _ in range(_MOVES):
            producer.wait_acked(20)
            admin.move_leader(TOPIC)
        producer.wait_acked(20)
        check_produced(admin, producer.stop())
        check_consumed(admin, consumer)
        consumer.stop()

        assert hints_given(network) > 0


def test_a_plain_sidecar_leaves_after_its_broker(containers: Containers, tmp_path: Path) -> None:
    """What preStop runs ends when the broker has gone; only then is SIGTERM sent."""
    need("ip", "java", "helm", root=True)
    rendered = brokers_chart(tmp_path / "charts", "sidecar.native=false")
    with (
        Network() as network,
        RealCluster(
            "3.6.2",
            folder=tmp_path / "cluster",
            brokers=2,
            places=places(network, "example"),
            quorum_host=OUTSIDE,
        ) as cluster,
        running(rendered, containers, network.nodes[1], tmp_path / "pod") as container,
    ):
        until(container.healthy, "the proxy is up")
        hook = rendered.proxy["lifecycle"]["preStop"]["exec"]["command"]
        leaving = processes.start(container.argv(*hook), output=tmp_path / "hook.log")
        looked = "leader-hints wait-gone"
        until(lambda: looked in container.processes(), "the hook runs")
        assert leaving.poll() is None
        cluster.brokers[1].stop()
        assert leaving.wait(30) == 0, (tmp_path / "hook.log").read_text()
        assert container.stop(10) == 0
