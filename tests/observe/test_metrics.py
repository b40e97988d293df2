"""Counts and events as Prometheus metrics, read back with Prometheus's own parsers."""

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

from leader_hints.core.events import (
    AdminFailed,
    BadClientBytes,
    CertificatesRefused,
    CertificatesReloaded,
    ClientSeen,
    Event,
    EventLoopStalled,
    HintGiven,
    HintMissed,
    LimitReached,
    LinkFailed,
    Listening,
    Recovered,
    TaskFailed,
)
from leader_hints.core.mode import Mode
from leader_hints.core.replicas.closest_replica import Outcome
from leader_hints.core.route import Route, RouteConfig
from leader_hints.observe.client_names import ClientNames
from leader_hints.observe.counts import Counts
from leader_hints.observe.journal import JournalCounters
from leader_hints.observe.metric_families import FAMILIES
from leader_hints.observe.metrics import Metrics
from leader_hints.observe.watched import KnownCluster, Load
from tests.harness.lines import most_lines
from tests.observe.watching import ANSWERED, EXPIRY, MOVED, ROSE, cluster, watched

_OPENMETRICS = "application/openmetrics-text"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _rendered(metrics: Metrics, accept: str) -> tuple[bytes, str]:
    pieces, content_type = metrics.render(accept, metrics.read_process())
    return b"".join(pieces), content_type


def _samples(metrics: Metrics, accept: str = "") -> Samples:
    body, content_type = _rendered(metrics, accept)
    parse = openmetrics_families if content_type.startswith(_OPENMETRICS) else text_families
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(body.decode())
        for sample in family.samples
        if sample.name.startswith("leader_hints_") and not sample.name.endswith("_created")
    }


def _value(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"leader_hints_{name}", tuple(sorted(labels.items()))]


class _Taking(Metrics):
    """Metrics that take each event as the proxy emits it."""

    def __init__(
        self,
        routes: Sequence[Route] = (),
        *clusters: KnownCluster,
        topics: bool | Sequence[str] = False,
    ) -> None:
        self.counts = Counts(topics)
        super().__init__(watched(routes, self.counts, *clusters))

    def take(self, event: Event) -> None:
        self.counts.take(event)
        super().take(event)


def _counted() -> Metrics:
    """Metrics of two routes that differ in every count."""
    first, second = Route("a", Mode.ON), Route("b", Mode.OFF)
    first.traffic.links, first.traffic.links_open = 5, 2
    first.traffic.up, first.traffic.down = 100, 200
    for place, asked, answered in (
        ((0, 10, 9), 3, 2),
        ((1, 16, 15), 4, 4),
        ((1, 12, 12), 1, 0),
    ):
        cell = first.traffic.cell(*place)
        cell.requests, cell.responses = asked, answered
    first.traffic.raw["budget"] = 6
    second.traffic.links = 1
    return _Taking([first, second])


def test_tallies_are_read_when_metrics_are_asked_for() -> None:
    samples = _samples(_counted())

    assert _value(samples, "links_open", route="a") == 2
    assert _value(samples, "links_total", route="a") == 5
    assert _value(samples, "links_total", route="b") == 1
    assert _value(samples, "bytes_total", route="a", direction="up") == 100
    assert _value(samples, "bytes_total", route="a", direction="down") == 200
    assert _value(samples, "requests_total", route="a", api="Produce", asked="10", sent="9") == 3
    assert _value(samples, "requests_total", route="a", api="Fetch", asked="16", sent="15") == 4
    assert _value(samples, "requests_total", route="a", api="Fetch", asked="12", sent="12") == 1
    assert _value(samples, "responses_total", route="a", api="Produce", asked="10") == 2
    assert _value(samples, "responses_total", route="a", api="Fetch", asked="16") == 4
    assert _value(samples, "passed_raw_total", route="a", reason="budget") == 6


