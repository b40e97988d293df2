"""Kafka's jars from Maven Central, one folder for each version, fetched once."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.harness.locks import exclusively

ROOT = Path(__file__).resolve().parents[2]
#: Of Python processes that tests start: this checkout, wherever its packages are installed from.
PYTHONPATH = os.pathsep.join(str(ROOT / folder) for folder in (".", "proxy", "pipeline"))
BUILD = ROOT / "build"
#: Of the user and not of a checkout (XDG Base Directory Specification): what takes minutes to make.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-leader-hints"

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>libraries</artifactId>
  <version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
    "<version>{version}</version></dependency>"
)
#: Options of a JVM that has ended before compiling its code well would pay: half the CPU time.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SLF4J_VERSION = "1.7.36"  # of the slf4j-api that Kafka 3.5 to 3.9 depend on


class LibraryError(Exception):
    """Maven could not deliver the jars of a version."""


@dataclass(frozen=True)
class Library:
    """The jars of one artifact of ``org.apache.kafka`` with all that they need at run time."""

    artifact: str
    version: str

    @property
    def folder(self) -> Path:
        """Where the jars are, or will be once ``fetch`` has run."""
        return BUILD / "kafka" / f"{self.artifact}-{self.version}"

    @property
    def classpath(self) -> str:
        """The jars as a Java class path."""
        return f"{self.folder / 'libs'}/*"

    def jars(self, name: str) -> list[str]:
        """The paths of the jars whose names begin with ``name``."""
        return sorted(map(str, (self.folder / "libs").glob(f"{name}*.jar")))

    def fetch(self) -> "Library":
        """Fetch the jars unless they are there; several processes may do so at once.

        :raises LibraryError: Maven failed; its output is in the message.
        """
        done = self.folder / "complete"
        with exclusively(BUILD / "kafka" / "lock"):
            if not done.exists():
                self._copy_dependencies()
                done.touch()
        return self

    def _copy_dependencies(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        wanted = (
            ("org.apache.kafka", self.artifact, self.version),
            ("org.slf4j", "slf4j-simple", _SLF4J_VERSION),
        )
        dependencies = "".join(
            _DEPENDENCY.format(group=group, artifact=artifact, version=version)
            for group, artifact, version in wanted
        )
        (self.folder / "pom.xml").write_text(_POM.format(dependencies=dependencies))
        command = (
            "mvn --batch-mode --quiet dependency:copy-dependencies "
            "-DincludeScope=runtime -DoutputDirectory=libs"
        )
        run = subprocess.run(
            command.split(),
            cwd=self.folder,
            env=os.environ | {"MAVEN_OPTS": f"{_SHORT_LIVED} {os.environ.get('MAVEN_OPTS', '')}"},
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode != 0:
            raise LibraryError(f"{command} in {self.folder}:\n{run.stdout}{run.stderr}")


def broker_library(version: str) -> Library:
    """The jars of a broker with its ZooKeeper."""
    return Library("kafka_2.13", version).fetch()


def client_library(version: str) -> Library:
    """The jars of the Java clients."""
    return Library("kafka-clients", version).fetch()


def missing_tools() -> str | None:
    """Say which tools real brokers need and this machine lacks; None if it has them all."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    return f"real brokers need {', '.join(missing)} on the PATH" if missing else None


def in_ci() -> bool:
    """In CI a missing tool is a failure, never a reason to skip."""
    return os.environ.get("CI", "").lower() == "true"
