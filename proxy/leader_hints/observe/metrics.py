"""Counts and events as Prometheus metrics.

What is counted is read when metrics are asked for, and costs the data path no more than the
counting. What happens rarely is there from the start, as 0. Label sets are bounded: no client or
link is ever a label, a topic only where a setting asks for it.
"""

import platform
from collections import Counter as Tallies
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.samples import Sample

from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.core.events import Event, HintGiven, HintMissed, Recovered
from leader_hints.core.hints.miss_reason import MissReason, Settling
from leader_hints.core.mode import Mode
from leader_hints.core.replicas.closest_replica import Outcome
from leader_hints.observe.counts import FAULTS
from leader_hints.observe.journal import JournalCounters
from leader_hints.observe.metric_families import FAMILIES, PREFIX
from leader_hints.observe.processes import Processes
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

_K = TypeVar("_K", bound=Hashable)

OPENMETRICS = "application/openmetrics-text"
#: The last line of that format.
_EOF = "# EOF\n"
#: Samples that are read and encoded in one step, some 10 to 20 microseconds each.
_AT_ONCE = 50


def format_for(accept: str) -> str:
    """Return what of an HTTP Accept header decides: ``OPENMETRICS``, or "" for plain text."""
    return OPENMETRICS if OPENMETRICS in accept else ""


class Metrics:
    """All metrics of a process, made of what is ``watched`` and of events.

    ``workers``: the numbers of its worker processes.
    """

    def __init__(self, watched: Watched, workers: Callable[[], Iterable[int]] = lambda: ()) -> None:
        self._read = _Read(watched)
        self._workers = workers
        self._journalled: list[_Journalled] = []
        self._processes = Processes()
        self._held = _Times("hold_seconds", _HOLD_BUCKETS)
        self._recovered = _Times("recovery_seconds", _RECOVERY_BUCKETS)
        self._refreshed = _Times("refresh_seconds", _REFRESH_BUCKETS)

    def take(self, event: Event) -> None:
        """Measure ``event``."""
        if isinstance(event, _Answered):
            answered = event.answered
            if not answered.observed:
                self._held.of(answered.route).observe(answered.hold_ms / 1000)
        elif isinstance(event, Recovered) and event.recovery_ms is not None:
            hinted = "true" if event.hinted else "false"
            recovered = self._recovered.of(event.route, event.api, hinted)
            recovered.observe(event.recovery_ms / 1000)

    def refreshed(self, cause: str, seconds: float) -> None:
        """Measure a question that a broker has answered."""
        self._refreshed.of(cause).observe(seconds)

    def count_journal(self, counters: JournalCounters) -> None:
        """Show what ``counters`` counts as well."""
        self._journalled.append(_Journalled(counters))

    def read_process(self) -> list[Metric]:
        """Read what the system knows of the process; it may be called in any thread.

        It lists all descriptors, of which each takes a microsecond.
        """
        return self._processes.collect([*self._workers()])

    def render(self, accept: str, process: Iterable[Metric]) -> tuple[Iterator[bytes], str]:
        """Return the exposition and its content type for an HTTP Accept header.

        ``process``: see :meth:`read_process`. The exposition is made piece by piece: all of it may
        take a tenth of a second.
        """
        # Not the header itself: the library raises on a version in it that is no number, and
        # would rename the metrics where it asks for that.
        encode, content_type = choose_encoder(format_for(accept))
        is_plain = not content_type.startswith(OPENMETRICS)
        return _encoded(encode, self._families(process, created_apart=is_plain)), content_type

    def _families(self, process: Iterable[Metric], *, created_apart: bool) -> Iterator[Metric]:
        yield from self._read.collect()
        yield from process
        for times in (self._held, self._recovered, self._refreshed):
            yield from times.collect(created_apart=created_apart)
        for journalled in self._journalled:
            yield from journalled.collect()


class _One:
    """A collector of the library that has one metric, or a part of one, at a time."""

    def __init__(self) -> None:
        self.metric: Metric | None = None

    def describe(self) -> Iterable[Metric]:
        """Say no name: the registry would keep it from others, of which there are none."""
        return ()

    def collect(self) -> Iterable[Metric]:
        return () if self.metric is None else (self.metric,)


