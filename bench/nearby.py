"""``python -m bench nearby``: how much each client that names a rack reads in it."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from bench.closest import NEARBY, NODES, ON, SELECTOR, VERSION, Bytes, ClosestArm, share, started
from bench.closest_report import LEAST_SHARE, MOST_BEHIND
from bench.report import Verdict, finish, table, target_table
from bench.samples import Samples, from_samples_option
from tests.closest.crowd import LIBRARIES
from tests.harness import franz_go, maven
from tests.harness.admin import ClusterAdmin
from tests.harness.clients import ConsumerSpec, ProducerSpec
from tests.harness.java import java_clients
from tests.harness.rack_fleet import RackFleet

_SECTION = "nearby"
_TOPIC = "nearby"
_PARTITIONS = 9
_RATE, _SIZE = 300, 1000


@dataclass
class _Setup:
    """Seconds ``after`` the consumers' start, and of the ``window`` from then on."""

    after: float
    window: float


@click.command(_SECTION)
@click.option("--after", default=30.0, show_default=True, help="Seconds until bytes are counted.")
@click.option("--window", default=30.0, show_default=True, help="Seconds in which they are.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(after: float, window: float, from_samples: bool, write: bool) -> None:
    """Count which bytes each client reads in its rack, with proxies and by the brokers' selector.

    Ends with 1 on a missed target.
    """
    samples = Samples.read(_SECTION) if from_samples else _measured(_Setup(after, window))
    setup = samples.setup(_Setup)
    shares = {
        library: [share(samples.get(Bytes, library, arm.label)) for arm in NEARBY]
        for library in LIBRARIES
    }
    rows = ([library, *(f"{100 * one:.1f}" for one in both)] for library, both in shares.items())
    verdicts = [one for library, both in shares.items() for one in _verdicts(library, *both)]
    text = "\n\n".join(
        [
            f"{VERSION}, ZooKeeper, three brokers in three racks; {setup.window:g} s from "
            f"{setup.after:g} s after the start on; bytes from the own rack, %:",
            table(["client", *(arm.label for arm in NEARBY)], rows),
            target_table(verdicts),
        ]
    )
    finish(maven.ROOT / "docs" / "benchmarks.md", _SECTION, text, samples, verdicts, write=write)


def _verdicts(library: str, ours: float, theirs: float) -> Iterator[Verdict]:
    least, behind = f"at least {100 * LEAST_SHARE:g} %", theirs - ours
    yield f"{library}: bytes from the own rack", f"{100 * ours:.1f} %", least, ours >= LEAST_SHARE
    yield (
        f"{library}: points behind the brokers' selector",
        f"{100 * behind:.1f}",
        f"at most {100 * MOST_BEHIND:g}",
        behind <= MOST_BEHIND,
    )


def _measured(setup: _Setup) -> Samples:
    missing = maven.missing_tools() or franz_go.missing_go()
    if missing is not None:
        raise click.ClickException(missing)
    samples = Samples()
    samples.add_setup(setup)
    folder = Path(tempfile.mkdtemp(prefix="leader-hints-nearby-"))
    with ExitStack() as stack:
        clusters = {
            arm: stack.enter_context(started(folder / f"cluster-{arm.label}", arm.selector))
            for arm in (ON, SELECTOR)
        }
        nodes = [*NODES]
        layout = [nodes[n % 3 :] + nodes[: n % 3] for n in range(_PARTITIONS)]
        for cluster in clusters.values():
            ClusterAdmin(cluster).create_topics({_TOPIC: layout})
        for library in LIBRARIES:
            # Nothing is timed, so both arms are measured at once.
            with ExitStack() as both:
                fleets = {}
                for arm, cluster in clusters.items():
                    place = folder / f"{library}-{arm.label}"
                    fleet = RackFleet(cluster, place, arm.mode, arguments=["--log-level", "info"])
                    both.enter_context(_reading(library, fleet, place))
                    fleets[arm] = fleet
                for arm, read in _read(fleets, setup).items():
                    samples.add(library, arm.label, read)
                    click.echo(f"{library}, {arm.label}: {share(read):.1%}", err=True)
    shutil.rmtree(folder)
    return samples


@contextmanager
def _reading(library: str, fleet: RackFleet, folder: Path) -> Iterator[None]:
    """Have a consumer of a library in each rack read all that is written meanwhile."""
    partitions = range(_PARTITIONS)
    with fleet.proxies, java_clients(folder / "producer") as java:
        producer = java.produce(
            ProducerSpec(fleet.bootstrap, _TOPIC, partitions, acks="1", rate=_RATE, size=_SIZE)
        )
        with LIBRARIES[library](folder / "consumers") as process:
            runs = [
                process.consume(
                    ConsumerSpec(
                        fleet.bootstrap,
                        _TOPIC,
                        partitions,
                        from_end=True,
                        settings={"client.rack": f"rack-{node}"},
                    )
                )
                for node in NODES
            ]
            for run in runs:
                run.wait_count(_PARTITIONS)
            yield
            producer.ask_to_stop()
            for run in runs:
                run.ask_to_stop()


def _read(fleets: dict[ClosestArm, RackFleet], setup: _Setup) -> dict[ClosestArm, Bytes]:
    time.sleep(setup.after)
    before = {arm: (fleet.read("same"), fleet.read("crossing")) for arm, fleet in fleets.items()}
    time.sleep(setup.window)
    return {
        arm: Bytes([fleet.read("same") - before[arm][0]], [fleet.read("crossing") - before[arm][1]])
        for arm, fleet in fleets.items()
    }
