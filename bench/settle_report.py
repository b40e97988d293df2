"""``python -m bench settle``: stalls of clients without hints, errors settled and passed on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import mean, median

import click

from bench.learning import Floor, floor_of
from bench.measured_clients import WITHOUT_HINTS
from bench.report import Verdict, finish, table, target_table
from bench.samples import FOLDER, Samples, from_samples_option
from bench.stall import Arm, Sample
from bench.stall_report import Setup, run
from bench.statistics import quantile, ratio_interval
from tests.harness import maven
from tests.harness.cluster import RealCluster

BROKERS = ("2.4.1", "2.8.2", "3.6.2")
SETTLED, PASSED_ON = "settled", "passed on"
#: Most that the median stall of Java may be of that with errors passed on, in front of 3.6.2.
_MOST_OF_PASSED_ON = 0.5
_TARGET = ("java", "3.6.2")
#: Least share of the errors that wait which are settled within the bound.
_LEAST_SETTLED = 0.95
_KINDS = ("produce", "consume")
#: Rounds before those that count: so many moves later brokers are as quick as they stay.
_WARM_UP = 2


@dataclass(frozen=True)
class Pair:
    """A client in front of a broker, and the samples of both arms.

    ``floors``: what the moves of each arm cost at least; none where no broker's log says so.
    """

    client: str
    broker: str
    setup: Setup
    settled: Sample
    passed_on: Sample
    floors: Mapping[str, Floor]

    @property
    def name(self) -> str:
        """As the samples and the table have it."""
        return f"{self.client}, {self.broker}"


@click.command("settle")
@click.option("--client", "clients", multiple=True, type=click.Choice([*WITHOUT_HINTS]),
              help="Only this client; may be repeated.")  # fmt: skip
@click.option("--broker", "brokers", multiple=True, type=click.Choice(BROKERS),
              help="Only brokers of this version, with ZooKeeper; may be repeated.")  # fmt: skip
@click.option("--rounds", default=5, show_default=True, help="Alternating rounds.")
@click.option("--moves", default=30, show_default=True, help="Leader moves in each round and arm.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(
    clients: Sequence[str],
    brokers: Sequence[str],
    rounds: int,
    moves: int,
    from_samples: bool,
    write: bool,
) -> None:
    """Compare stalls of clients without hints, with hold.settle and without.

    May be run in parts: what is measured replaces the samples of the same client and broker, and
    the others stay. Ends with 1 where a target is missed.
    """
    kept = (FOLDER / "settle.csv.xz").exists()
    samples = Samples.read("settle") if kept or from_samples else Samples()
    if not from_samples:
        for broker in brokers or BROKERS:
            for client in clients or WITHOUT_HINTS:
                _measure(samples, client, broker, Setup(rounds, moves))
                if write:
                    # What comes next may take hours, and fail.
                    samples.write("settle")
    pairs = list(_pairs(samples))
    verdicts = judge(pairs)
    parts = [_stall_table(pairs), _error_table(pairs), target_table(verdicts)]
    if any(pair.floors for pair in pairs):
        parts.insert(1, _floor_table(pairs))
    text = "\n\n".join(parts)
    page = maven.ROOT / "docs" / "benchmarks.md"
    finish(page, "settle", text, samples, verdicts, write=write)


def arms(broker: str) -> tuple[Arm, Arm]:
    """Return what alternates in front of a broker: the same proxy, errors settled or passed on."""
    settled = Arm(SETTLED, broker, "zk", "on", settle=True)
    return settled, Arm(PASSED_ON, broker, "zk", "on")


def _measure(samples: Samples, client: str, broker: str, setup: Setup) -> None:
    floors = {arm: Floor() for arm in arms(broker)}

    def after(arm: Arm, cluster: RealCluster, topic: str) -> None:
        floors[arm].add(floor_of(cluster, topic))

    pools = run(
        arms(broker),
        setup.rounds,
        setup.moves,
        client=WITHOUT_HINTS[client],
        warm_up=_WARM_UP * setup.moves,
        after=after,
    )
    name = f"{client}, {broker}"
    samples.add(name, "setup", setup)
    for arm, sample in pools.items():
        samples.add(name, arm.label, sample)
        if floors[arm].produce:
            samples.add(_floor_name(name), arm.label, floors[arm])


def _floor_name(pair: str) -> str:
    return f"{pair}, floor"


def _pairs(samples: Samples) -> Iterator[Pair]:
    """Iterate over what was measured, in the order of the command's options."""
    for broker in BROKERS:
        for client in WITHOUT_HINTS:
            name = f"{client}, {broker}"
            if samples.all(dict, name):
                yield Pair(
                    client,
                    broker,
                    samples.get(Setup, name, "setup"),
                    samples.get(Sample, name, SETTLED),
                    samples.get(Sample, name, PASSED_ON),
                    samples.all(Floor, _floor_name(name)),
                )


