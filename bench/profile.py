"""``python -m bench profile`` and ``flamegraph``: where the proxy's time goes."""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal, NamedTuple

import click

from bench.cost import TOPIC, CostArm, cpu_seconds, relay
from bench.cost_report import CONSUME, FIFTY, LARGE, ON, RECODED, SINGLE, SMALL
from bench.load import Work, do
from bench.report import table, write_section
from bench.shares import PLACES, shares
from tests.harness import maven
from tests.harness.admin import ClusterAdmin
from tests.harness.cluster import RealCluster

_OUT = maven.BUILD / "bench"
#: By name; what is consumed must be produced before.
_WORKS = {
    "produce-16k": [SMALL],
    "produce-1m": [LARGE],
    "consume": [LARGE, CONSUME],
    "single": [SINGLE],
    "fifty": [FIFTY],
}
_ARMS: dict[str, CostArm] = {"3.6": ON, "2.4": RECODED}
#: Looks at the stack in a second.
_RATE = 500


class _Watched(NamedTuple):
    """What was done, the process's CPU seconds and seconds for it, and where the looks are."""

    work: Work
    cpu: float
    took: float
    file: Path


@click.command("flamegraph")
@click.argument("work", type=click.Choice([*_WORKS]), default="single")
@click.option("--broker", type=click.Choice([*_ARMS]), default="3.6", show_default=True)
def flamegraph(work: str, broker: str) -> None:
    """Do one of the works of `cost` through the proxy, and draw a flame graph of it.

    py-spy looks at the running process from outside; that needs root, or
    /proc/sys/kernel/yama/ptrace_scope to be 0.
    """
    watched = _watch(work, broker, "flamegraph")
    click.echo(
        f"{watched.work.label}: {watched.cpu:.2f} s of CPU in {watched.took:.1f} s; {watched.file}"
    )


@click.command("profile")
@click.option("--write/--no-write", default=True, help="Write the page.")
def main(write: bool) -> None:
    """Do all works of `cost` through the proxy, and tell on what it spends its time at each."""
    columns = [_watch(work, "3.6", "raw") for work in _WORKS]
    found = [shares(watched.file.read_text().splitlines()) for watched in columns]
    rows = [[place, *(f"{share[place]:.0%}" for share in found)] for place in PLACES]
    text = "\n\n".join(
        [
            f"One run of each work, {_RATE} looks at the stack a second; share of the looks at "
            "which the process did something:",
            table(["hints on", *(watched.work.label for watched in columns)], rows),
        ]
    )
    click.echo(text)
    if write:
        write_section(maven.ROOT / "docs" / "benchmarks.md", "profile", text)


def _watch(work: str, broker: str, form: Literal["flamegraph", "raw"]) -> _Watched:
    spy = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    missing = maven.missing_tools() or (None if spy else "py-spy is not installed: make venv")
    if missing is not None:
        raise click.ClickException(missing)
    assert spy is not None
    _OUT.mkdir(parents=True, exist_ok=True)
    file = _OUT / f"profile-{work}-{broker}.{'svg' if form == 'flamegraph' else 'txt'}"
    arm = _ARMS[broker]
    *before, last = _WORKS[work]
    with tempfile.TemporaryDirectory(prefix="leader-hints-profile-") as name:
        folder = Path(name)
        with (
            RealCluster(arm.version, "zk", folder=folder, brokers=1, jvm_options=()) as cluster,
            relay(arm, cluster, folder) as pid,
        ):
            admin = ClusterAdmin(cluster)
            admin.create_topics({"profile": [[1]] * last.connections}, TOPIC)
            for one in before:
                do(one, cluster.bootstrap, "profile")
            watch = [spy, "record", "--pid", str(pid), "--output", str(file), "--format", form]
            watch += ["--rate", str(_RATE), "--duration", "unlimited"]
            # Lines are looked up in the files; a drawing is easier to read without their folders.
            watching = subprocess.Popen([*watch, *(["--full-filenames"] * (form == "raw"))])
            cpu, began = cpu_seconds(pid), time.monotonic()
            try:
                do(last, cluster.bootstrap, "profile")
                cpu, took = cpu_seconds(pid) - cpu, time.monotonic() - began
            finally:
                # It writes its file when it is interrupted.
                watching.send_signal(signal.SIGINT)
                code = watching.wait(60)
    if code:
        raise click.ClickException(f"py-spy ended with {code}: it needs root, or ptrace_scope 0")
    return _Watched(last, cpu, took, file)
