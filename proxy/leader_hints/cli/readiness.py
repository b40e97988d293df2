"""`leader-hints readiness`: which clients brokers of Kafka 4.0 will refuse.

Tested in ``tests/mock/test_readiness_command.py``.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from leader_hints.address import Address
from leader_hints.cli.admin_client import AdminServerError, ask, parse_admin, proxies_option
from leader_hints.core.versions.asked_versions import ClientName
from leader_hints.observe.logs import escape

if TYPE_CHECKING:
    from leader_hints.check.upgrade_rules import ClientVerdict

_HEADINGS: Final = {
    "refused": "will be refused",
    "in_part": "seen in part: they have not written or read yet",
    "ready": "will be served",
}
_NOTES: Final = (
    "Seen is what clients asked of these proxies since they started, and were answered.",
    "Brokers of 3.7 to 3.9 refuse nothing of it.",
)


@click.command("readiness")
@proxies_option()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for programs.")
def readiness(admins: Sequence[str], *, as_json: bool) -> None:
    """Report which clients brokers of Kafka 4.0 will refuse (KIP-896), and what to upgrade.

    Asks running proxies which versions of which APIs their clients use. Exit code 1: a client will
    be refused, or a proxy was not reached.
    """
    from leader_hints.check.upgrade_rules import Verdict, verdicts

    asked: list[tuple[ClientName, int, int]] = []
    failed = False
    for address in [parse_admin(admin) for admin in admins]:
        try:
            asked += _asked(address)
        except AdminServerError as error:
            click.echo(f"leader-hints: {error}", err=True)
            failed = True
    found = [*verdicts(asked)]
    for line in [_as_json(found)] if as_json else _lines(found):
        click.echo(line)
    sys.exit(int(failed or any(client.verdict is Verdict.REFUSED for client in found)))


def _asked(address: Address) -> Iterator[tuple[ClientName, int, int]]:
    answer = ask(address, "GET", "/clients")
    try:
        for client in answer["clients"]:
            name = ClientName(str(client["software"]), str(client["client_id"]))
            for api in client["asked"]:
                yield name, int(api["key"]), int(api["oldest"])
    except (TypeError, KeyError, ValueError):
        wrong = f"no proxy at {address}: it answers as no admin server does"
        raise AdminServerError(wrong) from None


def _as_json(found: Sequence["ClientVerdict"]) -> str:
    clients = [
        {**client._asdict(), "refused": [refused._asdict() for refused in client.refused]}
        for client in found
    ]
    return json.dumps({"format": 1, "kafka": "4.0", "clients": clients}, indent=2)


def _lines(found: Sequence["ClientVerdict"]) -> Iterator[str]:
    if not found:
        yield "No client has been seen yet."
        return
    for verdict, heading in _HEADINGS.items():
        of_it = [client for client in found if client.verdict == verdict]
        if of_it:
            yield f"{heading} ({len(of_it)})"
        for client in of_it:
            software = client.software or "software that does not say its name"
            yield escape(f"  {software}, client id {client.client_id or 'none'}")
            for refused in client.refused:
                oldest = f"brokers of 4.0 take {refused.oldest} and newer"
                yield f"    asks {refused.api} {refused.version}; {oldest}"
            if client.remedy:
                yield escape(f"    -> {client.remedy}")
            elif not client.refused:
                yield f"    asks {', '.join(client.seen)}"
    yield ""
    yield from _NOTES
