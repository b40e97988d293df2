"""The options of commands that take in a journal: where it is, and where its events go.

Tested in ``tests/pipeline/test_cli.py``.
"""

from collections.abc import Callable
from typing import Any

import click

from leader_hints_report.spark_session import takes_kafka


def takes_journal(described: str) -> Callable[[Any], Any]:
    """Return what gives a command ``journal``, ``out``, ``kafka`` and ``skip_lost``, with the
    journal's help."""

    def give(command: Any) -> Any:
        for option in (
            click.option(
                "--skip-lost",
                is_flag=True,
                help="Go on where records of the topic were removed before they were read.",
            ),
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
