"""The command `leader-hints`.

Exit codes: 0 after SIGTERM or SIGINT and for a finished command, 1 for a failure or where `check`
finds a problem, 2 for bad use or configuration. An operator's mistake ends in
one line for each problem, never in a traceback.

Tested in ``tests/cli/test_commands.py``.
"""

import errno
import functools
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import yaml

from leader_hints.cli.conformance import conformance
from leader_hints.cli.fault import fault
from leader_hints.cli.local import local
from leader_hints.cli.mock import broker, move
from leader_hints.cli.options import (
    admin_option,
    config_option,
    hints_option,
    log_format_option,
    log_level_option,
)
from leader_hints.cli.readiness import readiness
from leader_hints.cli.sources import load_settings
from leader_hints.cli.switch import switch
from leader_hints.errors import LeaderHintsError
from leader_hints.observe import journal_schema as journal_lines
from leader_hints.observe.logs import configure_logs
from leader_hints.settings.settings import Settings

_SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
#: The system's errors that are caused by the file that the output goes to.
_CANNOT_WRITE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_SETTING_OF_FLAG: Final = {
    "routes": "routes",
    "hints": "hints",
    "admin": "admin",
    "log_level": "log.level",
    "log_format": "log.format",
}


_SETTINGS_OPTIONS: Final = (
    config_option("YAML file with settings."),
    click.option(
        "--route",
        "routes",
        multiple=True,
        metavar="LISTEN=UPSTREAM",
        help="Where to listen, and the one broker behind it. Give one for each broker.",
    ),
    hints_option("Give hints, only count them, or relay."),
    admin_option(),
    log_level_option("The least level that is written."),
    log_format_option("How the log is written."),
)


class _Origin(NamedTuple):
    """Where a command's settings come from: the file, "" without one, and how to read all again."""

    file: str
    again: Callable[[], Settings]


def _takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags for settings, and pass it the `Settings` that all places make up.

    Flags of the command's own are passed on.
    """

    @functools.wraps(command)
    def with_settings(file: Path | None, **flags: Any) -> None:
        by_key = {key: flags.pop(name) for name, key in _SETTING_OF_FLAG.items()}
        load = functools.partial(load_settings, by_key, os.environ, file)
        click.get_current_context().obj = _Origin(str(file or ""), load)
        command(load(), **flags)

    for option in reversed(_SETTINGS_OPTIONS):
        with_settings = option(with_settings)
    return with_settings


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kafka-leader-hints", message="%(prog)s %(version)s")
def cli() -> None:
    """Give clients of legacy Kafka brokers the leader hints of KIP-951."""


@cli.command()
@_takes_settings
def run(settings: Settings) -> None:
    """Run in front of one broker for each route, until SIGTERM or SIGINT.

    Each setting can also be in the file, or in an environment variable LEADER_HINTS_... with two
    underscores between a group and its key. Flags win over variables, variables over the file.
    """
    configure_logs(settings.log.least, settings.log.format)
    # Imported here, since the other commands need no network code and should answer at once.
    from leader_hints.app import run as serve

    origin: _Origin = click.get_current_context().obj
    sys.exit(serve(settings, config=origin.file, again=origin.again))


cli.add_command(local)
cli.add_command(switch)
cli.add_command(readiness)
cli.add_command(fault)
cli.add_command(move)
cli.add_command(broker)
cli.add_command(conformance)


@cli.command("check")
@_takes_settings
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for programs.")
def check_routes(settings: Settings, *, as_json: bool) -> None:
    """Report what clients will get on each route, what is wrong, and what to do about it.

    Takes the same flags, variables and file as `run`, before the proxy runs or while it does. It
    asks the brokers and writes nothing. If nothing listens on a route's address yet, the check
    listens there for a few seconds, to see which connections arrive. Exit code 1: there are
    problems.
    """
    from leader_hints.check.report import lines, make_report, to_json
    from leader_hints.check.route_probe import examine
    from leader_hints.check.rules import Bounds, judge

    routes, machine = examine(settings)
    hold = settings.hold
    findings = judge(routes, machine, Bounds(hold.kraft_most_ms, settings.limits.request_bytes))
    report = make_report(routes, findings)
    click.echo(to_json(report) if as_json else "\n".join(lines(report)))
    sys.exit(int(report.mend))


def _finite(context: click.Context, option: click.Parameter, value: float) -> float:
    """Refuse what is no number, which is within every range."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of seconds")
    return value


@cli.command("wait-gone")
@_takes_settings
@click.option(
    "--at-most",
    type=click.FloatRange(0),
    callback=_finite,
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait; exit code 1 where a broker is still there then.",
)
def wait_gone(settings: Settings, *, at_most: float) -> None:
    """Wait until the broker of no route takes connections any more.

    For a hook that runs before the proxy is stopped, such as a container's preStop, so that it
    leaves after its broker. Takes the same flags, variables and file as `run`.
    """
    from leader_hints.net.departure import await_departure

    await_departure(settings, at_most)


@cli.command("status-schema")
def status_schema() -> None:
    """Print the JSON schema of the admin server's /status."""
    # Imported here, as nothing else that this module does needs it.
    from leader_hints.observe.status import schema as schema_of_status

    click.echo(json.dumps(schema_of_status(), indent=2))


@cli.group()
def config() -> None:
    """Look at settings without running anything."""


@config.command()
def schema() -> None:
    """Print the JSON schema of the configuration file."""
    click.echo(json.dumps({"$schema": _SCHEMA_DIALECT, **Settings.model_json_schema()}, indent=2))


@config.command()
@_takes_settings
@click.option(
    "--skip",
    type=click.Choice(["files", "ports"]),
    multiple=True,
    help="Leave out what only the proxy's own machine has. May be given for both.",
)
def check(settings: Settings, *, skip: tuple[str, ...]) -> None:
    """Check the settings that `run` would take from the same flags, and print them all as YAML.

    Reports all that `run` would refuse: besides the settings themselves TLS files, secrets and the
    journal's folder (files), and addresses that cannot be listened on (ports). Run it as the
    proxy's user on its machine, with --skip ports while the proxy runs there. Exit code 2 for
    settings and files, 1 if only addresses cannot be had.
    """
    from leader_hints.app.start_check import start_problems

    click.echo(yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False), nl=False)
    problems = start_problems(settings, files="files" not in skip, ports="ports" not in skip)
    for problem in problems:
        _say(problem)
    sys.exit(max((problem.exit_code for problem in problems), default=0))


@cli.group()
def journal() -> None:
    """Know the journal's format."""


@journal.command("schema")
def journal_schema() -> None:
    """Print the JSON schema of the journal's lines."""
    click.echo(json.dumps(journal_lines.schema(), indent=2))


def main() -> None:
    """The entry point: run the command line and end the process with its exit code."""
    try:
        cli(prog_name="leader-hints")
    except LeaderHintsError as error:
        _say(error)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        # What is left would be tried again as the process ends, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"leader-hints: the output cannot be written: {error.strerror}", err=True)
        sys.exit(1)


def _say(error: LeaderHintsError) -> None:
    for line in str(error).splitlines():
        click.echo(f"leader-hints: {line}", err=True)


if __name__ == "__main__":
    main()