def test_hints_given_and_missed_count_their_error_and_hold() -> None:
    metrics = _Taking()
    metrics.take(HintGiven(answered=ANSWERED, leader=2, epoch=2))
    fenced = dataclasses.replace(ANSWERED, api="Fetch", error=74, hold_ms=100.0)
    metrics.take(HintMissed(answered=fenced, reason="hold_expired"))
    metrics.take(HintMissed(answered=fenced, reason="hold_expired"))
    samples = _samples(metrics)

    assert _value(samples, "hints_given_total", route="a", api="Produce", mode="on") == 1
    missed = {"api": "Fetch", "mode": "on", "reason": "hold_expired"}
    assert _value(samples, "hints_missed_total", route="a", **missed) == 2
    assert _value(samples, "errors_seen_total", route="a", api="Produce", error="6") == 1
    assert _value(samples, "errors_seen_total", route="a", api="Fetch", error="74") == 2
    assert _value(samples, "hold_seconds_count", route="a") == 3
    assert _value(samples, "hold_seconds_sum", route="a") == pytest.approx(0.204)
    assert _value(samples, "hold_seconds_bucket", route="a", le="0.005") == 1


def test_what_is_only_observed_is_distinguished_and_held_nothing_back() -> None:
    metrics = _Taking()
    observed = dataclasses.replace(ANSWERED, observed=True, hold_ms=7.0)
    metrics.take(HintGiven(answered=observed, leader=2, epoch=2))
    metrics.take(HintMissed(answered=observed, reason="no_leader"))
    samples = _samples(metrics)

    assert _value(samples, "hints_given_total", route="a", api="Produce", mode="observe") == 1
    missed = {"api": "Produce", "mode": "observe", "reason": "no_leader"}
    assert _value(samples, "hints_missed_total", route="a", **missed) == 1
    assert not any(name.startswith("leader_hints_hold") for name, _ in samples)


def test_errors_that_wait_for_metadata_are_counted_by_what_came_of_it() -> None:
    config = RouteConfig(settle=True)
    routes = [Route("a", Mode.ON, config), Route("b", Mode.ON), Route("c", Mode.OBSERVE, config)]
    metrics = _Taking(routes)
    reason = "not_usable_by_client"
    metrics.take(HintMissed(answered=ANSWERED, reason=reason, settling="settled"))
    metrics.take(HintMissed(answered=ANSWERED, reason=reason, settling="hold_expired"))
    metrics.take(HintMissed(answered=ANSWERED, reason=reason))
    samples = _samples(metrics)

    cell = {"route": "a", "api": "Produce", "mode": "on"}
    assert _value(samples, "hints_missed_total", reason=reason, **cell) == 3
    assert _value(samples, "errors_settled_total", outcome="settled", **cell) == 1
    assert _value(samples, "errors_settled_total", outcome="hold_expired", **cell) == 1
    assert _value(samples, "errors_settled_total", outcome="metadata_behind", **cell) == 0
    observed = {"route": "c", "api": "Fetch", "mode": "observe", "outcome": "settled"}
    assert _value(samples, "errors_settled_total", **observed) == 0
    labels = [dict(of) for name, of in samples if name == "leader_hints_errors_settled_total"]
    assert {of["route"] for of in labels} == {"a", "c"}


def test_what_consumers_read_is_counted_by_racks_where_that_is_looked_at() -> None:
    looking = Route("a", Mode.ON, RouteConfig(closest_replica=Mode.ON))
    looking.rack_traffic.read.update({("x", "x"): 70, ("x", "y"): 30})
    looking.rack_traffic.avoidable["x", "y"] = 20
    looking.rack_traffic.outcomes[Outcome.NAMED] = 2
    samples = _samples(_Taking([looking, Route("b", Mode.ON)]))

    of = {"route": "a", "broker_rack": "x"}
    assert _value(samples, "consumer_bytes_total", client_rack="x", path="same", **of) == 70
    assert _value(samples, "consumer_bytes_total", client_rack="y", path="crossing", **of) == 30
    assert _value(samples, "consumer_bytes_avoidable_total", client_rack="y", **of) == 20
    outcomes = "closest_replica_partitions_total"
    assert _value(samples, outcomes, route="a", outcome="named") == 2
    assert _value(samples, outcomes, route="a", outcome="paused") == 0
    assert not any(("route", "b") in labels for name, labels in samples if outcomes in name)


