"""What proxies ask brokers: the proxy's own plans are called, not copied.

There is one proxy process in front of each broker. It polls its own broker, and asks those of the
whole cluster while it holds errors: what and whom is decided by :class:`RefreshPlan`, how often by
:class:`RefreshRate`, and what a poll asks for by :class:`PollPlan`.

It imports the proxy on purpose.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.leader_hint import Endpoint, Failure, LeaderHint
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.cluster import Cluster
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.poll_plan import FULL_POLL_EVERY, PollPlan
from leader_hints.core.cluster.refresh_plan import RefreshPlan
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.wanted_leaders import WantedLeaders
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route, RouteConfig
from leader_hints.settings.subscription import SubscriptionSettings
from leader_hints.wire.steps import at_once
from leader_hints_report.simulation.arrays import Bools, Floats, Ints
from leader_hints_report.simulation.layout import Layout
from leader_hints_report.simulation.load.requests import Api, Sent
from leader_hints_report.simulation.moves import Batch
from leader_hints_report.simulation.parameters import Parameters
from leader_hints_report.simulation.propagation import Propagation

_EPOCH: Final = 5
#: Any address: none is connected to.
_ENDPOINT: Final = Endpoint("broker", 9092, None)
#: Topics of which slices are planned; of more, the slices grow as the partitions do.
_MOST_TOPICS: Final = 5000


class Holds(NamedTuple):
    """Errors that proxies hold: of which ``move`` of the batch, from when ``until`` when, and
    whether they are settled (the client uses no hint)."""

    move: Ints
    begin: Floats
    until: Floats
    settles: Bools


class _View(LeaderView):
    """A view that knows how large topics are without each of their partitions."""

    def __init__(self, clock: "_Clock", sizes: dict[str, int]) -> None:
        super().__init__("cluster", clock)
        self._sizes = sizes

    def partitions(self, name: str) -> int:
        return self._sizes[name]


class _Clock:
    """Seconds of the event."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class AskedBroker:
    """One that can be asked. ``route``: of the process's own one."""

    node: int
    route: Route | None = None
    unanswered_since: float = math.inf

    @property
    def reporter(self) -> int:
        return self.node


class _Asked(NamedTuple):
    """A question: when, and the ``broker`` that is asked."""

    at: float
    api: Api
    broker: int


class _Process(NamedTuple):
    """What a proxy keeps from hold to hold."""

    plan: RefreshPlan
    rate: RefreshRate


class Proxies:
    """The proxies in front of all brokers. ``settle``: with ``hold.settle``.

    ``config`` and ``brokers``: of each of them.
    """

    def __init__(self, where: Layout, table: Parameters, *, settle: bool) -> None:
        self.where = where
        self.table = table
        self.config = RouteConfig(settle=settle)
        self._settings = SubscriptionSettings()
        self.brokers = [AskedBroker(node) for node in range(where.brokers)]
        self._processes: dict[int, _Process] = {}

    @property
    def polls_per_s(self) -> float:
        """Metadata requests that each broker gets by polls: of its own proxy, which asks for all it
        knows, and one of each other proxy."""
        others = self.where.brokers - 1
        return (self._own_poll() + others) / self._settings.poll_interval

    def _own_poll(self) -> float:
        sizes = self.where.size
        some = sizes[:_MOST_TOPICS]
        view = _View(_Clock(), {str(topic): int(size) for topic, size in enumerate(some)})
        for topic in range(len(some)):
            view.learn(TopicMetadata(0, str(topic), ZERO_ID, (Led(0, 0, _EPOCH),)), None)
        plan = PollPlan(self._settings.slice_partitions)
        full, *sliced = (len([*plan.poll(view)]) for _ in range(FULL_POLL_EVERY))
        return (full + sum(sliced) * float(sizes.sum() / some.sum())) / FULL_POLL_EVERY

    def questions(self, batch: Batch, spread: Propagation, holds: Holds) -> dict[Api, Sent]:
        """Return what proxies ask while they hold the errors of a batch."""
        times: dict[Api, list[float]] = defaultdict(list)
        nodes: dict[Api, list[int]] = defaultdict(list)
        held = np.flatnonzero(holds.until - holds.begin > self.table.proxy_ms)
        old = batch.old[holds.move[held]]
        for node in np.unique(old):
            its = Holds(*(column[held[old == node]] for column in holds))
            for asked in self._planned(int(node), batch, spread, its):
                times[asked.api].append(asked.at)
                nodes[asked.api].append(asked.broker)
        return {api: Sent(np.array(times[api]), np.array(nodes[api], np.int64)) for api in times}

    def _planned(self, node: int, batch: Batch, spread: Propagation, holds: Holds) -> list[_Asked]:
        """Run the rounds of one broker's proxy."""
        process, scene = self._process(node), _Scene(self, node, batch, spread, holds)
        process.plan.reset()
        asked = []
        at = float(holds.begin.min())
        last = float(holds.until.max())
        while at < last:
            wanted = scene.wanted(at)
            if wanted is None:
                at = float(holds.begin[holds.begin > at].min())
                process.plan.reset()
                continue
            if process.rate.take((batch.at + at) / 1000):
                process.plan.begin()
                planned = process.plan.round(wanted, scene.cluster, scene.brokers, 0)
                for request in at_once(planned).requests:
                    if request.topics:
                        asked.append(_Asked(at, Api.METADATA, request.broker.node))
                    if request.epochs:
                        asked.append(_Asked(at, Api.LIST_OFFSETS, request.broker.node))
            at += self.table.ask_ms
        return asked

    def _process(self, node: int) -> _Process:
        known = self._processes.get(node)
        if known is None:
            of = self._settings
            rate = RefreshRate(of.refreshes_per_second, of.refresh_burst)
            known = self._processes[node] = _Process(RefreshPlan(of.slice_partitions), rate)
        return known


