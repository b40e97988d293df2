"""Events as log lines: names, levels and fields that operators rely upon."""

import io
import json
from typing import Any, get_args

import pytest
import structlog

from leader_hints.core import events
from leader_hints.observe.event_log import EventLog, name_of
from leader_hints.observe.logs import configure_logs
from leader_hints.settings.log import LogLevels

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
        events.Starting(
            version="1.2.3", hints="on", config="/etc/a.yaml", routes=("l:1=b:9092",), workers=2
        ),
        "info",
        "starting",
        {
            "version": "1.2.3",
            "hints": "on",
            "config": "/etc/a.yaml",
            "routes": ["l:1=b:9092"],
            "workers": 2,
        },
    ),
    (
        events.SettingsReloaded(keys=("hints",)),
        "info",
        "settings_reloaded",
        {"keys": ["hints"]},
    ),
    (
        events.SettingsRefused(keys=("drain_ms",), reason="they need a restart"),
        "warning",
        "settings_refused",
        {"keys": ["drain_ms"], "reason": "they need a restart"},
    ),
    (
        events.SwitchNotKept(reason="no space left on device"),
        "warning",
        "switch_not_kept",
        {"reason": "no space left on device"},
    ),
    (
        events.FilesReloaded(tls=2, refused=1),
        "info",
        "files_reloaded",
        {"tls": 2, "refused": 1},
    ),
    (
        events.RoutePlan(route="r", native=False, raised={"Produce": [9, 10]}),
        "info",
        "route_plan",
        {"route": "r", "native": False, "raised": {"Produce": [9, 10]}},
    ),
    (
        events.UpstreamGivesHints(route="r"),
        "warning",
        "upstream_gives_hints",
        {"route": "r"},
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
        events.EpochRose(cluster="k", topic="t", partition=3, leader=2, epoch_before=5, epoch=6),
        "debug",
        "epoch_rose",
        {"cluster": "k", "topic": "t", "partition": 3, "leader": 2, "epoch_before": 5, "epoch": 6},
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
            "settling": "",
            "hold_ms": 2.346,
            "observed": False,
        },
    ),
    (
        events.ClientSeen(
            route="r",
            link=7,
            client_id="c",
            software="lib",
            version="1.2",
            address="192.0.2.1:5",
            uses=("fetch",),
        ),
        "debug",
        "client_seen",
        {
            "route": "r",
            "link": 7,
            "client_id": "c",
            "software": "lib",
            "version": "1.2",
            "address": "192.0.2.1:5",
            "uses": ["fetch"],
        },
    ),
    (
        events.ClientAsked(
            route="r",
            client_id="c",
            software="lib/1.2",
            asked=((0, 3, 9),),
            addresses=("192.0.2.1",),
            principals=(),
        ),
        "debug",
        "client_asked",
        {
            "route": "r",
            "client_id": "c",
            "software": "lib/1.2",
            "asked": [[0, 3, 9]],
            "addresses": ["192.0.2.1"],
            "principals": [],
        },
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
        events.ReplicaNamed(
            route="r",
            link=7,
            client_id="c",
            software="lib/1.2",
            topic="t",
            partition=3,
            replica=2,
            rack="b",
            returned=False,
            observed=False,
        ),
        "debug",
        "replica_named",
        {
            "route": "r",
            "link": 7,
            "client_id": "c",
            "software": "lib/1.2",
            "topic": "t",
            "partition": 3,
            "replica": 2,
            "rack": "b",
            "returned": False,
            "observed": False,
        },
    ),
    (
        events.ConsumerRead(
            route="r",
            link=7,
            client_id="c",
            software="lib/1.2",
            topic="t",
            rack="b",
            broker_rack="a",
            bytes=900,
            avoidable_bytes=700,
        ),
        "debug",
        "consumer_read",
        {
            "route": "r",
            "link": 7,
            "client_id": "c",
            "software": "lib/1.2",
            "topic": "t",
            "rack": "b",
            "broker_rack": "a",
            "bytes": 900,
            "avoidable_bytes": 700,
        },
    ),
    (
        events.BadClientBytes(route="r", client="127.0.0.1:5", reason="TLS"),
        "warning",
        "bad_client_bytes",
        {"route": "r", "client": "127.0.0.1:5", "reason": "TLS"},
    ),
    (
        events.ClientRefused(route="r", client="127.0.0.1:5", reason="speaks no TLS"),
        "warning",
        "client_refused",
        {"route": "r", "client": "127.0.0.1:5", "reason": "speaks no TLS"},
    ),
    (
        events.CertificatesReloaded(route="r", group="client_tls"),
        "info",
        "certificates_reloaded",
        {"route": "r", "group": "client_tls"},
    ),
    (
        events.CertificatesRefused(route="r", group="client_tls", reason="no PEM"),
        "warning",
        "certificates_refused",
        {"route": "r", "group": "client_tls", "reason": "no PEM"},
    ),
    (
        events.TopicsHidden(cluster="c", broker="b:1", visible=3),
        "warning",
        "topics_hidden",
        {"cluster": "c", "broker": "b:1", "visible": 3},
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
        events.RouteCrossed(route="r", node=1, address="b:1", leads_to="s", found=2),
        "warning",
        "route_crossed",
        {"route": "r", "node": 1, "address": "b:1", "leads_to": "s", "found": 2},
    ),
    (
        events.AdvertisedPast(route="r", node=1, address="b:1"),
        "warning",
        "advertised_past",
        {"route": "r", "node": 1, "address": "b:1"},
    ),
    (
        events.AdvertisedRight(route="r", node=1, address="b:1"),
        "info",
        "advertised_right",
        {"route": "r", "node": 1, "address": "b:1"},
    ),
    (
        events.RouteLoops(route="r", leads_to="s"),
        "warning",
        "route_loops",
        {"route": "r", "leads_to": "s"},
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
        events.HintsSwitched(route="r", before="on", hints="off"),
        "warning",
        "hints_switched",
        {"route": "r", "before": "on", "hints": "off"},
    ),
    (
        events.BrokerMoved(route="r", upstream_before="b:9092", upstream="c:9092"),
        "info",
        "broker_moved",
        {"route": "r", "upstream_before": "b:9092", "upstream": "c:9092"},
    ),
    (
        events.BrokerLeft(route="r", listen="127.0.0.1:1"),
        "info",
        "broker_left",
        {"route": "r", "listen": "127.0.0.1:1"},
    ),
    (
        events.BrokerWithoutPort(route="r", upstream="b:9092", reason="taken"),
        "warning",
        "broker_without_port",
        {"route": "r", "upstream": "b:9092", "reason": "taken"},
    ),
    (
        events.BrokerOfAnotherCluster(route="r", upstream="b:9092", cluster="k", found="l"),
        "warning",
        "broker_of_another_cluster",
        {"route": "r", "upstream": "b:9092", "cluster": "k", "found": "l"},
    ),
    (
        events.ClusterRestarted(brokers="127.0.0.1:1"),
        "warning",
        "cluster_restarted",
        {"brokers": "127.0.0.1:1"},
    ),
    (
        events.ClusterNotRestarted(reason="it died"),
        "warning",
        "cluster_not_restarted",
        {"reason": "it died"},
    ),
    (
        events.FaultDone(
            route="r",
            number=2,
            action="error",
            api="Produce",
            client_id="c",
            topic="t",
            partition=1,
            error=6,
            hint="right",
        ),
        "info",
        "fault_done",
        {
            "route": "r",
            "number": 2,
            "action": "error",
            "api": "Produce",
            "client_id": "c",
            "topic": "t",
            "partition": 1,
            "error": 6,
            "hint": "right",
        },
    ),
    (
        events.AdminListening(listen="127.0.0.1:9100"),
        "info",
        "admin_listening",
        {"listen": "127.0.0.1:9100"},
    ),
    (
        events.AdminExposed(listen="0.0.0.0:9100"),
        "warning",
        "admin_exposed",
        {"listen": "0.0.0.0:9100"},
    ),
    (
        events.AdminFailed(traceback="a\nb"),
        "error",
        "admin_failed",
        {"traceback": "a\nb"},
    ),
    (
        events.LinkFailed(route="r", link=7, traceback="a\nb"),
        "error",
        "link_failed",
        {"route": "r", "link": 7, "traceback": "a\nb"},
    ),
    (
        events.TaskFailed(task="holds", traceback="a\nb"),
        "error",
        "task_failed",
        {"task": "holds", "traceback": "a\nb"},
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
    (
        events.LimitReached(route="r", limit="connections", client="h:1"),
        "warning",
        "limit_reached",
        {"route": "r", "limit": "connections", "client": "h:1"},
    ),
    (
        events.DescriptorsShort(allowed=1024, needed=60256, connections=384),
        "warning",
        "descriptors_short",
        {"allowed": 1024, "needed": 60256, "connections": 384},
    ),
    (
        events.AcceptFailed(listen="h:1", error="too many open files"),
        "error",
        "accept_failed",
        {"listen": "h:1", "error": "too many open files"},
    ),
    (events.EventLoopStalled(seconds=12.3456), "error", "event_loop_stalled", {"seconds": 12.346}),
    (events.Stopping(links=3), "info", "stopping", {"links": 3}),
    (events.Stopped(links=1), "info", "stopped", {"links": 1}),
    (events.TakeoverBegun(successor=7), "info", "takeover_begun", {"successor": 7}),
    (events.TakeoverFailed(error="gone"), "warning", "takeover_failed", {"error": "gone"}),
    (events.TakenOver(predecessor=6), "info", "taken_over", {"predecessor": 6}),
    (
        events.WorkerBegan(worker=1, process=70),
        "info",
        "worker_began",
        {"worker": 1, "process": 70},
    ),
    (
        events.WorkerEnded(worker=2, process=71, links=5, reason="signal 9"),
        "error",
        "worker_ended",
        {"worker": 2, "process": 71, "links": 5, "reason": "signal 9"},
    ),
]


