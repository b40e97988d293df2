"""Events as lines of the journal: each held against the published schema."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core import events
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.observe.journal import CLIENT_ID_PREFIX, Journal, encode
from tests.observe.journal_lines import checked

_MICROS = 1_767_323_045_000_006
_ANSWERED = events.ErrorAnswered(
    route="r",
    link=7,
    client_id="c",
    software="librdkafka/2.5.0",
    api="Fetch",
    version=16,
    topic="t",
    partition=3,
    error=74,
    client_epoch=4,
    hold_ms=2.34567,
    observed=False,
)
_RECOVERED = events.Recovered(
    route="r",
    link=7,
    client_id="c",
    software="librdkafka/2.5.0",
    api="Produce",
    topic="t",
    partition=3,
    epoch=5,
    recovery_ms=12.34567,
    hinted=True,
)
_SAMPLED = events.LatencySampled(
    route="r",
    link=7,
    client_id="c",
    software="librdkafka/2.5.0",
    api="Fetch",
    version=16,
    latency_ms=1.23456,
)
_SEEN = events.ClientSeen(
    route="r",
    link=7,
    client_id="c",
    software="librdkafka",
    version="2.5.0",
    address="192.0.2.1:5",
    uses=("fetch", "produce"),
)
_ASKED = events.ClientAsked(
    route="r",
    client_id="c",
    software="librdkafka/2.5.0",
    asked=((0, 3, 9), (1, 11, 11)),
    addresses=("192.0.2.1", "(others)"),
    principals=("CN=c,O=x", "CN=d"),
)
_NAMED = events.ReplicaNamed(
    route="r",
    link=7,
    client_id="c",
    software="librdkafka/2.5.0",
    topic="t",
    partition=3,
    replica=4,
    rack="b",
    returned=False,
    observed=True,
)
_READ = events.ConsumerRead(
    route="r",
    link=7,
    client_id="c",
    software="librdkafka/2.5.0",
    topic="t",
    rack="b",
    broker_rack="a",
    bytes=900,
    avoidable_bytes=700,
)
_MOVED = events.LeaderMoved(
    cluster="k", topic="t", partition=3, leader_before=1, epoch_before=4, leader=-1, epoch=5
)
_ON_THE_LINK = {
    "route": "r",
    "link": 7,
    "client_id": "c",
    "software": "librdkafka",
    "software_version": "2.5.0",
}
_KNOWN = {"cluster": "k", "node": 2}
_ERROR = {
    **_ON_THE_LINK,
    "api": "Fetch",
    "api_version": 16,
    "topic": "t",
    "partition": 3,
    "error": 74,
    "observed": False,
    "hold_ms": 2.346,
}


def _journal(*, known: bool = True) -> Journal:
    route = Route("r", Mode.ON)
    if known:
        route.broker.view, route.broker.node = LeaderView("k"), 2
    return Journal([route], "s", "run-1", lambda: _MICROS)


def _line(journal: Journal, event: events.Event) -> dict[str, Any]:
    row = journal.row(event)
    assert row is not None
    return checked(journal.line(row))


def _columns(line: dict[str, Any], kind: str) -> dict[str, Any]:
    """The columns that are not in every line, after a look at those that are."""
    assert line.pop("version") == 1
    assert line.pop("event") == kind
    assert line.pop("time") == "2026-01-02T03:04:05.000006Z"
    assert (line.pop("sidecar"), line.pop("run")) == ("s", "run-1")
    line.pop("seq")
    return line


@pytest.mark.parametrize(
    ("event", "kind", "columns"),
    [
        (
            events.HintGiven(answered=_ANSWERED, leader=1, epoch=5),
            "error",
            {
                **_ERROR,
                **_KNOWN,
                "hinted": True,
                "leader_before": 2,
                "epoch_before": 4,
                "leader": 1,
                "epoch": 5,
            },
        ),
        (
            events.HintMissed(answered=_ANSWERED, reason="no_leader"),
            "error",
            {
                **_ERROR,
                **_KNOWN,
                "hinted": False,
                "reason": "no_leader",
                "leader_before": 2,
                "epoch_before": 4,
            },
        ),
        (
            events.HintMissed(
                answered=_ANSWERED, reason="not_usable_by_client", settling="settled"
            ),
            "error",
            {
                **_ERROR,
                **_KNOWN,
                "hinted": False,
                "reason": "not_usable_by_client",
                "settling": "settled",
                "leader_before": 2,
                "epoch_before": 4,
            },
        ),
        (
            _RECOVERED,
            "recovery",
            {
                **_ON_THE_LINK,
                **_KNOWN,
                "api": "Produce",
                "topic": "t",
                "partition": 3,
                "epoch": 5,
                "recovery_ms": 12.346,
                "hinted": True,
            },
        ),
        (
            _SEEN,
            "client",
            {**_ON_THE_LINK, **_KNOWN, "address": "192.0.2.1:5", "uses": "fetch,produce"},
        ),
        (
            _ASKED,
            "asked",
            {
                "route": "r",
                "client_id": "c",
                "software": "librdkafka",
                "software_version": "2.5.0",
                **_KNOWN,
                "asked": "0:3-9,1:11-11",
                "addresses": "192.0.2.1,(others)",
                "principals": "CN=c,O=x; CN=d",
            },
        ),
        (
            _SAMPLED,
            "latency",
            {**_ON_THE_LINK, **_KNOWN, "api": "Fetch", "api_version": 16, "latency_ms": 1.235},
        ),
        (
            _NAMED,
            "replica",
            {
                **_ON_THE_LINK,
                **_KNOWN,
                "topic": "t",
                "partition": 3,
                "replica": 4,
                "rack": "b",
                "returned": False,
                "observed": True,
            },
        ),
        (
            _READ,
            "read",
            {
                **_ON_THE_LINK,
                **_KNOWN,
                "topic": "t",
                "rack": "b",
                "broker_rack": "a",
                "bytes": 900,
                "avoidable_bytes": 700,
            },
        ),
        (
            _MOVED,
            "leader_change",
            {
                "cluster": "k",
                "topic": "t",
                "partition": 3,
                "leader_before": 1,
                "epoch_before": 4,
                "leader": -1,
                "epoch": 5,
            },
        ),
        (
            events.EpochRose(
                cluster="k", topic="t", partition=3, leader=2, epoch_before=5, epoch=6
            ),
            "leader_change",
            {
                "cluster": "k",
                "topic": "t",
                "partition": 3,
                "leader_before": 2,
                "epoch_before": 5,
                "leader": 2,
                "epoch": 6,
            },
        ),
    ],
)
def test_an_event_is_one_line(event: events.Event, kind: str, columns: dict[str, Any]) -> None:
    assert _columns(_line(_journal(), event), kind) == columns


def test_what_is_not_known_is_left_out() -> None:
    unknown = dataclasses.replace(_ANSWERED, client_epoch=-1, software="", client_id="")
    missed = events.HintMissed(answered=unknown, reason="hold_expired")
    error = _columns(_line(_journal(known=False), missed), "error")
    assert not {"cluster", "node", "epoch_before", "leader_before", "leader", "epoch"} & set(error)
    assert (error["client_id"], error["software"], error["software_version"]) == ("", "", "")

    read = _columns(_line(_journal(), dataclasses.replace(_READ, broker_rack="")), "read")
    assert "broker_rack" not in read

    recovered = dataclasses.replace(_RECOVERED, epoch=-1, recovery_ms=None)
    recovery = _columns(_line(_journal(known=False), recovered), "recovery")
    assert not {"cluster", "node", "epoch", "recovery_ms"} & set(recovery)


def test_start_stop_and_gap() -> None:
    journal = _journal()

    start = _columns(checked(journal.start("leader-hints", "1.2", "observe")), "start")
    assert start == {"software": "leader-hints", "software_version": "1.2", "hints": "observe"}
    gap = _columns(checked(journal.gap(4, 9, "slow")), "gap")
    assert gap == {"dropped": 6, "first_seq": 4, "last_seq": 9, "reason": "slow"}
    assert _columns(checked(journal.stop()), "stop") == {}


def test_an_operator_s_switch_is_reported() -> None:
    switched = events.HintsSwitched(route="a", before="on", hints="off")

    assert _columns(_line(_journal(), switched), "mode") == {"route": "a", "hints": "off"}


def test_lines_are_numbered_from_0() -> None:
    journal = _journal()
    first = checked(journal.start("p", "1", "on"))["seq"]
    assert journal.skip() == 1

    assert (first, _line(journal, _MOVED)["seq"], _line(journal, _SEEN)["seq"]) == (0, 2, 3)


@pytest.mark.parametrize(("uses", "told"), [((), "none"), (None, "unknown")])
def test_a_client_without_hints_is_one(uses: tuple[str, ...] | None, told: str) -> None:
    assert _line(_journal(), dataclasses.replace(_SEEN, uses=uses))["uses"] == told


@pytest.mark.parametrize(
    "event",
    [
        events.Listening(route="r", listen="l:1", upstream="u:1"),
        events.JournalFailing(reason="disk full"),
        events.JournalWritten(dropped=3),
        events.NotUnderstood(route="r", link=1, side="broker", reason="short"),
    ],
)
def test_other_events_are_not_for_the_journal(event: events.Event) -> None:
    assert _journal().row(event) is None


@pytest.mark.parametrize("run", ["run-1", "another"])
def test_traffic_of_journals_is_left_out(run: str) -> None:
    client_id = CLIENT_ID_PREFIX + run
    answered = dataclasses.replace(_ANSWERED, client_id=client_id)
    for event in (
        events.HintGiven(answered=answered, leader=1, epoch=5),
        events.HintMissed(answered=answered, reason="no_leader"),
        dataclasses.replace(_SEEN, client_id=client_id),
        dataclasses.replace(_RECOVERED, client_id=client_id),
        dataclasses.replace(_SAMPLED, client_id=client_id),
        dataclasses.replace(_READ, client_id=client_id),
    ):
        assert _journal().row(event) is None


_HOSTILE = st.text(st.characters(exclude_categories=()))


@given(_HOSTILE, _HOSTILE, _HOSTILE)
def test_hostile_texts_make_one_valid_line(client_id: str, software: str, topic: str) -> None:
    hostile = dataclasses.replace(_ANSWERED, client_id=client_id, software=software, topic=topic)
    row = _journal().row(events.HintMissed(answered=hostile, reason="no_leader"))
    if row is None:
        assert client_id.startswith(CLIENT_ID_PREFIX)
        return
    line = checked(_journal().line(row))

    # No parser chokes on it: there is no half of a surrogate pair.
    json.dumps(line, ensure_ascii=False).encode()
    try:
        topic.encode()
    except UnicodeEncodeError:
        return
    assert line["topic"] == topic[:256]


def test_half_a_surrogate_pair_is_replaced_and_whole_ones_are_joined() -> None:
    text = "a\ud83db\ude00c\ud83d\ude00d"

    assert json.loads(encode({"topic": text}))["topic"] == "a\ufffdb\ufffdc\U0001f600d"


def test_no_text_is_longer_than_it_may_be() -> None:
    longest = dataclasses.replace(_ANSWERED, client_id="\x01" * 32_767, software="x/" * 100_000)
    journal = _journal()
    row = journal.row(events.HintMissed(answered=longest, reason="no_leader"))
    assert row is not None

    assert len(journal.line(row)) < 10_000


def test_principals_that_have_no_room_are_called_others() -> None:
    names = tuple(f"CN={letter * 100}" for letter in "abc")
    asked = dataclasses.replace(_ASKED, addresses=(), principals=names)
    line = _line(_journal(), asked)
    assert line["principals"] == f"{names[0]}; {names[1]}; (others)"
    assert "addresses" not in line