def _encoded(
    encode: Callable[[CollectorRegistry], bytes], families: Iterable[Metric]
) -> Iterator[bytes]:
    """Encode families, of which each may come in parts."""
    before = end = ""
    one, registry = _One(), CollectorRegistry()
    registry.register(one)
    for metric in families:
        one.metric = metric
        # Only there do lines end: in a label may stand what Python takes for an end as well.
        lines = [f"{line}\n" for line in encode(registry).decode().split("\n")[:-1]]
        if lines[-1] == _EOF:
            end = lines.pop()
        begun = metric.name == before
        yield "".join(line for line in lines if not (begun and line.startswith("#"))).encode()
        before = metric.name
    yield end.encode()


class _Times:
    """A histogram whose children are collected one by one: a route may have several."""

    def __init__(self, name: str, buckets: tuple[float, ...]) -> None:
        self._family = FAMILIES[name]
        self._buckets = buckets
        #: To find a label's series in the library again takes longer than to count in it.
        self._children: dict[tuple[str, ...], tuple[Histogram, Histogram]] = {}

    def of(self, *labels: str) -> Histogram:
        """Return where times with these labels are counted."""
        known = self._children.get(labels)
        if known is None:
            family = self._family
            alone = Histogram(
                family.full_name,
                family.text,
                family.labels,
                buckets=self._buckets,
                registry=None,
            )
            known = self._children[labels] = alone, alone.labels(*labels)
        return known[1]

    def collect(self, *, created_apart: bool) -> Iterator[Metric]:
        """Iterate over the parts of the family.

        ``created_apart``: the times of creation are a family of their own, as in plain text.
        """
        family = self._family
        created = f"{family.full_name}_created"
        begun: list[Sample] = []
        yield Metric(family.full_name, family.text, "histogram")
        for alone, _ in [*self._children.values()]:
            for metric in alone.collect():
                if created_apart:
                    begun += [sample for sample in metric.samples if sample.name == created]
                    metric.samples = [s for s in metric.samples if s.name != created]
                yield metric
        for at in range(0, len(begun), _AT_ONCE):
            metric = Metric(created, family.text, "gauge")
            metric.samples = begun[at : at + _AT_ONCE]
            yield metric


