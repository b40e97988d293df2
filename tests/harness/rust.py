"""Clients of rskafka, a library of Rust: built once, run in a process that serves many of them."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.harness.built import built, system
from tests.harness.clients import ClientProcess
from tests.harness.maven import CACHE, ROOT

_SOURCES = ROOT / "tests" / "rust"
_PROGRAM = "clients"


def rust_clients(folder: Path) -> ClientProcess:
    """Start a process with the clients: they produce, and consume without a group."""
    return ClientProcess([str(compiled())], folder / "rskafka.log")


def missing_cargo() -> str | None:
    """Say that cargo is missing if it is; None where it is there."""
    return "clients of Rust need cargo on the PATH" if shutil.which("cargo") is None else None


def compiled() -> Path:
    """Compile ``tests/rust`` unless it was on this machine; returns the program."""
    sources = [_SOURCES / name for name in ("Cargo.toml", "Cargo.lock", "src/main.rs")]
    # Not optimized, which is built sooner: these clients wait most of the time.
    command = ["cargo", "build", "--quiet", "--locked", "--target-dir"]

    def build(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as target:
            subprocess.run([*command, target], cwd=_SOURCES, check=True)
            shutil.move(Path(target, "debug", _PROGRAM), folder)

    return built(CACHE / "rust", sources, build, also=system()) / _PROGRAM
