"""What metrics and the status are made of, without a proxy."""

from collections.abc import Sequence

from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import EpochRose, ErrorAnswered, LeaderMoved
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.observe.counts import Counts
from leader_hints.observe.watched import KnownCluster, Load, Upstream, Watched

ANSWERED = ErrorAnswered(
    route="a",
    link=7,
    client_id="client-42",
    software="lib/1.2",
    api="Produce",
    version=10,
    topic="topic-42",
    partition=3,
    error=6,
    client_epoch=-1,
    hold_ms=4.0,
    observed=False,
)
MOVED = LeaderMoved(
    cluster="k", topic="t", partition=0, leader_before=1, epoch_before=1, leader=2, epoch=2
)
ROSE = EpochRose(cluster="k", topic="t", partition=0, leader=2, epoch_before=2, epoch=3)


#: When the certificates of all routes expire.
EXPIRY = 1_900_000_000.0


def watched(
    routes: Sequence[Route] = (), counts: Counts | None = None, *clusters: KnownCluster
) -> Watched:
    """What is watched of ``routes``, whose brokers answer where they are asked."""
    return Watched(
        "1.2.3",
        routes,
        counts or Counts(),
        lambda: clusters,
        lambda route: Upstream(None if route.mode is Mode.OFF else True),
        lambda: Load(tasks=9, exchanges=iter((5, 3)), held=7, kept_bytes=6, queued_bytes=5),
        lambda: [(route.name, "client_tls", EXPIRY) for route in routes],
        lambda: 2,
    )


def cluster(name: str, partitions: int, age: float) -> KnownCluster:
    """A cluster with one topic, which was learnt ``age`` seconds ago."""
    view = LeaderView(name)
    led = tuple(Led(partition, 1, 1) for partition in range(partitions))
    view.learn(TopicMetadata(0, "t", ZERO_ID, led), 1)
    return KnownCluster(view, age)


def many_routes() -> list[Route]:
    """Three hundred, whose clients have asked most versions that there are."""
    routes = [Route(f"r{number}", Mode.ON) for number in range(300)]
    for route in routes:
        for key in range(40):
            for version in range(3):
                cell = route.traffic.cell(key, version, version)
                cell.requests = cell.responses = 2
    return routes