class _Read:
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
        yield from _family(
            "certificates_unusable",
            ((of, tuple(of) in counts.unusable) for *of, _ in certificates),
        )
        yield from _family(
            "certificate_expiry_timestamp_seconds",
            ((of, at) for *of, at in certificates if at is not None),
        )
        yield from _family("limits_reached", [*counts.limits.items()])
        yield from _family("loop_stalls", [((), counts.stalls)])
        defects = _from_zero(_DEFECTS, counts.defects)
        yield from _family("defects", (((task,), n) for task, n in defects))
        yield from _family("workers", [((), watched.workers())])
        yield from _family("worker_ends", [((), counts.worker_ends)])
        load = watched.load()
        yield from _family("tasks", [((), load.tasks)])
        yield from _exchanges(load.exchanges)
        yield from _family("held_responses", [((), load.held)])
        yield from _family("kept_bytes", [((), load.kept_bytes)])
        yield from _family("queued_bytes", [((), load.queued_bytes)])
        clusters = [*watched.clusters()]
        names = [route.name for route in watched.routes]
        looking = [(r.name, r.mode) for r in watched.routes if r.mode is not Mode.OFF]
        errors = ((name, api, code) for name, _ in looking for api in _HINTED for code in _ERRORS)
        yield from _family("errors_seen", _from_zero(errors, counts.errors))
        hints = [(name, api, mode) for name, mode in looking for api in _HINTED]
        yield from _family("hints_given", _from_zero(hints, counts.given))
        missed = ((*cell, reason) for cell in hints for reason in MissReason)
        yield from _family("hints_missed", _from_zero(missed, counts.missed))
        settles = {route.name for route in watched.routes if route.config.settle}
        settled = ((*cell, came) for cell in hints if cell[0] in settles for came in Settling)
        yield from _family("errors_settled", _from_zero(settled, counts.settled))
        yield from self._of_racks()
        known = [view.cluster_id for view, _ in clusters]
        moves = _from_zero(known, counts.moves)
        yield from _family("leader_moves", (((cluster,), n) for cluster, n in moves))
        rises = _from_zero(known, counts.epoch_rises)
        yield from _family("epoch_rises", (((cluster,), n) for cluster, n in rises))
        yield from _family("clients_seen", [*counts.clients.items()])
        yield from _family("clients_using_hints", [*counts.using.items()])
        faults = ((name, kind) for name in names for kind in FAULTS.values())
        yield from _family("faults", _from_zero(faults, counts.faults))
        yield from _family("partitions", (((view.cluster_id,), len(view)) for view, _ in clusters))
        yield from _family(
            "topics", (((view.cluster_id,), len(view.topics.names)) for view, _ in clusters)
        )
        yield from _family(
            "view_age_seconds", (((view.cluster_id,), age) for view, age in clusters)
        )
        if by_topic := counts.by_topic:
            by_topic.forget_deleted([view.topics.names for view, _ in clusters])
            yield from _family("topic_hints_given", [*by_topic.given.items()])
            yield from _family("topic_hints_missed", [*by_topic.missed.items()])
            yield from _family("topic_leader_moves", [*by_topic.moves.items()])

    def _of_racks(self) -> Iterator[Metric]:
        """What consumers read across racks, of routes that look at that."""
        looking = [
            (route.name, route.rack_traffic)
            for route in self._watched.routes
            if route.config.closest_replica is not Mode.OFF
        ]
        if not looking:
            return
        yield from _family(
            "consumer_bytes",
            (
                ((name, *racks, "same" if racks[0] == racks[1] else "crossing"), size)
                for name, traffic in looking
                for racks, size in [*traffic.read.items()]
            ),
        )
        yield from _family(
            "consumer_bytes_avoidable",
            (
                ((name, *racks), size)
                for name, traffic in looking
                for racks, size in [*traffic.avoidable.items()]
            ),
        )
        outcomes = ((name, outcome) for name, _ in looking for outcome in Outcome)
        counted = {
            (name, outcome): n
            for name, traffic in looking
            for outcome, n in traffic.outcomes.items()
        }
        yield from _family("closest_replica_partitions", _from_zero(outcomes, counted))

    def _of_routes(self) -> Iterator[Metric]:
        routes = [*self._watched.routes]
        traffic_by_route = [(route.name, route.traffic) for route in routes]
        yield from _family(
            "links_open", (((name,), traffic.links_open) for name, traffic in traffic_by_route)
        )
        yield from _family(
            "links", (((name,), traffic.links) for name, traffic in traffic_by_route)
        )
        yield from _family(
            "bytes",
            (
                ((name, direction), size)
                for name, traffic in traffic_by_route
                for direction, size in (("up", traffic.up), ("down", traffic.down))
            ),
        )
        yield from _family(
            "requests",
            (
                ((name, *cell), n)
                for name, t in traffic_by_route
                for cell, n in _named(t.requests).items()
            ),
        )
        yield from _family(
            "responses",
            (
                ((name, *cell), n)
                for name, t in traffic_by_route
                for cell, n in _named(t.responses).items()
            ),
        )
        yield from _family(
            "passed_raw",
            (
                ((name, reason), n)
                for name, traffic in traffic_by_route
                for reason, n in [*traffic.raw.items()]
            ),
        )
        yield from _family(
            "hints_mode",
            (((route.name, mode), route.mode is mode) for route in routes for mode in Mode),
        )
        known = ((route.name, self._watched.upstream(route).answers) for route in routes)
        yield from _family("upstream_up", (((name,), up) for name, up in known if up is not None))
        yield from _family(
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


class _Journalled:
    """Reads the journal's counters when it is asked."""

    def __init__(self, counters: JournalCounters) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        yield from _family("journal_written", [((), self._counters.written)])
        yield from _family("journal_dropped", [((), self._counters.dropped)])


def _family(name: str, samples: Iterable[tuple[Iterable[str], float]]) -> Iterator[Metric]:
    """Make a family in parts; ``samples`` may be read long after it has begun."""
    family = FAMILIES[name]
    make = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
    left, begun = iter(samples), False
    while (some := [*islice(left, _AT_ONCE)]) or not begun:
        begun = True
        metric = make(f"{PREFIX}{name}", family.text, labels=family.labels)
        for labels, value in some:
            metric.add_metric([*labels], value)
        yield metric


def _exchanges(parts: Iterable[int]) -> Iterator[Metric]:
    """Add up what links await, a part in each step."""
    exchanges = 0
    for some in parts:
        exchanges += some
        yield from _family("exchanges", ())
    yield from _family("exchanges", [((), exchanges)])


def _from_zero(cells: Iterable[_K], counted: Mapping[_K, int]) -> Iterator[tuple[_K, int]]:
    """What was counted, and 0 in ``cells`` where nothing was: Prometheus sees a counter rise only
    where it was there before, and all of these are rare."""
    others = {**counted}
    for cell in cells:
        yield cell, others.pop(cell, 0)
    yield from others.items()


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
