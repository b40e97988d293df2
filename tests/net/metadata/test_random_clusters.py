"""Clusters in which leaders move, topics are recreated and brokers learn of it late, at random.

The truth is kept beside what brokers and clients believe. No hint may say what was never true of
the topic that the client means, or what was over when its broker answered; and once the cluster
rests, the view is what is true and errors get their hints again.
"""

import random
import struct
from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

from leader_hints.address import Address
from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Failure, LeaderHint, Scanned
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.net.brokers.connector import Connector, Connectors
from leader_hints.net.metadata.broker_poller import PollerSettings
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.refresher import Refresher
from tests.core.rules import DEFAULT_RULES
from tests.net.fake_broker import FakeBroker, FakeNetwork, network
from tests.net.messages import FENCED, NOT_LEADER, UNKNOWN_EPOCH, Broker

_NODES = (1, 2, 3)
_SHOWN = [Broker(node, f"shown-{node}", 9092) for node in _NODES]
_SETTINGS = PollerSettings(
    client=ClientSoftware("leader-hints", "1"),
    poll=30,
    answer=2,
    connect=10,
    reconnect_min=0.1,
    reconnect_max=5,
    slice_partitions=2000,
)
_UNKNOWN_TOPIC = 3
#: Seconds in which everything that brokers contradict has been settled by polls.
_REST = 4 * _SETTINGS.poll

#: Worlds with and without topic ids; more are run by hand, with :func:`live`.
_SEEDS = (2, 5, 20)

Leaders = list[tuple[int, int]]


class _Broker(FakeBroker):
    """Its replicas learn of a move apart from its Metadata, sooner or later.

    ``replicas``: by topic, its incarnation and who leads, as its replicas know it; ``shown``: the
    incarnation that its Metadata shows.
    """

    def __init__(self, node: int) -> None:
        super().__init__(node, list(_SHOWN), {})
        self.leaders: dict[str, Leaders] = {}
        self.ids: dict[str, bytes] = {}
        self.shown: dict[str, int] = {}
        self.replicas: dict[str, tuple[int, Leaders]] = {}

    def _errors(self, body: bytes) -> dict[tuple[str, int], int]:
        (count,) = struct.unpack_from(">i", body, 5)
        errors, at = {}, 9
        for _ in range(count):
            (size,) = struct.unpack_from(">h", body, at)
            name = body[at + 2 : at + 2 + size].decode()
            number, epoch = struct.unpack_from(">ii", body, at + 2 + size + 4)
            errors[name, number] = self.error(name, number, epoch)
            at += 2 + size + 4 + 16
        return errors

    def error(self, name: str, number: int, epoch: int) -> int:
        _, leaders = self.replicas.get(name, (0, []))
        if number >= len(leaders):
            listed = number < len(self.leaders.get(name, []))
            return NOT_LEADER if listed else _UNKNOWN_TOPIC
        leader, own = leaders[number]
        if 0 <= epoch < own:
            return FENCED
        if epoch > own:
            return UNKNOWN_EPOCH
        return 0 if leader == self.node else NOT_LEADER


