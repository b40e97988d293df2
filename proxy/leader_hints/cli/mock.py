"""`leader-hints move` and `broker`: change the mock cluster of a running `leader-hints local`.

Tested in ``tests/mock/test_mock_commands.py``.
"""

import json
from typing import Any, Final

import click

from leader_hints.cli.admin_client import AdminServerError, ask, parse_admin, token_option
from leader_hints.errors import ConfigurationError

_NOT_FOUND: Final = 404
_ADMIN: Final = click.option(
    "--admin", required=True, metavar="HOST:PORT", help="The admin server of the proxy."
)


@click.command("move")
@click.argument("partition", metavar="TOPIC[:PARTITION]")
@click.option("--to", "node", type=int, required=True, metavar="NODE", help="The new leader.")
@_ADMIN
@token_option()
def move(partition: str, node: int, admin: str, token: str | None) -> None:
    """Make a broker of a mock cluster the leader of a partition, or of all of a topic.

    For `leader-hints local --cluster mock:N --admin HOST:PORT`.
    """
    topic, colon, number = partition.rpartition(":")
    if not colon:
        topic, number = partition, ""
    elif not (topic and number.isascii() and number.isdigit()):
        raise ConfigurationError("TOPIC[:PARTITION]: the partition must be a number")
    wanted: dict[str, Any] = {"topic": topic, "to": node}
    if number:
        wanted["partition"] = int(number)
    for moved in _ask(admin, "/mock/leaders", wanted, token):
        click.echo(f"{moved['topic']}:{moved['partition']} is led by node {moved['leader']}")


@click.group("broker")
def broker() -> None:
    """Stop and start a broker of a mock cluster, of `leader-hints local --cluster mock:N`."""


@broker.command("stop")
@click.argument("node", type=int)
@_ADMIN
@token_option()
def stop(node: int, admin: str, token: str | None) -> None:
    """End a broker's connections, and have it take none. It leads what it led: move that."""
    _ask(admin, "/mock/brokers", {"node": node, "running": False}, token)


@broker.command("start")
@click.argument("node", type=int)
@_ADMIN
@token_option()
def start(node: int, admin: str, token: str | None) -> None:
    """Have a broker that was stopped take connections again."""
    _ask(admin, "/mock/brokers", {"node": node, "running": True}, token)


def _ask(admin: str, path: str, body: dict[str, Any], token: str | None) -> Any:
    address = parse_admin(admin)
    try:
        return ask(address, "POST", path, json.dumps(body).encode(), token)
    except AdminServerError as error:
        if error.status != _NOT_FOUND:
            raise
        reason = "it has no mock cluster; start `leader-hints local` with --cluster mock:N"
        raise AdminServerError(f"the proxy at {address} refuses: {reason}", _NOT_FOUND) from None
