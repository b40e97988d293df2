"""Counts and events as Prometheus metrics, read back with Prometheus's own parsers."""

import dataclasses

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

from proxy.core.events import ErrorAnswered, HintGiven, HintMissed, LeaderMoved, Listening
from proxy.core.mode import Mode
from proxy.core.route import Route
from proxy.observe.journal import JournalTally
from proxy.observe.metrics import Metrics

_OPENMETRICS = "application/openmetrics-text"
_ANSWERED = ErrorAnswered(
    route="a",
    link=7,
    client_id="a client",
    software="lib/1.2",
    api="Produce",
    version=10,
    topic="a topic",
    partition=3,
    error=6,
    client_epoch=-1,
    hold_ms=4.0,
    observed=False,
)
_MOVED = LeaderMoved(
    cluster="k", topic="t", partition=0, leader_before=1, epoch_before=1, leader=2, epoch=2
)

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _samples(metrics: Metrics, accept: str = "") -> Samples:
    body, content_type = metrics.render(accept)
    parse = openmetrics_families if content_type.startswith(_OPENMETRICS) else text_families
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(body.decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def _value(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"leader_hints_{name}", tuple(sorted(labels.items()))]


def _counted() -> Metrics:
    """Metrics of two routes that differ in every count."""
    first, second = Route("a", Mode.ON), Route("b", Mode.OFF)
    first.tally.links, first.tally.links_open = 5, 2
    first.tally.up, first.tally.down = 100, 200
    for place, count in {(0, 10, 9): 3, (1, 16, 15): 4, (1, 12, 12): 1}.items():
        first.tally.cell(*place).requests = count
    first.tally.raw["budget"] = 6
    second.tally.links = 1
    return Metrics([first, second])


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
    assert _value(samples, "passed_raw_total", route="a", reason="budget") == 6


def test_hints_given_and_missed_count_their_error_and_hold() -> None:
    metrics = Metrics([])
    metrics.take(HintGiven(answered=_ANSWERED, leader=2, epoch=2))
    fenced = dataclasses.replace(_ANSWERED, api="Fetch", error=74, hold_ms=100.0)
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


def test_what_is_only_observed_is_told_apart_and_held_nothing_back() -> None:
    metrics = Metrics([])
    observed = dataclasses.replace(_ANSWERED, observed=True, hold_ms=7.0)
    metrics.take(HintGiven(answered=observed, leader=2, epoch=2))
    metrics.take(HintMissed(answered=observed, reason="no_leader"))
    samples = _samples(metrics)

    assert _value(samples, "hints_given_total", route="a", api="Produce", mode="observe") == 1
    missed = {"api": "Produce", "mode": "observe", "reason": "no_leader"}
    assert _value(samples, "hints_missed_total", route="a", **missed) == 1
    assert not any(name.startswith("leader_hints_hold") for name, _ in samples)


def test_leader_moves_are_counted_by_cluster_and_other_events_not_at_all() -> None:
    metrics = Metrics([])
    metrics.take(_MOVED)
    metrics.take(Listening(route="a", listen="l:1", upstream="u:1"))

    assert _samples(metrics) == {("leader_hints_leader_moves_total", (("cluster", "k"),)): 1}


def test_no_client_topic_or_link_is_a_label() -> None:
    metrics = Metrics([])
    metrics.take(HintGiven(answered=_ANSWERED, leader=2, epoch=2))
    body, _ = metrics.render("")

    assert b"a client" not in body
    assert b"a topic" not in body


def test_a_client_cannot_make_labels_without_bound() -> None:
    route = Route("a", Mode.ON)
    for key in range(-50, 700):
        for version in (-7, 3, 31, 32, 999):
            route.tally.cell(key, version, version).requests += 1
    samples = _samples(Metrics([route]))

    apis = {dict(labels)["api"] for name, labels in samples if "requests" in name}
    versions = {dict(labels)["asked"] for name, labels in samples if "requests" in name}
    assert len(apis) < 100
    assert versions == {"3", "31", "other"}
    unknown = _value(samples, "requests_total", route="a", api="other", asked="3", sent="3")
    assert unknown == 750 - len(apis - {"other"})


def test_openmetrics_is_given_to_those_who_accept_it() -> None:
    metrics = _counted()
    _, plain = metrics.render("text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
    body, openmetrics = metrics.render(f"{_OPENMETRICS};version=1.0.0;q=0.8,text/plain;q=0.5")

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
    metrics, tally = Metrics([]), JournalTally()
    metrics.count_journal(tally)
    tally.written, tally.dropped = 7, 3
    samples = _samples(metrics, _OPENMETRICS)

    assert _value(samples, "journal_written_total") == 7
    assert _value(samples, "journal_dropped_total") == 3


def test_without_a_journal_there_are_no_counts_of_it() -> None:
    assert not any("journal" in name for name, _ in _samples(_counted()))
