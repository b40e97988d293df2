"""The table of docs/deploy/kafka-4.md."""

from collections.abc import Collection, Mapping
from typing import Final

from bench.report import table, with_section
from tests.harness.maven import ROOT
from tests.readiness.roster import Client
from tests.readiness.trial import AFTER, BEFORE, Outcome

FILE: Final = ROOT / "docs" / "deploy" / "kafka-4.md"
_SAYS: Final = {
    "refused": "will be refused",
    "in_part": "seen in part",
    "ready": "will be served",
    "unseen": "not seen",
}


def render(
    clients: Collection[Client],
    old: Mapping[str, Outcome],
    verdicts: Mapping[str, str],
    new: Mapping[str, Outcome],
) -> str:
    """Return the table: what was said of each client, and what became of it."""
    rows = [
        (
            f"{client.library} {client.version}"
            + "".join(f", Version {one}" for one in client.also),
            _shown(old[client.name]),
            _SAYS[verdicts[client.name]],
            _shown(new[client.name]),
        )
        for client in clients
    ]
    return table(("client", f"at {BEFORE} through proxies", "readiness", f"at {AFTER}"), rows)


def write(text: str) -> None:
    """Put the table into the page."""
    page = FILE.read_text(encoding="utf-8")
    written = with_section(FILE, page, "tried", text, "python -m tests.readiness")
    FILE.write_text(written, encoding="utf-8")


def wrong(
    clients: Collection[Client], verdicts: Mapping[str, str], new: Mapping[str, Outcome]
) -> list[str]:
    """Return the clients that were said to be served, and are not."""
    return [
        client.name
        for client in clients
        if verdicts[client.name] == "ready" and not new[client.name].served
    ]


def _shown(outcome: Outcome) -> str:
    if outcome.served:
        return "works"
    return f"fails: {outcome.error.replace('|', '/')}"
