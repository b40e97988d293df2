"""Images and containers without an engine: buildah and podman, with a storage of their own.

No registry is asked. In place of the Dockerfile's base stands an image of Debian packages; all
else is as users have it.
"""

import functools
import http.server
import json
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.deploy.port_rules import forget_dead
from tests.deploy.tools import FOLDER, run
from tests.harness.maven import ROOT
from tests.harness.ports import free_ports

BASE = "localhost/stand-in-base:1"
IMAGE = "localhost/leader-hints:latest"
#: What podman-compose calls the network of deploy/compose/compose.yaml.
COMPOSE_NETWORK = "leader-hints_default"

# A machine without systemd, whose own limits may be as low as these.
_CONTAINERS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_STORAGE = """
[storage]
driver = "overlay"
runroot = "{folder}/run"
graphroot = "{folder}/graph"
"""
_HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--memory=128m")


class Containers:
    """The storage, and what is made in it."""

    def __init__(self, folder: Path = FOLDER / "containers") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._containers, self._storage = folder / "containers.conf", folder / "storage.conf"
        self._containers.write_text(_CONTAINERS)
        self._storage.write_text(_STORAGE.format(folder=folder))

    @property
    def variables(self) -> dict[str, str]:
        """The environment for the tools."""
        return {
            "CONTAINERS_CONF": str(self._containers),
            "CONTAINERS_STORAGE_CONF": str(self._storage),
            "BUILDAH_ISOLATION": "chroot",
        }

    def podman(self, *argv: str, check: bool = True) -> str:
        """What a podman command writes to its standard output."""
        return run("podman", *argv, variables=self.variables, check=check).stdout

    def inspect(self, image: str) -> dict[str, Any]:
        """What podman knows of an image."""
        found: dict[str, Any] = json.loads(self.podman("image", "inspect", image))[0]
        return found

    def clear(self) -> None:
        """Remove the containers that a killed run left behind, and what leads to them."""
        self.podman("rm", "--all", "--force", "--time=0")
        forget_dead(COMPOSE_NETWORK)

    def make_base(self) -> None:
        """Make the stand-in for the base image, unless it is there."""
        if not self.podman("images", "-q", BASE).strip():
            self.podman("import", "--quiet", str(_base_archive()), BASE)

    def build(self, index: str) -> None:
        """Build the image from the Dockerfile, with packages from ``index`` alone."""
        run(
            *("buildah", "bud", "--pull-never", "--format=docker", "--layers=false"),
            *("--build-arg", f"BASE={BASE}", "--build-arg", f"PIP_INDEX_URL={index}"),
            *("--tag", IMAGE, ROOT),
            variables=self.variables,
        )
        self.podman("image", "prune", "--force")

    def start(
        self, *arguments: str, options: Sequence[str] = (), network: str = "host"
    ) -> "Container":
        """Start a container of the image with as little as the documentation gives it."""
        return Container(
            self,
            self.podman(
                *("run", "--detach", "--pull=never", f"--network={network}", *_HARDENED),
                *(*options, IMAGE, *arguments),
            ).strip(),
        )


class Container:
    """A container of the image, as a context manager."""

    def __init__(self, containers: Containers, name: str) -> None:
        self._containers = containers
        self._name = name

    @property
    def log(self) -> str:
        """What it wrote to standard error."""
        done = run("podman", "logs", self._name, variables=self._containers.variables)
        return done.stderr

    def healthy(self) -> bool:
        """What the image's health check says now."""
        argv = ("podman", "healthcheck", "run", self._name)
        return run(*argv, variables=self._containers.variables, check=False).returncode == 0

    def hears_sigterm(self) -> bool:
        """Whether its process has a handler for SIGTERM. The kernel keeps others from process 1."""
        pid = self._containers.podman("inspect", "--format={{.State.Pid}}", self._name).strip()
        status = Path(f"/proc/{pid}/status").read_text()
        (caught,) = (line for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)

    def argv(self, *command: str) -> tuple[str, ...]:
        """What runs a command in it, as a hook does."""
        variables = (f"{name}={value}" for name, value in self._containers.variables.items())
        return ("env", *variables, "podman", "exec", self._name, *command)

    def processes(self) -> str:
        """The command lines of all that runs in it."""
        return self._containers.podman("top", self._name, "args")

    def stop(self, grace_s: int) -> int:
        """SIGTERM, after the grace period SIGKILL; returns the exit code."""
        self._containers.podman("stop", "--time", str(grace_s), self._name)
        state = self._containers.podman("inspect", "--format={{.State.ExitCode}}", self._name)
        return int(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._containers.podman("rm", "--force", "--time=0", self._name, check=False)


@contextmanager
def package_index() -> Iterator[int]:
    """An index on the loopback address that has what the image's build asks for; its port."""
    wheels = FOLDER / "wheels"
    tools = ("hatchling", "pip", "setuptools")
    pip = ("-m", "pip", "download", "--quiet", "--dest", wheels, "-c", "constraints.txt")
    run(sys.executable, *pip, ROOT, *tools)
    with _index_folder(wheels) as port:
        yield port


@contextmanager
def _index_folder(wheels: Path) -> Iterator[int]:
    simple = FOLDER / "index" / "simple"
    for wheel in wheels.glob("*.whl"):
        project = simple / wheel.name.partition("-")[0].lower().replace("_", "-")
        project.mkdir(parents=True, exist_ok=True)
        if not (project / wheel.name).exists():
            (project / wheel.name).hardlink_to(wheel)
    handler = functools.partial(_Handler, directory=str(simple.parent))
    (port,) = free_ports(1)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield port
        finally:
            server.shutdown()
            thread.join()


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing."""


def _base_archive() -> Path:
    """Debian with Python, as one archive; made once."""
    archive = FOLDER / "base.tar"
    if not archive.exists():
        root = FOLDER / "root"
        packages = "python3,python3-venv,python3-pip,ca-certificates"
        run("debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", root)
        (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        unfinished = archive.with_suffix(".part")
        left_out = ("dev", "proc", "sys", "var/cache/apt", "var/lib/apt")
        options = (f"--exclude=./{name}" for name in left_out)
        run("tar", "-C", root, "-cf", unfinished, *options, ".")
        unfinished.rename(archive)
        run("rm", "-rf", root)
    return archive
