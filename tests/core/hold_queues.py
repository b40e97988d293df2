"""A hold queue in front of a cluster whose leaders a test moves, with a clock that it sets."""

from collections.abc import Callable, Mapping

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint, Failure, LeaderHint, Scanned
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import Event, HintGiven, HintMissed
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.hold_rules import HoldRules
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.plan import plan_for
from tests.core.rules import DEFAULT_RULES
from tests.core.samples import BROKER_3_6, FENCED, NOT_LEADER
from tests.core.samples import Led as LeaderAndEpoch

#: When the views here learn what they learn.
BEGIN = 10.0
NODES = {node: Endpoint(f"{node}.example", 9090 + node, None) for node in (1, 2, 3)}


def route(
    mode: Mode = Mode.ON,
    *,
    node: int | None = 1,
    name: str = "route",
    clock: Callable[[], float] = lambda: BEGIN,
) -> Route:
    """Return a route before node 1 whose cluster is known, and can be asked."""
    return Route(
        name,
        mode,
        broker=BrokerState(
            plan=plan_for(BROKER_3_6),
            view=LeaderView("cluster", clock),
            endpoints=NODES,
            node=node,
            reachable=True,
        ),
    )


def as_kraft(route: Route) -> None:
    """Have the route's broker be one of a KRaft cluster."""
    route.broker.plan = plan_for({**BROKER_3_6, 55: 1})


def learn(
    route: Route,
    leaders: Mapping[int, LeaderAndEpoch],
    *,
    source: int | None = None,
    topic: str = "t",
    topic_id: bytes = ZERO_ID,
) -> None:
    """Let the view hear leader and epoch by partition; ``source``: from that node."""
    assert route.broker.view is not None
    led = tuple(Led(p, node, epoch) for p, (node, epoch) in leaders.items())
    route.broker.view.learn(TopicMetadata(0, topic, topic_id, led), source)


class Counter:
    """A hold queue, its links, and what it decided."""

    def __init__(self, rules: HoldRules | None = None) -> None:
        self.queue = HoldQueue(rules or DEFAULT_RULES)

    def produce(
        self,
        link: LinkState,
        now: float,
        *partitions: int,
        topic: Topic = "t",
        carries: bool = False,
        unhinted: MissReason | None = None,
    ) -> list[LeaderHint | None] | None:
        """Submit a Produce error of ``partitions``; return hints, or ``None`` where it is held."""
        held = failed(link, dict.fromkeys(partitions or (0,), -1), ApiKey.PRODUCE, topic, carries)
        held.unhinted = unhinted
        return self.queue.submit(held, now)

    def fetch(
        self,
        link: LinkState,
        now: float,
        epochs: Mapping[int, int],
        *,
        error: int = FENCED,
        topic: Topic = "t",
        carries: bool = False,
        unhinted: MissReason | None = None,
    ) -> list[LeaderHint | None] | None:
        """Submit a Fetch error: the client's epoch by partition."""
        held = failed(link, epochs, ApiKey.FETCH, topic, carries, error)
        held.unhinted = unhinted
        return self.queue.submit(held, now)

    def review(self, now: float, ahead: float = 0.0) -> list[list[LeaderHint | None]]:
        """Return the hints of the responses that go on now."""
        return [hints for _, hints in self.queue.review(now, ahead)]

    def take_events(self) -> list[Event]:
        """Return what was given and missed since the last call."""
        events, self.queue.events = self.queue.events, []
        return events

    def settled(self) -> list[tuple[str, str]]:
        """Return why there was no hint, and what came of settling, since the last call."""
        events = self.take_events()
        return [(e.reason, e.settling) for e in events if isinstance(e, HintMissed)]

    def reasons(self) -> list[str | None]:
        """Return the reasons of the events since the last call, ``None`` for a hint."""
        reasons: list[str | None] = []
        for event in self.take_events():
            assert isinstance(event, HintGiven | HintMissed)
            reasons.append(event.reason if isinstance(event, HintMissed) else None)
        return reasons


def failed(
    link: LinkState,
    epochs: Mapping[int, int],
    key: ApiKey,
    topic: Topic = "t",
    carries: bool = False,
    error: int = NOT_LEADER,
) -> Held:
    """Return a response in which partitions failed; the client's epoch by partition."""
    failures = tuple(Failure(topic, partition, error, 0, 0) for partition in epochs)
    scanned = Scanned(failures, carries, 0, 0)
    # Where hints are only counted no version is raised.
    raised = link.route.mode is not Mode.OBSERVE
    version = {ApiKey.PRODUCE: 9, ApiKey.FETCH: 15}[key] + raised
    return Held(link, key, version, memoryview(b""), scanned, [*epochs.values()])


def hint(node: int, epoch: int) -> LeaderHint:
    """Return the hint that names a node."""
    return LeaderHint(node, epoch, NODES[node])
