"""Options that several commands have; the help of each is the command's own.

Tested in ``tests/cli/test_commands.py``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click

from leader_hints.cli.sources import CONFIG_VARIABLE
from leader_hints.settings.log import LogFormat, LogLevel
from leader_hints.settings.settings import HintsMode

#: Gives a command an option.
Option = Callable[[Any], Any]


def choice(of: Any) -> str:
    """How a flag with fixed values shows in --help. The settings' model refuses other values."""
    return f"[{'|'.join(get_args(of))}]"


def config_option(described: str) -> Option:
    """Return the option for the file with settings."""
    return click.option(
        "--config",
        "file",
        type=click.Path(path_type=Path),
        envvar=CONFIG_VARIABLE,
        metavar="FILE",
        help=described,
    )


def hints_option(described: str) -> Option:
    """Return the option for the mode of hints."""
    return click.option("--hints", metavar=choice(HintsMode), help=described)


def admin_option() -> Option:
    """Return the option for the address of the admin server."""
    return click.option("--admin", metavar="HOST:PORT", help="Where to serve metrics and health.")


def log_level_option(described: str) -> Option:
    """Return the option for the level of the log."""
    return click.option("--log-level", metavar=choice(LogLevel), help=described)


def log_format_option(described: str) -> Option:
    """Return the option for the format of the log."""
    return click.option("--log-format", metavar=choice(LogFormat), help=described)
