"""Clients of libraries for Node, in a process of the Node that tests/node/package.json pins."""

import hashlib
import json
import platform
import shutil
import subprocess
from pathlib import Path

from tests.harness.clients import ClientProcess
from tests.harness.locks import exclusively
from tests.harness.maven import BUILD, ROOT

_SOURCES = ROOT / "tests" / "node"
#: As packages of Node name them.
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


def node_clients(folder: Path) -> ClientProcess:
    """Start a process with @platformatic/kafka's clients; its log goes to ``folder``."""
    return _clients("platformatic-kafka", folder)


def kafkajs_clients(folder: Path) -> ClientProcess:
    """As :func:`node_clients`, of kafkajs."""
    return _clients("kafkajs", folder)


def _clients(library: str, folder: Path) -> ClientProcess:
    installed = install()
    node = installed / "node_modules" / f"node-linux-{_MACHINES[platform.machine()]}" / "bin/node"
    argv = [str(node), str(installed / "clients.js"), library]
    return ClientProcess(argv, folder / f"{library}.log")


def version() -> str:
    """The version of @platformatic/kafka that is used."""
    pinned = json.loads((_SOURCES / "package.json").read_text(encoding="utf-8"))
    found: str = pinned["dependencies"]["@platformatic/kafka"]
    return found


def missing_npm() -> str | None:
    """Say that npm is missing if it is; None where it is there."""
    return "the clients for Node need npm on the PATH" if shutil.which("npm") is None else None


def install() -> Path:
    """Install the clients with what they need, unless that was done; returns the folder.

    Debian's Node may be older than the clients need, so npm installs Node too.
    """
    sources = sorted(file for file in _SOURCES.iterdir() if file.is_file())
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    folder = BUILD / "node" / digest[:16]
    with exclusively(BUILD / "node" / "lock"):
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for source in sources:
                shutil.copy(source, folder)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=folder, check=True)
            (folder / "done").touch()
    return folder
