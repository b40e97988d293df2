"""``python -m bench NAME``: measure, and write the figures to docs/; ``--help`` lists the names."""

import click

from bench import (
    closest_report,
    consuming_report,
    control_report,
    cost_report,
    kip951_report,
    kraft_report,
    memory_report,
    nearby,
    profile,
    replication_report,
    roll_report,
    settle_report,
    simulation_report,
    stall_report,
    takeover_report,
)
from bench.pipeline import report as pipeline_report

benchmarks = click.Group(
    "bench",
    commands=[
        stall_report.main,
        stall_report.legacy,
        kraft_report.main,
        replication_report.main,
        settle_report.main,
        cost_report.cost,
        cost_report.recoding,
        cost_report.watching,
        cost_report.workers,
        consuming_report.main,
        control_report.main,
        kip951_report.main,
        kip951_report.late,
        memory_report.main,
        takeover_report.main,
        closest_report.main,
        nearby.main,
        roll_report.main,
        simulation_report.main,
        pipeline_report.main,
        profile.main,
        profile.flamegraph,
    ],
    help="""Measure, and write the figures to docs/. All but pipeline need real brokers.

    `make bench WHAT=NAME ARGS="--no-write"` runs one. Each has its own --help.
    """,
    context_settings={"max_content_width": 120},
)

if __name__ == "__main__":
    benchmarks(prog_name="python -m bench")
