"""The image: what is in it, and how it runs with nothing that it could do without."""

import mmap
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from leader_hints.mock.cluster import MockCluster
from tests.deploy.containers import BASE, IMAGE, Containers
from tests.deploy.tools import need, run
from tests.harness.maven import ROOT
from tests.harness.ports import free_ports
from tests.harness.waiting import until
from tests.mock.moving import TOPIC, produce_on_the_move, producing

_MOST_BYTES = 120_000_000
#: One that had to be killed after it ends with 137.
_GRACE_S = 5


def test_the_dockerfile_has_no_finding() -> None:
    need("hadolint")
    run("hadolint", "Dockerfile")


def test_it_is_small(containers: Containers) -> None:
    assert containers.inspect(IMAGE)["Size"] - containers.inspect(BASE)["Size"] <= _MOST_BYTES


def test_it_runs_as_nobody_and_says_how_it_is(containers: Containers) -> None:
    image = containers.inspect(IMAGE)

    assert image["User"] == "65532:65532"
    assert image["Config"]["Entrypoint"] == ["leader-hints"]
    assert "healthcheck.py" in " ".join(image["Healthcheck"]["Test"])


def test_it_offers_no_command_that_cannot_run(containers: Containers) -> None:
    with containers.start("run", "--route=127.0.0.1:0=127.0.0.1:1") as container:
        commands = run(*container.argv("ls", "/opt/leader-hints/bin")).stdout.split()

    assert "leader-hints" in commands
    assert "leader-hints-report" not in commands


def test_nothing_of_the_index_is_left_in_it(
    containers: Containers, index_address: str, tmp_path: Path
) -> None:
    archive = tmp_path / "image.tar"
    containers.podman("save", "--quiet", "--output", str(archive), IMAGE)
    parts = urlsplit(index_address)

    with archive.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        assert content.find(b"trio/_core/_run.py") > 0, "layers are packed: they cannot be searched"
        for text in (str(parts.password), f"127.0.0.1:{parts.port}"):
            assert content.find(text.encode()) == -1, text


def test_it_serves_read_only_and_without_capabilities_and_stops_gracefully(
    containers: Containers,
) -> None:
    outer = [("127.0.0.1", port) for port in free_ports(3)]
    (admin,) = free_ports(1)
    cluster = MockCluster(3, {TOPIC: 2}, {"Produce": 9}, dict(enumerate(outer, start=1)))
    routes = [
        f"--route={host}:{port}={upstream[0]}:{upstream[1]}"
        for (host, port), upstream in zip(outer, cluster.brokers.values(), strict=True)
    ]
    options = ("--env", f"LEADER_HINTS_ADMIN=127.0.0.1:{admin}")
    with cluster, containers.start("run", *routes, options=options) as container:
        until(container.healthy, "the image's health check is content")
        bootstrap = ",".join(f"{host}:{port}" for host, port in outer)
        with producing(bootstrap) as producer:
            produce_on_the_move(cluster, producer)
        assert container.stop(_GRACE_S) == 0
        assert '"level": "error"' not in container.log
        assert not container.healthy()


def test_a_sigterm_is_heard_while_python_still_imports(containers: Containers) -> None:
    with containers.start("run", "--route=127.0.0.1:0=127.0.0.1:1") as container:
        until(container.hears_sigterm, "there is a handler for SIGTERM")
        assert container.stop(_GRACE_S) == 0


def test_every_dependency_has_a_wheel_for_arm64(tmp_path: Path) -> None:
    """So the Dockerfile, which has no compiler, builds there too."""
    platforms = ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64")
    run(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--dest", tmp_path),
        *("--only-binary=:all:", "--implementation=cp", "--python-version=3.11"),
        *(f"--platform={platform}" for platform in platforms),
        *("-c", "constraints.txt", "-r", "/dev/stdin"),
        text="\n".join(_dependencies()),
    )
    assert list(tmp_path.glob("confluent_kafka-*_aarch64.whl"))


def _dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [str(dependency) for dependency in project["dependencies"]]
