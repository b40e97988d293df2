"""`leader-hints fault`: asks a running `leader-hints local --allow-faults` for faults.

Tested in ``tests/mock/test_faults.py``.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
from pydantic import ValidationError

from leader_hints.cli.admin_client import AdminServerError, ask, parse_admin, token_option
from leader_hints.errors import ConfigurationError
from leader_hints.faults.fault import Action, Error, Fault, Hint
from leader_hints.faults.problems import problems

_NOT_FOUND: Final = 404
_ADMIN: Final = click.option(
    "--admin", required=True, metavar="HOST:PORT", help="The admin server of the proxy."
)


#: What each action does, for --help.
_ACTIONS: Final[Mapping[Action, str]] = {
    Action.ERROR: "Produce and Fetch are refused, and never reach a broker.",
    Action.DELAY: "The response waits, and all responses behind it.",
    Action.THROTTLE: "The response comes slowly.",
    Action.CUT: "The connection ends in the middle of the response.",
    Action.DROP: "The connection ends in place of the response.",
    Action.REFUSE: "Connections are reset when they are made, or at their next request.",
    Action.STALE_METADATA: "Metadata names the leaders as they were when the fault began.",
}


@click.group("fault")
def fault() -> None:
    """Make faults before clients that are tested; see docs/local.md."""


def _list_of_actions() -> str:
    # Click keeps the lines behind \b as they are.
    return "\b\nActions:\n" + "\n".join(f"  {name:15} {done}" for name, done in _ACTIONS.items())


@fault.command("begin", epilog=_list_of_actions())
@_ADMIN
@click.argument("action", metavar="ACTION", type=click.Choice([action.value for action in Action]))
@click.option(
    "--route", "routes", multiple=True, metavar="NAME", help="Only there; such as broker-1."
)
@click.option("--api", "apis", multiple=True, metavar="NAME", help="Only this; such as Produce.")
@click.option("--client-id", "client_ids", multiple=True, metavar="ID", help="Only this client.")
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Only this topic.")
@click.option("--partition", "partitions", multiple=True, type=int, help="Only this partition.")
@click.option(
    "--error", type=click.Choice([error.value for error in Error]), help="Of action error."
)
@click.option("--hint", type=click.Choice([hint.value for hint in Hint]), help="Of action error.")
@click.option("--delay-ms", type=int, help="Of action delay.")
@click.option("--bytes-per-second", type=int, help="Of action throttle.")
@click.option(
    "--hide-node", "hide_nodes", multiple=True, type=int, help="Of action stale_metadata."
)
@click.option("--times", type=int, help="How often it is done; without it until it is ended.")
@click.option("--probability", type=float, help="Of those that are chosen, how many.")
@token_option()
def begin(admin: str, token: str | None, **values: Any) -> None:
    """Begin a fault; prints its number.

    Without options that choose, it is done to all messages of all clients.
    """
    given = {key: value for key, value in values.items() if value not in (None, ())}
    try:
        asked = Fault.model_validate(
            {
                key: list(v) if isinstance(v, Sequence) and not isinstance(v, str) else v
                for key, v in given.items()
            }
        )
    except ValidationError as error:
        raise ConfigurationError(*problems(error, "fault")) from None
    body = asked.model_dump_json(exclude_defaults=True).encode()
    click.echo(_ask(admin, "POST", "", body, token)["number"])


@fault.command("list")
@_ADMIN
def show(admin: str) -> None:
    """Print the faults in force, a JSON object on each line."""
    for found in _ask(admin, "GET", ""):
        click.echo(json.dumps(found))


@fault.command("end")
@_ADMIN
@token_option()
@click.argument("number", type=int, required=False)
def end(admin: str, token: str | None, number: int | None) -> None:
    """End one fault, or all."""
    _ask(admin, "DELETE", "" if number is None else f"/{number}", token=token)


def _ask(
    admin: str, method: str, path: str, body: bytes | None = None, token: str | None = None
) -> Any:
    try:
        return ask(parse_admin(admin), method, f"/faults{path}", body, token)
    except AdminServerError as error:
        if error.status != _NOT_FOUND or "no such fault" in str(error):
            raise
        reason = "it allows no faults; start `leader-hints local` with --allow-faults"
        raise AdminServerError(f"the proxy at {admin} refuses: {reason}", error.status) from None
