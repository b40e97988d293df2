"""``python -m bench consuming``: consumers of several partitions, compared with HAProxy."""

from collections.abc import Iterator

import click

from bench.consuming import Consumed, Consumption, run
from bench.cost import missing_tools
from bench.cost_report import HAPROXY, OFF, ON
from bench.load import Work
from bench.report import Verdict, finish, judge_ratio, table, target_table, with_interval
from bench.samples import Samples, from_samples_option
from tests.harness import franz_go, maven

_DOCS = maven.ROOT / "docs"
_SECTION = "consuming"
_BYTES = 300_000_000
#: Bytes of a partition that Java and franz-go ask for at most by default.
_PARTITION = 1 << 20
_ARMS = (HAPROXY, OFF, ON)
WORKS = [
    Work(
        f"{client}, {partitions} partition{'s' if partitions > 1 else ''}",
        "consume",
        _BYTES,
        _PARTITION,
        f"partitions-{partitions}",
        partitions=partitions,
        client=client,
    )
    for partitions in (1, 3, 12, 100)
    for client in ("Java", "franz-go")
]
#: Most CPU seconds with hints on over HAProxy's, and least MB/s over its.
MOST_CPU = 1.3
LEAST_SPEED = 0.9


@click.command("consuming")
@click.option("--rounds", default=5, show_default=True, help="Alternating rounds.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(rounds: int, from_samples: bool, write: bool) -> None:
    """Compare consumers of several partitions with HAProxy. Ends with 1 on a missed target."""
    samples = Samples.read(_SECTION) if from_samples else _measured(rounds)
    figures = {
        (arm, work): samples.get(Consumed, work.label, arm.label) for arm in _ARMS for work in WORKS
    }
    verdicts = [*_verdicts(figures)]
    head = ["300 MB", *(arm.label for arm in _ARMS)]
    text = "\n\n".join(
        [
            f"{len(figures[ON, WORKS[0]].cpu)} alternating rounds; CPU seconds of the proxy, "
            "median and 95 % interval:",
            table(head, _rows(figures, "cpu", 3)),
            "MB/s:",
            table(head, _rows(figures, "mb_per_s", 0)),
            "Minor page faults of the proxy:",
            table(head, _rows(figures, "faults", 0)),
            target_table(verdicts),
        ]
    )
    finish(_DOCS / "benchmarks.md", _SECTION, text, samples, verdicts, write=write)


def _measured(rounds: int) -> Samples:
    missing = maven.missing_tools() or missing_tools(_ARMS) or franz_go.missing_go()
    if missing is not None:
        raise click.ClickException(missing)
    samples = Samples()
    for (arm, work), figures in run(_ARMS, WORKS, rounds).items():
        samples.add(work.label, arm.label, figures)
    return samples


def _rows(figures: Consumption, name: str, digits: int) -> list[list[str]]:
    return [
        [work.label, *(with_interval(getattr(figures[arm, work], name), digits) for arm in _ARMS)]
        for work in WORKS
    ]


def _verdicts(figures: Consumption) -> Iterator[Verdict]:
    pairs = [(work.label, figures[ON, work], figures[HAPROXY, work]) for work in WORKS]
    for label, ours, theirs in pairs:
        yield judge_ratio(f"CPU, {label}", ours.cpu, theirs.cpu, most=MOST_CPU)
    for label, ours, theirs in pairs:
        yield judge_ratio(f"MB/s, {label}", ours.mb_per_s, theirs.mb_per_s, least=LEAST_SPEED)
