"""Counts and events as Prometheus metrics.

What the data path counts is read when metrics are asked for, and costs it no more than the
counting. Label sets are bounded: no topic, client or link is ever a label.
"""

from collections import Counter as Tallies
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from proxy.apis.keys import api_name
from proxy.core.events import ErrorAnswered, Event, HintGiven, HintMissed, LeaderMoved
from proxy.core.mode import Mode
from proxy.core.route import Route
from proxy.observe.journal import JournalTally

#: Seconds. Holds are a few milliseconds where Metadata lags the error, and bounded by rule.
_HOLD_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)

_OPENMETRICS = "application/openmetrics-text"


class Metrics:
    """All metrics of a process; ``routes`` are those whose tallies are read."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Tallied(routes))
        self._errors = self._counter(
            "errors_seen", "Failed partitions that a hint can answer.", "route", "api", "error"
        )
        self._given = self._counter(
            "hints_given",
            "Failed partitions answered with a hint; in mode observe: that would have been.",
            *("route", "api", "mode"),
        )
        self._missed = self._counter(
            "hints_missed",
            "Failed partitions answered without a hint; in mode observe: that would have been.",
            *("route", "api", "mode", "reason"),
        )
        self._moved = self._counter("leader_moves", "Leader epochs that rose.", "cluster")
        self._held = Histogram(
            "leader_hints_hold_seconds",
            "How long error responses were kept back.",
            ("route",),
            buckets=_HOLD_BUCKETS,
            registry=self._registry,
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"leader_hints_{name}", text, labels, registry=self._registry)

    def take(self, event: Event) -> None:
        """Count ``event``."""
        if isinstance(event, HintGiven):
            answered = self._answered(event.answered)
            self._given.labels(answered.route, answered.api, _mode(answered)).inc()
        elif isinstance(event, HintMissed):
            answered = self._answered(event.answered)
            self._missed.labels(answered.route, answered.api, _mode(answered), event.reason).inc()
        elif isinstance(event, LeaderMoved):
            self._moved.labels(event.cluster).inc()

    def _answered(self, answered: ErrorAnswered) -> ErrorAnswered:
        self._errors.labels(answered.route, answered.api, str(answered.error)).inc()
        if not answered.observed:
            self._held.labels(answered.route).observe(answered.hold_ms / 1000)
        return answered

    def count_journal(self, tally: JournalTally) -> None:
        """Show what ``tally`` counts as well."""
        self._registry.register(_Journalled(tally))

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the exposition and its content type for an HTTP Accept header."""
        # Not the header itself: the library raises on a version in it that is no number, and
        # would rename the metrics where it asks for that.
        encode, content_type = choose_encoder(_OPENMETRICS if _OPENMETRICS in accept else "")
        return encode(self._registry), content_type


class _Tallied(Collector):
    """Reads the routes' tallies when it is asked."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes

    def collect(self) -> Iterator[Metric]:
        links_open = GaugeMetricFamily(
            "leader_hints_links_open", "Links open now.", labels=("route",)
        )
        links = CounterMetricFamily("leader_hints_links", "Links opened.", labels=("route",))
        relayed = CounterMetricFamily(
            "leader_hints_bytes", "Bytes received from that side.", labels=("route", "direction")
        )
        requests = CounterMetricFamily(
            "leader_hints_requests",
            "Requests relayed, by the version asked and the version sent.",
            labels=("route", "api", "asked", "sent"),
        )
        raw = CounterMetricFamily(
            "leader_hints_passed_raw",
            "Messages that passed without being looked at although they should have been.",
            labels=("route", "reason"),
        )
        for route in self._routes:
            tally = route.tally
            links_open.add_metric((route.name,), tally.links_open)
            links.add_metric((route.name,), tally.links)
            relayed.add_metric((route.name, "up"), tally.up)
            relayed.add_metric((route.name, "down"), tally.down)
            for labels, count in _by_name(tally.requests).items():
                requests.add_metric((route.name, *labels), count)
            for reason, count in tally.raw.items():
                raw.add_metric((route.name, reason), count)
        yield from (links_open, links, relayed, requests, raw)


class _Journalled(Collector):
    """Reads the journal's tally when it is asked."""

    def __init__(self, tally: JournalTally) -> None:
        self._tally = tally

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "leader_hints_journal_written",
            "Events of the journal that were written.",
            self._tally.written,
        )
        yield CounterMetricFamily(
            "leader_hints_journal_dropped",
            "Events of the journal that were dropped, since it could not be written fast enough.",
            self._tally.dropped,
        )


def _mode(answered: ErrorAnswered) -> Mode:
    return Mode.OBSERVE if answered.observed else Mode.ON


def _by_name(requests: Tallies[tuple[int, int, int]]) -> Tallies[tuple[str, str, str]]:
    """Sum by names and texts: unknown APIs share one name, and versions that only a broken
    client would ask share one text, so that no client can make labels without bound."""
    named: Tallies[tuple[str, str, str]] = Tallies()
    for (key, asked, sent), count in requests.items():
        named[api_name(key), _version(asked), _version(sent)] += count
    return named


def _version(number: int) -> str:
    return str(number) if 0 <= number < 32 else "other"
