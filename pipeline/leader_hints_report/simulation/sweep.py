"""Many simulations, seeds times arms: here one after the other, or on Spark, one in each task."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from leader_hints_report.simulation.arms import Arm, Mode, changed_fleet
from leader_hints_report.simulation.figures import ArmFigures, Run, over_seeds, run
from leader_hints_report.simulation.fleet import Fleet
from leader_hints_report.simulation.layout import layout
from leader_hints_report.simulation.moves import check_event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sweep(
    arms: Sequence[Arm], seeds: Sequence[int], told: Callable[[str], None] = lambda _: None
) -> list[ArmFigures]:
    """Simulate all arms with all seeds in this process."""
    figures = []
    for arm in arms:
        # No change moves a replica or a client, but the layout has the clients' back-off.
        where = layout(arm.fleet)
        runs = []
        for seed in seeds:
            told(f"Simulating {arm.name}, seed {seed}")
            runs.append(run(arm, seed, where))
        figures.append(over_seeds(arm, runs))
    return figures


def sweep_on_spark(
    session: "SparkSession", fleet: Fleet, arms: Sequence[Arm], seeds: Sequence[int]
) -> list[ArmFigures]:
    """Simulate all arms with all seeds on Spark; the figures are the same as of :func:`sweep`.

    Executors need this package: the driver sends only the fleet and the names of arms.

    :raises PipelineError: an event cannot happen to its fleet.
    """
    for its in {arm.change: arm.fleet for arm in arms}.values():
        # A task that refuses it would end in a traceback of Java.
        check_event(its)
    text = fleet.model_dump_json()
    tasks = [(arm.mode.value, arm.change, seed) for arm in arms for seed in seeds]
    of_all = (
        session.sparkContext.parallelize(tasks, len(tasks))
        .map(lambda task: _run_task(text, *task))
        .collect()
    )
    per_arm = [of_all[begin : begin + len(seeds)] for begin in range(0, len(of_all), len(seeds))]
    return [over_seeds(arm, runs) for arm, runs in zip(arms, per_arm, strict=True)]


def _run_task(fleet: str, mode: str, change: str, seed: int) -> Run:
    its = Fleet.model_validate_json(fleet)
    return run(Arm(Mode(mode), change, changed_fleet(its, change) if change else its), seed)