class _Scene:
    """What one proxy knows of a batch while it holds errors."""

    def __init__(
        self, proxies: Proxies, node: int, batch: Batch, spread: Propagation, holds: Holds
    ) -> None:
        where = proxies.where
        self._holds, self._batch = holds, batch
        self._clock = _Clock()
        moved = np.unique(holds.move)
        topics = where.topic[batch.partitions[moved]]
        #: Moved partitions by topic; the rules need no numbers, so they are numbered from 0.
        self._topics: dict[str, list[int]] = defaultdict(list)
        self._places: dict[int, tuple[str, int]] = {}
        for move, topic in zip(moved.tolist(), topics.tolist(), strict=True):
            its = self._topics[str(topic)]
            self._places[move] = str(topic), len(its)
            its.append(move)
        sizes = {str(topic): int(where.size[topic]) for topic in np.unique(topics)}
        view = _View(self._clock, sizes)
        self._route = Route(
            f"broker-{node}",
            Mode.ON,
            proxies.config,
            broker=BrokerState(view=view, node=node, reachable=True),
        )
        self.brokers = proxies.brokers.copy()
        self.brokers[node] = AskedBroker(node, self._route)
        self.cluster = Cluster(view)
        self._learn(batch.old, _EPOCH, node)
        #: Whose Metadata names the new leaders at what time; the first tells the view.
        settles = proxies.config.settle
        self._news = self._due(spread, proxies.table.rtt_ms, settles=settles, moves=len(moved))
        self._named = False
        #: Which holds :attr:`_waiting` is of, and whether new leaders were named by then: rounds
        #: follow each other faster than either changes.
        self._state: tuple[bool, bytes] | None = None
        self._waiting: list[FailedPartition] = []

    def _due(
        self, spread: Propagation, rtt: float, *, settles: bool, moves: int
    ) -> list[tuple[float, int]]:
        order = np.argsort(spread.shows, kind="stable")
        expected = [self.brokers[node] for node in order]
        if not settles:
            expected = expected[:1]
        elif moves * len(expected) > SubscriptionSettings().slice_partitions:
            # In a storm only the last one decides, and to learn of all would take long.
            expected = [expected[0], expected[-1]]
        self.cluster.view.metadata_brokers.expect(expected, 0.0)
        return [(float(spread.shows[one.node]) + rtt, one.node) for one in expected]

    def wanted(self, at: float) -> WantedLeaders | None:
        """Return what the held errors wait for at a time, ``None`` if there is none."""
        self._clock.now = at / 1000
        while self._news and self._news[0][0] <= at:
            _, node = self._news.pop(0)
            self._learn(self._batch.new, _EPOCH + 1, node)
            self._named = True
        holds = self._holds
        now = (holds.begin <= at) & (at < holds.until)
        if not now.any():
            return None
        state = self._named, now.tobytes()
        if state != self._state:
            # Each partition once: a storm is one by these, too.
            pairs = np.unique(holds.move[now] * 2 + holds.settles[now]).tolist()
            self._waiting = [self._failed(pair // 2, settles=bool(pair % 2)) for pair in pairs]
            self._state = state
        # A new one each time: a storm has its partitions changed.
        wanted = WantedLeaders(self._route)
        wanted.add(self._waiting)
        return wanted

    def _failed(self, move: int, *, settles: bool) -> FailedPartition:
        topic, place = self._places[move]
        failure = Failure(topic, place, ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, 0)
        one = FailedPartition(failure, -1, 0.0, _EPOCH, settles=settles)
        if self._named:
            one.found = LeaderHint(int(self._batch.new[move]), _EPOCH + 1, _ENDPOINT)
        return one

    def _learn(self, leaders: Ints, epoch: int, source: int) -> None:
        for topic, moves in self._topics.items():
            led = tuple(Led(place, int(leaders[move]), epoch) for place, move in enumerate(moves))
            self.cluster.view.learn(TopicMetadata(0, topic, ZERO_ID, led), source)