class World:
    """``history``: for each incarnation of the topic, all that was ever true of its partitions."""

    def __init__(self, seed: int, net: FakeNetwork, nursery: trio.Nursery) -> None:
        self.random = random.Random(seed)
        self.nursery = nursery
        self.net = net
        self.lag = self.random.choice([0.0, 0.02, 0.3, 2.0])
        self.with_ids = self.random.random() < 0.5
        self.log: list[str] = []
        self.wrong: list[str] = []
        self.hints = 0
        self.brokers = {node: _Broker(node) for node in _NODES}
        for node, broker in self.brokers.items():
            net.brokers[Address(f"up-{node}", 1)] = broker
            net.brokers[Address(f"shown-{node}", 9092)] = broker
        fronted = self.random.choice([(1,), (1, 2), (1, 2, 3)])
        self.routes = {node: Route(f"r{node}", Mode.ON) for node in fronted}
        self.hold_timer = HoldTimer(HoldQueue(DEFAULT_RULES), lambda event: None)
        self.hold_timer.settle = self._settle
        self.refresher = Refresher(
            [(route, Address(f"up-{node}", 1)) for node, route in self.routes.items()],
            self.hold_timer,
            RefreshRate(50, 50),
            0.01,
            _SETTINGS,
            lambda event: None,
            connectors=lambda route: Connectors(
                Connector(open_tcp=net.open), Connector(open_tcp=net.open)
            ),
        )
        self.history: list[list[list[tuple[int, int]]]] = []
        #: When a leader went, by incarnation, partition and epoch.
        self.over: dict[tuple[int, int, int], float] = {}
        self.now: Leaders = []
        self.links = 0
        self.pending: dict[int, tuple[Failure, int, int, int, float, str]] = {}
        self._recreate(delayed=False)
        for broker in self.brokers.values():
            broker.leaders["u"] = [(node, 0) for node in _NODES]
            broker.replicas["u"] = 0, broker.leaders["u"]
            if self.with_ids:
                broker.ids["u"] = _id(99)

    # What happens.

    def _recreate(self, *, delayed: bool = True) -> None:
        count = self.random.choice([1, 2])
        self.now = [(self.random.choice(_NODES), 0) for _ in range(count)]
        self.history.append([[leader] for leader in self.now])
        self._say("recreated")
        self._spread(delayed=delayed)

    def _move(self, *, same: bool = False, lag: bool = True) -> None:
        number = self.random.randrange(len(self.now))
        leader, epoch = self.now[number]
        if not same:
            leader = self.random.choice([node for node in _NODES if node != leader])
        self.over[len(self.history) - 1, number, epoch] = trio.current_time()
        self.now[number] = leader, epoch + 1
        self.history[-1][number].append(self.now[number])
        self._say(f"{number} moves")
        self._spread(delayed=lag)

    def _grow(self) -> None:
        self.now.append((self.random.choice(_NODES), 0))
        self.history[-1].append([self.now[-1]])
        self._say("grows")
        self._spread()

    def _spread(self, *, delayed: bool = True) -> None:
        """Have each broker's replicas and Metadata learn of it, in order and some of them late."""
        version = len(self.history) - 1, list(self.now)
        for broker in self.brokers.values():
            first, second = sorted(
                self.random.random() * self.random.choice([0, self.lag]) if delayed else 0.0
                for _ in range(2)
            )
            if delayed:
                hears = [broker.replicas, broker.leaders]
                self.random.shuffle(hears)
                for what, after in zip(hears, (first, second), strict=True):
                    self.nursery.start_soon(
                        self._hear, broker, what is broker.leaders, version, after
                    )
            else:
                self._know(broker, True, version)
                self._know(broker, False, version)

    async def _hear(
        self, broker: _Broker, metadata: bool, version: tuple[int, Leaders], after: float
    ) -> None:
        await trio.sleep(after)
        self._know(broker, metadata, version)

    def _know(self, broker: _Broker, metadata: bool, version: tuple[int, Leaders]) -> None:
        incarnation, leaders = version
        if metadata:
            if incarnation < broker.shown.get("t", -1):
                return
            if incarnation == broker.shown.get("t", -1):
                leaders = _newer(leaders, broker.leaders["t"])
            broker.shown["t"] = incarnation
            broker.leaders["t"] = leaders
            if self.with_ids:
                broker.ids["t"] = _id(incarnation)
            return
        known, former = broker.replicas.get("t", (-1, []))
        if incarnation < known:
            return
        if incarnation == known:
            leaders = _newer(leaders, former)
        broker.replicas["t"] = incarnation, leaders

    async def _restart(self) -> None:
        node = self.random.choice(_NODES)
        self._say(f"{node} restarts")
        broker = self.brokers[node]
        connectors = [Address(f"up-{node}", 1), Address(f"shown-{node}", 9092)]
        for connector in connectors:
            self.net.brokers.pop(connector, None)
        await broker.drop()
        await trio.sleep(self.random.choice([0.5, 4]))
        for connector in connectors:
            self.net.brokers[connector] = broker

    # What clients meet.

    def _error(self) -> None:
        node, route = self.random.choice([*self.routes.items()])
        broker = self.brokers[node]
        incarnation, leaders = broker.replicas.get("t", (-1, []))
        if not leaders or route.broker.view is None:
            return
        number = self.random.randrange(len(leaders))
        own = leaders[number][1]
        kind = self.random.choice(["produce", "fetch", "fetch by id"])
        epoch = -1 if kind == "produce" else self.random.randint(max(0, own - 3), own)
        error = broker.error("t", number, epoch)
        if error not in (NOT_LEADER, FENCED):
            return
        by_id = kind == "fetch by id" and self.with_ids
        self._submit(route, node, number, error, epoch, incarnation, own, by_id=by_id, kind=kind)

    def _submit(
        self,
        route: Route,
        node: int,
        number: int,
        error: int,
        epoch: int,
        incarnation: int,
        own: int,
        *,
        by_id: bool,
        kind: str,
    ) -> None:
        topic = _id(incarnation) if by_id else "t"
        self.links += 1
        failure = Failure(topic, number, error, 0, 0)
        key = ApiKey.PRODUCE if epoch < 0 else ApiKey.FETCH
        version = 10 if key is ApiKey.PRODUCE else 16
        held = Held(
            LinkState(route, self.links),
            key,
            version,
            memoryview(b""),
            Scanned((failure,), False, 0, 0),
            [epoch],
        )
        at = trio.current_time()
        self.pending[self.links] = failure, epoch, incarnation, own, at, f"{kind} at {node}"
        self._say(f"{kind} error {error} at {node}: {number} epoch {epoch}, own {own}")
        hints = self.hold_timer.submit(held)
        if hints is not None:
            self._settle([(held, hints)])

    def _settle(self, decided: list[tuple[Held, list[LeaderHint | None]]]) -> None:
        for held, hints in decided:
            failure, epoch, incarnation, own, at, kind = self.pending.pop(held.link.number)
            (given,) = hints
            self._say(f"{kind} -> {given and (given.leader, given.epoch)}")
            if given is None:
                continue
            self.hints += 1
            hint = given.leader, given.epoch
            true = any(
                hint in partitions[failure.partition]
                for partitions in self.history[incarnation:]
                if failure.partition < len(partitions)
            )
            if not true:
                self.blame(f"{kind}: {hint} was never true")
            elif incarnation == len(self.history) - 1:
                node = int(kind[-1])
                if given.epoch <= epoch:
                    self.blame(f"{kind}: {hint} is no news")
                elif given.epoch < own and (
                    # A hint of a move of a moment ago goes at once; so does one that is news to a
                    # consumer, and leads away from this broker.
                    self.over[incarnation, failure.partition, given.epoch] < at - 1.0 - self.lag
                    and not (epoch >= 0 and given.leader != node)
                ):
                    self.blame(f"{kind}: {hint} was over")

    def blame(self, what: str) -> None:
        self._say("WRONG " + what)
        self.wrong.append(what)

    def _say(self, what: str) -> None:
        self.log.append(f"{trio.current_time():.3f} {what} | {self.now}")

    # A life.

    async def live(self, steps: int) -> None:
        choose = self.random.choices
        for _ in range(steps):
            (step,) = choose(
                ["move", "rise", "recreate", "grow", "restart", "error", "wait"],
                [6, 2, 1.5, 0.5, 1, 14, 0.7],
            )
            if step == "move":
                self._move()
            elif step == "rise":
                self._move(same=True)
            elif step == "recreate":
                # What was learnt within the last second is taken to be of the same topic.
                await trio.sleep(1.1 + 2 * self.lag)
                self._recreate()
                await trio.sleep(1.1 + 2 * self.lag)
            elif step == "grow" and len(self.now) < 4:
                self._grow()
            elif step == "restart":
                await self._restart()
            elif step == "error":
                self._error()
            else:
                await trio.sleep(35)
            await trio.sleep(self.random.choice([0, 0.005, 0.05, 0.5, 2.5]))

    def faults_at_rest(self) -> Iterator[str]:
        for node, route in self.routes.items():
            view = route.broker.view
            assert view is not None
            for number, leader in enumerate(self.now):
                if view.leader("t", number) != Leader(*leader):
                    yield f"the view has {view.leader('t', number)} and not {leader}"
                if view.in_doubt("t", number):
                    yield f"{number} is still in doubt"
            if route.broker.proved_node != node:
                yield f"{route.name} is taken for {route.broker.node}"

    async def move_at_rest(self) -> Iterator[str]:
        """Have each route's broker lose a leadership, and a client meet that."""
        missed = []
        for node, route in self.routes.items():
            for number, (leader, _) in enumerate(self.now):
                if leader != node:
                    continue
                epoch = self.now[number][1]
                self.now[number] = self.random.choice([n for n in _NODES if n != node]), epoch + 1
                self.history[-1][number].append(self.now[number])
                self._spread(delayed=False)
                before = self.hints
                await trio.sleep(0.01)
                self._submit(
                    route,
                    node,
                    number,
                    NOT_LEADER,
                    -1,
                    len(self.history) - 1,
                    epoch + 1,
                    by_id=False,
                    kind="produce",
                )
                await trio.sleep(1.5)
                if self.hints == before:
                    missed.append(f"no hint of {number} at {node} after a rest")
        return iter(missed)


def _newer(one: Leaders, other: Leaders) -> Leaders:
    """Of each partition the newer: what brokers hear comes in order."""
    longer = max(one, other, key=len)
    return [
        max((of[number] for of in (one, other) if number < len(of)), key=lambda led: led[1])
        for number in range(len(longer))
    ]


def _id(number: int) -> bytes:
    return struct.pack(">qq", 0x4000, (1 << 62) + number)


async def live(seed: int, steps: int = 40) -> World:
    async with network() as net, trio.open_nursery() as nursery:
        world = World(seed, net, nursery)
        nursery.start_soon(world.hold_timer.run)
        nursery.start_soon(world.refresher.run)
        await trio.sleep(3)
        await world.live(steps)
        await trio.sleep(_REST)
        for fault in world.faults_at_rest():
            world.blame(fault)
        for fault in await world.move_at_rest():
            world.blame(fault)
        nursery.cancel_scope.cancel()
    return world


@pytest.mark.parametrize("seed", _SEEDS)
async def test_no_hint_is_wrong_and_a_view_at_rest_is_right(
    seed: int, autojump_clock: MockClock
) -> None:
    world = await live(seed)
    assert not world.wrong, "\n".join([*world.wrong, *world.log])
