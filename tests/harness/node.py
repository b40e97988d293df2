"""Clients of libraries for Node, in a process of the Node that tests/node/package.json pins."""

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.harness.built import built, system
from tests.harness.clients import ClientProcess
from tests.harness.maven import BUILD, CACHE, ROOT

_SOURCES = ROOT / "tests" / "node"
#: A package of its own: it is compiled, which takes minutes.
_CONFLUENT = _SOURCES / "confluent"
#: As packages of Node name them.
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


def node_clients(folder: Path) -> ClientProcess:
    """Start a process with @platformatic/kafka's clients; its log goes to ``folder``."""
    return _clients(install(), "platformatic-kafka", folder)


def kafkajs_clients(folder: Path) -> ClientProcess:
    """As :func:`node_clients`, of kafkajs."""
    return _clients(install(), "kafkajs", folder)


def confluent_clients(folder: Path) -> ClientProcess:
    """As :func:`node_clients`, of @confluentinc/kafka-javascript."""
    return _clients(install_confluent(), "confluent-kafka-javascript", folder)


def _clients(installed: Path, library: str, folder: Path) -> ClientProcess:
    argv = [str(_node(installed) / "bin/node"), str(installed / "clients.js"), library]
    return ClientProcess(argv, folder / f"{library}.log")


def version() -> str:
    """The version of @platformatic/kafka that is used."""
    pinned = json.loads((_SOURCES / "package.json").read_text(encoding="utf-8"))
    found: str = pinned["dependencies"]["@platformatic/kafka"]
    return found


def missing_npm() -> str | None:
    """Say that npm is missing if it is; None where it is there."""
    return "the clients for Node need npm on the PATH" if shutil.which("npm") is None else None


def missing_compiler() -> str | None:
    """As :func:`missing_npm`, of what compiles @confluentinc/kafka-javascript too."""
    missing = [tool for tool in ("npm", "g++", "make") if shutil.which(tool) is None]
    return f"this needs {', '.join(missing)} on the PATH" if missing else None


def install() -> Path:
    """Install the clients with what they need, unless that was done; returns the folder.

    Debian's Node may be older than the clients need, so npm installs Node too.
    """
    return _installed(_files(_SOURCES))


def install_confluent() -> Path:
    """As :func:`install`, once on this machine: librdkafka and what is between it and Node are
    compiled.

    The package would download them compiled, and else what they are linked with.
    """
    sources = [_SOURCES / "clients.js", *_files(_CONFLUENT)]
    return _installed(sources, "npm", "rebuild", "@confluentinc/kafka-javascript")


def _files(folder: Path) -> Sequence[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file())


def _installed(sources: Sequence[Path], *build: str) -> Path:
    """Return the folder of a package with what it needs; ``build``: what compiles it, if any."""

    def install_it(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=folder, check=True)
        if build:
            subprocess.run(build, cwd=folder, env=_to_compile(folder), check=True)

    if build:
        return built(CACHE / "node", sources, install_it, also=system())
    return built(BUILD / "node", sources, install_it)


def _to_compile(folder: Path) -> dict[str, str]:
    """The environment in which a package is compiled for the Node that was installed with it."""
    node = _node(folder)
    return os.environ | {
        "PATH": f"{node / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "npm_config_nodedir": str(node),
        "npm_config_build_from_source": "true",
        # With the system's libraries.
        "CKJS_LINKING": "dynamic",
    }


def _node(installed: Path) -> Path:
    return installed / "node_modules" / f"node-linux-{_MACHINES[platform.machine()]}"
