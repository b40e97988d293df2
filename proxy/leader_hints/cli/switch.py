"""`leader-hints hints`: shows and switches what running proxies do about hints.

Tested in ``tests/mock/test_switch_command.py``.
"""

import sys
from collections.abc import Iterator, Sequence
from urllib.parse import quote

import click

from leader_hints.address import Address
from leader_hints.cli.admin_client import (
    AdminServerError,
    ask,
    parse_admin,
    proxies_option,
    token_option,
)
from leader_hints.core.mode import Mode
from leader_hints.errors import ConfigurationError


@click.command("hints")
@click.argument("mode", required=False, type=click.Choice([mode.value for mode in Mode]))
@proxies_option()
@click.option(
    "--route",
    "routes",
    multiple=True,
    metavar="NAME",
    help="Only this route; may be given for several. Default: all routes.",
)
@token_option()
def switch(
    mode: str | None, admins: Sequence[str], routes: Sequence[str], token: str | None
) -> None:
    """Switch hints of running proxies to on, observe or off; without a mode show what they do.

    Prints a line for each route. A restart restores the mode of the settings, where the proxy has
    no switch_file. Exit code 1: a proxy was not reached, or a route was not switched; all others
    are.
    """
    asked = [parse_admin(admin) for admin in admins]
    found: set[str] = set()
    failed = False
    for address in asked:
        try:
            before = _modes(address)
        except AdminServerError as error:
            click.echo(f"leader-hints: {error}", err=True)
            failed = True
            continue
        chosen = {name: was for name, was in before.items() if not routes or name in routes}
        found |= chosen.keys()
        for line, is_wrong in _switched(address, chosen, mode, token):
            click.echo(line, err=is_wrong)
            failed |= is_wrong
    unknown = sorted(set(routes) - found)
    if unknown and not failed:
        raise ConfigurationError(f"--route: no such route: {', '.join(unknown)}")
    sys.exit(int(failed))


def _modes(address: Address) -> dict[str, str]:
    status = ask(address, "GET", "/status")
    try:
        return {route["name"]: route["hints"] for route in status["routes"]}
    except (TypeError, KeyError):
        wrong = f"no proxy at {address}: it answers as no admin server does"
        raise AdminServerError(wrong) from None


def _switched(
    address: Address, chosen: dict[str, str], mode: str | None, token: str | None
) -> Iterator[tuple[str, bool]]:
    """Yield a line for each route, and whether it could not be switched."""
    for name, before in chosen.items():
        if mode is None:
            yield f"{address} {name}: {before}", False
            continue
        path = f"/routes/{quote(name, safe='')}/hints"
        try:
            ask(address, "PUT", path, mode.encode(), token)
        except AdminServerError as error:
            yield f"leader-hints: {name}: {error}", True
        else:
            yield f"{address} {name}: {mode} (before: {before})", False
