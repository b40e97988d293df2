"""Events as log lines: names, levels and fields that operators rely upon."""

import io
import json
from typing import Any, get_args

import pytest
import structlog

from proxy.core import events
from proxy.observe.event_log import EventLog
from proxy.observe.logs import configure_logs

_ANSWERED = events.ErrorAnswered(
    route="r",
    link=7,
    client_id="c",
    software="lib/1.2",
    api="Fetch",
    version=16,
    topic="t",
    partition=3,
    error=74,
    client_epoch=4,
    hold_ms=2.34567,
    observed=False,
)
_LINES: list[tuple[events.Event, str, str, dict[str, Any]]] = [
    (
        events.Listening(route="r", listen="127.0.0.1:1", upstream="b:9092"),
        "info",
        "listening",
        {"route": "r", "listen": "127.0.0.1:1", "upstream": "b:9092"},
    ),
    (
        events.RoutePlan(route="r", native=False, raised={"Produce": [9, 10]}),
        "info",
        "route_plan",
        {"route": "r", "native": False, "raised": {"Produce": [9, 10]}},
    ),
    (
        events.TopicIdsOffered(cluster="k"),
        "info",
        "topic_ids_offered",
        {"cluster": "k"},
    ),
    (
        events.TopicIdsWithheld(cluster="k", broker="2 at b:9092", reason="it gives no topic ids"),
        "warning",
        "topic_ids_withheld",
        {"cluster": "k", "broker": "2 at b:9092", "reason": "it gives no topic ids"},
    ),
    (
        events.LeaderMoved(
            cluster="k",
            topic="t",
            partition=3,
            leader_before=1,
            epoch_before=4,
            leader=2,
            epoch=5,
        ),
        "info",
        "leader_moved",
        {
            "cluster": "k",
            "topic": "t",
            "partition": 3,
            "leader_before": 1,
            "epoch_before": 4,
            "leader": 2,
            "epoch": 5,
        },
    ),
    (
        events.HintGiven(answered=_ANSWERED, leader=2, epoch=5),
        "debug",
        "hint_given",
        {
            "route": "r",
            "link": 7,
            "client_id": "c",
            "software": "lib/1.2",
            "api": "Fetch",
            "version": 16,
            "topic": "t",
            "partition": 3,
            "error": 74,
            "client_epoch": 4,
            "leader": 2,
            "epoch": 5,
            "hold_ms": 2.346,
            "observed": False,
        },
    ),
    (
        events.HintMissed(answered=_ANSWERED, reason="hold_expired"),
        "debug",
        "hint_missed",
        {
            "route": "r",
            "link": 7,
            "client_id": "c",
            "software": "lib/1.2",
            "api": "Fetch",
            "version": 16,
            "topic": "t",
            "partition": 3,
            "error": 74,
            "client_epoch": 4,
            "reason": "hold_expired",
            "hold_ms": 2.346,
            "observed": False,
        },
    ),
    (
        events.ClientSeen(route="r", link=7, client_id="c", software="lib", version="1.2"),
        "debug",
        "client_seen",
        {"route": "r", "link": 7, "client_id": "c", "software": "lib", "version": "1.2"},
    ),
    (
        events.Recovered(
            route="r",
            link=7,
            client_id="c",
            software="lib/1.2",
            api="Fetch",
            topic="t",
            partition=3,
            epoch=5,
            recovery_ms=31.23456,
            hinted=True,
        ),
        "debug",
        "recovered",
        {
            "route": "r",
            "link": 7,
            "client_id": "c",
            "software": "lib/1.2",
            "api": "Fetch",
            "topic": "t",
            "partition": 3,
            "epoch": 5,
            "recovery_ms": 31.235,
            "hinted": True,
        },
    ),
    (
        events.BadClientBytes(route="r", client="127.0.0.1:5", reason="TLS"),
        "warning",
        "bad_client_bytes",
        {"route": "r", "client": "127.0.0.1:5", "reason": "TLS"},
    ),
    (
        events.BadBrokerBytes(route="r", link=7, reason="short"),
        "warning",
        "bad_broker_bytes",
        {"route": "r", "link": 7, "reason": "short"},
    ),
    (
        events.NotUnderstood(route="r", link=7, side="broker", reason="short"),
        "warning",
        "not_understood",
        {"route": "r", "link": 7, "side": "broker", "reason": "short"},
    ),
    (
        events.UpstreamUnreachable(route="r", upstream="b:9092", error="refused"),
        "warning",
        "upstream_unreachable",
        {"route": "r", "upstream": "b:9092", "error": "refused"},
    ),
    (
        events.SubscriptionLost(broker="b:9092", error="refused"),
        "warning",
        "subscription_lost",
        {"broker": "b:9092", "error": "refused"},
    ),
    (
        events.SubscriptionReady(broker="b:9092", node=None),
        "info",
        "subscription_ready",
        {"broker": "b:9092", "node": None},
    ),
    (
        events.LinkFailed(route="r", link=7, traceback="a\nb"),
        "error",
        "link_failed",
        {"route": "r", "link": 7, "traceback": "a\nb"},
    ),
    (
        events.LatencySampled(
            route="r",
            link=7,
            client_id="c",
            software="lib/1.2",
            api="Fetch",
            version=16,
            latency_ms=1.23456,
        ),
        "debug",
        "latency_sampled",
        {
            "route": "r",
            "link": 7,
            "client_id": "c",
            "software": "lib/1.2",
            "api": "Fetch",
            "version": 16,
            "latency_ms": 1.235,
        },
    ),
    (
        events.JournalFailing(reason="disk full"),
        "warning",
        "journal_failing",
        {"reason": "disk full"},
    ),
    (events.JournalWritten(dropped=3), "info", "journal_written", {"dropped": 3}),
    (events.JournalAbandoned(events=3), "warning", "journal_abandoned", {"events": 3}),
]


@pytest.fixture(autouse=True)
def _reset_structlog() -> Any:
    yield
    structlog.reset_defaults()


def _lines(*taken: events.Event, level: str = "debug") -> list[dict[str, Any]]:
    stream = io.StringIO()
    configure_logs(level, "json", stream)
    log = EventLog(structlog.get_logger())
    for event in taken:
        log.take(event)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(("event", "level", "name", "values"), _LINES)
def test_an_event_is_one_line_with_its_fields(
    event: events.Event, level: str, name: str, values: dict[str, Any]
) -> None:
    (line,) = _lines(event)

    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": name, "level": level, **values}


def test_every_event_there_is_was_looked_at() -> None:
    assert {type(event) for event, *_ in _LINES} == set(get_args(events.Event))


def test_hints_are_below_the_default_level() -> None:
    given = events.HintGiven(answered=_ANSWERED, leader=2, epoch=5)
    ready = events.SubscriptionReady(broker="b:9092", node=1)

    assert [line["event"] for line in _lines(given, ready, level="info")] == ["subscription_ready"]
