"""Toxiproxy: relays that delay, slow, cut and silence connections, in a process of its own."""

import contextlib
import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from tests.harness import processes
from tests.harness.connection import Address
from tests.harness.locks import exclusively
from tests.harness.maven import BUILD
from tests.harness.ports import free_ports
from tests.harness.waiting import until

#: The Go module proxy and its checksums vouch for what this version is.
_VERSION = "v2.12.0"
_MODULE = f"github.com/Shopify/toxiproxy/v2/cmd/server@{_VERSION}"

Stream = Literal["upstream", "downstream"]


def build() -> Path:
    """Fetch and build it unless it was; returns the program."""
    folder = BUILD / f"toxiproxy-{_VERSION}"
    program = folder / "server"
    with exclusively(folder / "lock"):
        if not program.exists():
            environment = os.environ | {"GOBIN": str(folder)}
            subprocess.run(["go", "install", _MODULE], env=environment, cwd=folder, check=True)
    return program


class Toxiproxy:
    """The process, as a context manager; relays are named."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._port = free_ports(1)[0]

    def relay(self, name: str, listen: Address, upstream: Address) -> None:
        """Relay connections to ``listen`` on to ``upstream``."""
        values = {"name": name, "listen": _text(listen), "upstream": _text(upstream)}
        self._ask("POST", "/proxies", {**values, "enabled": True})

    @contextlib.contextmanager
    def cut(self, name: str) -> Iterator[None]:
        """End a relay's connections, and refuse new ones meanwhile."""
        self._ask("POST", f"/proxies/{name}", {"enabled": False})
        try:
            yield
        finally:
            self._ask("POST", f"/proxies/{name}", {"enabled": True})

    @contextlib.contextmanager
    def toxic(
        self, name: str, kind: str, stream: Stream, attributes: Mapping[str, int]
    ) -> Iterator[None]:
        """Have a toxic in one direction of a relay meanwhile; see Toxiproxy's README for them."""
        toxic = f"{kind}-{stream}"
        values = {"name": toxic, "type": kind, "stream": stream, "attributes": attributes}
        self._ask("POST", f"/proxies/{name}/toxics", values)
        try:
            yield
        finally:
            self._ask("DELETE", f"/proxies/{name}/toxics/{toxic}")

    def _ask(self, method: str, path: str, values: Mapping[str, Any] | None = None) -> None:
        body = None if values is None else json.dumps(values).encode()
        url = f"http://127.0.0.1:{self._port}{path}"
        request = urllib.request.Request(url, body, method=method)
        with urllib.request.urlopen(request, timeout=30):
            pass

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            self._ask("GET", "/version")
            return True
        return False

    def __enter__(self) -> Self:
        argv = [str(build()), "-host", "127.0.0.1", "-port", str(self._port)]
        self._process = processes.start(argv, output=self._log)
        until(self._answers, "Toxiproxy answers")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        processes.end(self._process)


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
