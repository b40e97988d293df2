"""The releases of client libraries that are tried, and how each is installed."""

import hashlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tests.harness.environments import Environment
from tests.harness.java import compile_java
from tests.harness.locks import exclusively
from tests.harness.maven import BUILD, client_library
from tests.harness.python_client import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, Library

_PROGRAMS: Final = Path(__file__).parent / "programs"
_FOLDER: Final = BUILD / "readiness"
_COMPILED_AGAINST: Final = "2.8.2"
#: What releases of aiokafka need and do not bring.
_AIOKAFKA: Final = ("async-timeout==5.0.1", "packaging==26.3", "typing_extensions==4.16.0")


@dataclass(frozen=True)
class Client:
    """One release. ``install``: makes it ready; returns the command that runs it, to which
    bootstrap servers, a topic and a name are added, and then ``also``.
    """

    library: str
    version: str
    install: Callable[[], Sequence[str]]
    also: Sequence[str] = ()

    @property
    def name(self) -> str:
        """As the table and client ids have it."""
        return "-".join((self.library, self.version, *self.also))


def _java(version: str) -> Client:
    return Client("java", version, partial(_install_java, version))


def _install_java(version: str) -> Sequence[str]:
    classes = compile_java(_PROGRAMS, client_library(_COMPILED_AGAINST))
    return ["java", "-cp", f"{classes}:{client_library(version).classpath}", "OneShot"]


def _python(library: Library, version: str, *also: str) -> Client:
    return Client(library, version, partial(_install_python, library, version, also))


def _install_python(library: Library, version: str, also: tuple[str, ...]) -> Sequence[str]:
    made = Environment(library, version, also).make()
    program = _PROGRAMS / f"one_shot_{library.replace('-', '_')}.py"
    return [str(made.python), str(program)]


def _go(library: str, module: str, version: str, *also: str) -> Client:
    return Client(library, version, partial(_install_go, library, module, version), also)


def _install_go(library: str, module: str, version: str) -> Sequence[str]:
    """Build a program of its own for a release, since a module has one version of each other."""
    source = (_PROGRAMS / "go" / f"{library}.go.txt").read_text(encoding="utf-8")
    source = source.replace("MODULE", module)
    digest = hashlib.sha256(f"{source}{version}".encode()).hexdigest()[:16]
    folder = _FOLDER / f"{library}-{digest}"
    program = folder / "one-shot"
    with exclusively(_FOLDER / "go.lock"):
        if not program.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "go.mod").write_text("module oneshot\n\ngo 1.26.0\n")
            (folder / "main.go").write_text(source)
            for command in (
                ["go", "get", f"{module}@v{version}"],
                ["go", "mod", "tidy"],
                ["go", "build", "-o", str(program), "."],
            ):
                _run(command, folder)
    return [str(program)]


def _kafkajs(version: str) -> Client:
    return Client("kafkajs", version, partial(_install_kafkajs, version))


def _install_kafkajs(version: str) -> Sequence[str]:
    program = _PROGRAMS / "one_shot_kafkajs.js"
    folder = _FOLDER / f"kafkajs-{version}"
    with exclusively(_FOLDER / "npm.lock"):
        if not (folder / "node_modules").exists():
            folder.mkdir(parents=True, exist_ok=True)
            _run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund",
                  "--prefix", ".", f"kafkajs@{version}"], folder)  # fmt: skip
        (folder / program.name).write_text(program.read_text(encoding="utf-8"))
    return ["node", str(folder / program.name)]


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(
        command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"


_OLD_SARAMA: Final = "github.com/Shopify/sarama"
_SARAMA: Final = "github.com/IBM/sarama"
_ALL: Final = (
    *map(_java, ("0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.0.1", "2.1.1", "2.4.1")),
    *map(_java, ("2.8.2", "3.6.2", "4.1.1")),
    _python(KAFKA_PYTHON, "1.4.7"),
    _python(KAFKA_PYTHON, "2.0.2"),
    _python(KAFKA_PYTHON, "3.0.12"),
    _python(CONFLUENT, "2.0.2"),
    _python(CONFLUENT, "2.3.0"),
    _python(CONFLUENT, "2.16.1"),
    _python(AIOKAFKA, "0.8.1", *_AIOKAFKA, "kafka-python==2.0.2"),
    _python(AIOKAFKA, "0.14.0", *_AIOKAFKA),
    _go("sarama", _OLD_SARAMA, "1.24.1"),
    _go("sarama", _OLD_SARAMA, "1.30.1"),
    _go("sarama", _OLD_SARAMA, "1.38.1"),
    _go("sarama", _SARAMA, "1.61.1"),
    # What many of its users set, since its default was an old one for years.
    _go("sarama", _SARAMA, "1.61.1", "0.10.2.0"),
    _go("kafka-go", "github.com/segmentio/kafka-go", "0.3.10"),
    _go("kafka-go", "github.com/segmentio/kafka-go", "0.4.51"),
    _go("franz-go", "github.com/twmb/franz-go", "1.6.0"),
    _go("franz-go", "github.com/twmb/franz-go", "1.22.2"),
    _kafkajs("1.12.0"),
    _kafkajs("2.2.4"),
)
CLIENTS: Final[Mapping[str, Client]] = {client.name: client for client in _ALL}