@pytest.fixture(autouse=True)
def _reset_structlog() -> Any:
    yield
    structlog.reset_defaults()


def _levels(level: str, **own: str) -> dict[str, str]:
    return {**dict.fromkeys(LogLevels.model_fields, level), **own}


def _lines(*taken: events.Event, level: str = "debug") -> list[dict[str, Any]]:
    stream = io.StringIO()
    configure_logs(level, "json", stream)
    log = EventLog(structlog.get_logger(), _levels(level), 20, lambda: 0.0)
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


def test_a_line_says_which_worker_it_comes_from() -> None:
    stream = io.StringIO()
    configure_logs("debug", "json", stream)
    log = EventLog(structlog.get_logger(), _levels("debug"), 20, lambda: 0.0)
    workers = {"r": 2, "s": 0}
    log.worker_of = lambda event: workers[event.route]  # type: ignore[union-attr]
    for route in workers:
        log.take(events.ClientRefused(route=route, client="h:1", reason="no TLS"))

    lines = map(json.loads, stream.getvalue().splitlines())
    assert [line.get("worker") for line in lines] == [2, None]


def test_every_event_there_is_was_looked_at() -> None:
    assert {type(event) for event, *_ in _LINES} == set(get_args(events.Event))


def test_hints_are_below_the_default_level() -> None:
    given = events.HintGiven(answered=_ANSWERED, leader=2, epoch=5)
    ready = events.SubscriptionReady(broker="b:9092", node=1)

    assert [line["event"] for line in _lines(given, ready, level="info")] == ["subscription_ready"]