def test_leader_moves_and_epoch_rises_are_counted_by_cluster_and_other_events_not_at_all() -> None:
    metrics = _Taking()
    metrics.take(MOVED)
    metrics.take(ROSE)
    metrics.take(ROSE)
    metrics.take(Listening(route="a", listen="l:1", upstream="u:1"))

    counted = {key: value for key, value in _samples(metrics).items() if "_total" in key[0]}
    del counted["leader_hints_loop_stalls_total", ()]
    del counted["leader_hints_worker_ends_total", ()]
    counted = {key: value for key, value in counted.items() if "defects" not in key[0]}
    assert counted == {
        ("leader_hints_leader_moves_total", (("cluster", "k"),)): 1,
        ("leader_hints_epoch_rises_total", (("cluster", "k"),)): 2,
    }


def test_what_happens_rarely_is_there_before_it_happens() -> None:
    routes = [Route("a", Mode.ON), Route("b", Mode.OFF), Route("c", Mode.OBSERVE)]
    metrics = _Taking(routes, cluster("k", 3, 1.5))
    metrics.take(BadClientBytes(route="b", client="127.0.0.1:5", reason="TLS"))
    samples = _samples(metrics)

    assert _value(samples, "leader_moves_total", cluster="k") == 0
    assert _value(samples, "epoch_rises_total", cluster="k") == 0
    assert _value(samples, "errors_seen_total", route="a", api="Fetch", error="74") == 0
    assert _value(samples, "hints_given_total", route="c", api="Produce", mode="observe") == 0
    missed = {"api": "Fetch", "mode": "on", "reason": "hold_expired"}
    assert _value(samples, "hints_missed_total", route="a", **missed) == 0
    assert _value(samples, "faults_total", route="a", kind="link_failed") == 0
    assert _value(samples, "faults_total", route="b", kind="bad_client_bytes") == 1
    # A plain relay sees no errors.
    assert not any(("route", "b") in labels for name, labels in samples if "hints_given" in name)


def test_limits_stalls_and_what_is_pending_are_counted() -> None:
    metrics = _Taking()
    for _ in range(3):
        metrics.take(LimitReached(route="a", limit="connections", client="c:1"))
    metrics.take(EventLoopStalled(seconds=12.0))

    samples = _samples(metrics)
    assert _value(samples, "limits_reached_total", route="a", limit="connections") == 3
    assert _value(samples, "loop_stalls_total") == 1
    pending = ("tasks", "exchanges", "held_responses", "kept_bytes", "queued_bytes")
    assert [_value(samples, name) for name in pending] == [9, 8, 7, 6, 5]


def test_defects_are_counted_by_what_they_ended_and_are_there_before() -> None:
    metrics = _Taking([Route("a", Mode.ON)])
    metrics.take(LinkFailed(route="a", link=1, traceback="x"))
    metrics.take(TaskFailed(task="holds", traceback="x"))
    metrics.take(AdminFailed(traceback="x"))

    samples = _samples(metrics)
    for task, times in (("link", 1), ("holds", 1), ("admin", 1), ("connection", 0)):
        assert _value(samples, "defects_total", task=task) == times
    assert _value(samples, "faults_total", route="a", kind="link_failed") == 1


def test_no_client_topic_or_link_is_a_label() -> None:
    metrics = _Taking()
    metrics.take(HintGiven(answered=ANSWERED, leader=2, epoch=2))
    body, _ = _rendered(metrics, "")

    assert b"client-42" not in body
    assert b"topic-42" not in body


def test_a_client_cannot_make_labels_without_bound() -> None:
    route = Route("a", Mode.ON)
    for key in range(-50, 700):
        for version in (-7, 3, 31, 32, 999):
            route.traffic.cell(key, version, version).requests += 1
    samples = _samples(_Taking([route]))

    apis = {dict(labels)["api"] for name, labels in samples if "requests" in name}
    versions = {dict(labels)["asked"] for name, labels in samples if "requests" in name}
    assert len(apis) < 100
    assert versions == {"3", "31", "other"}
    requests = {
        labels: value
        for (name, labels), value in samples.items()
        if name.endswith("requests_total")
    }
    # What Kafka clients ask is never displaced by what they do not, and nothing is left out.
    for api in apis - {"other"}:
        assert _value(samples, "requests_total", route="a", api=api, asked="3", sent="3") == 1
    assert sum(requests.values()) == 750 * 5


