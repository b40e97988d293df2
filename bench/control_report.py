"""``python -m bench control``: the control plane at scale, written to docs/benchmarks.md."""

from collections.abc import Mapping, Sequence
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
_MOST_SLICE = 2000


@click.command("control")
@click.option("--polls", default=11, show_default=True, help="Polls, one in five asks for all.")
@click.option("--partitions", default=PARTITIONS, show_default=True, help="Of the fake cluster.")
@click.option("--sidecars", "count", default=100, show_default=True, help="0: no real brokers.")
@click.option("--seconds", default=60.0, show_default=True, help="For which brokers are polled.")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(
    polls: int, partitions: int, count: int, seconds: float, from_samples: bool, write: bool
) -> None:
    """Poll a large cluster, move thousands of leaders at once, and poll a real cluster from many
    sidecars. Ends with 1 where a target is missed."""
    samples = (
        Samples.read("control") if from_samples else _measured(polls, partitions, count, seconds)
    )
    of = samples.setup(_Setup)
    polled = samples.get(Polls, "polls", "proxy")
    storm = samples.get(Storm, "storm", "proxy")
    verdicts = [*_judge_polls(polled), *_judge_storm(storm)]
    parts = [
        f"{of.partitions} partitions, {BROKERS} brokers, one of which is behind the proxy:",
        _poll_table(polled),
        "The longest step of each task, milliseconds of CPU:",
        _steps_table({"polls": polled.steps, "storm": storm.steps}),
        f"A storm: {storm.moved} partitions of one broker move at once, under {control.CLIENTS} "
        "clients:",
        _storm_table(storm),
    ]
    if of.sidecars:
        cost = samples.get(SidecarCost, "sidecars", "brokers")
        verdicts.append(_judge_sidecars(cost))
        parts += [
            f"{cost.sidecars} sidecars that poll 3 real brokers (3.6.2) with {cost.partitions} "
            "partitions of one replica each:",
            _sidecar_table(cost),
        ]
    text = "\n\n".join([*parts, target_table(verdicts)])
    finish(_PAGE, "control", text, samples, verdicts, write=write)


@dataclass
class _Setup:
    partitions: int
    sidecars: int


def _measured(polls: int, partitions: int, count: int, seconds: float) -> Samples:
    missing = maven.missing_tools() if count else None
    if missing is not None:
        raise click.ClickException(missing)
    samples = Samples()
    samples.add_setup(_Setup(partitions, count))
    samples.add("polls", "proxy", control.polls(partitions, BROKERS, polls))
    samples.add("storm", "proxy", control.storm(partitions, BROKERS))
    if count:
        samples.add("sidecars", "brokers", sidecars.measure(count, 9000, seconds))
    return samples


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


def _judge_storm(storm: Storm) -> list[Verdict]:
    bound = HoldSettings().deadline_ms
    longest = max(storm.steps.values())
    return [
        (
            "partitions with a hint at their first error",
            f"{storm.hinted - storm.late} of {storm.moved}",
            "all",
            storm.hinted - storm.late == storm.moved,
        ),
        ("wrong hints in the storm", str(storm.wrong), "0", storm.wrong == 0),
        (
            "longest hold in the storm",
            f"{storm.longest_hold:.0f} ms",
            f"at most {bound} ms",
            storm.longest_hold <= bound,
        ),
        (
            "longest step in the storm",
            f"{longest:.1f} ms",
            f"below {_MOST_STEP:g} ms",
            longest < _MOST_STEP,
        ),
    ]


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


def _storm_table(storm: Storm) -> str:
    traffic = storm.traffic
    rows: Sequence[Sequence[str]] = [
        ["CPU of the proxy, s", f"{storm.cpu:.2f}"],
        ["until all clients had their first answer, s", f"{storm.seconds:.2f}"],
        ["clients' waits for error responses, median, ms", f"{median(storm.waits):.0f}"],
        ["the same, p99, ms", f"{quantile(storm.waits, 0.99):.0f}"],
        ["Metadata requests", str(traffic.requests[METADATA])],
        ["partitions in their answers", str(traffic.partitions)],
        ["bytes of Metadata requests", str(traffic.asked[METADATA])],
        ["bytes of Metadata responses", str(traffic.answered[METADATA])],
        ["ListOffsets requests", str(traffic.requests[LIST_OFFSETS])],
        ["bytes of ListOffsets, requests and responses", str(_both(storm, LIST_OFFSETS))],
    ]
    return table(["storm", "figure"], rows)


def _both(storm: Storm, key: int) -> int:
    return storm.traffic.asked[key] + storm.traffic.answered[key]


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
