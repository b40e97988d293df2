"""Counts and events as Prometheus metrics.

What is counted is read when metrics are asked for, and costs the data path no more than the
counting. What happens rarely is there from the start, as 0. Label sets are bounded: no client or
link is ever a label, a topic only where a setting asks for it.
"""

import platform
from collections import Counter as Tallies
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.core.events import Event, HintGiven, HintMissed, Recovered
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.mode import Mode
from leader_hints.observe.counts import FAULTS
from leader_hints.observe.journal import JournalCounters
from leader_hints.observe.metric_families import FAMILIES, PREFIX
from leader_hints.observe.watched import Watched

#: Seconds. Holds are a few milliseconds where Metadata lags the error, and bounded by rule.
_HOLD_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
#: Seconds. Back-offs of clients are 100 ms and more; elections may take long.
_RECOVERY_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
#: Seconds. An answer is awaited for two, by default.
_REFRESH_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

#: What a hint can answer, as labels.
_HINTED = (api_name(ApiKey.PRODUCE), api_name(ApiKey.FETCH))
_ERRORS = tuple(str(int(code)) for code in sorted(HINTABLE))

#: What a defect can end, as labels; other tasks come when they have failed.
_DEFECTS = ("admin", "connection", "link", "subscription")

_Answered = HintGiven | HintMissed

_K = TypeVar("_K")

_OPENMETRICS = "application/openmetrics-text"


class Metrics:
    """All metrics of a process, made of what is ``watched`` and of events."""

    def __init__(self, watched: Watched) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Read(watched))
        ProcessCollector(registry=self._registry)
        self._held = self._histogram("hold_seconds", _HOLD_BUCKETS)
        self._held_of: dict[str, Histogram] = {}
        self._recovered = self._histogram("recovery_seconds", _RECOVERY_BUCKETS)
        self._refreshed = self._histogram("refresh_seconds", _REFRESH_BUCKETS)

    def _histogram(self, name: str, buckets: tuple[float, ...]) -> Histogram:
        family = FAMILIES[name]
        return Histogram(
            family.full_name, family.text, family.labels, buckets=buckets, registry=self._registry
        )

    def take(self, event: Event) -> None:
        """Measure ``event``."""
        if isinstance(event, _Answered):
            answered = event.answered
            if not answered.observed:
                self._holds_of(answered.route).observe(answered.hold_ms / 1000)
        elif isinstance(event, Recovered) and event.recovery_ms is not None:
            hinted = "true" if event.hinted else "false"
            recovered = self._recovered.labels(event.route, event.api, hinted)
            recovered.observe(event.recovery_ms / 1000)

    def _holds_of(self, route: str) -> Histogram:
        # To find a label's series again takes longer than to count in it.
        held = self._held_of.get(route)
        if held is None:
            held = self._held_of[route] = self._held.labels(route)
        return held

    def refreshed(self, cause: str, seconds: float) -> None:
        """Measure a question that a broker has answered."""
        self._refreshed.labels(cause).observe(seconds)

    def count_journal(self, counters: JournalCounters) -> None:
        """Show what ``counters`` counts as well."""
        self._registry.register(_Journalled(counters))

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the exposition and its content type for an HTTP Accept header."""
        # Not the header itself: the library raises on a version in it that is no number, and
        # would rename the metrics where it asks for that.
        encode, content_type = choose_encoder(_OPENMETRICS if _OPENMETRICS in accept else "")
        return encode(self._registry), content_type


class _Read(Collector):
    """Reads what is watched when it is asked."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def collect(self) -> Iterator[Metric]:
        watched, counts = self._watched, self._watched.counts
        build = InfoMetricFamily(f"{PREFIX}build", FAMILIES["build"].text)
        build.add_metric((), {"version": watched.release, "python": platform.python_version()})
        yield build
        yield from self._of_routes()
        certificates = [*watched.certificates()]
        yield _family(
            "certificates_unusable",
            ((of, tuple(of) in counts.unusable) for *of, _ in certificates),
        )
        yield _family(
            "certificate_expiry_timestamp_seconds",
            ((of, at) for *of, at in certificates if at is not None),
        )
        yield _family("limits_reached", counts.limits.items())
        yield _family("loop_stalls", [((), counts.stalls)])
        defects = _from_zero(_DEFECTS, counts.defects)
        yield _family("defects", (((task,), n) for task, n in defects.items()))
        load = watched.load()
        yield _family("tasks", [((), load.tasks)])
        yield _family("exchanges", [((), load.exchanges)])
        yield _family("held_responses", [((), load.held)])
        yield _family("kept_bytes", [((), load.kept_bytes)])
        yield _family("queued_bytes", [((), load.queued_bytes)])
        clusters = [*watched.clusters()]
        looking = [(r.name, r.mode) for r in watched.routes if r.mode is not Mode.OFF]
        errors = [(name, api, code) for name, _ in looking for api in _HINTED for code in _ERRORS]
        yield _family("errors_seen", _from_zero(errors, counts.errors).items())
        hints = [(name, api, mode) for name, mode in looking for api in _HINTED]
        yield _family("hints_given", _from_zero(hints, counts.given).items())
        missed = [(*cell, reason) for cell in hints for reason in MissReason]
        yield _family("hints_missed", _from_zero(missed, counts.missed).items())
        known = [view.cluster_id for view, _ in clusters]
        moves = _from_zero(known, counts.moves).items()
        yield _family("leader_moves", (((cluster,), n) for cluster, n in moves))
        yield _family("clients_seen", counts.clients.items())
        yield _family("clients_using_hints", counts.using.items())
        faults = [(route.name, kind) for route in watched.routes for kind in FAULTS.values()]
        yield _family("faults", _from_zero(faults, counts.faults).items())
        yield _family("partitions", (((view.cluster_id,), len(view)) for view, _ in clusters))
        yield _family(
            "topics", (((view.cluster_id,), len(view.topics.names)) for view, _ in clusters)
        )
        yield _family("view_age_seconds", (((view.cluster_id,), age) for view, age in clusters))
        if by_topic := counts.by_topic:
            by_topic.forget_deleted(
                lambda topic: any(topic in view.topics.names for view, _ in clusters)
            )
            yield _family("topic_hints_given", by_topic.given.items())
            yield _family("topic_hints_missed", by_topic.missed.items())
            yield _family("topic_leader_moves", by_topic.moves.items())

    def _of_routes(self) -> Iterator[Metric]:
        routes = self._watched.routes
        traffic_by_route = [(route.name, route.traffic) for route in routes]
        yield _family(
            "links_open", (((name,), traffic.links_open) for name, traffic in traffic_by_route)
        )
        yield _family("links", (((name,), traffic.links) for name, traffic in traffic_by_route))
        yield _family(
            "bytes",
            (
                ((name, direction), size)
                for name, traffic in traffic_by_route
                for direction, size in (("up", traffic.up), ("down", traffic.down))
            ),
        )
        yield _family(
            "requests",
            (
                ((name, *cell), n)
                for name, t in traffic_by_route
                for cell, n in _named(t.requests).items()
            ),
        )
        yield _family(
            "responses",
            (
                ((name, *cell), n)
                for name, t in traffic_by_route
                for cell, n in _named(t.responses).items()
            ),
        )
        yield _family(
            "passed_raw",
            (
                ((name, reason), n)
                for name, traffic in traffic_by_route
                for reason, n in traffic.raw.items()
            ),
        )
        yield _family(
            "hints_mode",
            (((route.name, mode), route.mode is mode) for route in routes for mode in Mode),
        )
        known = ((route.name, self._watched.upstream(route).answers) for route in routes)
        yield _family("upstream_up", (((name,), up) for name, up in known if up is not None))
        yield _family(
            "advertised_wrong",
            (
                ((route.name, how), wrong)
                for route in routes
                for how, wrong in (
                    ("crossed", bool(route.advertised.crossed)),
                    ("past", route.advertised.past),
                )
            ),
        )


