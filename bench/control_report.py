"""``python -m bench control``: the control plane at scale, written to docs/benchmarks.md."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import click

from bench import control, sidecars
from bench.control import BROKERS, PARTITIONS, Polls, Storm
from bench.report import Verdict, finish, table, target_table
from bench.samples import Samples, from_samples_option
from bench.sidecars import SidecarCost
from bench.statistics import quantile
from leader_hints.settings.hold import HoldSettings
from tests.harness import maven
from tests.net.messages import LIST_OFFSETS, METADATA

_PAGE = maven.ROOT / "docs" / "benchmarks.md"
_MB = 1_000_000

#: CPU seconds of a poll; milliseconds of a step of the event loop; bytes; share of a core.
_MOST_POLL, _MOST_STEP, _MOST_VIEW, _MOST_SIDECARS = 1.0, 20.0, 60 * _MB, 0.02
#: Milliseconds of a step while leaders move.
_MOST_STEP_OF_STORM = 10.0
_MOST_SLICE = 2000
#: Storms of clients without hints, among the samples.
_SETTLED = "settled storm"
#: What may be measured by itself.
_PARTS = ("polls", "storms", "settled", "sidecars")


@click.command("control")
@click.option("--part", "parts", multiple=True, type=click.Choice(_PARTS),
              help="Only this part, and keep the other samples; may be repeated.")  # fmt: skip
@click.option("--polls", default=11, show_default=True, help="Polls, one in five asks for all.")
@click.option("--partitions", default=PARTITIONS, show_default=True, help="Of the fake cluster.")
@click.option("--storms", default=7, show_default=True, help="Each with a proxy of its own.")
@click.option("--sidecars", "count", default=100, show_default=True, help="0: no real brokers.")
@click.option("--seconds", default=60.0, show_default=True, help="For which brokers are polled.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(
    parts: Sequence[str],
    polls: int,
    partitions: int,
    storms: int,
    count: int,
    seconds: float,
    from_samples: bool,
    write: bool,
) -> None:
    """Poll a large cluster, move thousands of leaders at once, and poll a real cluster from many
    sidecars. Ends with 1 where a target is missed."""
    samples = Samples.read("control") if from_samples or parts else Samples()
    if not from_samples:
        _measure(samples, parts or _PARTS, polls, partitions, storms, count, seconds)
    of = samples.setup(_Setup)
    polled = samples.get(Polls, "polls", "proxy")
    of_storms = [*samples.all(Storm, "storm").values()]
    of_settled = [*samples.all(Storm, _SETTLED).values()]
    verdicts = [*_judge_polls(polled), *_judge_storms(of_storms)]
    texts = [
        f"{of.partitions} partitions, {BROKERS} brokers, one of which is behind the proxy:",
        _poll_table(polled),
        "The longest step of each task, milliseconds of CPU:",
        _steps_table({"polls": polled.steps, "storms": _longest_of(of_storms)}),
        f"{len(of_storms)} storms: {of_storms[0].moved} partitions of one broker move at once, "
        f"under {control.CLIENTS} clients:",
        _storm_table(of_storms),
        _outcomes("Errors without a hint", (storm.missed for storm in of_storms)),
    ]
    if of_settled:
        verdicts += _judge_settled(of_settled)
        texts += [
            f"{len(of_settled)} storms, under clients that use no hints, with `hold.settle: true`:",
            _storm_table(of_settled),
            _outcomes("Errors that wait", (storm.settled for storm in of_settled)),
        ]
    if of.sidecars:
        cost = samples.get(SidecarCost, "sidecars", "brokers")
        verdicts.append(_judge_sidecars(cost))
        texts += [
            f"{cost.sidecars} sidecars that poll 3 real brokers (3.6.2) with {cost.partitions} "
            "partitions of one replica each:",
            _sidecar_table(cost),
        ]
    text = "\n\n".join([*texts, target_table(verdicts)])
    finish(_PAGE, "control", text, samples, verdicts, write=write)


@dataclass
class _Setup:
    partitions: int
    sidecars: int


def _measure(
    samples: Samples,
    parts: Sequence[str],
    polls: int,
    partitions: int,
    storms: int,
    count: int,
    seconds: float,
) -> None:
    sidecars_too = count and "sidecars" in parts
    missing = maven.missing_tools() if sidecars_too else None
    if missing is not None:
        raise click.ClickException(missing)
    if "polls" in parts:
        samples.add_setup(_Setup(partitions, count))
        samples.add("polls", "proxy", control.polls(partitions, BROKERS, polls))
    for part, comparison in (("storms", "storm"), ("settled", _SETTLED)):
        if part not in parts:
            continue
        samples.forget(comparison)
        for number in range(1, storms + 1):
            storm = control.storm(partitions, BROKERS, settle=comparison == _SETTLED)
            samples.add(comparison, f"proxy {number}", storm)
    if sidecars_too:
        samples.add("sidecars", "brokers", sidecars.measure(count, 9000, seconds))


def _judge_polls(polled: Polls) -> list[Verdict]:
    slowest = max(polled.whole + polled.sliced)
    longest = max(polled.steps.values())
    return [
        ("CPU of a poll", f"{slowest:.2f} s", f"below {_MOST_POLL:g} s", slowest < _MOST_POLL),
        (
            "most partitions of several topics in an answer",
            str(polled.largest),
            f"at most {_MOST_SLICE}",
            polled.largest <= _MOST_SLICE,
        ),
        (
            "longest step while polling",
            f"{longest:.1f} ms",
            f"below {_MOST_STEP:g} ms",
            longest < _MOST_STEP,
        ),
        (
            "memory of the view",
            f"{polled.view / _MB:.1f} MB",
            f"below {_MOST_VIEW / _MB:g} MB",
            polled.view < _MOST_VIEW,
        ),
    ]


def _judge_storms(storms: Sequence[Storm]) -> list[Verdict]:
    """Judge by the worst of them, and show each."""
    moved = storms[0].moved
    at_once = [storm.hinted - storm.late for storm in storms]
    wrong = sum(storm.wrong for storm in storms)
    return [
        (
            "partitions with a hint at their first error",
            f"{', '.join(map(str, at_once))} of {moved}",
            "all",
            min(at_once) == moved,
        ),
        ("wrong hints in the storms", str(wrong), "0", wrong == 0),
        *_judge_bounds(storms, "the storms"),
    ]


def _judge_settled(storms: Sequence[Storm]) -> list[Verdict]:
    where = "the storms without hints"
    moved, reported = storms[0].moved, [sum(storm.settled.values()) for storm in storms]
    return [
        (
            f"errors that wait and are reported, in {where}",
            f"{', '.join(map(str, reported))} of {moved}",
            "all",
            {*reported} == {moved},
        ),
        *_judge_bounds(storms, where),
    ]


def _judge_bounds(storms: Sequence[Storm], where: str) -> list[Verdict]:
    bound = HoldSettings().deadline_ms
    holds = [storm.longest_hold for storm in storms]
    steps = [max(storm.steps.values()) for storm in storms]
    return [
        (
            f"longest hold in {where}",
            f"{', '.join(f'{hold:.0f}' for hold in holds)} ms",
            f"at most {bound} ms",
            max(holds) <= bound,
        ),
        (
            f"longest step in {where}",
            f"{', '.join(f'{step:.1f}' for step in steps)} ms",
            f"at most {_MOST_STEP_OF_STORM:g} ms",
            max(steps) <= _MOST_STEP_OF_STORM,
        ),
    ]


def _longest_of(storms: Sequence[Storm]) -> Mapping[str, float]:
    tasks = {task for storm in storms for task in storm.steps}
    return {task: max(storm.steps.get(task, 0.0) for storm in storms) for task in tasks}


def _judge_sidecars(cost: SidecarCost) -> Verdict:
    return (
        "brokers' CPU for all sidecars",
        f"{cost.added:.2%} of a core",
        f"below {_MOST_SIDECARS:.0%}",
        cost.added < _MOST_SIDECARS,
    )


def _poll_table(polled: Polls) -> str:
    head = ["CPU seconds of a poll", "polls", "median", "max"]
    rows = [
        [name, str(len(of)), f"{median(of):.3f}", f"{max(of):.3f}"]
        for name, of in (("all at once", polled.whole), ("in slices", polled.sliced))
        if of
    ]
    memory = f"Peak memory of the process: {polled.process / _MB:.0f} MB."
    return f"{table(head, rows)}\n\n{memory}"


def _steps_table(steps: Mapping[str, Mapping[str, float]]) -> str:
    tasks = sorted({task for of in steps.values() for task in of if of[task] >= 1.0})
    rows = [
        [f"`{task}`", *(f"{of[task]:.1f}" if task in of else "-" for of in steps.values())]
        for task in tasks
    ]
    return table(["task", *steps], rows)


def _storm_table(storms: Sequence[Storm]) -> str:
    figures: Mapping[str, Callable[[Storm], float]] = {
        "CPU of the proxy, ms": lambda storm: storm.cpu * 1000,
        "until all clients had their first answer, ms": lambda storm: storm.seconds * 1000,
        "clients' waits for error responses, median, ms": lambda storm: median(storm.waits),
        "the same, p99, ms": lambda storm: quantile(storm.waits, 0.99),
        "Metadata requests": lambda storm: storm.traffic.requests[METADATA],
        "partitions in their answers": lambda storm: storm.traffic.partitions,
        "bytes of Metadata requests": lambda storm: storm.traffic.asked[METADATA],
        "bytes of Metadata responses": lambda storm: storm.traffic.answered[METADATA],
        "ListOffsets requests": lambda storm: storm.traffic.requests[LIST_OFFSETS],
        "bytes of ListOffsets, requests and responses": lambda storm: (
            storm.traffic.asked[LIST_OFFSETS] + storm.traffic.answered[LIST_OFFSETS]
        ),
    }
    rows = []
    for name, figure in figures.items():
        of = [figure(storm) for storm in storms]
        rows.append([name, f"{median(of):.0f}", f"{max(of):.0f}"])
    return table(["storm", "median", "most"], rows)


def _outcomes(what: str, of_storms: Iterable[Mapping[str, int]]) -> str:
    """Return a sentence with the sums of all storms."""
    sums: Counter[str] = Counter()
    for counted in of_storms:
        sums.update(counted)
    return f"{what}: {', '.join(f'{name} {n}' for name, n in sorted(sums.items())) or 'none'}."


def _sidecar_table(cost: SidecarCost) -> str:
    rows = [
        ["idle", f"{cost.idle:.2%}"],
        [f"polled, {cost.answers:.0f} answers a second", f"{cost.polled:.2%}"],
        [
            f"added by the polls at the default interval, {cost.default:.1f} answers a second",
            f"{cost.added:.2%}",
        ],
    ]
    return table(["CPU of all brokers, share of a core", "figure"], rows)
