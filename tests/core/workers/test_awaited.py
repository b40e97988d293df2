"""Whatever a worker tells and leaves out, the process that decides reports what it would alone."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import LeaderMoved, Recovered
from leader_hints.core.hints.recovery import PATIENCE, Client, Recovery
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.workers import awaited
from leader_hints.core.workers.awaited import AwaitedSuccesses
from leader_hints.core.workers.messages import LeaderMove
from tests.harness.lines import lines_of

_ENDPOINTS = {node: Endpoint(f"{node}.example", 9092, None) for node in (1, 2)}


class _Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def _routes(clock: _Clock) -> list[Route]:
    """Two in front of brokers of one cluster, and one in front of a broker of another."""
    view, other = LeaderView("cluster", clock), LeaderView("another", clock)
    return [
        Route(
            name,
            Mode.ON,
            broker=BrokerState(view=of, node=node, endpoints=_ENDPOINTS, reachable=True),
        )
        for name, of, node in (("r1", view, 1), ("r2", view, 2), ("s1", other, 1))
    ]


@dataclass
class _Process:
    """Two workers and the process that decides; and one that does all, to compare with."""

    clock: _Clock = field(default_factory=_Clock)
    told: int = 0

    def __post_init__(self) -> None:
        self.routes, self.alone = _routes(self.clock), _routes(self.clock)
        self.recovery = Recovery(self.routes, self.clock)
        self.reference = Recovery(self.alone, self.clock)
        self.reported: list[Recovered] = []
        self.expected: list[Recovered] = []
        self.workers = [self._worker(number) for number in (0, 1)]

    def _worker(self, number: int) -> AwaitedSuccesses:
        def failed(route: Route, client_id: str, api: str, some: object) -> None:
            assert isinstance(some, tuple)
            self.recovery.failed(self._route(route), client_id, api, some)
            self.workers[1 - number].failed_anywhere(self._route(route), client_id, api, some)

        def served(route: Route, client: Client, api: str, topic: str, partition: int) -> None:
            self.told += 1
            recovered = self.recovery.succeeded(self._route(route), client, api, topic, partition)
            if recovered is not None:
                self.reported.append(recovered)
            self.workers[1 - number].served_elsewhere(
                self._route(route), client.client_id, api, topic, partition
            )

        return AwaitedSuccesses(_routes(self.clock), self.clock, failed, served)

    def _route(self, route: Route) -> Route:
        return next(one for one in self.routes if one.name == route.name)

    def failed(self, worker: int, route: int, client: str, partition: int) -> None:
        self.workers[worker].failed(self.routes[route], client, "Produce", [("t", partition)])
        self.reference.failed(self.alone[route], client, "Produce", [("t", partition)])

    def succeeded(self, worker: int, route: int, client: str, partition: int) -> None:
        who = Client(1, client, "x/1")
        asked = self.workers[worker]._routes[route]
        if asked.awaited:
            asked_of = self.workers[worker]
            assert asked_of.succeeded(asked, who, "Produce", "t", partition) is None
        if self.alone[route].awaited:
            expected = self.reference.succeeded(self.alone[route], who, "Produce", "t", partition)
            if expected is not None:
                self.expected.append(expected)

    def moved(self, partition: int, leader: int) -> None:
        event = LeaderMoved(
            cluster="cluster",
            topic="t",
            partition=partition,
            leader_before=3 - leader,
            epoch_before=1,
            leader=leader,
            epoch=2,
        )
        self.recovery.take(event)
        self.reference.take(event)
        for worker in self.workers:
            worker.moved("cluster", [LeaderMove("t", partition, leader)])


_WORKER = st.integers(0, 1)
_ROUTE = st.integers(0, 2)
_STEP = st.one_of(
    st.tuples(st.just("failed"), _WORKER, _ROUTE, st.sampled_from("ab"), _WORKER),
    st.tuples(st.just("succeeded"), _WORKER, _ROUTE, st.sampled_from("ab"), _WORKER),
    st.tuples(st.just("moved"), _WORKER, st.integers(1, 2)),
    st.tuples(st.just("wait"), st.floats(0, PATIENCE)),
)


@given(st.lists(_STEP, max_size=40))
def test_what_is_reported_does_not_depend_on_the_worker(steps: list[tuple[object, ...]]) -> None:
    process = _Process()
    for name, *arguments in steps:
        if name == "wait":
            (seconds,) = arguments
            assert isinstance(seconds, float)
            process.clock.now += seconds
        else:
            getattr(process, str(name))(*arguments)
    assert process.reported == process.expected


def _successes(process: _Process, count: int) -> Iterator[int]:
    for _ in range(count):
        process.succeeded(0, 0, "a", 0)
        yield process.told


def test_of_many_successes_the_first_is_reported() -> None:
    process = _Process()
    process.failed(1, 0, "a", 0)
    assert [*_successes(process, 3)] == [1, 1, 1]
    assert [recovered.client_id for recovered in process.reported] == ["a"]


def test_a_success_in_another_cluster_is_none_of_this_one() -> None:
    """All clients of librdkafka have one id by default, and clusters have topics of one name."""
    process = _Process()
    process.failed(0, 0, "rdkafka", 0)
    process.succeeded(0, 2, "rdkafka", 0)
    process.succeeded(1, 2, "rdkafka", 0)
    process.succeeded(0, 0, "rdkafka", 0)
    assert [recovered.route for recovered in process.reported] == ["r1"]


def test_a_success_that_nobody_awaits_is_not_told() -> None:
    process = _Process()
    process.failed(0, 0, "b", 1)
    assert [*_successes(process, 1)] == [0]


def test_what_was_waited_for_too_long_is_forgotten() -> None:
    process = _Process()
    process.failed(0, 0, "a", 0)
    process.clock.now += PATIENCE
    process.failed(0, 0, "b", 1)
    assert [*_successes(process, 1)] == [0]


def test_what_expires_at_the_same_time_is_forgotten_in_short_steps() -> None:
    process = _Process()
    worker, route = process.workers[0], process.routes[0]
    for partition in range(3000):
        process.failed(0, 0, "a", partition)
        process.moved(partition, 1)
    process.clock.now += PATIENCE
    while worker.remembered > 1:
        assert lines_of(lambda: worker.failed_anywhere(route, "b", "Fetch", [("t", 0)])) < 10_000
    process.clock.now += PATIENCE
    worker.moved("cluster", [LeaderMove("t", 0, 3)])
    assert worker.remembered == 0
    assert not any(route.awaited for route in worker._routes)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_ERRORS", "MOST_MOVES", "MOST_ARRIVALS"):
        monkeypatch.setattr(awaited, name, 10)
    process = _Process()
    worker, route = process.workers[0], process.routes[0]
    for partition in range(50):
        worker.failed_anywhere(route, "a", "Fetch", [("t", partition)])
        worker.moved("cluster", [LeaderMove("t", partition, 1)])
    assert worker.remembered == 20
    for number in range(50):
        for partition in (48, 49):
            worker.served_elsewhere(route, str(number), "Fetch", "t", partition)
            assert worker.remembered <= 31


def test_a_success_costs_the_same_however_many_routes_there_are() -> None:
    def lines(more: int) -> int:
        clock = _Clock()
        routes = [*_routes(clock), *(Route(f"more {number}", Mode.ON) for number in range(more))]
        worker = AwaitedSuccesses(routes, clock, lambda *_: None, lambda *_: None)
        worker.failed_anywhere(routes[0], "a", "Fetch", [("t", 0), ("t", 1)])
        who = Client(1, "a", "")
        return lines_of(lambda: worker.succeeded(routes[0], who, "Fetch", "t", 0))

    assert lines(1000) == lines(0)
