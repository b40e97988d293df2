from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import (
    EpochRose,
    ErrorAnswered,
    HintGiven,
    HintMissed,
    LeaderMoved,
    Recovered,
)
from leader_hints.core.hints import recovery
from leader_hints.core.hints.recovery import PATIENCE, Client, Recovery
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from tests.core.hold_queues import learn, route
from tests.harness.lines import lines_of

_CLIENT = Client(7, "c", "lib/1.2")


class _World:
    """Two routes, before nodes 1 and 2 of a cluster, and a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.one = route(name="one", node=1)
        self.two = route(name="two", node=2)
        self.two.broker.view = self.one.broker.view
        self.routes = [self.one, self.two]
        self.recovery = Recovery(self.routes, lambda: self.now)

    def fails(
        self, *, client_id: str = "c", api: str = "Produce", partition: int = 0
    ) -> ErrorAnswered:
        answered = ErrorAnswered(
            route="one",
            link=1,
            client_id=client_id,
            software="",
            api=api,
            version=8,
            topic="t",
            partition=partition,
            error=6,
            client_epoch=-1,
            hold_ms=0.0,
            observed=False,
        )
        self.recovery.failed(self.one, client_id, api, [("t", partition)])
        return answered

    def succeeds(
        self,
        route: Route,
        client: Client = _CLIENT,
        *,
        api: str = "Produce",
        partition: int = 0,
    ) -> Recovered | None:
        return self.recovery.succeeded(route, client, api, "t", partition)


def _moved(leader: int = 2, partition: int = 0, cluster: str = "cluster") -> LeaderMoved:
    return LeaderMoved(
        cluster=cluster,
        topic="t",
        partition=partition,
        leader_before=1,
        epoch_before=5,
        leader=leader,
        epoch=6,
    )


@pytest.fixture
def world() -> _World:
    return _World()


def test_nothing_is_awaited_at_first(world: _World) -> None:
    assert not world.one.awaited
    assert world.succeeds(world.one) is None


def test_the_first_success_after_an_error_anywhere_in_the_process(world: _World) -> None:
    learn(world.one, {0: (2, 6)})
    world.fails()
    world.now += 0.02
    world.fails()
    assert world.one.awaited
    assert world.two.awaited
    world.now += 0.03
    recovered = world.succeeds(world.two)
    assert recovered is not None
    assert recovered.recovery_ms == pytest.approx(50.0)
    assert replace(recovered, recovery_ms=None) == Recovered(
        route="two",
        link=7,
        client_id="c",
        software="lib/1.2",
        api="Produce",
        topic="t",
        partition=0,
        epoch=6,
        recovery_ms=None,
        hinted=False,
    )
    assert world.succeeds(world.two) is None
    assert not world.one.awaited
    assert not world.two.awaited


@pytest.mark.parametrize(
    "other", [{"api": "Fetch"}, {"partition": 1}, {"client": Client(7, "d", "")}]
)
def test_another_one_s_success_says_nothing(world: _World, other: dict[str, object]) -> None:
    world.fails()
    assert world.succeeds(world.one, **other) is None  # type: ignore[arg-type]
    assert world.one.awaited


@pytest.mark.parametrize(("first", "hinted"), [("hint", True), ("none", False), ("seen", False)])
def test_how_the_first_error_was_answered_is_reported(
    world: _World, first: str, hinted: bool
) -> None:
    answered = world.fails()
    if first == "hint":
        world.recovery.take(HintGiven(answered=answered, leader=2, epoch=6))
    elif first == "none":
        world.recovery.take(HintMissed(answered=answered, reason="budget"))
    world.fails()
    if first != "seen":
        # Of another error than the first.
        world.recovery.take(HintMissed(answered=answered, reason="budget"))
        world.recovery.take(HintGiven(answered=answered, leader=2, epoch=6))
    recovered = world.succeeds(world.two)
    assert recovered is not None
    assert recovered.hinted is hinted


def test_after_a_move_the_first_success_of_each_client_at_the_new_leader(world: _World) -> None:
    world.recovery.take(_moved())
    assert world.two.awaited
    assert not world.one.awaited
    told = world.succeeds(world.two)
    assert told is not None
    assert told.recovery_ms is None
    assert not told.hinted
    assert world.succeeds(world.two) is None
    assert world.succeeds(world.two, api="Fetch") is not None
    assert world.succeeds(world.two, Client(8, "d", "")) is not None
    assert world.succeeds(world.two, partition=1) is None
    assert world.succeeds(world.one, Client(8, "e", "")) is None


def test_after_an_epoch_that_rose_the_first_success_of_each_client_too(world: _World) -> None:
    """Such clients are fenced, and served by the same broker again."""
    rose = EpochRose(cluster="cluster", topic="t", partition=0, leader=2, epoch_before=5, epoch=6)
    world.recovery.take(rose)
    assert world.succeeds(world.two) is not None
    assert world.succeeds(world.two) is None


def test_of_one_recovery_is_reported_once(world: _World) -> None:
    world.fails()
    world.recovery.take(_moved())
    told = world.succeeds(world.two)
    assert told is not None
    assert told.recovery_ms is not None
    assert world.succeeds(world.two) is None


def test_of_one_recovery_is_reported_once_where_the_client_heard_before_the_view(
    world: _World,
) -> None:
    learn(world.one, {0: (1, 5)})
    world.fails()
    assert world.succeeds(world.two) is not None
    assert world.succeeds(world.two, Client(8, "d", "")) is None
    world.recovery.take(_moved())
    assert world.succeeds(world.two) is None
    assert world.succeeds(world.two, Client(9, "e", "")) is not None
    # The next move is another one, of which the client hears first again.
    world.fails()
    assert world.succeeds(world.two) is not None
    world.recovery.take(_moved())
    assert world.succeeds(world.two) is None
    # And one of which the view hears first.
    world.recovery.take(_moved())
    assert world.succeeds(world.two) is not None


def test_moves_of_other_routes_are_ignored(world: _World) -> None:
    world.recovery.take(_moved(leader=3))
    world.recovery.take(_moved(cluster="another"))
    assert not world.one.awaited
    assert not world.two.awaited


def test_what_never_comes_expires(world: _World) -> None:
    world.fails()
    world.recovery.take(_moved())
    world.now += PATIENCE - 1
    world.fails()
    world.now += 1
    assert world.succeeds(world.two, partition=9) is None
    # The error was met again, the move is over.
    assert world.recovery.remembered == 1
    world.now += PATIENCE - 1
    assert world.succeeds(world.two) is None
    assert world.recovery.remembered == 0
    assert not world.one.awaited


def test_what_expires_at_the_same_time_is_forgotten_in_short_steps(world: _World) -> None:
    for partition in range(3000):
        world.fails(partition=partition)
        world.recovery.take(_moved(partition=partition))
    world.now += PATIENCE
    assert lines_of(lambda: world.succeeds(world.two, partition=9999)) < 10_000
    # It counts no more, whether it is forgotten or not.
    assert world.succeeds(world.two, partition=2999) is None
    assert world.succeeds(world.one, partition=2999) is None
    world.fails(partition=2998)
    world.now += 1
    recovered = world.succeeds(world.one, partition=2998)
    assert recovered is not None
    assert recovered.recovery_ms == 1000
    while world.recovery.remembered:
        assert lines_of(lambda: world.succeeds(world.two, partition=9999)) < 10_000
    assert not world.one.awaited


class _Many:
    """So many routes, before the nodes of a cluster from 1 on."""

    def __init__(self, count: int) -> None:
        self.routes = [route(name=f"r{number}", node=number + 1) for number in range(count)]
        for one in self.routes:
            one.broker.view = self.routes[0].broker.view
        self.recovery = Recovery(self.routes)
        # The first of all cost more.
        self.recovery.take(_moved(leader=1, partition=200))
        self.recovery.failed(self.routes[0], "c", "Produce", [("t", 200)])

    def moves(self) -> None:
        """Have 200 leaders move, to ten of the nodes."""
        for partition in range(200):
            self.recovery.take(_moved(leader=1 + partition % 10, partition=partition))

    def fails_and_recovers(self) -> None:
        """Have a client that has met one error meet more, and be served again after those."""
        for partition in range(200):
            self.recovery.failed(self.routes[0], "c", "Produce", [("t", partition)])
        for partition in range(200):
            self.recovery.succeeded(self.routes[1], _CLIENT, "Produce", "t", partition)


def test_moves_cost_the_same_however_many_routes_there_are() -> None:
    """200 took 28 ms with 1,000 routes: each walked all of them, twice."""
    assert lines_of(_Many(1000).moves) == lines_of(_Many(10).moves)


def test_errors_cost_the_same_however_many_routes_there_are() -> None:
    """Each walked all of them, and so did each success that was awaited."""
    assert lines_of(_Many(1000).fails_and_recovers) == lines_of(_Many(10).fails_and_recovers)


def test_a_route_that_comes_later_is_as_the_others(world: _World) -> None:
    world.fails()
    world.recovery.take(_moved(leader=3))
    three = route(name="three", node=3)
    three.broker.view = world.one.broker.view
    world.recovery.follow(three)
    assert three.awaited
    assert world.succeeds(three) is not None
    assert not three.awaited
    world.recovery.take(_moved(leader=3))
    assert three.awaited


_PLACES = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([None, 1, 2]),
        st.sampled_from([None, "cluster", "another"]),
        st.sampled_from([1, 2]),
    ),
    max_size=20,
)


@given(_PLACES)
def test_a_move_is_of_the_routes_that_are_before_the_node_then(
    steps: list[tuple[int, int | None, str | None, int]],
) -> None:
    world = _World()
    views = {"cluster": LeaderView("cluster"), "another": LeaderView("another"), None: None}
    for number, (at, node, cluster, leader) in enumerate(steps):
        world.routes[at].broker.node = node
        world.routes[at].broker.view = views[cluster]
        world.recovery.take(_moved(leader=leader, partition=number))
        for one in world.routes:
            broker = one.broker
            in_cluster = broker.view is not None and broker.view.cluster_id == "cluster"
            led = broker.node == leader and in_cluster
            told = world.succeeds(one, Client(7, f"c{number}", ""), partition=number)
            assert (told is not None) is led


def test_an_error_after_the_last_one_expired_is_awaited_everywhere(world: _World) -> None:
    world.recovery.take(_moved(partition=500))
    for partition in range(501):
        world.fails(partition=partition)
    world.now += PATIENCE
    # All others are forgotten, and then this one and the move.
    assert world.succeeds(world.two, partition=500) is None
    assert world.recovery.remembered == 0
    assert not world.one.awaited
    world.fails()
    assert world.two.awaited


def test_client_ids_beyond_any_use_are_not_kept(world: _World) -> None:
    endless = Client(1, "x" * 300, "")
    world.fails(client_id=endless.client_id)
    assert not world.one.awaited
    world.recovery.take(_moved())
    assert world.succeeds(world.two, endless) is None
    assert world.recovery.remembered == 1


def test_memory_is_bounded(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_ERRORS", "MOST_MOVES", "MOST_ARRIVALS"):
        monkeypatch.setattr(recovery, name, 10)
    for number in range(50):
        world.fails(partition=number)
        world.recovery.take(_moved(partition=number))
    assert world.recovery.remembered == 20
    for number in range(50):
        world.succeeds(world.two, Client(1, str(number), ""), partition=49)
        assert world.recovery.remembered <= 31
    # The newest stay.
    assert world.succeeds(world.one, partition=49) is not None
    assert world.succeeds(world.one, partition=0) is None


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["fail", "move", "succeed"]),
        st.integers(0, 1),
        st.integers(0, 2),
        st.sampled_from("cd"),
        st.sampled_from([0.0, 1.0, PATIENCE / 2, PATIENCE]),
    ),
    max_size=60,
)


@given(_STEPS)
def test_whatever_happens_nothing_is_reported_that_was_not_awaited(
    steps: list[tuple[str, int, int, str, float]],
) -> None:
    world = _World()
    failed: dict[tuple[str, int], float] = {}
    for what, at, partition, client_id, later in steps:
        world.now += later
        at_route = world.routes[at]
        if what == "fail":
            world.fails(client_id=client_id, partition=partition)
            failed.setdefault((client_id, partition), world.now)
        elif what == "move":
            world.recovery.take(_moved(leader=at + 1, partition=partition))
        else:
            awaited = at_route.awaited
            told = world.succeeds(at_route, Client(1, client_id, ""), partition=partition)
            assert awaited or told is None
            first = failed.pop((client_id, partition), None)
            if told is not None and told.recovery_ms is not None:
                assert first is not None
                # Since the first error, or one after the first was given up.
                assert told.recovery_ms <= (world.now - first) * 1000
        for one in world.routes:
            moved = any(place.route == one.name for place in world.recovery._moves)
            assert one.awaited == (moved or bool(world.recovery._errors))


def test_off_awaits_nothing() -> None:
    off = Route("off", Mode.OFF)
    tracker = Recovery([off])
    tracker.take(_moved())
    assert not off.awaited
