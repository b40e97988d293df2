"""The Compose files: what Compose itself says of them, and a run with real brokers by podman."""

import json
import re
import shutil
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from leader_hints.cli.sources import load_settings
from tests.deploy.containers import BASE, Containers
from tests.deploy.tools import need, run
from tests.harness.maven import ROOT, broker_library
from tests.harness.waiting import until

FOLDER = ROOT / "deploy" / "compose"
_BROKERS = ("broker-1", "broker-2", "broker-3")
_ADMINS = (9101, 9102, 9103)
#: Prints the broker that leads what the client writes.
_LEADER = """
import os
from confluent_kafka.admin import AdminClient
admin = AdminClient({"bootstrap.servers": os.environ["BOOTSTRAP"]})
print(f"leader: broker-{admin.list_topics('hints').topics['hints'].partitions[0].leader}")
"""
_ELECT = """
import os
from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient
admin = AdminClient({"bootstrap.servers": os.environ["BOOTSTRAP"]})
admin.elect_leaders(ElectionType.PREFERRED).result()
"""


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services as Compose reads them."""
    need("docker-compose")
    done = run("docker-compose", "-f", FOLDER / "compose.yaml", "config", "--format", "json")
    read: dict[str, Any] = json.loads(done.stdout)["services"]
    return read


def test_compose_refuses_a_key_that_is_none(tmp_path: Path) -> None:
    need("docker-compose")
    text = (FOLDER / "compose.yaml").read_text()
    (tmp_path / "compose.yaml").write_text(text.replace("read_only:", "readonly:"))
    done = run("docker-compose", "-f", tmp_path / "compose.yaml", "config", "-q", check=False)
    assert done.returncode != 0
    assert "readonly" in done.stderr


def test_each_broker_advertises_its_own_proxy(services: dict[str, Any], tmp_path: Path) -> None:
    for number in (1, 2, 3):
        proxy, broker = services[f"hints-{number}"], services[f"broker-{number}"]
        settings = load_settings({}, proxy["environment"], FOLDER / "leader-hints.yaml")
        (route,) = settings.routes
        assert route.upstream.host == f"broker-{number}"
        advertised = broker["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
        assert advertised[0] == f"CLIENTS://hints-{number}:{route.listen.port}"
        assert f"CLIENTS://0.0.0.0:{route.upstream.port}" in (
            broker["environment"]["KAFKA_LISTENERS"].split(",")
        )


def test_proxies_may_do_nothing_that_they_need_not(services: dict[str, Any]) -> None:
    for number in (1, 2, 3):
        proxy = services[f"hints-{number}"]
        assert proxy["read_only"] is True
        assert proxy["cap_drop"] == ["ALL"]
        assert {port["host_ip"] for port in proxy["ports"]} == {"127.0.0.1"}


class Running:
    """The files as podman runs them, with brokers out of jars in place of those of an image."""

    def __init__(self, containers: Containers, folder: Path) -> None:
        self._containers = containers
        self._override = folder / "override.yaml"
        self._override.write_text(yaml.safe_dump({"services": _stand_ins()}))

    def compose(self, *argv: str, check: bool = True) -> str:
        """What a command of podman-compose writes."""
        files = ("-f", FOLDER / "compose.yaml", "-f", self._override)
        variables = self._containers.variables
        done = run("podman-compose", *files, *argv, variables=variables, check=check)
        return done.stdout + done.stderr

    def __enter__(self) -> Self:
        self._down()  # what a killed run left behind
        self.compose("up", "--detach", "--no-build")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._down()

    def _down(self) -> None:
        # It complains of each container that is not there.
        self.compose("down", "--volumes", "--timeout", "1", check=False)


def _stand_ins() -> dict[str, Any]:
    """What differs from the files: the brokers' image, and who waits for whom.

    Podman has no health checks where there is no systemd.
    """
    java = Path(shutil.which("java") or "java").resolve()
    home = java.parents[1]
    jars = broker_library("3.6.2").folder / "libs"
    program = Path(__file__).with_name("broker_image.py")
    broker = {
        "image": BASE,
        "entrypoint": ["python", "/broker.py", "/jars", str(java)],
        "volumes": [
            f"{home}:{home}:ro",
            f"/etc/{home.name.rpartition('-')[0]}:/etc/{home.name.rpartition('-')[0]}:ro",
            f"{jars}:/jars:ro",
            f"{program}:/broker.py:ro",
        ],
    }
    everybody = (*_BROKERS, "hints-1", "hints-2", "hints-3")
    started = {name: {"condition": "service_started"} for name in everybody}
    return {**dict.fromkeys(_BROKERS, broker), "client": {"depends_on": started}}


def hints_given() -> float:
    """How many hints the three proxies gave, as their published ports tell."""
    return sum(
        sample.value
        for port in _ADMINS
        for family in text_string_to_metric_families(_metrics(port))
        for sample in family.samples
        if sample.name == "leader_hints_hints_given_total" and sample.labels["mode"] == "on"
    )


def _metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text: str = answer.read().decode()
    return text


def ready() -> bool:
    """Whether each proxy's broker answers."""
    for port in _ADMINS:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
        except OSError:
            return False
    return True


def test_the_client_gets_a_hint(containers: Containers, tmp_path: Path) -> None:
    """As docs/deploy/compose.md has it: a broker restarts, and then leads again what it led."""
    need("podman-compose", "podman", "java", root=True)
    with Running(containers, tmp_path) as running:
        until(ready, "brokers and proxies are up", deadline_s=120)
        until(lambda: "writing" in running.compose("logs", "client"), "the client writes")

        def in_client(program: str) -> str:
            return running.compose("exec", "-T", "client", "python", "-c", program)

        def moved() -> bool:
            (broker,) = re.findall(r"leader: (broker-\d)", in_client(_LEADER))
            running.compose("restart", "--timeout", "20", broker)
            until(ready, f"{broker} is back")
            in_client(_ELECT)
            return hints_given() > 0

        until(moved, "a hint was given", deadline_s=120)
        assert "was not taken" not in running.compose("logs", "client")
