"""`leader-hints readiness`: what becomes of clients when their brokers are upgraded.

Tested in ``tests/mock/test_readiness_command.py``.
"""

import gzip
import json
import sys
import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from leader_hints.address import Address
from leader_hints.apis.oldest_versions import NEWEST_RELEASE, RELEASES
from leader_hints.cli.admin_client import AdminServerError, ask, parse_admin, proxies_option
from leader_hints.core.versions.asked_versions import ClientName
from leader_hints.errors import ConfigurationError, LeaderHintsError
from leader_hints.observe.logs import escape

if TYPE_CHECKING:
    from leader_hints.check.asked_journals import AskedJournals
    from leader_hints.check.upgrade_rules import ClientVerdict, Seen

_HEADINGS: Final = {
    "refused": "will be refused",
    "in_part": "seen in part",
    "ready": "will be served",
}
_LIVE: Final = "Of the proxies: what clients asked since they started, and were answered."
_SINCE: Final = "Clients that have asked nothing since {} are left out."
_OLD_SASL: Final = (
    "{} connections through {} authenticate by SaslHandshake 0, as Java clients before 1.0 do: "
    "what they ask is not seen."
)
_NOTES: Final = (
    "Brokers of 3.7 to 3.9 refuse nothing that older ones take.",
    f"Brokers up to {NEWEST_RELEASE} refuse what those of {[*RELEASES][-1]} do.",
)
#: Journals in a folder, perhaps compressed by what collected them.
_JOURNALS: Final = ("*.jsonl", "*.jsonl.open", "*.jsonl.gz")
_STANDARD_INPUT: Final = "-"


class JournalError(LeaderHintsError):
    """A journal cannot be read."""


@click.command("readiness")
@proxies_option(required=False)
@click.option(
    "--journal",
    "journals",
    multiple=True,
    metavar="PATH",
    help="A journal: a file, a folder of files, or - for lines from standard input. Give it as "
    "often as there are journals, with --admin or without.",
)
@click.option(
    "--since",
    metavar="DAY",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Leave out clients that have not asked since then, such as 2026-01-31 (UTC), and of "
    "journals what was asked before.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for programs.")
def readiness(
    admins: Sequence[str], journals: Sequence[str], since: datetime | None, *, as_json: bool
) -> None:
    """Report which clients brokers of Kafka 4 will refuse (KIP-896), and what to upgrade.

    Asks running proxies which versions of which APIs their clients use, or reads their journals.
    Says also which clients use hints, and from which release on the others would. Exit code 1: a
    client will be refused, or a proxy or a journal was not reached.
    """
    from leader_hints.check.asked_journals import AskedJournals
    from leader_hints.check.upgrade_rules import Clients, Verdict

    if not admins and not journals:
        raise ConfigurationError("give --admin HOST:PORT or --journal PATH")
    day = "" if since is None else since.date().isoformat()
    seen = Clients(day)
    found = AskedJournals(seen)
    notes = [_LIVE] if admins else []
    failed = False
    for take, places in ((_take_live, admins), (_take_journal, journals)):
        for place in places:
            try:
                notes += take(place, found)
            except (AdminServerError, JournalError) as error:
                click.echo(f"leader-hints: {error}", err=True)
                failed = True
    notes += [*found.notes(), *([_SINCE.format(day)] if day else []), *_NOTES]
    clients = [*seen.verdicts()]
    for line in [_as_json(clients, notes)] if as_json else _lines(clients, notes):
        click.echo(line)
    sys.exit(int(failed or any(client.verdict is Verdict.REFUSED for client in clients)))


def _take_live(admin: str, found: "AskedJournals") -> list[str]:
    """Take what a running proxy says; return notes."""
    address = parse_admin(admin)
    answer = ask(address, "GET", "/clients")
    try:
        for client in answer["clients"]:
            found.clients.add(_seen(client))
        links = sum(int(one["links"]) for one in answer.get("unread", ()))
    except (TypeError, KeyError, ValueError, AttributeError):
        wrong = f"no proxy at {address}: it answers as no admin server does"
        raise AdminServerError(wrong) from None
    return [_OLD_SASL.format(links, Address(address.host, address.port))] if links else []


