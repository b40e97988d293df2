"""``python -m bench closest``: consumers that read in their rack, beside the brokers' selector."""

from collections.abc import Iterator
from statistics import median

import click

from bench.closest import (
    LIBRARIES,
    NEARBY,
    OFF,
    ON,
    SELECTOR,
    VERSION,
    Bytes,
    ClosestArm,
    Followed,
    Measured,
    Setup,
    Spent,
    arms,
    run,
    share,
    shares,
)
from bench.report import Verdict, finish, judge_ratio, table, target_table, with_interval
from bench.samples import Samples, from_samples_option
from tests.harness import maven

_SECTION = "closest"
#: Least share of bytes from the own rack, and most points behind the brokers' selector.
LEAST_SHARE = 0.95
MOST_BEHIND = 0.02
#: Most CPU seconds of the proxies, on over off.
MOST_CPU = 1.05
#: Most latency, and most seconds until consumers go on, over those with the brokers' selector.
MOST_LATENCY = 1.1
MOST_RECOVERY = 1.2


@click.command(_SECTION)
@click.option("--rounds", default=5, show_default=True, help="Alternating rounds.")
@click.option("--after", default=30.0, show_default=True, help="Seconds until bytes are counted.")
@click.option("--window", default=30.0, show_default=True, help="Seconds in which they are.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(rounds: int, after: float, window: float, from_samples: bool, write: bool) -> None:
    """Compare consumers' reads in their rack with the brokers' own selector.

    Ends with 1 on a missed target.
    """
    samples = Samples.read(_SECTION) if from_samples else _measured(Setup(rounds, after, window))
    setup = samples.setup(Setup)
    measured = _read(samples)
    verdicts = [*_verdicts(measured)]
    text = "\n\n".join(
        [
            f"{VERSION}, ZooKeeper, three brokers in three racks; {setup.rounds} alternating "
            f"rounds, {setup.window:g} s from {setup.after:g} s after the start on; median over "
            "rounds and 95 % interval:",
            table(["consumers", *(arm.label for arm in NEARBY)], _rows(measured)),
            target_table(verdicts),
        ]
    )
    finish(maven.ROOT / "docs" / "benchmarks.md", _SECTION, text, samples, verdicts, write=write)


def _measured(setup: Setup) -> Samples:
    missing = maven.missing_tools()
    if missing is not None:
        raise click.ClickException(missing)
    measured = run(setup)
    samples = Samples()
    samples.add_setup(setup)
    for arm in NEARBY:
        samples.add("bytes", arm.label, measured.bytes[arm])
    for arm in (OFF, ON):
        samples.add("cpu", arm.label, measured.spent[arm])
    for library, arm in arms():
        samples.add(library, arm.label, measured.followed[library, arm])
    return samples


def _read(samples: Samples) -> Measured:
    return Measured(
        {arm: samples.get(Bytes, "bytes", arm.label) for arm in NEARBY},
        {arm: samples.get(Spent, "cpu", arm.label) for arm in (OFF, ON)},
        {(library, arm): samples.get(Followed, library, arm.label) for library, arm in arms()},
    )


def _rows(measured: Measured) -> Iterator[list[str]]:
    def of_bytes(arm: ClosestArm) -> str:
        return with_interval([100 * one for one in shares(measured.bytes[arm])], 1)

    yield ["bytes from the own rack, %", *(of_bytes(arm) for arm in NEARBY)]
    for library in LIBRARIES:
        for name, words, digits in (
            ("p50", "latency p50, ms", 1),
            ("p99", "latency p99, ms", 1),
            ("recovery", "without a record after the follower's death, s", 1),
        ):
            values = [getattr(measured.followed[library, arm], name) for arm in NEARBY]
            yield [f"{library}: {words}", *(with_interval(one, digits) for one in values)]


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    ours, theirs = share(measured.bytes[ON]), share(measured.bytes[SELECTOR])
    text = f"{ours:.1%}".replace("%", " %")
    target = f"at least {100 * LEAST_SHARE:g} %"
    yield "bytes from the own rack", text, target, ours >= LEAST_SHARE
    behind = theirs - ours
    yield (
        "the same, points behind the brokers' selector",
        f"{100 * behind:.2f}",
        f"at most {100 * MOST_BEHIND:g}",
        behind <= MOST_BEHIND,
    )
    on, off = measured.spent[ON].cpu, measured.spent[OFF].cpu
    name, ratio, target, met = judge_ratio("CPU, consume 300 MB, on / off", on, off, most=MOST_CPU)
    yield name, f"{ratio}; {median(on):.2f} and {median(off):.2f} s", target, met
    for library in LIBRARIES:
        above, below = (measured.followed[library, arm] for arm in NEARBY)
        for percentile in ("p50", "p99"):
            yield judge_ratio(
                f"latency {percentile}, {library}",
                getattr(above, percentile),
                getattr(below, percentile),
                most=MOST_LATENCY,
            )
        yield judge_ratio(
            f"recovery, {library}", above.recovery, below.recovery, most=MOST_RECOVERY
        )
