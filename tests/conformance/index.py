"""The index of releases and known bugs in docs/clients.md, and what it is made of.

What was observed of each release is kept in releases.json, so that one may be run again alone.
"""

import json
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bench.report import table
from tests.conformance.bugs import BUGS, NOT_SHOWN, Bug
from tests.conformance.observed import (
    follows_equal_hint,
    ms_until_equal_epoch_is_followed,
    observe_moves,
    reads_without_topic_ids,
)
from tests.conformance.releases import LIBRDKAFKA, RELEASES, Release

_STORED: Final = Path(__file__).with_name("releases.json")
_HEAD: Final = """\
## Releases since KIP-951

Kafka 3.7 brought hints. `python -m tests.conformance --releases` runs each release against three
partitions, each led by another broker. One of them moves four times while Metadata takes two
seconds. A hint was used if the client came to the new leader before Metadata, of those moves that
refused it within 3.5 seconds: a Fetch of franz-go waits for longer at the former leader. "Reads
again" is the soonest from the refusal to the next Fetch, where hints were used. librdkafka is the
one in confluent-kafka of the same version. One run each, on a machine with much other work: a few
hints count as not used since the client was late, most of all on Produce, where librdkafka keeps
its back-off.
"""
_BUGS: Final = """\
### Known bugs

Of each bug, the releases that show it here and those that do not, in one run each: what they were
judged by is in brackets. In the scenario of the equal epoch a hint leads to an address where nobody
listens, under the next epoch; then the leader moves, which makes that epoch true elsewhere.
"""


def observe(names: Collection[str]) -> bool:
    """Run releases and store what is observed; return whether all could be run."""
    whole = True
    for name in names:
        print(name, file=sys.stderr, flush=True)
        try:
            observed = _observed(RELEASES[name])
        except Exception as error:  # One that cannot be run must not lose the others.
            print(f"{name}: {error}", file=sys.stderr)
            whole = False
            continue
        _STORED.write_text(json.dumps(stored() | {name: observed}, indent=1) + "\n", "utf-8")
    return whole


def _observed(release: Release) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="leader-hints-releases-") as name:
        folder = Path(name)
        observed: dict[str, Any] = {
            "moves": observe_moves(release.start, folder / "moves").as_json(),
            "follows_equal_hint": follows_equal_hint(release.start, folder / "hint"),
            "equal_epoch_ms": ms_until_equal_epoch_is_followed(release.start, folder / "equal"),
        }
        if release.family == LIBRDKAFKA:
            reads = reads_without_topic_ids(release.start, folder / "ids")
            observed["reads_without_topic_ids"] = reads
    return observed


def stored() -> dict[str, dict[str, Any]]:
    """Return what was observed, by the name of the release."""
    if not _STORED.exists():
        return {}
    found: dict[str, dict[str, Any]] = json.loads(_STORED.read_text("utf-8"))
    return found


def section() -> str:
    """Return the part of the page."""
    known = stored()
    releases = [release for release in RELEASES.values() if release.name in known]
    rows = [
        (
            release.family,
            release.version,
            _used(known[release.name], "produce"),
            _used(known[release.name], "fetch"),
            _time(known[release.name]["moves"]),
            ", ".join(_shown(release, known[release.name])) or "-",
        )
        for release in releases
    ]
    heads = ("client", "release", "Produce hints", "Fetch hints", "reads again", "known bugs")
    bugs = [_row(bug, releases, known) for bug in BUGS]
    bug_heads = ("bug", "what happens", "known of", "shown by", "not shown by")
    parts = [_HEAD, table(heads, rows), _BUGS, table(bug_heads, bugs)]
    missing = "\n".join(f"- {words}" for words in NOT_SHOWN)
    return "\n".join([f"{part}\n" for part in (*parts, "Not shown:", missing)])


def _used(observed: Mapping[str, Any], api: str) -> str:
    moves = observed["moves"]
    return f"{moves[f'{api}_hints']} of {moves[f'{api}_refused']}"


def _time(moves: Mapping[str, Any]) -> str:
    """How soon it read again; a client that used no hint asked the former leader first."""
    used = moves["fetch_hints"] and moves["fetch_ms"] is not None
    return f"{moves['fetch_ms']:.0f} ms" if used else "-"


def _shown(release: Release, observed: Mapping[str, Any]) -> Iterator[str]:
    for bug in BUGS:
        if bug.family == release.family and bug.shows(observed):
            yield bug.name


def _row(
    bug: Bug, releases: Collection[Release], known: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...]:
    of_family = [
        (release.version, known[release.name])
        for release in releases
        if release.family == bug.family
    ]
    judged = {
        shows: [
            f"{version} ({bug.figure(observed)})"
            for version, observed in of_family
            if bug.shows(observed) is shows
        ]
        for shows in (True, False)
    }
    return (
        f"{bug.family}: [{bug.name}]({bug.source})",
        bug.meaning,
        bug.expected,
        ", ".join(judged[True]) or "none",
        ", ".join(judged[False]) or "none",
    )
