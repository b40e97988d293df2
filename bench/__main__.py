"""``python -m bench COMMAND``: measure, and write the figures to docs/benchmarks.md."""

import click

from bench import (
    control_report,
    cost_report,
    kip951_report,
    memory_report,
    profile,
    stall_report,
)

click.Group(
    "bench",
    commands=[
        stall_report.main,
        stall_report.legacy,
        cost_report.cost,
        cost_report.recoding,
        cost_report.watching,
        control_report.main,
        kip951_report.main,
        memory_report.main,
        profile.main,
        profile.main_table,
    ],
    help="Measure before real brokers; write the figures to docs/benchmarks.md.",
)()
