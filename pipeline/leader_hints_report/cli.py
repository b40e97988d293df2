"""The command `leader-hints-report`.

Exit codes: 0 for a finished command, 1 for a failure, 2 for bad use. An operator's mistake ends in
one line, never in a traceback.
"""

import importlib
import pkgutil
import sys
from typing import Final, cast

import click

from leader_hints_report import commands
from leader_hints_report.errors import PipelineError

#: Packages of the extra, which the proxy does without.
EXTRA: Final = frozenset({"duckdb", "jinja2", "matplotlib", "numpy", "pyspark"})


class _Commands(click.Group):
    """Finds the subcommands in :mod:`leader_hints_report.commands`, and imports the one that is
    asked for.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all of them."""
        return sorted(module.name for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one, ``None`` if there is no such."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{commands.__name__}.{cmd_name}")
        return cast(click.Command, module.command)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kafka-leader-hints", message="%(prog)s %(version)s")
def cli() -> None:
    """What leader moves cost a fleet, and what hints save, from the journals of its sidecars."""


def main() -> None:
    """The entry point: run the command line and end the process with its exit code."""
    try:
        cli(prog_name="leader-hints-report")
    except PipelineError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRA:
            raise
        _fail(f"{package} is not installed; pip install 'kafka-leader-hints[pipeline]' installs it")


def _fail(reason: str) -> None:
    click.echo(f"leader-hints-report: {reason}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
