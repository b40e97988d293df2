"""The Java clients: compiled once, run in one JVM that serves many of them."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.harness.built import built
from tests.harness.clients import ClientProcess
from tests.harness.maven import BUILD, ROOT, Library, broker_library, client_library

NEWEST = "3.9.1"
# The oldest that is run: what was there then is there in all that came since.
_COMPILED_AGAINST = "2.8.2"
_SOURCES = ROOT / "tests" / "java"


def java_clients(
    folder: Path, version: str = NEWEST, *, options: Sequence[str] = ()
) -> ClientProcess:
    """Start a JVM with the Java clients of ``version``; its log goes to ``folder``.

    ``options``: further ones of the JVM.
    """
    # The clients leave it to who uses them to bring the JSON library that OAUTHBEARER needs.
    json = broker_library(NEWEST).jars("jackson")
    classpath = ":".join([str(compile_sources()), client_library(version).classpath, *json])
    argv = [
        "java",
        "-Xmx256m",
        *options,
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-cp",
        classpath,
        "KafkaClients",
    ]
    return ClientProcess(argv, folder / f"java-{version}.log")


def compile_sources() -> Path:
    """Compile ``tests/java`` unless it was; returns the folder of the classes."""
    return compile_java(_SOURCES, client_library(_COMPILED_AGAINST))


def compile_java(folder: Path, library: Library) -> Path:
    """Compile a folder's sources against the jars of ``library``, unless they were.

    Returns the folder of the classes.
    """
    sources = sorted(folder.glob("*.java"))

    def compile_them(classes: Path) -> None:
        command = ["javac", "-Xlint:all", "-Werror", "-cp", library.classpath, "-d", str(classes)]
        subprocess.run([*command, *map(str, sources)], check=True)

    return built(BUILD / "java", sources, compile_them, also=library.version)
