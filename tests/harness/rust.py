"""Clients of rskafka, a library of Rust: built once, run in a process that serves many of them."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.harness.clients import ClientProcess
from tests.harness.locks import exclusively
from tests.harness.maven import BUILD, ROOT

_SOURCES = ROOT / "tests" / "rust"


def rust_clients(folder: Path) -> ClientProcess:
    """Start a process with the clients: they produce, and consume without a group."""
    return ClientProcess([str(_build())], folder / "rskafka.log")


def missing_cargo() -> str | None:
    """Say that cargo is missing if it is; None where it is there."""
    return "clients of Rust need cargo on the PATH" if shutil.which("cargo") is None else None


def _build() -> Path:
    """Build ``tests/rust`` unless it was; returns the program."""
    sources = [_SOURCES / name for name in ("Cargo.toml", "Cargo.lock", "src/main.rs")]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    target = BUILD / "rust" / digest[:16]
    program = target / "release" / "clients"
    with exclusively(BUILD / "rust" / "lock"):
        if not program.exists():
            command = ["cargo", "build", "--quiet", "--release", "--locked"]
            subprocess.run([*command, "--target-dir", str(target)], cwd=_SOURCES, check=True)
    return program