class _Journalled(Collector):
    """Reads the journal's counters when it is asked."""

    def __init__(self, counters: JournalCounters) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        yield _family("journal_written", [((), self._counters.written)])
        yield _family("journal_dropped", [((), self._counters.dropped)])


def _family(name: str, samples: Iterable[tuple[Iterable[str], float]]) -> Metric:
    family = FAMILIES[name]
    make = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
    metric = make(f"{PREFIX}{name}", family.text, labels=family.labels)
    for labels, value in samples:
        metric.add_metric([*labels], value)
    return metric


def _from_zero(cells: Iterable[_K], counted: Mapping[_K, int]) -> dict[_K, int]:
    """What was counted, and 0 in ``cells`` where nothing was: Prometheus sees a counter rise only
    where it was there before, and all of these are rare."""
    return {**dict.fromkeys(cells, 0), **counted}


_Cells = Tallies[tuple[int, int, int]] | Tallies[tuple[int, int]]


def _named(cells: _Cells) -> Tallies[tuple[str, ...]]:
    """Sum by names and texts: unknown APIs share one name, and versions that only a broken
    client would ask share one text, so that no client can make labels without bound."""
    named: Tallies[tuple[str, ...]] = Tallies()
    for (key, *versions), count in cells.items():
        named[api_name(key), *map(_version, versions)] += count
    return named


def _version(number: int) -> str:
    return str(number) if 0 <= number < 32 else "other"
