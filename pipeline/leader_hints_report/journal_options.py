"""The options of commands that take in a journal: where it is, and where its events go.

Tested in ``tests/pipeline/test_cli.py``.
"""

from collections.abc import Callable
from typing import Any

import click

from leader_hints_report.spark_session import takes_kafka


def takes_journal(described: str) -> Callable[[Any], Any]:
    """Return what gives a command ``journal``, ``out`` and ``kafka``, with the journal's help."""

    def give(command: Any) -> Any:
        for option in (
            takes_kafka,
            click.option(
                "--out", required=True, metavar="DIR", help="Where events and tables are kept."
            ),
            click.option(
                "--journal",
                required=True,
                metavar="PATH|kafka://HOST:PORT/TOPIC",
                help=described,
            ),
        ):
            command = option(command)
        return command

    return give
