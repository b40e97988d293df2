"""The status of a process as one JSON document, for its page and for programs.

The models are the format: `leader-hints status-schema` prints their JSON schema. Members may be
added; ``format`` rises only where one changes its meaning or goes away.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from leader_hints.apis.keys import api_name
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.observe import history
from leader_hints.observe.counts import Counts
from leader_hints.observe.history import SLOT, SPAN, History
from leader_hints.observe.watched import Watched

FORMAT: Final = 1

Count = int
UnixTime = float


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Percentiles(_Model):
    """Of the newest times of the last hour, at most 1000; milliseconds."""

    count: Count = Field(ge=1, description="How many times these are of.")
    p50_ms: float = Field(ge=0, description="Median.")
    p90_ms: float = Field(ge=0, description="90th percentile.")
    p99_ms: float = Field(ge=0, description="99th percentile.")
    most_ms: float = Field(ge=0, description="The longest.")


class Recovery(_Model):
    """How long clients took from a partition's first error to its first success."""

    api: str = Field(description="Produce or Fetch.")
    hinted: bool = Field(description="Whether the first error was answered with a hint.")
    times: Percentiles = Field(description="The times.")


class Upstream(_Model):
    """The broker behind a route."""

    address: str = Field(description="HOST:PORT.")
    answers: bool | None = Field(
        description="Whether it answers the proxy's own questions, and takes new connections as "
        "far as clients have tried; null: it is not asked, and no client has failed, or it has "
        "left its cluster (`local`)."
    )
    error: str = Field(
        description="Why it does not answer, or that it has left its cluster; else empty."
    )
    node: int | None = Field(description="Its node id; null: not known yet.")
    cluster: str | None = Field(description="Its cluster's id; null: not known yet.")
    crossed: str = Field(
        description="Why clients of the route meet another broker than they look for; empty where "
        "that is not proved."
    )
    past: bool = Field(
        description="Whether it is proved that the broker is advertised where no proxy is."
    )
    native: bool | None = Field(
        description="Whether it gives hints itself, so that all passes; null: not known yet."
    )
    hints_behind: bool = Field(
        default=False,
        description="Whether it is another proxy of leader-hints, which gives the hints: they "
        "pass, and are counted there.",
    )
    raised: dict[str, tuple[int, int]] = Field(
        description="By API: the broker's newest version, and the one that is offered instead."
    )


class RackBytes(_Model):
    """What consumers in one rack read of the route's broker."""

    broker_rack: str = Field(description="The broker's rack; empty: not known.")
    client_rack: str = Field(description="The consumers'; `other`: no broker's.")
    bytes: Count = Field(ge=0, description="Bytes of Fetch responses to them.")
    avoidable: Count = Field(
        ge=0,
        description="Of these, where it is observed: records that an in-sync replica in their rack "
        "has, too.",
    )


class ClosestReplica(_Model):
    """Consumers that name a rack (setting closest_replica)."""

    mode: Literal["on", "observe", "off"] = Field(description="What is done for them now.")
    racks: list[RackBytes] = Field(description="What they read, by racks.")
    partitions: dict[str, int] = Field(
        description="Partitions that were looked at, by what came of it."
    )


class RouteStatus(_Model):
    """A listening address and the broker behind it. Counts are since the start of the process."""

    # Large because its members are the published format, and its docstring is in the schema.
    name: str = Field(description="As in the settings.")
    listen: str = Field(description="HOST:PORT that is listened on; empty: not yet, or no more.")
    hints: Literal["on", "observe", "off"] = Field(description="What it does about hints now.")
    upstream: Upstream = Field(description="The broker behind it.")
    links_open: Count = Field(ge=0, description="Client connections open now.")
    links: Count = Field(ge=0, description="Client connections opened.")
    bytes_up: Count = Field(ge=0, description="Bytes received from clients.")
    bytes_down: Count = Field(ge=0, description="Bytes received from the broker.")
    requests: Count = Field(ge=0, description="Requests relayed.")
    responses: Count = Field(ge=0, description="Responses relayed, if they can be distinguished.")
    errors: Count = Field(ge=0, description="Failed partitions that a hint can answer.")
    hints_given: Count = Field(ge=0, description="Those answered with a hint.")
    hints_missed: dict[str, int] = Field(description="Those answered without one, by reason.")
    observed_given: Count = Field(ge=0, description="In mode observe: would have got a hint.")
    observed_missed: dict[str, int] = Field(
        description="In mode observe: would have got none, by reason."
    )
    settled: dict[str, int] = Field(
        default_factory=dict,
        description="Of hints_missed: errors that wait for settled Metadata (hold.settle), by what "
        "came of it: settled, or why not.",
    )
    observed_settled: dict[str, int] = Field(
        default_factory=dict, description="In mode observe: what would have come of them."
    )
    hold: Percentiles | None = Field(
        description="How long error responses were held; null: none was."
    )
    recovery: list[Recovery] = Field(description="How long clients took to recover.")
    closest_replica: ClosestReplica | None = Field(
        default=None, description="Consumers that name a rack; null: nothing is done for them."
    )


