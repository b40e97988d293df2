"""Machines made of network namespaces: nodes or pods with brokers, and one with clients."""

import json
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.deploy.tools import run
from tests.harness.clients import ClientProcess
from tests.harness.maven import PYTHONPATH
from tests.harness.python_client import CONFLUENT

_BRIDGE = "lh-bridge"
_NET = "10.77.0"

OUTSIDE = f"{_NET}.254"
"""This machine's own address among them."""


class Machine:
    """A namespace with one address."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.address = f"{_NET}.{number}"
        self._number = number
        self._near = f"lh-near-{number}"

    @property
    def inside(self) -> tuple[str, ...]:
        """What a command begins with that is to run there."""
        return ("ip", "netns", "exec", self.name)

    @property
    def path(self) -> str:
        """The namespace as a file, for podman."""
        return f"/run/netns/{self.name}"

    def ask(self, url: str, put: str | None = None) -> str:
        """What an HTTP server answers when it is asked from there; empty where there is none."""
        program = (
            "import sys, urllib.request as r;"
            "put = sys.argv[2].encode() or None;"
            "ask = r.Request(sys.argv[1], put, method='PUT' if put else 'GET');"
            "sys.stdout.write(r.urlopen(ask, timeout=5).read().decode())"
        )
        argv = (*self.inside, sys.executable, "-I", "-c", program, url, put or "")
        return run(*argv, check=False).stdout

    def status(self, admin: str) -> dict[str, Any]:
        """What the proxy's admin server says of it."""
        status: dict[str, Any] = json.loads(self.ask(f"{admin}/status"))
        return status

    def clients(self, folder: Path) -> ClientProcess:
        """A process of librdkafka's clients there."""
        argv = [*self.inside, sys.executable, "-m", "tests.harness.worker", CONFLUENT]
        return ClientProcess(argv, folder / f"{self.name}.log", {"PYTHONPATH": PYTHONPATH})

    def join(self) -> None:
        """Make it, on the bridge."""
        far = f"far-{self._number}"
        for command in (
            f"netns add {self.name}",
            f"link add {self._near} type veth peer name {far} netns {self.name}",
            f"link set {self._near} master {_BRIDGE} up",
            f"-n {self.name} address add {self.address}/24 dev {far}",
            f"-n {self.name} link set {far} up",
            f"-n {self.name} link set lo up",
        ):
            run("ip", *command.split())

    def leave(self) -> None:
        """Remove it, if it is there."""
        # The kernel takes its time to remove what a namespace has.
        run("ip", "link", "delete", self._near, check=False)
        run("ip", "netns", "delete", self.name, check=False)


class Network:
    """Two machines for brokers and one for clients, as a context manager."""

    def __init__(self) -> None:
        self.nodes = {number: Machine(f"lh-node-{number}", number) for number in (1, 2)}
        self.client = Machine("lh-client", 100)

    def __enter__(self) -> Self:
        self._remove()  # what a killed run left behind
        for command in (
            f"link add {_BRIDGE} type bridge",
            f"address add {OUTSIDE}/24 dev {_BRIDGE}",
            f"link set {_BRIDGE} up",
        ):
            run("ip", *command.split())
        for machine in (*self.nodes.values(), self.client):
            machine.join()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        for machine in (*self.nodes.values(), self.client):
            machine.leave()
        run("ip", "link", "delete", _BRIDGE, check=False)
