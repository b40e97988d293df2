"""Clients in journals: which versions they asked, and what the journals leave open.

Tested in ``tests/check/test_asked_journals.py``.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from leader_hints.check.upgrade_rules import Clients, Seen
from leader_hints.core.versions.asked_versions import ClientName

#: The kinds of events that are read. Other lines, which are most, are not even parsed.
_START: Final = "start"
_CLIENT: Final = "client"
_ASKED: Final = "asked"
_GAP: Final = "gap"
#: Letters of the day in a time.
_DAY: Final = len("2026-01-31")
_MARKS: Final = tuple(f'"{kind}"'.encode() for kind in (_START, _CLIENT, _ASKED, _GAP))


@dataclass
class _Run:
    """A run of a proxy. ``began``: its first line was there; ``clients``: some were;
    ``asked``: and what some of them asked; ``dropped``: events."""

    sidecar: str
    began: bool = False
    clients: bool = False
    asked: bool = False
    dropped: int = 0


@dataclass
class AskedJournals:
    """Gathers what journals say. ``clients``: takes what they say of clients. ``unread``: how many
    lines are no events."""

    clients: Clients
    unread: int = 0
    _runs: dict[str, _Run] = field(default_factory=dict)

    def take(self, lines: Iterable[bytes]) -> None:
        """Take the lines of a file, in any order and any number of times."""
        torn = False
        for line in lines:
            if torn:
                self.unread += 1
            torn = False
            if not any(mark in line for mark in _MARKS):
                continue
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                # The last line of an open file may not be whole yet.
                torn = True
        self.unread += torn and line.endswith(b"\n")

    def notes(self) -> Iterator[str]:
        """Iterate over what is not known, in sentences."""
        if self.unread:
            yield f"{self.unread} lines of the journals are not events, and were left out."
        runs = self._runs.values()
        for run in runs:
            if run.dropped:
                yield (
                    f"The journal of {run.sidecar} lacks {run.dropped} events that could not be "
                    "written: a client may be missing."
                )
        silent = sorted({run.sidecar for run in runs if run.clients and not run.asked})
        if silent:
            yield (
                f"The journals of {_some(silent)} have clients and not what these asked: an "
                "earlier version wrote them, or the proxy ran for some seconds only."
            )
        cut = sorted({run.sidecar for run in runs if not run.began})
        if cut:
            yield (
                f"The journals of {_some(cut)} are not there from a run's beginning on. Clients "
                "are written again once a day, so give at least those of a whole day."
            )

    def _take(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind not in (_START, _CLIENT, _ASKED, _GAP):
            return
        day = str(event["time"])[:_DAY]
        if kind != _START and day < self.clients.since:
            return
        run = self._runs.setdefault(str(event["run"]), _Run(str(event["sidecar"])))
        if kind == _START:
            run.began = True
        elif kind == _GAP:
            run.dropped += int(event["dropped"])
        else:
            asked = _versions(str(event["asked"])) if kind == _ASKED else {}
            run.clients = True
            run.asked |= kind == _ASKED
            self.clients.add(
                Seen(
                    ClientName.from_journal(
                        *(str(event[of]) for of in ("software", "software_version", "client_id"))
                    ),
                    asked,
                    _split(event.get("addresses"), ","),
                    _split(event.get("principals"), "; "),
                    day,
                )
            )


def _versions(text: str) -> dict[int, tuple[int, int]]:
    found = {}
    for one in text.split(","):
        key, versions = one.split(":")
        oldest, newest = versions.split("-")
        found[int(key)] = int(oldest), int(newest)
    return found


def _split(text: object, between: str) -> tuple[str, ...]:
    return tuple(text.split(between)) if isinstance(text, str) and text else ()


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
