"""``python -m bench replication``: what of a consumer's stall is the wait for followers."""

from collections.abc import Mapping, Sequence

import click

from bench.report import Verdict, finish
from bench.samples import FOLDER, Samples, from_samples_option
from bench.stall import Arm, Sample
from bench.stall_report import Setup, run, spread_table
from tests.harness import maven
from tests.harness.cluster import Mode

_WAIT, _BACK_OFF = "replica.fetch.wait.max.ms", "replica.fetch.backoff.ms"
#: By what is set; the first is Kafka's own, by which the others are seen.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    f"{_WAIT}=500, {_BACK_OFF}=1000": {},
    f"{_WAIT}=50": {_WAIT: "50"},
    f"{_BACK_OFF}=50": {_BACK_OFF: "50"},
    f"{_WAIT}=50, {_BACK_OFF}=50": {_WAIT: "50", _BACK_OFF: "50"},
}
MODES: Mapping[Mode, str] = {"zk": "ZooKeeper", "kraft": "KRaft"}


@click.command("replication")
@click.option("--mode", "modes", multiple=True, type=click.Choice([*MODES]),
              help="Only clusters of this kind; may be repeated.")  # fmt: skip
@click.option("--rounds", default=3, show_default=True, help="Alternating rounds.")
@click.option("--moves", default=20, show_default=True, help="Leader moves in each round and arm.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(modes: Sequence[Mode], rounds: int, moves: int, from_samples: bool, write: bool) -> None:
    """Compare consumers' stalls by the replication settings of brokers.

    May be run in parts, as settle.
    """
    kept = (FOLDER / "replication.csv.xz").exists()
    samples = Samples.read("replication") if kept or from_samples else Samples()
    if not from_samples:
        for mode in modes or MODES:
            _measure(samples, mode, Setup(rounds, moves))
    text = "\n\n".join(
        part for mode in MODES if samples.all(dict, mode) for part in _parts(samples, mode)
    )
    verdicts: list[Verdict] = []
    page = maven.ROOT / "docs" / "benchmarks.md"
    finish(page, "replication", text, samples, verdicts, write=write)


def arms(mode: Mode) -> tuple[Arm, Arm]:
    """Return what alternates: the same proxy with hints off and on."""
    return Arm("hints off", "3.6.2", mode, "off"), Arm("hints on", "3.6.2", mode, "on")


def _measure(samples: Samples, mode: Mode, setup: Setup) -> None:
    samples.add(mode, "setup", setup)
    for name, settings in SETTINGS.items():
        pools = run(arms(mode), setup.rounds, setup.moves, replication=settings, turning=True)
        for arm, sample in pools.items():
            samples.add(f"{mode}, {name}", arm.label, sample)


def _parts(samples: Samples, mode: Mode) -> tuple[str, str]:
    setup = samples.get(Setup, mode, "setup")
    about = (
        f"3.6.2, {MODES[mode]}, {setup.rounds} alternating rounds of {setup.moves} moves for each "
        "arm:"
    )
    stalls = (
        (f"`{name}`, {arm.label}", samples.get(Sample, f"{mode}, {name}", arm.label).consume)
        for name in SETTINGS
        for arm in arms(mode)
    )
    return about, spread_table("consumers' stall, ms", stalls)
