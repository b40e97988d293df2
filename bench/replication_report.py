"""``python -m bench replication``: what of a consumer's stall is the wait for followers."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import click

from bench import arms
from bench.report import Verdict, finish, table
from bench.samples import Samples, from_samples_option
from bench.stall import Sample
from bench.stall_report import run
from bench.statistics import interval, quantile
from tests.harness import maven

_WAIT, _BACK_OFF = "replica.fetch.wait.max.ms", "replica.fetch.backoff.ms"
#: By what is set; the first is Kafka's own, by which the others are seen.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    f"{_WAIT}=500, {_BACK_OFF}=1000": {},
    f"{_WAIT}=50": {_WAIT: "50"},
    f"{_BACK_OFF}=50": {_BACK_OFF: "50"},
    f"{_WAIT}=50, {_BACK_OFF}=50": {_WAIT: "50", _BACK_OFF: "50"},
}
_ARMS = (arms.OFF, arms.ON)


@dataclass
class _Setup:
    """How often each arm was measured."""

    rounds: int
    moves: int


@click.command("replication")
@click.option("--rounds", default=2, show_default=True, help="Alternating rounds.")
@click.option("--moves", default=30, show_default=True, help="Leader moves in each round and arm.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(rounds: int, moves: int, from_samples: bool, write: bool) -> None:
    """Compare consumers' stalls by the replication settings of brokers."""
    samples = Samples.read("replication") if from_samples else _measured(_Setup(rounds, moves))
    of = samples.setup(_Setup)
    text = "\n\n".join(
        [
            f"3.6.2, ZooKeeper, {of.rounds} alternating rounds of {of.moves} moves for each arm:",
            _table(samples),
        ]
    )
    verdicts: list[Verdict] = []
    page = maven.ROOT / "docs" / "benchmarks.md"
    finish(page, "replication", text, samples, verdicts, write=write)


def _measured(setup: _Setup) -> Samples:
    samples = Samples()
    samples.add_setup(setup)
    for name, settings in SETTINGS.items():
        pools = run(_ARMS, setup.rounds, setup.moves, replication=settings)
        for arm, sample in pools.items():
            samples.add(name, arm.label, sample)
    return samples


def _table(samples: Samples) -> str:
    head = ["consumers' stall, ms", "arm", "median", "95 % interval", "p90", "max"]
    rows = []
    for name in SETTINGS:
        for arm in _ARMS:
            values = samples.get(Sample, name, arm.label).consume
            low, high = interval(values)
            rows.append(
                [
                    f"`{name}`",
                    arm.label,
                    f"{median(values):.0f}",
                    f"{low:.0f} to {high:.0f}",
                    f"{quantile(values, 0.9):.0f}",
                    f"{max(values):.0f}",
                ]
            )
    return table(head, rows)
