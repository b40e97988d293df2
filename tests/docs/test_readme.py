"""Every command of the README runs, as far as it can without a container engine and an init system.

Addresses and folders are replaced by free ports and a test's own folder; nothing else is.
"""

import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from leader_hints.mock.cluster import MockCluster
from tests.cli.commands import COMMAND, clean_environment
from tests.docs.pages import DOCS
from tests.harness import processes
from tests.harness.maven import PYTHONPATH
from tests.harness.ports import free_ports
from tests.harness.waiting import until

_ROOT = DOCS.parent
_LEAVES_S = 30


def _text(file: str = "README.md") -> str:
    return (_ROOT / file).read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", _text(), flags=re.MULTILINE | re.DOTALL)


def _commands() -> list[str]:
    """All shell commands, without comments; one that goes on over several lines is one."""
    joined = "\n".join(_blocks("sh")).replace("\\\n", " ")
    lines = (re.sub(r"\s+#.*", "", line) for line in joined.splitlines())
    return [" ".join(line.split()) for line in lines]


def _having(start: str) -> list[str]:
    return [command for command in _commands() if command.startswith(start)]


def _runs() -> list[list[str]]:
    """The arguments of every `leader-hints run`: by hand, in a container, in a pod."""
    (by_hand,) = _having("leader-hints run ")
    (container,) = _having("docker run ")
    _, _, in_container = container.partition(" leader-hints run ")
    (pod,) = (yaml.safe_load(block) for block in _blocks("yaml"))
    in_pod: list[str] = pod["initContainers"][0]["args"]
    return [shlex.split(by_hand)[1:], ["run", *shlex.split(in_container)], in_pod]


@dataclass
class _Scene:
    """A broker, and the addresses that stand for those of the README."""

    broker: str
    listen: str
    admin: str

    def here(self, text: str) -> str:
        """A command, with the scene's addresses in it."""
        places = {
            "0.0.0.0:19092": self.listen,
            "127.0.0.1:9092": self.broker,
            "0.0.0.0:9100": self.admin,
            "127.0.0.1:9100": self.admin,
        }
        return re.sub("|".join(map(re.escape, places)), lambda found: places[found[0]], text)

    @contextmanager
    def running(self, arguments: list[str], folder: Path) -> Iterator[None]:
        """Run the proxy; it must be alive, listen on the route, and leave in order."""
        argv = [COMMAND, *map(self.here, arguments)]
        log = folder / "proxy.log"
        proxy = processes.start(argv, output=log, environment={"PYTHONPATH": PYTHONPATH})
        try:
            until(lambda: proxy.poll() is not None or self._alive(), "the proxy is alive")
            assert proxy.poll() is None, log.read_text(encoding="utf-8")
            until(lambda: f'"listen": "{self.listen}"' in log.read_text(), "the route listens")
            yield
        finally:
            code = processes.end(proxy, _LEAVES_S)
        assert code == 0, log.read_text(encoding="utf-8")

    def get(self, path: str) -> str:
        """What the admin server answers."""
        with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=10) as answer:
            body: bytes = answer.read()
        return body.decode()

    def _alive(self) -> bool:
        try:
            return self.get("/livez") == "alive\n"
        except OSError:
            return False


@pytest.fixture
def scene() -> Iterator[_Scene]:
    """A scene in which the broker advertises the proxy."""
    listen, admin = free_ports(2)
    with MockCluster(1, {"t": 1}, {"Produce": 9, "Fetch": 15}, {1: ("127.0.0.1", listen)}) as one:
        yield _Scene(one.bootstrap, f"127.0.0.1:{listen}", f"127.0.0.1:{admin}")