class ClusterStatus(_Model):
    """What is known of a cluster."""

    id: str = Field(description="Kafka's cluster id.")
    topics: Count = Field(ge=0, description="Topics known.")
    partitions: Count = Field(ge=0, description="Partitions known.")
    age_seconds: float = Field(ge=0, description="Since a poll was last answered.")
    leader_moves: Count = Field(
        ge=0, description="How often a partition got another leader since the start."
    )
    epoch_rises: Count = Field(
        ge=0, description="Leader epochs that rose under the same leader since the start."
    )


class Slot(_Model):
    """What happened in a short time; slots in which nothing happened are left out."""

    start: UnixTime = Field(description="When it began; Unix time in seconds.")
    leader_moves: Count = Field(ge=0, description="How often a partition got another leader.")
    hints_given: Count = Field(ge=0, description="Hints given, or that would have been.")
    hints_missed: Count = Field(ge=0, description="Errors without a hint, or that would have been.")


class Move(_Model):
    """A leader move."""

    at: UnixTime = Field(description="When it was learnt; Unix time in seconds.")
    cluster: str = Field(description="Kafka's cluster id.")
    topic: str = Field(description="The topic's name, as a broker told it.")
    partition: int = Field(description="The partition.")
    leader_before: int = Field(description="Node id, -1: nobody led.")
    leader: int = Field(description="Node id; -1: no leader.")
    epoch: int = Field(description="The new leader epoch.")


class Client(_Model):
    """Client software that connected. Clients that say nothing of themselves are not here."""

    software: str = Field(description="Its name; `other` where it says what no client would.")
    version: str = Field(description="Its version; `other` where there are too many.")
    links: Count = Field(ge=1, description="Connections on which it said so, since the start.")
    last_seen: UnixTime = Field(description="When it last did; Unix time in seconds.")
    uses: list[Literal["produce", "fetch", "fetch_without_endpoints"]] | None = Field(
        description="The hints that it is known to use: only with some is it offered newer "
        "versions than its broker's. An empty list: none; null: its name is not known, or several "
        "versions are counted as one."
    )


class Status(_Model):
    """A process of leader-hints, as it is now."""

    format: Literal[1] = Field(description="The version of this format.")
    release: str = Field(description="The version of leader-hints.")
    now: UnixTime = Field(description="When this was written; Unix time in seconds.")
    started: UnixTime = Field(description="When the process began; Unix time in seconds.")
    workers: Count = Field(
        default=0,
        ge=0,
        description="Worker processes that take clients; 0: the process serves them itself.",
    )
    routes: list[RouteStatus] = Field(description="All routes, as in the settings.")
    clusters: list[ClusterStatus] = Field(description="The clusters of the routes' brokers.")
    span_seconds: int = Field(description="How far back slots and moves go.")
    slot_seconds: int = Field(description="How long a slot is.")
    slots: list[Slot] = Field(description="What happened when, oldest first.")
    moves: list[Move] = Field(description="The newest leader moves, newest first; at most 100.")
    clients: list[Client] = Field(description="Client software seen.")