def _seen(client: dict[str, object]) -> "Seen":
    from leader_hints.check.upgrade_rules import Seen

    name = ClientName(str(client["software"]), str(client["client_id"]))
    apis: list[dict[str, int]] = client["asked"]  # type: ignore[assignment]
    asked = {int(api["key"]): (int(api["oldest"]), int(api["newest"])) for api in apis}
    # A proxy of an earlier version does not have them.
    addresses, principals = (
        tuple(map(str, client.get(of, ())))  # type: ignore[call-overload]
        for of in ("addresses", "principals")
    )
    return Seen(name, asked, addresses, principals, str(client.get("last_day", "")))


def _take_journal(path: str, found: "AskedJournals") -> list[str]:
    """Take the lines of a journal; return notes."""
    if path == _STANDARD_INPUT:
        found.take(sys.stdin.buffer)
        return []
    place = Path(path)
    files = [place]
    if place.is_dir():
        files = sorted(file for pattern in _JOURNALS for file in place.rglob(pattern))
    if not files:
        raise JournalError(f"--journal {path}: no file in it ends with .jsonl")
    for file in files:
        try:
            with _opened(file) as lines:
                found.take(lines)
        except FileNotFoundError:
            # The proxy has finished the file under another name, or removed it as the oldest.
            if file == place:
                raise JournalError(f"--journal {path}: there is no such file or folder") from None
        except (OSError, EOFError, zlib.error) as error:
            raise JournalError(f"--journal {file}: {error}") from None
    return []


def _opened(file: Path) -> gzip.GzipFile:
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")  # type: ignore[return-value]


def _as_json(found: Sequence["ClientVerdict"], notes: Sequence[str]) -> str:
    clients = [
        {
            **client._asdict(),
            "refused": [refused._asdict() for refused in client.refused],
            "asked": [asked._asdict() for asked in client.asked],
        }
        for client in found
    ]
    document = {
        "format": 1,
        "kafka": "4.0",
        "releases": [*RELEASES],
        "newest_release": NEWEST_RELEASE,
        "notes": notes,
        "clients": clients,
    }
    return json.dumps(document, indent=2)


def _lines(found: Sequence["ClientVerdict"], notes: Sequence[str]) -> Iterator[str]:
    if not found:
        yield "No client has been seen yet."
    for verdict, heading in _HEADINGS.items():
        of_it = [client for client in found if client.verdict == verdict]
        if of_it:
            yield f"{heading} ({len(of_it)})"
        for client in of_it:
            yield from _of_client(client)
    if found:
        yield "hints"
        yield from _hints(found)
    yield ""
    yield from map(escape, notes)


def _of_client(client: "ClientVerdict") -> Iterator[str]:
    yield escape(f"  {_software(client)}, client id {client.client_id or 'none'}")
    if client.addresses:
        yield escape(f"    from {', '.join(client.addresses)}")
    if client.principals:
        yield escape(f"    as {'; '.join(client.principals)}")
    if client.last_day:
        yield escape(f"    asked last on {client.last_day}")
    for refused in client.refused:
        oldest = f"brokers of {refused.release} and newer take {refused.oldest} and newer"
        yield f"    asks {refused.api} {refused.version}; {oldest}"
    if client.remedy:
        yield escape(f"    -> {client.remedy}")
    elif not client.refused:
        asks = ", ".join(map(str, client.asked))
        yield f"    asks {asks or 'nothing that was seen'}"
    if client.lacks:
        yield f"    {client.lacks}"


def _software(client: "ClientVerdict") -> str:
    return client.software or "software that does not say its name"


def _hints(found: Sequence["ClientVerdict"]) -> Iterator[str]:
    """Iterate over the software, that which gains by an upgrade first."""
    outlooks: dict[str, tuple[int, str]] = {}
    for client in found:
        if client.hints_from:
            rank, outlook = 0, f"uses none; from {client.hints_from} on it does"
        elif client.uses:
            rank, outlook = 2, f"uses them ({', '.join(client.uses)})"
        else:
            rank, outlook = 1, "uses none; no release is known to"
        outlooks[_software(client)] = rank, outlook
    for software, (_, outlook) in sorted(outlooks.items(), key=lambda one: (one[1][0], one[0])):
        number = sum(_software(client) == software for client in found)
        yield escape(f"  {software}: {outlook}; {number} client{'s' if number > 1 else ''}")
