"""``python -m bench kraft``: stalls in front of KRaft clusters, which learn of moves late."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import click

from bench import arms as compared_arms
from bench.learning import Floor, floor_of
from bench.measured_clients import BY_NAME
from bench.report import Verdict, finish, judge_ratio, target_table
from bench.samples import FOLDER, Samples, from_samples_option
from bench.stall import Arm, Sample
from bench.stall_report import Setup, beside_table, hint_table, run, spread_table, stall_table
from bench.statistics import quantile
from tests.harness import maven
from tests.harness.cluster import RealCluster

#: Client and broker; those behind the first are measured half as often.
PAIRS = (
    ("java", "3.6.2"),
    ("java", "3.4.1"),
    ("confluent", "3.6.2"),
    ("franz-go", "3.6.2"),
)
#: Java in front of 3.6.2 once more, with partitions beside the one that moves.
BESIDE = "beside"
OFF, ON, NATIVE = "hints off", "hints on", "native 3.7, no proxy"
_KINDS = ("produce", "consume")
_MOST_OF_OFF = 1.0
_MOST_OF_NATIVE = 1.3
_MOST_OF_NATIVE_P90 = 1.2
#: A move in which no broker refused for as many milliseconds needs no wait.
_NO_WAIT_MS = 5.0


@dataclass(frozen=True)
class Comparison:
    """The three arms of a pair, and what their moves cost at least."""

    client: str
    broker: str
    setup: Setup
    pools: dict[Arm, Sample]
    floors: dict[Arm, Floor]

    def stalls(self, label: str, kind: str) -> list[float]:
        """Return the stalls of an arm."""
        (sample,) = (of for arm, of in self.pools.items() if arm.label == label)
        stalls: list[float] = getattr(sample, kind)
        return stalls

    def split(self, label: str, *, waited: bool) -> list[float]:
        """Return the producers' stalls of the moves in which somebody had to wait, or nobody."""
        (floor,) = (of.produce for arm, of in self.floors.items() if arm.label == label)
        return [
            stall
            for stall, least in zip(self.stalls(label, "produce"), floor, strict=True)
            if (least >= _NO_WAIT_MS) == waited
        ]


def arms(broker: str) -> tuple[Arm, Arm, Arm]:
    """Return what alternates: the proxy with hints off and on, and brokers that give hints."""
    return (
        Arm(OFF, broker, "kraft", "off"),
        Arm(ON, broker, "kraft", "on"),
        Arm(NATIVE, "3.7.2", "kraft", None),
    )


@click.command("kraft")
@click.option("--client", "clients", multiple=True, type=click.Choice([*BY_NAME, BESIDE]),
              help="Only this client, or what is beside a move; may be repeated.")  # fmt: skip
@click.option("--broker", "brokers", multiple=True, type=click.Choice(["3.4.1", "3.6.2"]),
              help="Only brokers of this version; may be repeated.")  # fmt: skip
@click.option("--rounds", default=6, show_default=True,
              help="Alternating rounds; of the pairs behind the first half as many.")  # fmt: skip