def schema() -> dict[str, Any]:
    """Return the JSON schema of the status."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **Status.model_json_schema(mode="serialization")}


def route_statuses(
    watched: Watched, past: History, addresses: Mapping[str, tuple[str, str]]
) -> Iterator[RouteStatus]:
    """Iterate over the statuses of all routes: one may take a millisecond.

    ``addresses``: by route name where it listens and where its broker is.
    """
    totals = _Totals(watched.counts)
    for route in [*watched.routes]:
        yield _route(watched, totals, past, route, *addresses[route.name])


def status(
    watched: Watched, past: History, routes: list[RouteStatus], started: float, now: float
) -> Status:
    """Return the status. ``started``, ``now``: Unix time."""
    return Status(
        format=FORMAT,
        release=watched.release,
        now=now,
        started=started,
        workers=watched.workers(),
        routes=routes,
        clusters=_clusters(watched),
        span_seconds=SPAN,
        slot_seconds=SLOT,
        slots=_slots(past),
        moves=_moves(past),
        clients=_clients(watched.counts, past, started),
    )


def _clusters(watched: Watched) -> list[ClusterStatus]:
    return [
        ClusterStatus(
            id=view.cluster_id,
            topics=len(view.topics.names),
            partitions=len(view),
            age_seconds=age,
            leader_moves=watched.counts.moves[view.cluster_id],
            epoch_rises=watched.counts.epoch_rises[view.cluster_id],
        )
        for view, age in watched.clusters()
    ]


def _slots(past: History) -> list[Slot]:
    return [
        Slot(
            start=slot.start,
            leader_moves=slot.moves,
            hints_given=slot.given,
            hints_missed=slot.missed,
        )
        for slot in past.slots()
    ]


def _moves(past: History) -> list[Move]:
    return [
        Move(
            at=at,
            cluster=moved.cluster,
            topic=moved.topic,
            partition=moved.partition,
            leader_before=moved.leader_before,
            leader=moved.leader,
            epoch=moved.epoch,
        )
        for at, moved in past.moves()
    ]


def _clients(counts: Counts, past: History, started: float) -> list[Client]:
    return [
        Client(
            software=software,
            version=version,
            links=links,
            last_seen=past.last_seen((software, version)) or started,
            uses=_uses(counts.uses[software, version]),
        )
        for (software, version), links in sorted(counts.clients.items())
    ]


class _Totals:
    """Counts by route, added up once for all routes: there may be many of both."""

    def __init__(self, counts: Counts) -> None:
        self.errors: Counter[str] = Counter()
        self.given: Counter[tuple[str, str]] = Counter()
        self.missed: dict[tuple[str, str], Counter[str]] = {}
        self.settled: dict[tuple[str, str], Counter[str]] = {}
        for (route, *_), n in counts.errors.items():
            self.errors[route] += n
        for (route, _, mode), n in counts.given.items():
            self.given[route, mode] += n
        for (route, _, mode, reason), n in counts.missed.items():
            self.missed.setdefault((route, mode), Counter())[str(reason)] += n
        for (route, _, mode, outcome), n in counts.settled.items():
            self.settled.setdefault((route, mode), Counter())[str(outcome)] += n


def _route(
    watched: Watched, totals: _Totals, past: History, route: Route, listen: str, upstream: str
) -> RouteStatus:
    traffic, name = route.traffic, route.name
    answers, error = watched.upstream(route)
    plan = route.broker.plan
    return RouteStatus(
        name=name,
        listen=listen,
        hints=route.mode.value,
        upstream=Upstream(
            address=upstream,
            answers=answers,
            error=error,
            node=route.broker.node,
            cluster=route.broker.view.cluster_id if route.broker.view else None,
            crossed=route.advertised.crossed,
            past=route.advertised.past,
            native=plan.native if plan else None,
            hints_behind=name in watched.counts.hints_behind,
            raised={api_name(row.key): (row.takes, row.offered) for row in plan.rows}
            if plan
            else {},
        ),
        links_open=traffic.links_open,
        links=traffic.links,
        bytes_up=traffic.up,
        bytes_down=traffic.down,
        requests=traffic.requests.total(),
        responses=traffic.responses.total(),
        errors=totals.errors[name],
        hints_given=totals.given[name, "on"],
        hints_missed={**totals.missed.get((name, "on"), {})},
        observed_given=totals.given[name, "observe"],
        observed_missed={**totals.missed.get((name, "observe"), {})},
        settled={**totals.settled.get((name, "on"), {})},
        observed_settled={**totals.settled.get((name, "observe"), {})},
        hold=_percentiles(past.holds(name)),
        recovery=[
            Recovery(api=api, hinted=hinted, times=_of(times))
            for api, hinted, times in past.recoveries(name)
        ],
        closest_replica=_closest_replica(route),
    )


def _closest_replica(route: Route) -> ClosestReplica | None:
    if route.config.closest_replica is Mode.OFF:
        return None
    traffic = route.rack_traffic
    return ClosestReplica(
        mode=route.closest_replica.value,
        racks=[
            RackBytes(
                broker_rack=racks[0],
                client_rack=racks[1],
                bytes=size,
                avoidable=traffic.avoidable[racks],
            )
            for racks, size in sorted(traffic.read.items())
        ],
        partitions={**traffic.outcomes},
    )


def _percentiles(times: history.Percentiles | None) -> Percentiles | None:
    return _of(times) if times is not None else None


def _of(times: history.Percentiles) -> Percentiles:
    count, *values = times
    p50, p90, p99, most = (round(value, 3) for value in values)
    return Percentiles(count=count, p50_ms=p50, p90_ms=p90, p99_ms=p99, most_ms=most)


def _uses(uses: tuple[str, ...] | None) -> Any:
    return None if uses is None else [*uses]