def judge(pairs: Sequence[Pair]) -> list[Verdict]:
    """Return the targets: of Java's medians, that no other is worse, of errors and records."""
    verdicts: list[Verdict] = []
    for pair in pairs:
        java = (pair.client.split("-")[0], pair.broker) == _TARGET
        for kind in _KINDS:
            above, below = getattr(pair.settled, kind), getattr(pair.passed_on, kind)
            ratio = median(above) / median(below)
            low, high = ratio_interval(above, below)
            verdicts.append(
                (
                    f"median stall, {kind}, {pair.name}",
                    f"{ratio:.2f} ({low:.2f} to {high:.2f})",
                    f"at most {_MOST_OF_PASSED_ON}" if java else "interval begins at most at 1.0",
                    ratio <= _MOST_OF_PASSED_ON if java else low <= 1.0,
                )
            )
    waited = sum(pair.settled.settled.total() for pair in pairs)
    settled = sum(pair.settled.settled["settled"] for pair in pairs)
    share = settled / waited if waited else 0.0
    verdicts.append(
        (
            "errors settled within the bound",
            f"{share:.1%} of {waited}",
            f"at least {_LEAST_SETTLED:.0%}",
            share >= _LEAST_SETTLED,
        )
    )
    for what in ("lost", "doubled", "reordered"):
        more, less = (sum(getattr(of, what) for of in arm) for arm in _by_arm(pairs))
        text = f"{more}, passed on {less}"
        verdicts.append((f"records {what}", text, "no more than passed on", more <= less))
    return verdicts


def _by_arm(pairs: Sequence[Pair]) -> tuple[list[Sample], list[Sample]]:
    return [pair.settled for pair in pairs], [pair.passed_on for pair in pairs]


def _stall_table(pairs: Sequence[Pair]) -> str:
    arm = ["mean", "p90"]
    head = ["stall, ms", "moves", "settled", *arm, "passed on", *arm, "ratio of medians", "95 %"]
    rows = []
    for pair in pairs:
        for kind in _KINDS:
            above, below = getattr(pair.settled, kind), getattr(pair.passed_on, kind)
            low, high = ratio_interval(above, below)
            rows.append(
                [
                    f"{kind}, {pair.name}",
                    f"{pair.setup.rounds} x {pair.setup.moves}",
                    *(
                        f"{value:.0f}"
                        for of in (above, below)
                        for value in (median(of), mean(of), _p90(of))
                    ),
                    f"{median(above) / median(below):.2f}",
                    f"{low:.2f} to {high:.2f}",
                ]
            )
    return table(head, rows)


def _floor_table(pairs: Sequence[Pair]) -> str:
    head = ["nobody can be served, ms", "moves", SETTLED, "p90", "moves", PASSED_ON, "p90"]
    rows = []
    for pair in pairs:
        for kind in _KINDS:
            found = [getattr(pair.floors.get(arm, Floor()), kind) for arm in (SETTLED, PASSED_ON)]
            if all(found):
                figures = ((str(len(of)), f"{median(of):.0f}", f"{_p90(of):.0f}") for of in found)
                rows.append([f"{kind}, {pair.name}", *chain.from_iterable(figures)])
    return table(head, rows)


def _error_table(pairs: Sequence[Pair]) -> str:
    head = ["errors that wait", "settled", "not settled", "hold median, ms", "hold p90", "hold max"]
    rows = []
    for pair in pairs:
        holds = pair.settled.settled_holds
        others = ", ".join(
            f"{outcome} {count}"
            for outcome, count in sorted(pair.settled.settled.items())
            if outcome != "settled"
        )
        figures = [median(holds), _p90(holds), max(holds)] if holds else []
        rows.append(
            [
                pair.name,
                str(pair.settled.settled["settled"]),
                others or "0",
                *(f"{figure:.1f}" for figure in figures or [0.0] * 3),
            ]
        )
    return table(head, rows)


def _p90(values: Sequence[float]) -> float:
    return quantile(values, 0.9)