@click.option("--moves", default=25, show_default=True, help="Leader moves in each round and arm.")
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
    """Compare stalls with hints off, with hints on, and on native brokers, in front of KRaft.

    May be run in parts, as settle. Ends with 1 where a target is missed.
    """
    kept = (FOLDER / "kraft.csv.xz").exists()
    samples = Samples.read("kraft") if kept or from_samples else Samples()
    if not from_samples:
        for client, broker in PAIRS:
            if client in (clients or BY_NAME) and broker in (brokers or {broker}):
                first = (client, broker) == PAIRS[0]
                _measure(samples, client, broker, Setup(rounds if first else rounds // 2, moves))
                if write:
                    samples.write("kraft")
        if BESIDE in (clients or {BESIDE}):
            _measure_beside(samples, Setup(rounds // 2, moves // 2))
    compared = [
        _comparison(samples, client, broker)
        for client, broker in PAIRS
        if samples.all(dict, f"{client}, {broker}")
    ]
    verdicts = [verdict for one in compared for verdict in judge(one)]
    verdicts += [_wrong(compared)]
    parts = [part for one in compared for part in _parts(one)]
    if samples.all(dict, BESIDE):
        parts += _beside_parts(samples)
    text = "\n\n".join([*parts, target_table(verdicts)])
    finish(maven.ROOT / "docs" / "benchmarks.md", "kraft", text, samples, verdicts, write=write)


def _measure(samples: Samples, client: str, broker: str, setup: Setup) -> None:
    floors = {arm: Floor() for arm in arms(broker)}

    def after(arm: Arm, cluster: RealCluster, topic: str) -> None:
        floors[arm].add(floor_of(cluster, topic))

    pools = run(
        arms(broker), setup.rounds, setup.moves, client=BY_NAME[client], turning=True, after=after
    )
    name = f"{client}, {broker}"
    samples.add(name, "setup", setup)
    for arm, sample in pools.items():
        samples.add(name, arm.label, sample)
        samples.add(f"{name}, floor", arm.label, floors[arm])


def _measure_beside(samples: Samples, setup: Setup) -> None:
    beside = arms(PAIRS[0][1])
    pools = run(
        beside, setup.rounds, setup.moves, bystanders=compared_arms.BYSTANDERS, turning=True
    )
    samples.add(BESIDE, "setup", setup)
    for arm, sample in pools.items():
        # There are ten thousands of them; the table has no more digits either.
        sample.beside_produce = [round(one, 1) for one in sample.beside_produce]
        sample.beside_consume = [round(one, 1) for one in sample.beside_consume]
        samples.add(BESIDE, arm.label, sample)


def _beside_parts(samples: Samples) -> list[str]:
    setup = samples.get(Setup, BESIDE, "setup")
    pools = {arm: samples.get(Sample, BESIDE, arm.label) for arm in arms(PAIRS[0][1])}
    return [
        f"{compared_arms.BYSTANDERS} partitions whose leaders stay, on the same connections as one "
        f"that moves, java, 3.6.2; {setup.rounds} alternating rounds of {setup.moves} moves for "
        "each arm:",
        beside_table(pools),
    ]


def _comparison(samples: Samples, client: str, broker: str) -> Comparison:
    name = f"{client}, {broker}"
    return Comparison(
        client,
        broker,
        samples.get(Setup, name, "setup"),
        {arm: samples.get(Sample, name, arm.label) for arm in arms(broker)},
        {arm: samples.get(Floor, f"{name}, floor", arm.label) for arm in arms(broker)},
    )


def judge(of: Comparison) -> list[Verdict]:
    """Return the targets: of medians against both other arms, and of p90 against native brokers."""
    verdicts: list[Verdict] = []
    for kind in _KINDS:
        on = of.stalls(ON, kind)
        what = f"{kind}, {of.client}, {of.broker}, hints on"
        for label, most in ((OFF, _MOST_OF_OFF), (NATIVE, _MOST_OF_NATIVE)):
            name = f"median stall, {what} / {label}"
            verdicts.append(judge_ratio(name, on, of.stalls(label, kind), most=most))
        ratio = quantile(on, 0.9) / quantile(of.stalls(NATIVE, kind), 0.9)
        name = f"p90 of the stall, {what} / {NATIVE}"
        verdicts.append(
            (name, f"{ratio:.2f}", f"at most {_MOST_OF_NATIVE_P90}", ratio <= _MOST_OF_NATIVE_P90)
        )
    return verdicts


def _wrong(compared: Sequence[Comparison]) -> Verdict:
    wrong = sum(sample.wrong for one in compared for sample in one.pools.values())
    return "wrong hints, all of them", str(wrong), "0", not wrong


def _parts(of: Comparison) -> list[str]:
    return [
        f"{of.client}, {of.broker}, {of.setup.rounds} alternating rounds of {of.setup.moves} moves "
        "for each arm:",
        stall_table(of.pools),
        _floor_table(of),
        _split_table(of),
        hint_table(of.pools),
    ]


def _floor_table(of: Comparison) -> str:
    return spread_table(
        "nobody can be served, ms",
        (
            (f"{kind}, {arm.label}", getattr(floor, kind))
            for kind in _KINDS
            for arm, floor in of.floors.items()
        ),
    )


def _split_table(of: Comparison) -> str:
    lines = [
        "| producers; somebody must wait | moves | median, hints on, ms | / hints off | / native |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, waited in (("no", False), (f"yes, {_NO_WAIT_MS:.0f} ms or longer", True)):
        on = of.split(ON, waited=waited)
        ratios = (
            judge_ratio(name, on, of.split(label, waited=waited), most=_MOST_OF_NATIVE)[1]
            for label in (OFF, NATIVE)
        )
        lines.append(f"| {name} | {len(on)} | {median(on):.0f} | {' | '.join(ratios)} |")
    return "\n".join(lines)