def test_each_subsystem_has_a_level_of_its_own() -> None:
    stream = io.StringIO()
    configure_logs("debug", "json", stream)
    log = EventLog(
        structlog.get_logger(), _levels("error", subscription="info", hints="debug"), 20, float
    )
    for event, *_ in _LINES:
        log.take(event)

    written = {json.loads(line)["event"] for line in stream.getvalue().splitlines()}
    of_hints = {"hint_given", "hint_missed", "recovered", "replica_named"}
    of_subscription = {
        "subscription_lost",
        "subscription_ready",
        "topic_ids_offered",
        "topic_ids_withheld",
        "topics_hidden",
    }
    errors = {
        "link_failed",
        "task_failed",
        "admin_failed",
        "accept_failed",
        "event_loop_stalled",
        "worker_ended",
    }
    assert written == errors | of_hints | of_subscription


def test_levels_can_change_while_it_writes() -> None:
    stream = io.StringIO()
    configure_logs("debug", "json", stream)
    log = EventLog(structlog.get_logger(), _levels("info"), 0, lambda: 10.0)
    rose = events.EpochRose(cluster="k", topic="t", partition=0, leader=1, epoch_before=1, epoch=2)
    moved = events.LeaderMoved(
        cluster="k", topic="t", partition=0, leader_before=1, epoch_before=2, leader=2, epoch=3
    )
    for event in (rose, moved):
        log.take(event)
    assert stream.getvalue() == ""
    log.configure(_levels("debug"), 5)
    for event in (rose, moved):
        log.take(event)
    names = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    assert names == ["epoch_rose", "leader_moved"]


