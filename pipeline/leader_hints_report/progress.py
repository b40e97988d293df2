"""Shows on a terminal what a command is at; elsewhere nothing is written."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Give a function that names the step that begins. Spark shows the progress within one."""
    shown = sys.stderr.isatty()

    def on_step(step: str) -> None:
        if shown:
            click.echo(f"leader-hints-report: {step}", err=True)

    yield on_step