def _shell(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=_ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_each_command_is_tested_below() -> None:
    tested = {"make", "leader-hints", "curl", "docker", "python3.11", "cp", "systemctl"}
    tested |= {"/opt/leader-hints/bin/pip", "/opt/leader-hints/bin/leader-hints"}

    assert {command.split()[0] for command in _commands() if command} == tested


@pytest.mark.parametrize("file", ["README.md", "deploy/README.md"])
def test_its_links_lead_to_files(file: str) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", _text(file)) if "://" not in link]

    assert links
    for link in links:
        assert (_ROOT / file).parent.joinpath(link).exists(), link


def test_make_knows_its_targets() -> None:
    commands = _having("make ") + re.findall(r"`(make [a-z-]+)`", _text("CONTRIBUTING.md"))
    targets = {command.removeprefix("make ") for command in commands}
    done = _shell(f"make --dry-run {' '.join(targets)}")

    assert {"demo", "test", "site", "bench"} <= targets
    assert done.returncode == 0, done.stderr


def test_check_looks_at_the_route(scene: _Scene) -> None:
    (command,) = _having("leader-hints check")
    done = _shell(scene.here(command.replace("leader-hints", shlex.quote(COMMAND), 1)))

    assert f"{scene.listen} is free to listen on" in done.stdout
    assert f"advertises {scene.listen}, which leads to this route" in done.stdout
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("arguments", _runs(), ids=["by hand", "in a container", "in a pod"])
def test_run_is_in_front_of_the_broker_and_ends_in_order(
    arguments: list[str], scene: _Scene, tmp_path: Path
) -> None:
    with scene.running(arguments, tmp_path):
        until(lambda: '"ready": true' in scene.get("/readyz"), "the broker answers")
        assert "observe" in scene.get(f"/routes/{scene.listen}/hints")


def test_hints_are_switched_and_counted(scene: _Scene, tmp_path: Path) -> None:
    (switch,), (count,) = _having("leader-hints hints "), _having("curl ")
    with scene.running(_runs()[0], tmp_path):
        done = _shell(scene.here(switch.replace("leader-hints", shlex.quote(COMMAND), 1)))
        assert done.returncode == 0, done.stderr
        assert '"hints": "on"' in scene.get(f"/routes/{scene.listen}/hints")

        counted = _shell(scene.here(count))
        assert "leader_hints_hints_given_total{" in counted.stdout


def test_the_container_is_named_as_it_is_built() -> None:
    (build,) = _having("docker build")
    (run,) = _having("docker run")

    assert build == "docker build -t leader-hints ."
    assert " leader-hints run " in run
    assert (_ROOT / "Dockerfile").is_file()


def test_the_pod_asks_the_port_that_it_has() -> None:
    (pod,) = (yaml.safe_load(block) for block in _blocks("yaml"))
    (container,) = pod["initContainers"]
    ports = {port["containerPort"] for port in container["ports"]}
    probes: list[Any] = [container["startupProbe"], container["readinessProbe"]]

    assert ports == {int(port) for port in re.findall(r"0\.0\.0\.0:(\d+)", str(container["args"]))}
    assert {probe["httpGet"]["port"] for probe in probes} <= ports
    assert container["image"].startswith("leader-hints:")


def test_a_plain_host_is_set_up(tmp_path: Path) -> None:
    opt, etc = tmp_path / "opt", tmp_path / "etc"
    (etc / "systemd" / "system").mkdir(parents=True)
    (script,) = (block for block in _blocks("sh") if "systemctl" in block)
    installed = f"{opt}/leader-hints/bin/leader-hints"
    done = _shell(
        script.replace("/opt/leader-hints/bin/leader-hints", installed)
        # What pip would install is what `make venv` has installed, with the same constraints.
        .replace("/opt/leader-hints/bin/pip install", f"ln -s {COMMAND} {installed}; echo pip")
        .replace("python3.11 -m venv /opt/", f"{sys.executable} -m venv --without-pip {opt}/")
        .replace("/etc/", f"{etc}/")
        .replace("systemctl", "echo systemctl")
    )

    assert done.returncode == 0, done.stdout + done.stderr
    first, *settings, reload, last = done.stdout.splitlines()
    assert first == "pip -c constraints.txt ."
    assert "upstream: 127.0.0.1:9092" in "\n".join(settings)
    assert reload == "systemctl daemon-reload"
    assert last == "systemctl enable --now leader-hints"
    unit = (etc / "systemd" / "system" / "leader-hints.service").read_text(encoding="utf-8")
    start = "/opt/leader-hints/bin/leader-hints run --config /etc/leader-hints.yaml"
    assert f"ExecStart={start}\n" in unit