def test_a_storm_of_leader_moves_becomes_one_line_for_each_second() -> None:
    stream, now = io.StringIO(), [10.25]
    configure_logs("info", "json", stream)
    log = EventLog(structlog.get_logger(), _levels("info"), 3, lambda: now[0])

    def moves(count: int) -> None:
        for number in range(count):
            log.take(
                events.LeaderMoved(
                    cluster="k",
                    topic=f"t{number % 7}",
                    partition=number,
                    leader_before=1,
                    epoch_before=4,
                    leader=2 + number % 2,
                    epoch=5,
                )
            )

    def taken() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in stream.getvalue().splitlines()]
        stream.seek(0)
        stream.truncate()
        return lines

    moves(5000)
    log.tick()
    assert [line["event"] for line in taken()] == ["leader_moved"] * 3
    now[0] = 11.0
    log.tick()
    log.tick()
    (line,) = taken()
    assert line["event"] == "more_leaders_moved"
    assert (line["moves"], line["topics"]) == (4997, 7)
    assert line["to_leaders"] == {"2": 2498, "3": 2499}
    # The next second has lines again; what comes sums up the last one without a tick too.
    moves(4)
    assert [line["event"] for line in taken()] == ["leader_moved"] * 3
    now[0] = 12.5
    moves(1)
    assert [line["event"] for line in taken()] == ["more_leaders_moved", "leader_moved"]


def test_a_summary_is_a_line_where_its_level_is_written() -> None:
    for level, written in (("info", 1), ("warning", 0)):
        stream = io.StringIO()
        configure_logs("debug", "json", stream)
        log = EventLog(structlog.get_logger(), _levels("debug", summary=level), 20, float)
        log.summary({"links": 3})
        lines = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert [(line["event"], line["links"]) for line in lines] == [("summary", 3)] * written


@pytest.mark.parametrize("kind", [events.BadClientBytes, events.ClientRefused])
def test_what_clients_can_cause_without_end_gets_a_few_lines_in_a_minute(
    kind: type[events.BadClientBytes | events.ClientRefused],
) -> None:
    stream, now = io.StringIO(), [10.0]
    configure_logs("info", "json", stream)
    log = EventLog(structlog.get_logger(), _levels("info"), 20, lambda: now[0])
    for number in range(5000):
        log.take(kind(route="r", client=f"h:{number}", reason="nonsense"))
    log.take(kind(route="other", client="h:1", reason="nonsense"))
    for limit in ("idle_ms", "connections"):
        log.take(events.LimitReached(route="r", limit=limit, client="h:1"))
    now[0] = 69.0
    log.tick()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == [name_of(kind)] * 11 + ["limit_reached"] * 2

    now[0] = 70.0
    log.tick()
    (more,) = (json.loads(line) for line in stream.getvalue().splitlines()[13:])
    assert more["event"] == "more_of_the_same"
    assert (more["of"], more["route"], more["left_out"]) == (name_of(kind), "r", 4990)
    # The next minute has lines again.
    log.take(kind(route="r", client="h:1", reason="nonsense"))
    assert len(stream.getvalue().splitlines()) == 15


def test_a_broker_that_takes_some_connections_and_others_not_gets_a_few_lines_too() -> None:
    """Each client that it did not take had one, as long as it took others in between."""
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    log = EventLog(structlog.get_logger(), _levels("info"), 20, float)
    for _ in range(100):
        log.take(events.UpstreamUnreachable(route="r", upstream="h:1", error="refused"))
    log.take(events.UpstreamUnreachable(route="other", upstream="h:1", error="refused"))
    routes = [json.loads(line)["route"] for line in stream.getvalue().splitlines()]
    assert routes == ["r"] * 10 + ["other"]


def test_a_broker_that_answers_and_closes_all_the_time_gets_a_few_lines_in_a_minute() -> None:
    """Some 30 a second: each connection of the proxy answered, and was lost."""
    stream, now = io.StringIO(), [10.0]
    configure_logs("info", "json", stream)
    log = EventLog(structlog.get_logger(), _levels("info"), 20, lambda: now[0])
    for _ in range(500):
        log.take(events.SubscriptionReady(broker="b:1", node=1))
        log.take(events.RoutePlan(route="r", native=False, raised={}))
        log.take(events.SubscriptionLost(broker="b:1", error="closed"))
    log.take(events.SubscriptionReady(broker="b:2", node=2))
    now[0] = 71.0
    log.tick()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(lines) == 3 * 10 + 1 + 3
    assert [(one["of"], one["route"], one["broker"], one["left_out"]) for one in lines[-3:]] == [
        ("subscription_ready", "", "b:1", 490),
        ("route_plan", "r", "", 490),
        ("subscription_lost", "", "b:1", 490),
    ]


def test_where_the_loop_stands_still_is_an_error_with_its_place() -> None:
    stream = io.StringIO()
    configure_logs("info", "json", stream)
    log = EventLog(structlog.get_logger(), _levels("info"), 20, float)
    log.stuck(10.04, 'File "x.py", line 1\n')
    line = json.loads(stream.getvalue())
    assert (line["event"], line["level"], line["seconds"]) == ("loop_stuck", "error", 10.0)
    assert line["stack"] == 'File "x.py", line 1\n'