def test_openmetrics_is_given_to_those_who_accept_it() -> None:
    metrics = _counted()
    _, plain = _rendered(metrics, "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
    body, openmetrics = _rendered(metrics, f"{_OPENMETRICS};version=1.0.0;q=0.8,text/plain;q=0.5")

    assert plain.startswith("text/plain; version=0.0.4")
    assert openmetrics.startswith(f"{_OPENMETRICS}; version=1.0.0")
    assert body.endswith(b"# EOF\n")
    assert _samples(metrics, _OPENMETRICS) == _samples(metrics, "")


@pytest.mark.parametrize(
    "accept",
    [
        f"{_OPENMETRICS}; version=x",
        "text/plain; version=x; escaping=y",
        f"{_OPENMETRICS};version=;escaping=,;,=",
        f"{_OPENMETRICS};version=9.9.9;escaping=dots",
        "\x00\xff",
    ],
)
def test_any_accept_header_gets_metrics(accept: str) -> None:
    samples = _samples(_counted(), accept)

    assert _value(samples, "links_total", route="a") == 5


def test_a_journals_counts_are_read_when_metrics_are_asked_for() -> None:
    metrics, counters = _Taking(), JournalCounters()
    metrics.count_journal(counters)
    counters.written, counters.dropped = 7, 3
    samples = _samples(metrics, _OPENMETRICS)

    assert _value(samples, "journal_written_total") == 7
    assert _value(samples, "journal_dropped_total") == 3


def test_without_a_journal_there_are_no_counts_of_it() -> None:
    assert not any("journal" in name for name, _ in _samples(_counted()))


def test_what_a_route_does_and_whether_its_broker_answers() -> None:
    samples = _samples(_counted())

    assert _value(samples, "hints_mode", route="a", mode="on") == 1
    assert _value(samples, "hints_mode", route="a", mode="off") == 0
    assert _value(samples, "hints_mode", route="b", mode="off") == 1
    assert _value(samples, "upstream_up", route="a") == 1
    # A plain relay asks nothing of its own.
    assert [key for key in samples if key[0] == "leader_hints_upstream_up"] == [
        ("leader_hints_upstream_up", (("route", "a"),))
    ]


def test_what_is_proved_to_be_advertised_wrongly() -> None:
    crossed, past = Route("a", Mode.ON), Route("b", Mode.ON)
    crossed.advertised.crossed, past.advertised.past = "crossed: as the log says", True
    samples = _samples(_Taking([crossed, past]))

    found = {(of, how) for of in "ab" for how in ("crossed", "past")}
    wrong = {
        (of, how)
        for of, how in found
        if _value(samples, "advertised_wrong", route=of, how=how) == 1
    }
    assert wrong == {("a", "crossed"), ("b", "past")}


def test_tls_files_that_cannot_be_used_until_they_can() -> None:
    metrics = _Taking([Route("a", Mode.ON), Route("b", Mode.ON)])

    def unusable() -> list[float]:
        samples = _samples(metrics)
        return [
            _value(samples, "certificates_unusable", route=of, group="client_tls") for of in "ab"
        ]

    assert unusable() == [0, 0]
    refused = CertificatesRefused(route="a", group="client_tls", reason="no PEM")
    metrics.take(refused)
    metrics.take(refused)
    assert unusable() == [1, 0]
    metrics.take(CertificatesReloaded(route="a", group="client_tls"))
    assert unusable() == [0, 0]
    expiry = "certificate_expiry_timestamp_seconds"
    assert _value(_samples(metrics), expiry, route="a", group="client_tls") == EXPIRY


def test_what_is_known_of_clusters() -> None:
    samples = _samples(_Taking([], cluster("k", 3, 12.5)))

    assert _value(samples, "partitions", cluster="k") == 3
    assert _value(samples, "topics", cluster="k") == 1
    assert _value(samples, "view_age_seconds", cluster="k") == 12.5


def test_refreshes_are_measured_by_cause() -> None:
    metrics = _Taking()
    for seconds in (0.003, 0.004, 0.3):
        metrics.refreshed("hold", seconds)
    samples = _samples(metrics)

    assert _value(samples, "refresh_seconds_count", cause="hold") == 3
    assert _value(samples, "refresh_seconds_bucket", cause="hold", le="0.005") == 2


def _recovered(recovery_ms: float | None) -> Recovered:
    return Recovered(
        route="a",
        link=7,
        client_id="client-42",
        software="kgo/v1.18.0",
        api="Produce",
        topic="topic-42",
        partition=3,
        epoch=5,
        recovery_ms=recovery_ms,
        hinted=True,
    )


def test_recoveries_are_measured_where_they_began_here() -> None:
    metrics = _Taking()
    metrics.take(_recovered(30.0))
    metrics.take(_recovered(None))
    samples = _samples(metrics)

    labels = {"route": "a", "api": "Produce", "hinted": "true"}
    assert _value(samples, "recovery_seconds_count", **labels) == 1
    assert _value(samples, "recovery_seconds_sum", **labels) == pytest.approx(0.03)


def _seen(software: str, version: str, uses: tuple[str, ...] | None = ("produce",)) -> ClientSeen:
    return ClientSeen(
        route="a", link=7, client_id="client-42", software=software, version=version, uses=uses
    )


def test_clients_are_counted_by_what_they_say_of_themselves() -> None:
    metrics = _Taking()
    metrics.take(_seen("apache-kafka-java", "3.9.1"))
    metrics.take(_seen("apache-kafka-java", "3.9.1"))
    metrics.take(_seen("apache-kafka-java", "3.6.2", ()))
    metrics.take(_seen("sarama", "1.43", None))
    samples = _samples(metrics)

    java = {"software": "apache-kafka-java", "version": "3.9.1"}
    assert _value(samples, "clients_seen_total", **java) == 2
    assert _value(samples, "clients_seen_total", software="sarama", version="1.43") == 1
    using = {name: n for name, n in samples.items() if name[0].endswith("using_hints_total")}
    assert using == {("leader_hints_clients_using_hints_total", tuple(sorted(java.items()))): 2}


@pytest.mark.parametrize(
    "text", ["", " ", "a b", 'a"b', "a\nb", "a{b}", "-a", "a-", "\u00e4", "x" * 65, "\x00"]
)
def test_what_no_honest_client_says_is_other(text: str) -> None:
    names = ClientNames()
    assert names.label(text, "1") == ("other", "other")
    assert names.label("kgo", text) == ("kgo", "other")


def test_clients_cannot_make_labels_without_bound_nor_crowd_out_known_ones() -> None:
    names = ClientNames()
    labels = {names.label(f"made-up-{number}", f"{number}") for number in range(5000)}
    labels |= {names.label("librdkafka", f"9.{number}") for number in range(5000)}

    assert len(labels) == 50 + 1 + 20 + 1
    assert names.label("made-up-4999", "4999") == ("other", "other")
    assert names.label("librdkafka", "9.4999") == ("librdkafka", "other")
    assert names.label("made-up-0", "0") == ("made-up-0", "0")
    assert names.label("apache-kafka-java", "3.7.0") == ("apache-kafka-java", "3.7.0")


def test_what_an_operator_should_look_at_is_counted() -> None:
    metrics = _Taking()
    metrics.take(BadClientBytes(route="a", client="127.0.0.1:5", reason="TLS"))

    assert _value(_samples(metrics), "faults_total", route="a", kind="bad_client_bytes") == 1


def _of_topics(topics: bool | Sequence[str]) -> Samples:
    known = cluster("k", 3, 1.5)
    metrics = _Taking([], known, topics=topics)
    for number in range(1200):
        known.view.topics.adopt(f"t{number}", b"")
        answered = dataclasses.replace(ANSWERED, topic=f"t{number}")
        metrics.take(HintGiven(answered=answered, leader=2, epoch=2))
        metrics.take(HintMissed(answered=answered, reason="no_leader"))
        metrics.take(dataclasses.replace(MOVED, topic=f"t{number}"))
    return _topic_samples(metrics)


def _topic_samples(metrics: Metrics) -> Samples:
    return {key: n for key, n in _samples(metrics).items() if key[0].startswith(_TOPICS)}


_TOPICS = "leader_hints_topic_"


def test_topics_are_no_labels_unless_they_are_asked_for() -> None:
    assert _of_topics(False) == {}
    assert _of_topics(()) == {}


def test_topics_that_are_asked_for_are_counted() -> None:
    samples = _of_topics(["t7", "t9"])

    assert len(samples) == 6
    assert _value(samples, "topic_hints_given_total", topic="t7", api="Produce") == 1
    missed = {"topic": "t9", "api": "Produce", "reason": "no_leader"}
    assert _value(samples, "topic_hints_missed_total", **missed) == 1
    assert _value(samples, "topic_leader_moves_total", topic="t9", cluster="k") == 1


def test_all_topics_are_counted_up_to_a_bound() -> None:
    samples = _of_topics(True)

    assert len(samples) == 3 * 1001
    assert _value(samples, "topic_leader_moves_total", topic="other", cluster="k") == 200


def test_topics_that_are_deleted_are_forgotten_and_make_room() -> None:
    known = cluster("k", 3, 1.5)
    metrics = _Taking([], known, topics=True)
    for topic in ("t", "hidden"):
        metrics.take(
            HintMissed(answered=dataclasses.replace(ANSWERED, topic=topic), reason="no_leader")
        )
    metrics.take(HintGiven(answered=dataclasses.replace(ANSWERED, topic="t"), leader=2, epoch=2))
    metrics.take(dataclasses.replace(MOVED, topic="t"))
    assert len(_topic_samples(metrics)) == 4

    for _ in range(2):
        list(known.view.topics.forget_absent([]))
    samples = _topic_samples(metrics)

    assert {dict(labels)["topic"] for _, labels in samples} == {"hidden"}
    assert len(samples) == 1
    assert not metrics.counts.by_topic.given["t", "Produce"]


def test_topics_that_come_and_go_between_two_scrapes_make_room() -> None:
    """After 1000 of them every other topic was counted as "other" for good."""
    known = cluster("k", 3, 1.5)
    metrics = _Taking([], known, topics=True)
    for number in range(1100):
        metrics.take(dataclasses.replace(MOVED, topic=f"t{number}"))
    assert {dict(labels)["topic"] for _, labels in _topic_samples(metrics)} == {"other"}
    metrics.take(dataclasses.replace(MOVED, topic="t"))
    labels = {dict(labels)["topic"] for _, labels in _topic_samples(metrics)}
    assert labels == {"other", "t"}


def test_topics_that_had_errors_and_no_hints_make_room_once_they_are_deleted() -> None:
    """1000 of them that were deleted before the next scrape kept their labels for good."""
    known = cluster("k", 3, 1.5)
    metrics = _Taking([], known, topics=True)
    metrics.counts.by_topic.is_known = lambda route, topic: topic in known.view.topics.names
    for number in range(1100):
        known.view.topics.adopt(f"t{number}", b"")
        answered = dataclasses.replace(ANSWERED, topic=f"t{number}")
        metrics.take(HintMissed(answered=answered, reason="not_usable_by_client"))
    for _ in range(2):
        list(known.view.topics.forget_absent([]))
    assert {dict(labels)["topic"] for _, labels in _topic_samples(metrics)} == {"other"}


@pytest.mark.parametrize("end", ["\u2028", "\x85", "\v", "\f", "\x1c", "\r"])
def test_a_label_may_have_what_python_takes_for_the_end_of_a_line(end: str) -> None:
    """Of the later parts of a metric what followed was left out where it began with a #."""
    route, racks = Route("a", Mode.ON, RouteConfig(closest_replica=Mode.ON)), range(200)
    for number in racks:
        route.rack_traffic.read[f"{end}#{number}", f"#{end}#"] = number
    body, _ = _rendered(_Taking([route]), _OPENMETRICS)
    found = {family.name: family for family in openmetrics_families(body.decode())}  # type: ignore[no-untyped-call]
    read = found["leader_hints_consumer_bytes"].samples
    assert {(one.labels["broker_rack"], one.value) for one in read} == {
        (f"{end}#{number}", number) for number in racks
    }


def _everything() -> Metrics:
    """Metrics with a sample of every family."""
    route = Route("a", Mode.ON, RouteConfig(closest_replica=Mode.ON))
    route.rack_traffic.read["x", "y"] = route.rack_traffic.avoidable["x", "y"] = 1
    cell = route.traffic.cell(0, 10, 9)
    cell.requests = cell.responses = route.traffic.raw["budget"] = 1
    known = cluster("k", 3, 1.5)
    for topic in (ANSWERED.topic, MOVED.topic):
        known.view.topics.adopt(str(topic), b"")
    metrics = _Taking([route], known, topics=True)
    metrics.take(HintGiven(answered=ANSWERED, leader=2, epoch=2))
    metrics.take(HintMissed(answered=ANSWERED, reason="no_leader", settling="settled"))
    metrics.take(MOVED)
    metrics.take(_recovered(30.0))
    metrics.take(_seen("kgo", "v1.18.0"))
    metrics.take(BadClientBytes(route="a", client="127.0.0.1:5", reason="TLS"))
    metrics.take(LimitReached(route="a", limit="idle_ms", client="127.0.0.1:5"))
    metrics.refreshed("poll", 0.01)
    metrics.count_journal(JournalCounters())
    return metrics


def test_every_metric_is_as_the_table_says() -> None:
    body, _ = _rendered(_everything(), _OPENMETRICS)
    found = {
        family.name: family
        for family in openmetrics_families(body.decode())  # type: ignore[no-untyped-call]
        if family.name.startswith("leader_hints_")
    }

    assert {f"leader_hints_{name}" for name in FAMILIES} == set(found)
    for name, expected in FAMILIES.items():
        family = found[f"leader_hints_{name}"]
        assert (family.type, family.documentation) == (expected.type, expected.text)
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert labels == set(expected.labels), name
        if expected.type != "histogram":
            assert {sample.name for sample in family.samples} - {
                f"leader_hints_{name}_created"
            } == {expected.full_name}


def test_prometheus_finds_nothing_to_fix() -> None:
    promtool = shutil.which("promtool")
    if promtool is None and os.environ.get("CI") != "true":
        pytest.skip("no promtool: install Debian's package prometheus")
    assert promtool is not None
    body, _ = _rendered(_everything(), "")

    done = subprocess.run(
        [promtool, "check", "metrics"], input=body, capture_output=True, timeout=30, check=False
    )

    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (0, "", "")


@pytest.mark.parametrize("accept", ["", _OPENMETRICS])
def test_metrics_of_many_routes_are_made_in_short_steps(accept: str) -> None:
    """All of it took 33 ms for 100 routes, and 99 for 300, in which no link was served."""
    most = []
    for count in (20, 100):
        routes = [Route(f"route {number}", Mode.ON) for number in range(count)]
        metrics = _Taking(routes)
        for route in routes:
            answered = dataclasses.replace(ANSWERED, route=route.name)
            metrics.take(HintGiven(answered=answered, leader=2, epoch=2))
            for api in ("Produce", "Fetch"):
                metrics.take(dataclasses.replace(_recovered(30.0), route=route.name, api=api))
        pieces, _ = metrics.render(accept, metrics.read_process())
        most.append(most_lines(pieces))
    assert most[1] < 1.3 * most[0] < 40_000


def test_what_links_await_is_added_up_in_several_steps() -> None:
    steps: list[int] = []
    made = 0

    def counting() -> Iterator[int]:
        for _ in range(3):
            steps.append(made)
            yield 7

    load = Load(tasks=1, exchanges=counting(), held=0, kept_bytes=0, queued_bytes=0)
    metrics = Metrics(dataclasses.replace(watched(), load=lambda: load))
    pieces, _ = metrics.render("", metrics.read_process())
    page = b""
    for piece in pieces:
        made += 1
        page += piece
    assert len(set(steps)) == 3
    assert page.count(b"# TYPE leader_hints_exchanges gauge") == 1
    assert b"\nleader_hints_exchanges 21.0\n" in page


def test_parts_make_the_same_exposition_as_the_library_makes_of_whole_families() -> None:
    routes = [Route(f"route {number}", Mode.ON) for number in range(30)]
    metrics = _Taking(routes)
    for route in routes:
        metrics.take(
            HintGiven(answered=dataclasses.replace(ANSWERED, route=route.name), leader=2, epoch=2)
        )
    plain, _ = _rendered(metrics, "")
    openmetrics, _ = _rendered(metrics, _OPENMETRICS)
    for body in (plain, openmetrics):
        headers = [line for line in body.decode().splitlines() if line.startswith("# TYPE")]
        assert len(headers) == len({*headers})
    assert _value(_samples(metrics), "hold_seconds_count", route="route 29") == 1
    created = plain.decode().partition("# TYPE leader_hints_hold_seconds_created gauge\n")[2]
    assert created.startswith('leader_hints_hold_seconds_created{route="route 0"}')
