"""What journals say of clients, and what they leave open."""

import json
from typing import Any

from leader_hints.check.asked_journals import AskedJournals
from leader_hints.check.upgrade_rules import AskedVersion, Clients, ClientVerdict
from leader_hints.core.events import ClientAsked, ClientSeen, Event
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.asked_versions import OTHERS
from leader_hints.observe.journal import Journal

_ASKED = {
    "route": "r",
    "client_id": "c",
    "software": "lib/1.2",
    "asked": ((0, 3, 9), (1, 11, 11)),
    "addresses": ("192.0.2.1", "2001:db8::1"),
    "principals": ("CN=c,O=x", "CN=d"),
}


def _asked(**more: Any) -> ClientAsked:
    return ClientAsked(**{**_ASKED, **more})


def _named(software: str = "lib") -> ClientSeen:
    return ClientSeen(route="r", link=1, client_id="c", software=software, version="1.2")


def _journal(
    *events: Event, sidecar: str = "s", run: str = "run", began: bool = True, day: int = 0
) -> bytes:
    """The lines as a proxy writes them; ``day``: from 2026-01-02 on."""
    now = 1_767_323_045_000_006 + day * 86_400_000_000
    journal = Journal([Route("r", Mode.ON)], sidecar, run, lambda: now)
    lines = [journal.start("leader-hints", "1", "on")] if began else []
    for event in events:
        row = journal.row(event)
        assert row is not None
        lines.append(journal.line(row))
    return b"".join(line + b"\n" for line in lines)


def _taken(*texts: bytes, since: str = "") -> AskedJournals:
    journals = AskedJournals(Clients(since))
    for text in texts:
        journals.take(text.splitlines(keepends=True))
    return journals


def _clients(journals: AskedJournals) -> dict[str, ClientVerdict]:
    return {client.software: client for client in journals.clients.verdicts()}


def test_a_client_is_read_as_the_proxy_has_it() -> None:
    names = ("lib/1.2", "lib/", "", OTHERS, "a/b/c")
    journals = _taken(_journal(*(_asked(software=name) for name in names)))
    clients = _clients(journals)
    assert {*clients} == {*names}
    one = clients["lib/1.2"]
    assert one.asked == (AskedVersion("Produce", 3, 9), AskedVersion("Fetch", 11, 11))
    assert one.addresses == ("192.0.2.1", "2001:db8::1")
    assert one.principals == ("CN=c,O=x", "CN=d")
    assert not [*journals.notes()]


def test_a_client_that_was_only_named_is_there_with_nothing_asked() -> None:
    clients = _clients(_taken(_journal(_named(software="other"), _asked())))
    assert (clients["other/1.2"].verdict, clients["other/1.2"].asked) == ("in_part", ())
    assert clients["lib/1.2"].verdict == "ready"


def test_what_the_journals_leave_open_is_said() -> None:
    gap = Journal([], "gappy", "r3", lambda: 0)
    gap.start("leader-hints", "1", "on")
    lost = gap.gap(1, 7, "it is written more slowly than events come") + b"\n"
    journals = _taken(
        _journal(_named(), sidecar="old", run="r1"),
        _journal(_asked(), sidecar="cut", run="r2", began=False),
        lost,
    )
    notes = [*journals.notes()]
    assert notes[0] == (
        "The journal of gappy lacks 7 events that could not be written: a client may be missing."
    )
    assert notes[1].startswith("The journals of old have clients and not what these asked")
    assert notes[2].startswith("The journals of cut, gappy are not there from a run's beginning")


def test_what_was_asked_before_a_day_is_left_out() -> None:
    """So it is seen that a client was upgraded, or set to ask newer versions."""
    lines = (
        _journal(_asked(asked=((0, 2, 2),)), _named(software="gone")),
        _journal(_asked(), began=False, day=3),
    )
    every, later = _taken(*lines), _taken(*lines, since="2026-01-05")
    assert [*_clients(every)] == ["lib/1.2", "gone/1.2"]
    assert _clients(every)["lib/1.2"].verdict == "refused"
    assert _clients(every)["lib/1.2"].last_day == "2026-01-05"
    assert _clients(every)["gone/1.2"].last_day == "2026-01-02"
    assert [*_clients(later)] == ["lib/1.2"]
    assert _clients(later)["lib/1.2"].verdict == "ready"
    # The run's beginning counts, though it is earlier.
    assert not [*every.notes(), *later.notes()]


def test_a_run_that_was_over_before_a_day_leaves_nothing_open() -> None:
    journals = _taken(_journal(_named(), began=False), since="2026-01-05")
    assert not [*journals.notes()]


def test_lines_that_are_no_events_are_counted_but_for_one_that_is_still_written() -> None:
    whole = _journal(_asked())
    bad = [
        b'{"event":"asked"}\n',
        b'["asked"]\n',
        b'"asked"\n',
        whole.replace(b"0:3-9", b"0:x-9"),
        b'"asked" ' + b"[" * 100_000 + b"\n",
    ]
    journals = _taken(*bad, whole[:-20])
    assert next(iter(journals.notes())).startswith("5 lines ")
    assert not _clients(journals)


def test_lines_that_were_written_again_by_others_are_understood() -> None:
    pretty = b"".join(
        json.dumps(json.loads(line)).encode() + b"\n" for line in _journal(_asked()).splitlines()
    )
    assert _clients(_taken(pretty)) == _clients(_taken(_journal(_asked())))
