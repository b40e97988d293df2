"""Finds what `run` would refuse to start with, and secrets that its connections would lack.

Tested in ``tests/cli/test_config_check.py``.
"""

import errno
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import trio

from leader_hints.app.admin_view import ADMIN
from leader_hints.app.switch_file import read_switch_file
from leader_hints.check import host
from leader_hints.errors import ConfigurationError, LeaderHintsError, ListenError
from leader_hints.net.brokers import name_look_ups
from leader_hints.net.brokers.sasl import Credentials
from leader_hints.net.brokers.secret import read_secret
from leader_hints.net.clients.listening import open_listeners
from leader_hints.net.journal.journal_opening import check_journal
from leader_hints.net.takeover.successors import Successors
from leader_hints.net.tls.route_security import tls_problems
from leader_hints.settings.settings import Settings

#: Seconds for the name of a listening address to be resolved.
_PATIENCE: Final = 10.0
#: What a connection to a Unix socket gets where no process has it.
_NOBODY: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ECONNREFUSED})


def start_problems(settings: Settings, *, files: bool, ports: bool) -> list[LeaderHintsError]:
    """Return what this user on this machine would be refused, as `run` would say it.

    ``files``: look at TLS files, secrets and the journal. ``ports``: try to listen. Where another
    process serves at the socket of `takeover`, the ports are its, and are not tried.
    """
    problems: list[LeaderHintsError] = []
    if files:
        problems += _of_files(settings)
    if ports and not _hands_over(settings.takeover):
        problems += trio.run(_of_ports, settings)
    return problems


def _hands_over(path: str | None) -> bool:
    """Whether a process has the Unix socket at ``path``: one that was killed leaves it there.

    That process is not disturbed: its socket is one of another type.
    """
    if path is None:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        return probe.connect_ex(path) not in _NOBODY


def _of_files(settings: Settings) -> Iterator[ConfigurationError]:
    if settings.admin_token:
        try:
            read_secret(settings.admin_token)
        except ConfigurationError as error:
            yield ConfigurationError(f"admin_token: {error}")
    yield from tls_problems(settings.routes)
    for route in settings.routes:
        if route.sasl.mechanism != "none":
            try:
                Credentials(route.sasl).check()
            except ConfigurationError as error:
                yield ConfigurationError(f"route {route.name}: sasl: {error}")
    try:
        read_switch_file(settings.switch_file)
    except ConfigurationError as error:
        yield error
    try:
        check_journal(settings.journal)
    except ConfigurationError as error:
        yield error


async def _of_ports(settings: Settings) -> list[LeaderHintsError]:
    name_look_ups.install()
    problems: list[LeaderHintsError] = []
    if settings.takeover is not None:
        successors = Successors(Path(settings.takeover), list, lambda event: None)
        try:
            await successors.prepare()
        except ListenError as error:
            problems.append(error)
        finally:
            successors.close()
    addresses = {route.name: route.listen for route in settings.routes}
    if settings.admin is not None:
        addresses[ADMIN] = settings.admin
    async with AsyncExitStack() as opened:
        for address in addresses.values():
            try:
                with trio.fail_after(_PATIENCE):
                    listeners, _ = await open_listeners(address)
            except ListenError as error:
                far = host.connection_from(address.port)
                why = f" (an outgoing connection has this port, to {far})" if far else ""
                problems.append(ListenError(f"{error}{why}"))
            except trio.TooSlowError:
                slow = f"cannot listen on {address}: its name is not resolved"
                problems.append(ListenError(f"{slow} within {_PATIENCE:g} s"))
            else:
                # All at the same time, as `run` has them.
                for listener in listeners:
                    opened.push_async_callback(listener.aclose)
    return problems
