"""All brokers together: who is asked where, what is learnt of whom, refreshes while held."""

from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import cycle, pairwise
from time import process_time
from typing import Any, TypeVar

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from leader_hints.address import Address
from leader_hints.apis import metadata
from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint, Failure, LeaderHint, Scanned
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.cluster.doubts import Source
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_moves import SILENT
from leader_hints.core.cluster.refresh_plan import RefreshPlan
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.cluster.synthetic_id_agreement import AWAY_SECONDS
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.events import (
    EpochRose,
    Event,
    HintMissed,
    LeaderMoved,
    RoutePlan,
    SubscriptionLost,
    SubscriptionReady,
    TaskFailed,
    TopicIdsOffered,
    TopicIdsWithheld,
    TopicsHidden,
    UpstreamGivesHints,
)
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.hold_rules import HoldRules
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route, RouteConfig
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.connector import Connector, Connectors
from leader_hints.net.metadata.broker_poller import Cause, PollerSettings
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.other_pollers import OtherPollers
from leader_hints.net.metadata.refresher import Refresher
from leader_hints.wire.reader import Reader
from leader_hints.wire.steps import Steps
from tests.core.rules import DEFAULT_RULES
from tests.harness.lines import lines_of, most_lines
from tests.net import messages
from tests.net.fake_broker import FakeBroker, FakeNetwork, Leaders, network
from tests.net.messages import API_VERSIONS, LIST_OFFSETS, METADATA, NOT_LEADER, Broker
from tests.net.rig import LEGACY

_SETTINGS = PollerSettings(
    client=ClientSoftware("leader-hints", "1"),
    poll=30,
    answer=2,
    connect=10,
    reconnect_min=0.1,
    reconnect_max=5,
    slice_partitions=2000,
)
_LONG = replace(
    DEFAULT_RULES, deadline=100, link_second=1000, shared=1000, grace=100, confirm=0.025
)
#: As clients see the brokers, on the listener of the routes.
_SHOWN = [Broker(1, "one", 9092), Broker(2, "two", 9092), Broker(3, "three", 9092)]
#: The same where nodes 2 and 3 have come back at each other's address.
_SWAPPED = [_SHOWN[0], Broker(2, "three", 9092), Broker(3, "two", 9092)]
_BEFORE: Leaders = {"t": [(1, 5), (2, 6), (3, 7)]}
_AFTER: Leaders = {"t": [(2, 6), (2, 6), (3, 7)]}

#: An id that is no topic's.
_UNKNOWN = bytes(15) + b"\1"

_OLD = MissReason.VERSION_WITHOUT_FIELD
#: UNKNOWN_TOPIC_OR_PARTITION.
_NO_ANSWER = 3

_E = TypeVar("_E", bound=Event)


class _Scene:
    """A cluster of three brokers and a refresher with routes before some of them.

    The upstream address of node N is up-N:1; others are asked where _SHOWN says.
    """

    def __init__(
        self, net: FakeNetwork, nodes: Sequence[int], rules: HoldRules, synthesize: bool
    ) -> None:
        self.net = net
        #: Routes whose credentials brokers refuse, and how often each was connected with where.
        self.refused: set[str] = set()
        self.tried: Counter[tuple[str, Address]] = Counter()
        self.events: list[Event] = []
        self.refreshed: list[tuple[str, float]] = []
        self.settled: list[tuple[float, list[LeaderHint | None]]] = []
        self.brokers = {
            shown.node: FakeBroker(shown.node, list(_SHOWN), _BEFORE) for shown in _SHOWN
        }
        for node, broker in self.brokers.items():
            net.brokers[_upstream(node)] = broker
            net.brokers[_shown(node)] = broker
        self.routes = [
            Route(f"r{node}", Mode.ON, config=RouteConfig(synthesize=synthesize)) for node in nodes
        ]
        self.hold_timer = HoldTimer(HoldQueue(rules), self.events.append)
        self.hold_timer.settle = self._settle
        self.refresher = Refresher(
            [(route, _upstream(node)) for route, node in zip(self.routes, nodes, strict=True)],
            self.hold_timer,
            RefreshRate(20, 20),
            0.01,
            _SETTINGS,
            self.events.append,
            lambda cause, seconds: self.refreshed.append((cause, seconds)),
            connectors=lambda route: Connectors(*2 * [Connector(open_tcp=self._opener(route))]),
        )
        #: How many brokers were connected to in each round of the event loop, where counted.
        self.per_round: list[int] = []
        self.begin = trio.current_time()

    def _opener(self, route: Route) -> Callable[[Address, float], Awaitable[trio.abc.Stream]]:
        async def open_tcp(address: Address, patience: float) -> trio.abc.Stream:
            self.tried[route.name, address] += 1
            if route.name in self.refused:
                raise BrokerError("SASL: refused")
            return await self.net.open(address, patience)

        return open_tcp

    @property
    def route(self) -> Route:
        return self.routes[0]

    def _settle(self, decided: list[tuple[Held, list[LeaderHint | None]]]) -> None:
        self.settled += [(self.now, hints) for _, hints in decided]

    @property
    def now(self) -> float:
        return round(trio.current_time() - self.begin, 6)

    def addresses(self) -> list[Address]:
        """Who was connected to, in order."""
        return [address for _, address in self.net.attempts]

    def told(self, kind: type[_E]) -> list[_E]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def hold(
        self,
        topic: str | bytes = "t",
        partition: int = 0,
        epoch: int = -1,
        unhinted: MissReason | None = None,
        route: Route | None = None,
    ) -> None:
        """Have a Fetch error of a route's broker held; the client gives ``epoch``.

        ``unhinted``: until it is settled. ``route``: another one than the first.
        """
        failures = (Failure(topic, partition, NOT_LEADER, 0, 0),)
        route = route or self.route
        route.config = replace(route.config, settle=unhinted is not None)
        state = LinkState(route, 1)
        scanned = Scanned(failures, False, 0, 0)
        held = Held(state, ApiKey.FETCH, 16, memoryview(b""), scanned, [epoch], unhinted)
        assert self.hold_timer.submit(held) is None

    def rounds(self, node: int, key: int) -> list[float]:
        """When a broker was asked for ``t`` while something was held, or whether it leads."""
        asked = self.brokers[node].asked
        of_t = [a for a in asked if a.key == key and (key == LIST_OFFSETS or a.topics == ["t"])]
        return [at for a in of_t if (at := round(a.at - self.begin, 6)) >= 1]

    def leader(self, partition: int = 0) -> Leader | None:
        """The leader, as far as the first route's view knows."""
        assert self.route.broker.view is not None
        return self.route.broker.view.leader("t", partition)


def _upstream(node: int) -> Address:
    return Address(f"up-{node}", 1)


def _shown(node: int) -> Address:
    return Address(_SHOWN[node - 1].host, 9092)


def _show_many(monkeypatch: pytest.MonkeyPatch, count: int, *, leaders: int) -> None:
    """Have so many brokers in scenes, of which the first ``leaders`` lead a partition each."""
    many = [Broker(node, f"b-{node}", 9092) for node in range(1, count + 1)]
    monkeypatch.setattr(f"{__name__}._SHOWN", many)
    led: Leaders = {"t": [(node, 5) for node in range(1, leaders + 1)]}
    monkeypatch.setattr(f"{__name__}._BEFORE", led)


def _lagging(correlation: int, version: int) -> bytes:
    """Answer as a broker that has not learnt of the present leader yet."""
    topics = {"t": [messages.Partition(0, 1, 5)]}
    return messages.metadata_response(correlation, version, _SHOWN, topics)


class _Rounds(trio.abc.Instrument):
    """Counts attempts to connect in each round of the event loop."""

    def __init__(self, scene: _Scene) -> None:
        self._scene = scene

    def before_io_wait(self, timeout: float) -> None:
        scene = self._scene
        scene.per_round.append(len(scene.net.attempts) - sum(scene.per_round))


class _Steps(trio.abc.Instrument):
    """Counts the steps of the proxy's own tasks in each round of the event loop."""

    def __init__(self) -> None:
        self.per_round = [0]

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.per_round[-1] += task.name.startswith("leader_hints.")

    def before_io_wait(self, timeout: float) -> None:
        self.per_round.append(0)


def _count_attempts(scene: _Scene) -> None:
    trio.lowlevel.add_instrument(_Rounds(scene))


def _nothing(scene: _Scene) -> None:
    """Change nothing before the start."""


@asynccontextmanager
async def _scene(
    *nodes: int,
    rules: HoldRules = _LONG,
    before: Callable[[_Scene], None] = _nothing,
    synthesize: bool = False,
) -> AsyncIterator[_Scene]:
    """A scene one second after the start."""
    async with network() as net:
        scene = _Scene(net, nodes, rules, synthesize)
        before(scene)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scene.hold_timer.run)
            nursery.start_soon(scene.refresher.run)
            await trio.sleep(1)
            yield scene
            nursery.cancel_scope.cancel()


# Who is asked, and where.


async def test_its_own_broker_is_asked_upstream_and_the_others_where_they_are_shown(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        assert scene.addresses()[0] == _upstream(1)
        assert sorted(scene.addresses()[1:]) == sorted([_shown(2), _shown(3)])
        assert scene.route.broker.node == 1
        assert scene.leader(1) == Leader(2, 6)
        assert scene.route.broker.endpoints[3] == Endpoint("three", 9092, None)
        assert scene.route.broker.reachable


async def test_nobody_else_is_asked_before_it_is_known_who_is_who(
    autojump_clock: MockClock,
) -> None:
    """What is shown might be the address of the route itself."""

    def without_leaders(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(-1, 5)]}

    async with _scene(1, before=without_leaders) as scene:
        await trio.sleep(5)
        assert scene.route.broker.node is None
        assert scene.addresses() == [_upstream(1)]


@pytest.mark.parametrize("order", [(1, 2, 3), (2, 1, 3), (3, 2, 1)])
async def test_a_broker_that_is_cut_off_is_taken_for_nobody_else_at_a_start(
    autojump_clock: MockClock, order: tuple[int, ...]
) -> None:
    """It leads a former topic of the name at the epoch at which another node leads the present one.

    All are asked together, so others' answers come between its own and the next question to it.
    """

    def cut_off(scene: _Scene) -> None:
        for node, broker in scene.brokers.items():
            leader = 1 if node == 1 else 2
            broker.leaders = {"t": [(leader, 0), (leader if node == 1 else 3, 2)]}
            broker.ids = {"t": (b"o" if node == 1 else b"n") * 16}

    async with _scene(*order, before=cut_off) as scene:
        for _ in range(200):
            for node, route in zip(order, scene.routes, strict=True):
                assert route.broker.proved_node in (None, node)
            await trio.sleep(1)


async def test_a_broker_that_does_not_list_itself_yet_is_taken_for_nobody_else(
    autojump_clock: MockClock,
) -> None:
    """As a KRaft broker that restarts, while another one leads nothing."""

    def restarted(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(2, 6)]}
            broker.brokers = _SHOWN[1:]

    async with _scene(1, before=restarted) as scene:
        for broker in scene.brokers.values():
            broker.brokers = list(_SHOWN)
        await trio.sleep(10)
        assert scene.route.broker.node is None
        assert _shown(1) not in scene.addresses()
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(1, 7)]}
        scene.hold()
        await trio.sleep(0.1)
        assert scene.leader() == Leader(1, 7)
        assert scene.route.broker.proved_node == 1
        assert _shown(1) not in scene.addresses()


async def test_who_is_guessed_gives_no_word_of_that_node(autojump_clock: MockClock) -> None:
    """It is listed late, and leads before it is."""

    def never_listed(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(2, 6)]}
            broker.brokers = _SHOWN[1:]

    async with _scene(1, before=never_listed) as scene:
        await trio.sleep(5)
        assert (scene.route.broker.node, scene.route.broker.proved_node) == (3, None)
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(1, 7)]}
            broker.answers[METADATA] = _lagging
        scene.hold()
        await trio.sleep(0.1)
        assert scene.leader() == Leader(2, 6)


async def test_a_broker_is_not_proved_by_what_it_has_said_under_another_nodes_name(
    autojump_clock: MockClock,
) -> None:
    """Two brokers come back at each other's address. One leads before its Metadata lists it."""
    async with _scene(1) as scene:
        assert scene.route.broker.proved_node == 1
        there = scene.brokers[3]
        scene.net.brokers[_upstream(1)] = there
        scene.net.brokers[_shown(3)] = scene.brokers[1]
        await scene.brokers[1].drop()
        await there.drop()
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(3, 6), (2, 6), (2, 8)]}
            broker.brokers = [Broker(1, "three", 9092), _SHOWN[1], Broker(3, "one", 9092)]
            broker.answers[METADATA] = _lagging
        there.answers[METADATA] = lambda correlation, version: messages.metadata_response(
            correlation, version, [], {}
        )
        await trio.sleep(0.2)
        scene.hold(epoch=5)
        await trio.sleep(0.02)
        assert scene.leader() == Leader(1, 6)
        for broker in scene.brokers.values():
            broker.answers.pop(METADATA)
        await trio.sleep(1)
        assert scene.leader() == Leader(3, 6)
        assert scene.route.broker.proved_node == 3


async def _swap_while_metadata_lags(scene: _Scene) -> None:
    """Brokers 2 and 3 come back at each other's address; broker 2 says that it leads before any
    Metadata lists it there.
    """
    for node, other in ((2, 3), (3, 2)):
        scene.net.brokers[_shown(node)] = scene.brokers[other]
        await scene.brokers[node].drop()
    for broker in scene.brokers.values():
        broker.leaders = {"t": [(2, 6)] * 3}
        broker.answers[METADATA] = _lagging
    await trio.sleep(0.2)
    scene.hold(epoch=5)
    await trio.sleep(0.02)


async def test_what_a_broker_says_at_the_address_of_one_behind_no_route_is_not_that_ones(
    autojump_clock: MockClock,
) -> None:
    """Two brokers come back at each other's address. One leads before any Metadata lists it."""
    async with _scene(1) as scene:
        await _swap_while_metadata_lags(scene)
        assert scene.leader() == Leader(3, 6)
        for broker in scene.brokers.values():
            broker.brokers = _SWAPPED
            broker.answers.pop(METADATA)
        scene.hold(partition=1, epoch=6)
        await trio.sleep(0.1)
        assert scene.leader() == Leader(2, 6)


async def test_what_was_said_at_a_nodes_address_is_withdrawn_if_it_comes_back_elsewhere(
    autojump_clock: MockClock,
) -> None:
    """As above, but Metadata lists neither of the two for a moment: they restart."""
    async with _scene(1) as scene:
        await _swap_while_metadata_lags(scene)
        assert scene.leader() == Leader(3, 6)
        for listed in (_SHOWN[:1], _SWAPPED):
            frame = messages.metadata_response(9, 12, listed, {})
            scene.refresher.snooped(scene.route, 12, frame[4:])
        # A hint named node 3 at its new address, where it leads nothing.
        assert scene.leader() == Leader(-1, 6)


async def test_a_broker_that_leads_nothing_is_distinguished_from_leaders_after_a_second(
    autojump_clock: MockClock,
) -> None:
    """A refusal must last that long, and not until the next of ever rarer looks."""

    def it_leads_nothing(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(2, 6), (3, 7)]}

    async with _scene(1, before=it_leads_nothing) as scene:
        await trio.sleep(0.05)
        assert sorted(scene.addresses()) == sorted([_upstream(1), _shown(2), _shown(3)])
        probes = [a.at for a in scene.brokers[1].asked if a.key == LIST_OFFSETS]
        assert [round(at - scene.begin, 6) for at in probes] == [0, 0.25, 0.75, 1.0]


def _lead_others(scene: _Scene) -> None:
    """Have the first broker lead nothing."""
    for broker in scene.brokers.values():
        broker.leaders = {"t": [(2, 6), (3, 7)]}


async def _looks(scene: _Scene, moves: Sequence[int], seconds: float) -> int:
    """Have a partition move to each of these nodes; return how often the first broker was asked
    which node it is.

    ``seconds``: between two moves.
    """
    scene.brokers[1].asked.clear()
    _, former = scene.brokers[1].leaders["t"][0]
    for epoch, node in enumerate(moves, former + 1):
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(node, epoch), (3, 7)]}
        led = {"t": [messages.Partition(0, node, epoch)]}
        frame = messages.metadata_response(9, 12, _SHOWN, led)
        scene.refresher.snooped(scene.route, 12, frame[4:])
        await trio.sleep(seconds)
    return len([a for a in scene.brokers[1].asked if a.key == LIST_OFFSETS])


async def test_moves_between_other_nodes_have_no_broker_identified_again(
    autojump_clock: MockClock,
) -> None:
    """For each look all topics are looked at: 40 moves in 20 s brought 40."""
    async with _scene(1, before=_lead_others) as scene:
        await trio.sleep(100)
        assert scene.route.broker.others == {2, 3}
        # That of a poll.
        assert await _looks(scene, [2, 3] * 20, 0.5) <= 1
        # It comes to lead something itself.
        await _looks(scene, [2, 1], 0.5)
        assert scene.route.broker.proved_node == 1


async def test_moves_have_a_broker_identified_at_most_each_ten_seconds(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, before=_lead_others) as scene:
        await trio.sleep(100)
        unknown = {("t", 0): _NO_ANSWER, ("t", 1): _NO_ANSWER}
        scene.brokers[1].answers[LIST_OFFSETS] = lambda correlation, version: (
            messages.list_offsets_response(correlation, unknown)
        )
        # Four, and that of a poll.
        assert await _looks(scene, [1] * 70, 0.5) <= 5
        del scene.brokers[1].answers[LIST_OFFSETS]
        assert scene.route.broker.proved_node is None
        await _looks(scene, [1], 10)
        assert scene.route.broker.proved_node == 1


async def test_while_its_connection_flaps_other_brokers_stay_connected(
    autojump_clock: MockClock,
) -> None:
    """A second passed at each until it was known again which of them are others."""
    async with _scene(1, before=_lead_others) as scene:
        await trio.sleep(10)
        scene.net.attempts.clear()
        for pause in (0.3, 0.5, 5):
            for stream in [*scene.brokers[1].streams]:
                await stream.aclose()
            await trio.sleep(pause)
        assert {*scene.addresses()} == {_upstream(1)}
        assert [len(scene.brokers[node].streams) for node in (1, 2, 3)] == [1, 1, 1]
        assert scene.route.broker.others == {2, 3}
        assert not scene.route.broker.former_others


async def test_so_it_is_from_one_that_comes_to_lead_later(autojump_clock: MockClock) -> None:
    """Until then the proxy's own broker may be that one, and what it is shown as is not asked."""

    def one_leads(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(2, 6)] * 3}

    async with _scene(1, before=one_leads) as scene:
        # The looks are as rare as polls by then.
        await trio.sleep(100)
        assert scene.route.broker.node is None
        assert _shown(3) not in scene.addresses()
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(3, 7), (2, 6), (2, 6)]}
        scene.hold(epoch=6)
        await trio.sleep(1.1)
        assert scene.leader() == Leader(3, 7)
        assert scene.route.broker.node == 1
        assert _shown(3) in scene.addresses()


async def test_a_restarted_broker_is_the_one_that_it_was(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        assert scene.route.broker.proved_node == 1
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(2, 6)] * 3}
            broker.brokers = _SHOWN[1:]
        await scene.brokers[1].drop()
        await trio.sleep(5)
        assert scene.route.broker.proved_node == 1
        asked = len(scene.brokers[1].metadata())
        for broker in scene.brokers.values():
            broker.brokers = list(_SHOWN)
        # It is asked soon again: until then nobody can be sent to it.
        await trio.sleep(10)
        assert len(scene.brokers[1].metadata()) > asked
        assert 1 in scene.route.broker.endpoints
        assert _shown(1) not in scene.addresses()


async def test_with_a_route_to_each_broker_only_those_are_asked(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, 2, 3) as scene:
        await trio.sleep(100)
        assert sorted(scene.addresses()) == [_upstream(1), _upstream(2), _upstream(3)]
        assert [route.broker.node for route in scene.routes] == [1, 2, 3]
        assert len({id(route.broker.view) for route in scene.routes}) == 1


async def test_a_broker_behind_a_route_is_never_asked_through_it_even_if_it_starts_late(
    autojump_clock: MockClock,
) -> None:
    def second_is_down(scene: _Scene) -> None:
        del scene.net.brokers[_upstream(2)]

    async with _scene(1, 2, before=second_is_down) as scene:
        await trio.sleep(40)
        assert _shown(2) not in scene.addresses()
        scene.net.brokers[_upstream(2)] = scene.brokers[2]
        await trio.sleep(100)
        assert scene.routes[1].broker.node == 2
        assert _shown(2) not in scene.addresses()
        assert _shown(3) in scene.addresses()


async def test_a_broker_that_leaves_is_asked_no_more(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        assert len(scene.brokers[3].streams) == 1
        scene.brokers[1].brokers.pop()
        await trio.sleep(40)
        assert scene.brokers[3].streams == []
        assert len(scene.brokers[2].streams) == 1
        assert 3 not in scene.route.broker.endpoints


async def test_a_defect_in_who_is_asked_costs_one_piece_of_work(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a task of its own, and what that raises would end the process."""
    begin, broken = OtherPollers._begin, [3]

    def begin_or_fail(pollers: OtherPollers, cluster_id: str, node: int) -> None:
        if node in broken:
            raise KeyError("a defect")
        begin(pollers, cluster_id, node)

    monkeypatch.setattr(OtherPollers, "_begin", begin_or_fail)
    async with _scene(1) as scene:
        assert [event.task for event in scene.told(TaskFailed)] == ["subscription"]
        assert len(scene.brokers[1].streams) == len(scene.brokers[2].streams) == 1
        assert scene.brokers[3].streams == []
        broken.clear()
        scene.brokers[1].brokers.append(Broker(4, "three", 9093))
        await trio.sleep(40)
        assert len(scene.brokers[3].streams) == 1


async def test_who_answers_where_another_is_advertised_is_not_asked(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        assert len(scene.brokers[3].streams) == 1
        view = scene.route.broker.view
        assert view is not None
        view.misled = frozenset({(3, scene.route.broker.endpoints[3])})
        await trio.sleep(40)
        assert scene.brokers[3].streams == []
        view.misled = frozenset()
        await trio.sleep(40)
        assert len(scene.brokers[3].streams) == 1


async def test_a_broker_that_moves_is_asked_at_its_new_address(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        moved = Address("elsewhere", 9)
        scene.net.brokers[moved] = FakeBroker(3, list(_SHOWN), _BEFORE)
        scene.brokers[1].brokers[2] = Broker(3, "elsewhere", 9)
        await trio.sleep(40)
        assert scene.brokers[3].streams == []
        assert len(scene.net.brokers[moved].streams) == 1
        assert len(scene.addresses()) == 4


async def test_a_broker_that_moves_while_it_is_connected_to_is_asked_at_its_new_address(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another broker answered at the former address, that one was asked until it ended."""
    connect = FakeNetwork.open

    async def connect_slowly(
        net: FakeNetwork, address: Address, patience: float
    ) -> trio.abc.Stream:
        stream = await connect(net, address, patience)
        await trio.sleep(0.5)
        return stream

    async with _scene(1) as scene:
        route = Route("local", Mode.ON)
        monkeypatch.setattr(FakeNetwork, "open", connect_slowly)
        scene.refresher.follow(route, _upstream(2))
        await trio.sleep(0.1)
        scene.refresher.move(route, _upstream(3))
        await trio.sleep(600)
        assert route.broker.proved_node == 3


async def test_a_broker_that_moves_while_it_answers_a_poll_is_asked_at_its_new_address(
    autojump_clock: MockClock,
) -> None:
    """It was asked at its new address only when the next poll was due."""
    async with _scene(1) as scene:
        route, gate = Route("local", Mode.ON), trio.Event()
        scene.brokers[2].gate = gate
        scene.refresher.follow(route, _upstream(2))
        await trio.sleep(0.1)
        scene.refresher.move(route, _upstream(3))
        gate.set()
        await trio.sleep(5)
        assert route.broker.proved_node == 3


async def test_routes_of_two_listeners_do_not_fight_over_addresses(
    autojump_clock: MockClock,
) -> None:
    """Both are in front of node 1; what the other brokers are called depends on the listener."""

    def second_listener(scene: _Scene) -> None:
        inner = [Broker(shown.node, f"inner-{shown.host}", 9093) for shown in _SHOWN]
        scene.net.brokers[_upstream(2)] = FakeBroker(1, inner, _BEFORE)

    async with _scene(1, 2, before=second_listener) as scene:
        await trio.sleep(100)
        assert len(scene.addresses()) == 4
        assert scene.routes[0].broker.endpoints[2] == Endpoint("two", 9092, None)
        assert scene.routes[1].broker.endpoints[2] == Endpoint("inner-two", 9093, None)


async def test_what_a_broker_advertises_may_be_out_of_reach(autojump_clock: MockClock) -> None:
    def third_is_down(scene: _Scene) -> None:
        del scene.net.brokers[_shown(3)]

    async with _scene(1, before=third_is_down) as scene:
        await trio.sleep(20)
        (lost,) = scene.told(SubscriptionLost)
        assert lost == SubscriptionLost(
            broker="three:9092", error="cannot connect: connection refused"
        )
        assert scene.route.broker.reachable


# What is learnt of whom.


async def test_others_report_moves_but_not_of_endpoints(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        for node in (2, 3):
            scene.brokers[node].leaders = _AFTER
            scene.brokers[node].brokers = [Broker(2, "internal", 1)]
        scene.hold()
        await trio.sleep(0.1)
        assert scene.leader() == Leader(2, 6)
        assert scene.route.broker.endpoints[2] == Endpoint("two", 9092, None)
        (settled,) = scene.settled
        assert settled[1] == [LeaderHint(2, 6, Endpoint("two", 9092, None))]
        (moved,) = scene.told(LeaderMoved)
        assert (moved.leader_before, moved.epoch_before, moved.leader, moved.epoch) == (1, 5, 2, 6)


async def test_no_epoch_that_a_client_claims_ends_a_connection(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        connected = len(scene.addresses())
        scene.hold(epoch=2**31 - 1)
        await trio.sleep(5)
        assert len(scene.addresses()) == connected
        assert scene.told(TaskFailed) == []
        assert scene.route.broker.reachable


async def test_a_name_that_is_too_long_to_ask_for_ends_its_own_brokers_connection(
    autojump_clock: MockClock,
) -> None:
    """Once in the view, it was asked of all brokers which of them leads it."""

    def answers_nonsense(scene: _Scene) -> None:
        scene.brokers[3].leaders = {"x" * 40_000: [(3, 5)], **_BEFORE}
        scene.brokers[3].answers[METADATA] = lambda correlation, version: (
            messages.metadata_response(
                correlation, version, _SHOWN, {"x" * 40_000: [messages.Partition(0, 3, 5)]}
            )
        )

    async with _scene(1, before=answers_nonsense) as scene:
        scene.hold()
        await trio.sleep(15)
        assert {lost.broker for lost in scene.told(SubscriptionLost)} == {"three:9092"}
        assert scene.route.broker.reachable


async def test_what_a_storm_makes_is_shared_among_refreshes(autojump_clock: MockClock) -> None:
    """Twenty topics of 300 partitions, and 2000 partitions at most are asked for at once."""
    topics = {f"t{number}": [(1, 5)] * 300 for number in range(20)}

    def large(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders = {**topics, "other": [(2, 5), (3, 5)]}

    def asked(scene: _Scene) -> list[tuple[int, str]]:
        return [
            (node, topic)
            for node, broker in scene.brokers.items()
            for question in broker.metadata()
            if question.at > scene.begin + 1
            for topic in question.topics or ()
        ]

    async with _scene(1, before=large) as scene:
        await trio.sleep(0.001)
        for topic in topics:
            scene.hold(topic)
        await trio.sleep(0.005)
        assert asked(scene) == [(1, topic) for _, topic in asked(scene)]
        assert len(asked(scene)) == 6
        await trio.sleep(0.04)
        assert {*asked(scene)} >= {(1, topic) for topic in topics}
        await trio.sleep(3)
        assert {*asked(scene)} == {(node, topic) for node in (1, 2, 3) for topic in topics}


async def test_in_a_storm_only_who_is_said_to_lead_is_asked_whether_it_does(
    autojump_clock: MockClock,
) -> None:
    def large(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(1, 5)] * 700, "other": [(2, 5), (3, 5)]}

    def asked(node: int) -> int:
        return sum(
            question.key == LIST_OFFSETS and question.at > scene.begin + 1
            for question in scene.brokers[node].asked
        )

    async with _scene(1, before=large) as scene:
        await trio.sleep(0.001)
        for partition in range(700):
            scene.hold(partition=partition)
        await trio.sleep(0.1)
        assert [asked(node) for node in (1, 2, 3)] == [0, 0, 0]
        moved: Leaders = {"t": [(3, 6)] * 700, "other": [(2, 5), (3, 5)]}
        scene.brokers[1].leaders = scene.brokers[2].leaders = moved
        await trio.sleep(0.1)
        assert [asked(node) > 0 for node in (1, 2, 3)] == [False, False, True]
        assert scene.settled == []
        scene.brokers[3].leaders = moved
        await trio.sleep(0.2)
        assert len(scene.settled) == 700


async def test_a_leaders_confirmation_counts_while_all_metadata_lags(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        scene.brokers[2].answers[METADATA] = _lagging
        scene.brokers[2].leaders = _AFTER
        scene.hold()
        await trio.sleep(0.005)
        assert scene.settled == [(1.0, [LeaderHint(2, 6, Endpoint("two", 9092, None))])]
        assert scene.leader() == Leader(2, 6)
        assert len(scene.told(LeaderMoved)) == 1


@pytest.mark.parametrize("recreated", [(2, 2), (3, 2), (1, 2), (2, 8)])
async def test_a_topic_that_was_recreated_unseen_is_hinted_as_its_own_leader_has_it(
    recreated: tuple[int, int], autojump_clock: MockClock
) -> None:
    """Without ids nothing but the brokers' answers tells it from the former topic."""

    def former(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(3, 8), (1, 5)]}

    async with _scene(1, before=former) as scene:
        assert scene.leader() == Leader(3, 8)
        for broker in scene.brokers.values():
            broker.leaders = {"t": [recreated, (1, 5)]}
        scene.hold()
        await trio.sleep(1)
        assert scene.leader() == Leader(*recreated)
        hinted = [(h.leader, h.epoch) for _, hints in scene.settled for h in hints if h]
        assert hinted == [recreated]


async def test_metadata_that_is_not_taken_makes_no_hint_of_what_was_known_before(
    autojump_clock: MockClock,
) -> None:
    """A controller of before topic ids has its brokers forget them: their answers have none."""

    def with_ids(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders, broker.ids = {"t": [(2, 6), (1, 5), (3, 7)]}, {"t": bytes(15) + b"\2"}

    async with _scene(1, before=with_ids) as scene:
        assert scene.leader() == Leader(2, 6)
        for broker in scene.brokers.values():
            broker.leaders, broker.ids = {"t": [(3, 8), (1, 5), (3, 7)]}, {}
            # Nobody says of itself that it leads.
            broker.answers[LIST_OFFSETS] = lambda correlation, version: (
                messages.list_offsets_response(correlation, {("t", 0): _NO_ANSWER})
            )
        scene.hold()
        await trio.sleep(0.5)
        assert scene.settled == []


async def test_a_leader_that_says_that_it_does_not_lead_yet_is_waited_for(
    autojump_clock: MockClock,
) -> None:
    """As with KRaft, where each broker takes the news at its own time."""
    async with _scene(1) as scene:
        scene.brokers[3].leaders = _AFTER
        scene.hold()
        await trio.sleep(0.2)
        assert scene.leader() == Leader(2, 6)
        assert scene.settled == []
        scene.brokers[2].leaders = _AFTER
        await trio.sleep(0.011)
        (settled,) = scene.settled
        assert settled[1] == [LeaderHint(2, 6, Endpoint("two", 9092, None))]


async def test_who_is_behind_a_route_is_looked_for_when_leaders_move(
    autojump_clock: MockClock,
) -> None:
    def without_leaders(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(-1, 4)]}

    async with _scene(1, before=without_leaders) as scene:
        assert scene.route.broker.node is None
        scene.brokers[1].leaders = {"t": [(1, 5)]}
        scene.hold()
        await trio.sleep(0.005)
        assert scene.route.broker.node == 1


async def test_another_clusters_broker_at_an_address_teaches_nothing(
    autojump_clock: MockClock,
) -> None:
    def other_cluster(scene: _Scene) -> None:
        scene.brokers[3].answers[METADATA] = lambda correlation, version: (
            messages.metadata_response(
                correlation,
                version,
                _SHOWN,
                {"t": [messages.Partition(0, 3, 99)]},
                cluster="another",
            )
        )

    async with _scene(1, before=other_cluster, synthesize=True) as scene:
        assert scene.leader() == Leader(1, 5)
        assert [known.view.cluster_id for known in scene.refresher._answers.clusters] == ["k"]
        assert scene.refresher.all_asked.is_set()
        asked = len(scene.brokers[3].metadata())
        scene.hold()
        await trio.sleep(0.1)
        assert scene.leader() == Leader(1, 5)
        assert len(scene.brokers[3].metadata()) == asked


async def test_metadata_that_goes_by_releases_what_is_held(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        for broker in scene.brokers.values():
            broker.gate = trio.Event()  # Only the client's own Metadata gets an answer.
        scene.hold()
        after = {"t": [messages.Partition(0, 2, 6)]}
        frame = messages.metadata_response(9, 12, _SHOWN, after)
        scene.refresher.snooped(scene.route, 12, frame[4:])
        await trio.sleep(0.5)
        assert scene.settled == [(1.025, [LeaderHint(2, 6, Endpoint("two", 9092, None))])]


async def test_moves_that_metadata_shows_as_it_goes_by_are_reported_in_steps(
    autojump_clock: MockClock,
) -> None:
    """2,400 at once, with a journal, took 0.05 s of one step, and 0.1 s with 100 routes."""
    async with _scene(1) as scene:

        def goes_by(epoch: int) -> None:
            led = [messages.Partition(number, 2, epoch) for number in range(1000)]
            frame = messages.metadata_response(9, 12, _SHOWN, {"u": led})
            scene.refresher.snooped(scene.route, 12, frame[4:])

        goes_by(5)
        assert not scene.told(EpochRose)
        goes_by(6)
        assert 0 < len(scene.told(EpochRose)) <= 200
        await trio.sleep(0.1)
        assert [moved.partition for moved in scene.told(EpochRose)] == [*range(1000)]


async def test_so_are_those_of_many_topics(autojump_clock: MockClock) -> None:
    """1,200 of 30 topics took 20 ms of one step, and 75 ms with 300 routes."""
    async with _scene(1) as scene:

        def goes_by(epoch: int) -> None:
            led = [messages.Partition(number, 2, epoch) for number in range(40)]
            topics = {f"u{number}": led for number in range(30)}
            frame = messages.metadata_response(9, 12, _SHOWN, topics)
            scene.refresher.snooped(scene.route, 12, frame[4:])

        goes_by(5)
        goes_by(6)
        assert 0 < len(scene.told(EpochRose)) <= 200
        await trio.sleep(0.1)
        told = [(moved.topic, moved.partition) for moved in scene.told(EpochRose)]
        assert told == [(f"u{topic}", number) for topic in range(30) for number in range(40)]


async def test_metadata_of_many_topics_that_goes_by_is_taken_in_steps(
    autojump_clock: MockClock,
) -> None:
    """1,600 topics, or 5,000 that are unknown, took 20 to 33 ms of one step."""
    async with _scene(1) as scene:
        view = scene.route.broker.known
        led = {f"u{number}": [messages.Partition(0, 2, 5)] for number in range(1600)}
        frame = messages.metadata_response(9, 12, _SHOWN, led)
        assert lines_of(lambda: scene.refresher.snooped(scene.route, 12, frame[4:])) < 100_000
        assert 0 < len(view.topics.names) < 600
        await trio.sleep(0.1)
        assert len(view.topics.names) == 1601
        # Of so many at the same time only the beginning is taken.
        broken, raw = frame[4:-12], scene.route.traffic.raw
        for _ in range(40):
            scene.refresher.snooped(scene.route, 12, broken)
        await trio.sleep(0.1)
        assert 0 < raw["not understood"] < 40


async def test_so_is_that_of_many_topics_that_are_unknown(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        names = [f"u{number}" for number in range(3000)]
        errors = dict.fromkeys(names, _NO_ANSWER)
        frame = messages.metadata_response(9, 12, _SHOWN, dict.fromkeys(names, ()), errors=errors)
        assert lines_of(lambda: scene.refresher.snooped(scene.route, 12, frame[4:])) < 70_000


async def test_metadata_of_a_large_topic_that_goes_by_is_taken_in_steps(
    autojump_clock: MockClock,
) -> None:
    """2,400 partitions of one topic took 6 ms of one step, and 11 to 14 ms where all had moved."""
    async with _scene(1) as scene:
        view = scene.route.broker.known
        for epoch in (5, 5, 6):
            led = [messages.Partition(number, 2, epoch) for number in range(2400)]
            frame = messages.metadata_response(9, 12, _SHOWN, {"u": led})
            steps = scene.refresher._answers._passing(scene.route, 12, frame[4:])
            assert most_lines(steps) < 90_000
            assert view.leader("u", 2399) == Leader(2, epoch)
        await trio.sleep(1)
        assert [moved.partition for moved in scene.told(EpochRose)] == [*range(2400)]


def _large(topics: int, partitions: int, leader: tuple[int, int]) -> list[TopicMetadata]:
    led = tuple(Led(partition, *leader) for partition in range(partitions))
    return [TopicMetadata(0, f"u{number}", metadata.ZERO_ID, led) for number in range(topics)]


async def test_a_part_of_a_large_topic_that_goes_by_takes_no_longer_than_it_is_large(
    autojump_clock: MockClock,
) -> None:
    """82 bytes about a topic of 100,000 partitions, without ids, took 28 ms of one step."""
    async with _scene(1) as scene:
        (large,) = _large(1, 20_000, (2, 5))
        scene.route.broker.known.learn(large, 2)
        frame = messages.metadata_response(9, 9, _SHOWN, {"u0": [messages.Partition(0, 2, 5)]})
        assert lines_of(lambda: scene.refresher.snooped(scene.route, 9, frame[4:])) < 1000


async def test_moves_that_go_by_and_many_routes_contradicted_are_learnt_in_short_steps(
    autojump_clock: MockClock,
) -> None:
    """2,000 with 300 routes took 120 ms of one step."""
    async with _scene(1) as scene:
        view = scene.route.broker.known
        for leader in ((2, 8), (3, 0)):
            for node in range(200):
                (reported,) = _large(1, 1000, leader)
                view.learn(reported, node, route=f"r{node}", poll=leader == (3, 0))
        led = [messages.Partition(number, 1, 9) for number in range(1000)]
        frame = messages.metadata_response(9, 9, _SHOWN, {"u0": led})
        steps = scene.refresher._answers._passing(scene.route, 9, frame[4:])
        assert most_lines(steps) < 100_000
        assert view.leader("u0", 999) == Leader(1, 9)


async def test_topics_that_are_gone_by_what_goes_by_are_forgotten_in_short_steps(
    autojump_clock: MockClock,
) -> None:
    """500 of 200 partitions, of which many had moved, took 22 ms of one step."""
    async with _scene(1) as scene:
        view, names = scene.route.broker.known, [f"u{number}" for number in range(200)]
        for leader in ((2, 5), (1, 6)):
            for topic in _large(200, 200, leader):
                view.learn(topic, 2)
        errors = dict.fromkeys(names, _NO_ANSWER)
        frame = messages.metadata_response(9, 9, _SHOWN, dict.fromkeys(names, ()), errors=errors)
        steps = scene.refresher._answers._passing(scene.route, 9, frame[4:])
        assert most_lines(steps) < 100_000
        assert [*view.topics.names] == ["t"]


@pytest.mark.parametrize("routes", [(1,), (1, 2, 3)])
async def test_a_replica_that_comes_back_is_in_sync_again_at_the_next_polls(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, routes: Sequence[int]
) -> None:
    """A leader behind no route was asked once, after a move: it never took the replica back."""
    monkeypatch.setattr(f"{__name__}._SETTINGS", replace(_SETTINGS, in_sync=True))
    async with _scene(*routes) as scene:

        async def then_known(*in_sync: int) -> tuple[int, ...] | None:
            for broker in scene.brokers.values():
                broker.in_sync = in_sync
            await trio.sleep(3 * _SETTINGS.poll)
            return scene.route.broker.known.in_sync("t", 0)

        for broker in scene.brokers.values():
            broker.leaders = _AFTER
        scene.hold(epoch=5)
        assert await then_known(1, 2, 3) == (1, 2, 3)
        assert await then_known(2, 3) == (2, 3)
        assert await then_known(2, 3, 1) == (2, 3, 1)


@pytest.mark.parametrize("asked", [True, False], ids=["asked", "goes by"])
async def test_what_was_noted_of_a_large_topic_that_is_gone_is_dropped_in_steps(
    autojump_clock: MockClock, *, asked: bool
) -> None:
    async with _scene(1) as scene:
        view, answers = scene.route.broker.known, scene.refresher._answers
        for node, epoch in ((2, 5), (3, 4)):
            led = [Led(partition, node, epoch) for partition in range(6000)]
            view.learn(TopicMetadata(0, "u", metadata.ZERO_ID, tuple(led)), node)
        assert len(view.disagreements) == 6000
        for errors in ({"u": _NO_ANSWER}, {}):
            frame = messages.metadata_response(9, 12, _SHOWN, {"u": []}, errors=errors)[4:]
            steps: Iterator[None] = answers._passing(scene.route, 12, frame)
            if asked:
                (cluster,), poller = answers.clusters, answers.pollers.own[0]
                reader = Reader(frame, 5)
                answer = metadata.read_response(reader, 12)
                steps = answers._learning(poller, cluster, answer, set(), 0.0, poll=True)
            assert most_lines(steps) < 20_000
        assert not view.disagreements


async def test_a_defect_in_the_rest_of_metadata_that_goes_by_ends_only_that(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _scene(1) as scene:
        view = scene.route.broker.known
        led = {f"u{number}": [messages.Partition(0, 2, 5)] for number in range(1600)}
        frame = messages.metadata_response(9, 12, _SHOWN, led)
        scene.refresher.snooped(scene.route, 12, frame[4:])
        with monkeypatch.context() as patched:
            patched.setattr(view, "learning", None)
            await trio.sleep(0.1)
        assert [failed.task for failed in scene.told(TaskFailed)] == ["subscription"]
        scene.refresher.snooped(scene.route, 12, frame[4:])
        await trio.sleep(0.1)
        assert len(view.topics.names) == 1601


async def test_moves_before_metadata_that_goes_by_breaks_off_are_reported(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        for epoch in (5, 6):
            topics = {name: [messages.Partition(0, 2, epoch)] for name in ("u", "v")}
            frame = messages.metadata_response(9, 12, _SHOWN, topics)
            broken = frame[4 : len(frame) if epoch == 5 else -12]
            scene.refresher.snooped(scene.route, 12, broken)
        assert [moved.topic for moved in scene.told(EpochRose)] == ["u"]
        assert scene.route.traffic.raw["not understood"] == 1


async def test_metadata_that_goes_by_broken_is_counted(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        frame = messages.metadata_response(9, 12, _SHOWN, {"t": [messages.Partition(0, 2, 6)]})
        for length in range(4, len(frame) - 5):
            scene.refresher.snooped(scene.route, 12, frame[4:length])
        assert scene.route.traffic.raw["not understood"] == len(frame) - 9
        # Brokers behind the point where it broke off have not left.
        assert set(scene.route.broker.endpoints) == {1, 2, 3}


async def test_metadata_that_goes_by_costs_little_in_a_cluster_of_a_thousand_brokers(
    autojump_clock: MockClock,
) -> None:
    """It is read between two looks at other links; each response once took 7 ms."""
    async with _scene(1) as scene:
        many = [Broker(node, f"broker-{node}.example.com", 9092) for node in range(1, 1001)]
        frame = messages.metadata_response(9, 12, many, {})
        scene.refresher.snooped(scene.route, 12, frame[4:])
        assert len(scene.route.broker.endpoints) == 1000
        begun = process_time()
        for _ in range(300):
            scene.refresher.snooped(scene.route, 12, frame[4:])
        assert process_time() - begun < 0.5
        fewer = messages.metadata_response(9, 12, many[:-1], {})
        scene.refresher.snooped(scene.route, 12, fewer[4:])
        assert len(scene.route.broker.endpoints) == 999


async def test_a_broker_that_a_client_cannot_reach_is_asked_at_once(
    autojump_clock: MockClock,
) -> None:
    """One that is cut off without a word counted as answering for as long as a poll's pause."""
    async with _scene(1) as scene:
        await trio.sleep(1)
        asked = len(scene.brokers[1].asked)
        scene.refresher.missed(scene.route)
        await trio.sleep(1)
        # It answers: that was one question, and changes nothing.
        assert len(scene.brokers[1].asked) == asked + 1
        assert scene.refresher.upstream(scene.route).answers
        scene.brokers[1].gate = trio.Event()
        scene.refresher.missed(scene.route)
        await trio.sleep(_SETTINGS.answer + 0.1)
        assert scene.told(SubscriptionLost)[-1].broker == str(_upstream(1))
        assert not scene.refresher.upstream(scene.route).answers


async def test_whether_a_broker_answers_is_asked_with_little(autojump_clock: MockClock) -> None:
    """One that took some clients and others not was asked each time which node it is: for that all
    topics are looked at.
    """
    async with _scene(1) as scene:
        await trio.sleep(1)
        view = scene.route.broker.view
        assert view is not None
        large = tuple(Led(partition, 1, 5) for partition in range(100))
        for number, partitions in enumerate((large, large[:1], large), 1):
            topic = TopicMetadata(0, f"a {number}", number.to_bytes(16, "big"), partitions)
            view.learn(topic, None)
        asked = len(scene.brokers[1].asked)
        for _ in range(10):
            scene.refresher.missed(scene.route)
            await trio.sleep(0.05)
        questions = scene.brokers[1].asked[asked:]
        assert len(questions) == 10
        for question in questions:
            assert question.key == METADATA
            assert [*map(view.partitions, question.topics or ())] == [1]


async def test_brokers_that_list_each_other_are_read_and_kept_once(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand answers with a thousand brokers each took 3 s, and as many lists stayed."""
    read = 0

    def counted(*fields: Any) -> metadata.Brokers:
        nonlocal read
        read += 1
        return made(*fields)

    made = metadata.Brokers
    monkeypatch.setattr(metadata, "Brokers", counted)
    many = [Broker(node, f"b-{node}", 9092) for node in range(1, 51)]
    monkeypatch.setattr(f"{__name__}._SHOWN", many)
    async with _scene(1) as scene:
        await trio.sleep(1)
        assert all(broker.metadata() for broker in scene.brokers.values())
    # That of the route's own broker, at its upstream address, and that of all others.
    assert read == 2


async def test_what_counted_as_a_replaced_brokers_counts_no_more(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker has another id now, at the same upstream address, and leads nothing at first. What
    it reported counted as its own and as the former one's: two of three said what one did.
    """
    monkeypatch.setattr(f"{__name__}._BEFORE", {"k": [(1, 5), (2, 5), (3, 5)], "t": [(1, 8)]})
    shown = [Broker(node, f"b{node}", 9092) for node in (1, 2, 3)]
    monkeypatch.setattr(f"{__name__}._SHOWN", shown)

    def tell_peers(scene: _Scene) -> None:
        peer_of = "leader_hints.net.brokers.broker_connection.peer_of"
        monkeypatch.setattr(peer_of, scene.net.peers.__getitem__)

    async with _scene(1, 2, 3, before=tell_peers) as scene:
        await trio.sleep(130)
        places = {node: Broker(node, f"b{node}", 9092) for node in (2, 3, 4)}
        new = FakeBroker(4, [*places.values()], {"k": [(-1, 6), (2, 5), (3, 5)], "t": [(3, 0)]})
        del scene.net.brokers[_shown(1)]
        scene.net.brokers[_upstream(1)] = scene.net.brokers[Address("b4", 9092)] = new
        scene.brokers[3].leaders, scene.brokers[3].brokers = new.leaders, new.brokers
        await scene.brokers[1].drop()
        await trio.sleep(5)
        # Broker 2 is cut off for a while.
        for led in ([(3, 0)], [(4, 1)]):
            for broker in (new, scene.brokers[3]):
                broker.leaders = {"k": [(4, 7), (2, 5), (3, 5)], "t": led}
            await trio.sleep(300)
        assert scene.routes[0].broker.proved_node == 4
        scene.brokers[2].leaders, scene.brokers[2].brokers = new.leaders, new.brokers
        await trio.sleep(300)
        assert scene.leader() == Leader(4, 1)
        assert not scene.routes[0].broker.known.disagreements


async def test_what_routes_brokers_list_is_kept_once(autojump_clock: MockClock) -> None:
    async with _scene(2) as scene:
        another = Route("r1", Mode.ON)
        scene.net.brokers[_upstream(1)] = scene.brokers[2]
        scene.refresher.follow(another, _upstream(1))
        await trio.sleep(1)
        assert another.broker.endpoints
        assert another.broker.endpoints is scene.route.broker.endpoints


async def test_brokers_of_a_large_cluster_are_connected_to_some_at_a_time(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a thousand began in one round of the event loop, six rounds of 40 ms each."""
    count = 200
    _show_many(monkeypatch, count, leaders=count)
    async with _scene(1, before=_count_attempts) as scene:
        per_round = scene.per_round
        assert sum(per_round) == count
        # They are cut off together, and come back together.
        for broker in scene.brokers.values():
            await broker.drop()
        await trio.sleep(1)
        assert sum(per_round) == 2 * count
        assert max(per_round) <= 10


async def test_others_get_their_turn_while_many_brokers_leave(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To drop a thousand at once stopped all links for 28 to 110 ms."""
    count = 200
    _show_many(monkeypatch, count, leaders=count)
    async with _scene(1) as scene:
        await trio.sleep(10)
        assert all(broker.streams for broker in scene.brokers.values())
        del scene.brokers[1].brokers[1:]
        steps = _Steps()
        trio.lowlevel.add_instrument(steps)
        poller = scene.refresher._pollers.of(scene.route)
        assert poller is not None
        poller.refresh([], everything=True)
        await trio.sleep(1)
        assert [node for node, broker in scene.brokers.items() if broker.streams] == [1]
        assert max(steps.per_round) < 60


async def test_the_loss_of_many_brokers_at_once_is_reported_some_at_a_time(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a thousand was written to the log in one round of the event loop, of 0.3 s."""
    count = 200
    _show_many(monkeypatch, count, leaders=count)
    async with _scene(1) as scene:
        await trio.sleep(10)
        assert all(broker.streams for broker in scene.brokers.values())
        for broker in scene.brokers.values():
            for stream in broker.streams:
                assert isinstance(stream, trio.StapledStream)
                stream.send_stream.close()
        seen = [0]
        while seen[-1] < count:
            await trio.lowlevel.checkpoint()
            seen.append(len(scene.told(SubscriptionLost)))
        assert max(later - earlier for earlier, later in pairwise(seen)) <= 10


async def test_others_get_their_turn_while_many_brokers_are_asked_again_in_doubt(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can cause that. A thousand stopped all links for 50 ms, some rounds in a row."""
    count = 200
    _show_many(monkeypatch, count, leaders=1)
    async with _scene(1, before=_all_proxied, synthesize=True) as scene:
        await trio.sleep(10)
        before = scene.addresses()
        steps = _Steps()
        trio.lowlevel.add_instrument(steps)
        scene.refresher.doubt(scene.route)
        await trio.sleep(0.05)
        trio.lowlevel.remove_instrument(steps)
        assert max(steps.per_round) < 80
        await trio.sleep(5)
        assert {*scene.addresses()[len(before) :]} == {*map(_shown, range(2, count + 1))}


async def test_brokers_that_come_back_before_they_were_dropped_are_still_asked(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 100
    _show_many(monkeypatch, count, leaders=1)
    async with _scene(1) as scene:
        await trio.sleep(10)
        pollers, view = scene.refresher._pollers, scene.route.broker.view
        assert view is not None
        shown = {node: at for node, at in scene.route.broker.endpoints.items() if node != 1}
        moved = {**shown, 50: Endpoint("b-51", 9092, None)}
        for brokers in ({}, shown, {}, moved):
            pollers.poll_others(view.cluster_id, scene.route, brokers)
            for _ in range(3):
                await trio.lowlevel.checkpoint()
        await trio.sleep(5)
        assert len(pollers.others.of(view.cluster_id)) == count - 1
        assert [node for node, broker in scene.brokers.items() if not broker.streams] == [50]
        assert len(scene.brokers[51].streams) == 2


# Refreshes while responses are held.


async def test_others_get_their_turn_while_many_brokers_are_asked(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To ask all of a thousand brokers once stopped all links for 70 ms."""
    count = 200
    _show_many(monkeypatch, count, leaders=count)
    async with _scene(1) as scene:
        await trio.sleep(5)

        def asked() -> int:
            return sum(len(broker.asked) for broker in scene.brokers.values())

        before = asked()
        scene.hold()
        seen = [before]
        while asked() < before + count:
            await trio.lowlevel.checkpoint()
            seen.append(asked())
        assert max(later - earlier for earlier, later in pairwise(seen)) <= 50


async def test_others_get_their_turn_while_brokers_of_many_clusters_are_asked(
    autojump_clock: MockClock,
) -> None:
    """To ask the broker of each of 300 once stopped all links for 50 ms."""
    count, shown = 300, [Broker(1, "one", 9092)]
    async with _scene(1) as scene:
        routes = [Route(f"c{number}", Mode.ON) for number in range(count)]
        brokers = []
        for route in routes:
            broker = FakeBroker(1, shown, {"t": [(1, 5)]})
            broker.cluster = route.name
            scene.net.brokers[Address(route.name, 1)] = broker
            scene.refresher.follow(route, Address(route.name, 1))
            brokers.append(broker)
        await trio.sleep(5)

        def asked() -> int:
            return sum(len(broker.asked) for broker in brokers)

        before = asked()
        for route in routes:
            scene.hold(route=route)
        seen = [before]
        while asked() < before + count:
            await trio.lowlevel.checkpoint()
            seen.append(asked())
        assert max(later - earlier for earlier, later in pairwise(seen)) <= 150


async def test_others_get_their_turn_before_questions_are_planned(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 9,000 errors held until they were settled it took 35 ms of one step."""
    steps, found, planned = _Steps(), list[int](), list[int]()
    wanted_leaders, plan = HoldQueue.wanted_leaders, RefreshPlan.round

    def find(queue: HoldQueue) -> Any:
        found.append(sum(steps.per_round))
        return wanted_leaders(queue)

    def plan_round(*given: Any) -> Any:
        planned.append(sum(steps.per_round))
        return plan(*given)

    monkeypatch.setattr(HoldQueue, "wanted_leaders", find)
    monkeypatch.setattr(RefreshPlan, "round", plan_round)
    async with _scene(1) as scene:
        trio.lowlevel.add_instrument(steps)
        scene.hold()
        await trio.sleep(0.05)
    assert planned
    # The last round may have been found and not planned yet.
    assert all(later > earlier for earlier, later in zip(found, planned, strict=False))


async def test_all_brokers_are_asked_at_short_intervals_until_one_knows(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        scene.hold()
        await trio.sleep(0.0551)
        scene.brokers[2].leaders = _AFTER
        await trio.sleep(1)
        # Asked at 1.00, 1.01 and so on; node 2 leads itself, so its word needs no confirmation.
        assert scene.settled == [(1.06, [LeaderHint(2, 6, Endpoint("two", 9092, None))])]
        rounds = [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06]
        for node in scene.brokers:
            assert scene.rounds(node, LIST_OFFSETS) == rounds
        assert scene.rounds(1, METADATA) == rounds
        # Others tell by whether they lead; what else they know is asked in every fourth round.
        # The new leader once more: its answer tells the process in front of it, if there is one.
        assert scene.rounds(2, METADATA) == [1.03, 1.06]
        assert scene.rounds(3, METADATA) == [1.03]
        assert not scene.hold_timer.waiting.is_set()


async def test_what_waits_for_the_topics_of_a_large_answer_is_looked_up_in_steps(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 10,000 topics that all were waited for it took 27 ms of one step."""
    topics: Leaders = {f"t{number}": [(1, 5), (2, 6), (3, 7)] for number in range(5000)}
    monkeypatch.setattr(f"{__name__}._BEFORE", topics)
    answered: list[Collection[str | bytes]] = []

    def see(scene: _Scene) -> None:
        asked = scene.hold_timer.queue.asked

        def see_and_ask(route: Route, topics: Collection[str | bytes], since: float) -> Steps[None]:
            answered.append([*topics])
            return asked(route, topics, since)

        monkeypatch.setattr(scene.hold_timer.queue, "asked", see_and_ask)

    async with _scene(1, before=see):
        assert max(map(len, answered)) <= 2000
        assert {name for some in answered for name in some} == {*topics}


async def test_of_a_large_topic_a_new_leader_is_not_asked_for_metadata_too(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody reads so large an answer in passing."""
    others = [(3, 1)] * 500
    monkeypatch.setattr(f"{__name__}._BEFORE", {"t": [(1, 5), *others]})
    async with _scene(1) as scene:
        scene.hold()
        scene.brokers[2].leaders = {"t": [(2, 6), *others]}
        await trio.sleep(1)
        assert [hints[0].leader for _, hints in scene.settled if hints[0]] == [2]
        assert scene.rounds(2, METADATA) == []


@pytest.mark.parametrize(
    ("partitions", "times", "asked"), [(2, 3, True), (3, 1, False), (1, 7, False)]
)
async def test_a_new_leader_is_not_asked_for_metadata_too_where_much_is_held(
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    partitions: int,
    times: int,
    asked: bool,
) -> None:
    """In a storm these questions cost half of the hints."""
    monkeypatch.setattr(f"{__name__}._BEFORE", {"t": [(1, 5)] * partitions})
    async with _scene(1) as scene:
        for partition in [*range(partitions)] * times:
            scene.hold(partition=partition)
        scene.brokers[2].leaders = {"t": [(2, 6)] * partitions}
        await trio.sleep(0.005)
        assert len(scene.settled) == partitions * times
        assert bool(scene.rounds(2, METADATA)) is asked


async def test_who_has_said_that_it_does_not_lead_at_an_epoch_is_not_asked_again(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        for node in (1, 3):
            scene.brokers[node].leaders = _AFTER
            scene.brokers[node].answers[METADATA] = _lagging
        scene.hold()
        await trio.sleep(0.035)
        assert [len(scene.rounds(node, LIST_OFFSETS)) for node in (1, 2, 3)] == [1, 4, 1]
        scene.brokers[2].leaders = _AFTER
        await trio.sleep(0.01)
        assert scene.settled == [(1.04, [LeaderHint(2, 6, Endpoint("two", 9092, None))])]


async def test_where_an_epoch_is_over_the_next_one_is_asked_at_once(
    autojump_clock: MockClock,
) -> None:
    """A reassignment has raised it by two, and all Metadata lags."""
    async with _scene(1) as scene:
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(2, 7), (2, 6), (3, 7)]}
            broker.answers[METADATA] = _lagging
        scene.hold()
        await trio.sleep(0.005)
        assert scene.settled == [(1.0, [LeaderHint(2, 7, Endpoint("two", 9092, None))])]
        assert scene.rounds(2, LIST_OFFSETS) == [1.0, 1.0]


async def test_who_is_named_as_leader_is_asked_alone_and_in_spite_of_what_it_said(
    autojump_clock: MockClock,
) -> None:
    """As a broker that has just been made a replica, and has not learnt of it."""
    async with _scene(1) as scene:
        scene.brokers[2].leaders = {"t": [(3, 6), (3, 5)]}
        scene.hold()
        await trio.sleep(0.015)
        assert [len(scene.rounds(node, LIST_OFFSETS)) for node in (1, 2, 3)] == [2, 1, 2]
        scene.brokers[1].leaders = _AFTER
        await trio.sleep(0.02)
        assert [len(scene.rounds(node, LIST_OFFSETS)) for node in (1, 2, 3)] == [3, 2, 3]
        assert scene.settled == []
        scene.brokers[2].leaders = _AFTER
        await trio.sleep(0.01)
        assert scene.settled == [(1.04, [LeaderHint(2, 6, Endpoint("two", 9092, None))])]


async def test_a_topic_whose_name_is_not_known_has_its_own_broker_asked_for_everything(
    autojump_clock: MockClock,
) -> None:
    """It has answered for the topic just now, so it knows it."""
    async with _scene(1) as scene:
        before = [len(broker.metadata()) for broker in scene.brokers.values()]
        scene.hold(_UNKNOWN)
        await trio.sleep(0.005)
        assert scene.brokers[1].metadata()[-1].topics is None
        await trio.sleep(1)
        asked = [
            sum(one.topics is None for one in broker.metadata()[n:])
            for n, broker in zip(before, scene.brokers.values(), strict=True)
        ]
        assert 1 <= asked[0] <= 5
        assert asked[1:] == [0, 0]


async def test_refreshes_are_bounded_however_long_responses_are_held(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        scene.hold()
        await trio.sleep(20)
        assert 20 * 20 <= len(scene.rounds(1, METADATA)) <= 20 + 20 * 20 + 1
        assert 20 * 20 <= len(scene.rounds(2, LIST_OFFSETS)) <= 20 + 20 * 20 + 1


async def test_a_broker_that_is_slow_has_one_request_under_way(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        slow = scene.brokers[2]
        slow.gate = trio.Event()
        scene.hold()
        await trio.sleep(0.5)
        assert slow.asked[-1].key == LIST_OFFSETS
        slow.gate.set()
        await trio.sleep(0.001)
        assert slow.most_waiting == 1
        # All that was wanted meanwhile became one request of each kind.
        assert len(scene.rounds(2, LIST_OFFSETS)) == 2
        assert len(scene.rounds(2, METADATA)) == 1


async def test_nobody_is_asked_while_nothing_is_held(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        scene.hold()
        await trio.sleep(0.015)
        scene.hold_timer.forget(1)
        asked = {node: len(broker.metadata()) for node, broker in scene.brokers.items()}
        await trio.sleep(10)
        assert {n: len(b.metadata()) for n, b in scene.brokers.items()} == asked
        scene.hold()
        await trio.sleep(0.195)
        # The bucket was full again: nothing had been taken from it meanwhile.
        assert len(scene.brokers[1].metadata()) - asked[1] == 20


async def test_names_are_looked_for_at_the_routes_own_broker_when_a_client_lacks_one(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        scene.refresher.look_up_ids(scene.route, [_UNKNOWN])
        await trio.sleep(0.1)
        assert scene.brokers[1].metadata()[-1].topics is None
        assert None not in [asked.topics for asked in scene.brokers[2].metadata()]


async def test_a_broker_that_cannot_be_asked_for_names_uses_up_no_question(
    autojump_clock: MockClock,
) -> None:
    """Its clients may go on with an id that is new, which another route's broker can name."""
    async with _scene(1, 2) as scene:
        del scene.net.brokers[_upstream(1)]
        await scene.brokers[1].drop()
        await trio.sleep(0.1)
        for _ in range(300):
            scene.refresher.look_up_ids(scene.routes[0], [_UNKNOWN])
            await trio.sleep(0.01)
        before = len(scene.brokers[2].metadata())
        scene.refresher.look_up_ids(scene.routes[1], [_UNKNOWN])
        await trio.sleep(0.05)
        assert [asked.topics for asked in scene.brokers[2].metadata()[before:]] == [None]


def _asked_for_all(scene: _Scene) -> int:
    return sum(asked.topics is None for b in scene.brokers.values() for asked in b.metadata())


async def test_ids_that_nobody_knows_take_nothing_from_the_questions_of_held_errors(
    autojump_clock: MockClock,
) -> None:
    """Anybody may use any id, and as often as he likes."""
    async with _scene(1) as scene:
        before = _asked_for_all(scene)
        scene.hold()
        for number in range(300):
            scene.refresher.look_up_ids(scene.route, [number.to_bytes(16, "big")])
            await trio.sleep(0.01)
        # Of 20 a second and a burst of 20, none is missing.
        assert len(scene.rounds(2, LIST_OFFSETS)) >= 75
        assert _asked_for_all(scene) - before <= 5 + 3


async def test_an_id_that_brokers_do_not_list_is_asked_for_less_and_less(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        before = _asked_for_all(scene)
        for _ in range(3000):
            scene.refresher.look_up_ids(scene.route, [_UNKNOWN])
            await trio.sleep(0.01)
        # After 0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 12.7 and 25.5 seconds, and in a poll.
        assert 5 <= _asked_for_all(scene) - before <= 10


async def test_where_answers_take_long_names_are_looked_for_in_a_small_part_of_the_time(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        began = trio.current_time()
        before = _asked_for_all(scene)
        broker = scene.brokers[1]
        for number in range(6000):
            if broker.gate.is_set() and broker.metadata()[-1].topics is None:
                broker.gate = trio.Event()
            scene.refresher.look_up_ids(scene.route, [number.to_bytes(16, "big")])
            await trio.sleep(0.01)
            if not broker.gate.is_set() and number % 100 == 99:
                broker.gate.set()
        assert _asked_for_all(scene) - before <= 5 + (trio.current_time() - began) / 5


# Plans, losses and returns.


async def test_a_plan_is_made_and_told(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        assert scene.told(RoutePlan) == [
            RoutePlan(route="r1", native=False, raised={"Produce": [9, 10], "Fetch": [15, 16]})
        ]
        assert scene.route.broker.plan is not None
        ready = {(event.broker, event.node) for event in scene.told(SubscriptionReady)}
        assert ready == {("up-1:1", None), ("two:9092", 2), ("three:9092", 3)}


async def test_a_native_broker_and_an_old_one_pass(autojump_clock: MockClock) -> None:
    def native_and_old(scene: _Scene) -> None:
        scene.brokers[1].maxima = {**LEGACY, 0: 10, 1: 16}
        scene.brokers[2].maxima = {**LEGACY, 3: 8}

    async with _scene(1, 2, before=native_and_old) as scene:
        told = {plan.route: (plan.native, plan.raised) for plan in scene.told(RoutePlan)}
        assert told == {"r1": (True, {}), "r2": (False, {})}
        native, old = scene.routes
        assert native.broker.plan is not None
        assert old.broker.plan is not None
        assert not native.broker.plan.reads
        assert not old.broker.plan.reads
        assert native.broker.reachable
        assert not old.broker.reachable


async def test_a_proxy_behind_a_route_is_reported(autojump_clock: MockClock) -> None:
    def proxies(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            # What it knows uses hints, and is offered more than what it does not know.
            offers = cycle([10, 9, 10])

            def answer(correlation: int, version: int, offers: Iterator[int] = offers) -> bytes:
                maxima = {**LEGACY, 0: next(offers)}
                return messages.api_versions_response(correlation, version, maxima)

            broker.answers[API_VERSIONS] = answer

    async with _scene(1, before=proxies) as scene:
        # Of brokers that no route leads to there is nothing to say.
        assert scene.told(UpstreamGivesHints) == [UpstreamGivesHints(route="r1")]


async def test_the_plan_of_an_old_broker_with_sasl_is_reported_once(
    autojump_clock: MockClock,
) -> None:
    """It was at every poll, and that its connection was lost."""

    def old(scene: _Scene) -> None:
        scene.brokers[1].maxima = {**LEGACY, 3: 8}
        scene.brokers[1].wants_sasl = True

    async with _scene(1, before=old) as scene:
        for _ in range(300):
            await trio.sleep(1)
            assert scene.route.broker.plan is not None
        assert scene.told(RoutePlan) == [RoutePlan(route="r1", native=False, raised={})]
        assert scene.told(SubscriptionLost) == []
        assert scene.refresher.upstream(scene.route).answers

        # It restarts, and not between two connections.
        await trio.sleep(5)
        assert scene.brokers[1].streams
        await scene.brokers[1].drop()
        await trio.sleep(10)
        assert len(scene.told(SubscriptionLost)) == 1
        assert len(scene.told(RoutePlan)) == 2


@pytest.mark.parametrize("refuses", ["hangs", "wants_sasl"])
async def test_a_broker_that_tells_no_more_than_its_versions_does_not_answer(
    autojump_clock: MockClock, refuses: str
) -> None:
    """As one that refuses the proxy's password. It was reported ready, and lost, at each try."""

    def refusing(scene: _Scene) -> None:
        broker = scene.brokers[1]
        broker.gate, broker.wants_sasl = trio.Event(), refuses == "wants_sasl"

    async with _scene(1, before=refusing) as scene:
        assert scene.refresher.all_met.is_set()
        for _ in range(600):
            await trio.sleep(1)
            assert not scene.refresher.upstream(scene.route).answers
        assert len(scene.told(RoutePlan)) == 1
        assert scene.told(SubscriptionReady) == []
        assert len(scene.told(SubscriptionLost)) == 1

        scene.brokers[1].gate.set()
        scene.brokers[1].wants_sasl = False
        await trio.sleep(10)
        assert scene.refresher.upstream(scene.route).answers
        assert [told.broker for told in scene.told(SubscriptionReady)].count("up-1:1") == 1
        assert len(scene.told(RoutePlan)) == 1


async def test_a_lost_broker_has_its_plan_forgotten_and_is_reported_once(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        del scene.net.brokers[_upstream(1)]
        await scene.brokers[1].drop()
        await trio.sleep(30)
        assert scene.route.broker.plan is None
        assert not scene.route.broker.reachable
        assert scene.told(SubscriptionLost) == [
            SubscriptionLost(broker="up-1:1", error="connection closed by the broker")
        ]
        # Where it was known to be, and what was known, stays.
        assert scene.leader() == Leader(1, 5)

        scene.brokers[1].maxima = {**LEGACY, 0: 10, 1: 16}
        scene.net.brokers[_upstream(1)] = scene.brokers[1]
        await trio.sleep(10)
        assert scene.route.broker.plan is not None
        assert scene.route.broker.plan.native
        assert scene.route.broker.reachable
        assert scene.told(SubscriptionReady)[-1].broker == "up-1:1"


async def test_a_cluster_that_no_route_leads_to_any_more_is_left(
    autojump_clock: MockClock,
) -> None:
    """A cluster that is set up again at the same addresses has another id."""
    async with _scene(1) as scene:
        own = scene.route.broker.view
        for number in range(20):
            body = messages.metadata_response(
                1, 12, _SHOWN, {"t": [messages.Partition(0, 1, 5)]}, cluster=f"k{number}"
            )

            def of_another(correlation: int, version: int, cluster: str = f"k{number}") -> bytes:
                topics = {"t": [messages.Partition(0, 1, 5), messages.Partition(1, 2, 6)]}
                return messages.metadata_response(
                    correlation, version, _SHOWN, topics, cluster=cluster
                )

            for broker in scene.brokers.values():
                broker.answers[METADATA] = of_another
            scene.refresher.snooped(scene.route, 12, body[4:])
            await trio.sleep(40)
            assert scene.route.broker.view is not own
            known = [known.view for known in scene.refresher.clusters()]
            assert [view.cluster_id for view in known] == [f"k{number}"]
            # Each of the others is asked on one connection, and not for each cluster on one more.
            assert [len(scene.brokers[node].streams) for node in (1, 2, 3)] == [1, 1, 1]


async def test_a_view_belongs_to_a_cluster_and_so_does_an_identity(
    autojump_clock: MockClock,
) -> None:
    """The broker behind the route becomes one of another cluster."""
    async with _scene(1) as scene:
        first = scene.route.broker.view
        scene.brokers[1].answers[METADATA] = lambda correlation, version: (
            messages.metadata_response(
                correlation,
                version,
                [Broker(1, "new-one", 1), Broker(2, "new-two", 1)],
                {"t": [messages.Partition(0, 2, 1)]},
                cluster="another",
            )
        )
        scene.brokers[1].leaders = {"t": [(2, 1)]}
        await trio.sleep(31)
        assert scene.route.broker.view is not first
        assert scene.leader() == Leader(2, 1)
        assert scene.route.broker.node == 1
        # Of the other cluster nothing is kept.
        assert first is not None
        assert [*first.topics] == []


async def test_metadata_that_goes_by_from_another_cluster_changes_no_view(
    autojump_clock: MockClock,
) -> None:
    """The upstream address leads to another cluster now; old links go on to the former one."""
    async with _scene(1) as scene:
        own, node = scene.route.broker.view, scene.route.broker.node
        body = messages.metadata_response(
            1, 12, _SHOWN, {"t": [messages.Partition(0, 3, 99)]}, cluster="former"
        )
        for _ in range(40):
            scene.refresher.snooped(scene.route, 12, body[4:])
            assert (scene.route.broker.view, scene.route.broker.node) == (own, node)
            await trio.sleep(0.5)
        assert scene.leader() == Leader(1, 5)
        # The proxy's own connection may be the old one, so it is made again, and not too often.
        assert 2 <= scene.addresses().count(_upstream(1)) <= 4


async def test_a_cluster_is_left_though_clients_met_the_next_one_first(
    autojump_clock: MockClock,
) -> None:
    """The proxy's own connection to the next one came after theirs, as after most outages: the
    former cluster's other brokers were polled for as long as the process ran.
    """
    async with _scene(1) as scene:
        first = scene.route.broker.view
        assert first is not None
        moved = FakeBroker(1, [Broker(1, "new-one", 9092)], {"t": [(1, 1)]})
        moved.cluster = "another"
        del scene.net.brokers[_upstream(1)]
        await scene.brokers[1].drop()
        await trio.sleep(0.05)
        body = messages.metadata_response(
            1, 12, moved.brokers, {"t": [messages.Partition(0, 1, 1)]}, cluster="another"
        )
        scene.refresher.snooped(scene.route, 12, body[4:])
        assert scene.route.broker.view is not first
        scene.net.brokers[_upstream(1)] = moved
        # Until the next poll.
        await trio.sleep(40)
        assert [known.view.cluster_id for known in scene.refresher.clusters()] == ["another"]
        for node in (2, 3):
            assert scene.brokers[node].streams == []
        assert [*first.topics] == []


async def test_a_cluster_is_forgotten_in_steps_however_much_passes_by_meanwhile(
    autojump_clock: MockClock,
) -> None:
    """Where 16 large responses waited for their turn, 100,000 topics were freed in one step of a
    quarter of a second.
    """
    async with _scene(1) as scene:
        first, answers = scene.route.broker.view, scene.refresher._answers
        assert first is not None
        names = [f"u{number}" for number in range(1600)]
        moved = FakeBroker(1, [Broker(1, "new-one", 9092)], {name: [(1, 5)] for name in names})
        moved.cluster = "another"
        scene.net.brokers[_upstream(1)] = moved
        led = {name: [messages.Partition(0, 1, 5)] for name in names}
        body = messages.metadata_response(1, 12, moved.brokers, led, cluster="another")
        async with answers.slices._lock:
            await scene.brokers[1].drop()
            await trio.sleep(0.05)
            for _ in range(20):
                scene.refresher.snooped(scene.route, 12, body[4:])
            # The proxy's own connection is made again.
            await trio.sleep(5)
        await trio.sleep(5)
        assert [*first.topics] == []


async def test_a_route_that_comes_from_another_cluster_says_nothing_of_who_has_moved(
    autojump_clock: MockClock,
) -> None:
    """Its former cluster's nodes had other addresses: so those of the next one, by number, counted
    as advertised elsewhere, and what they alone had said was withdrawn.
    """
    async with _scene(2) as scene:
        shown = [Broker(node, f"former-{node}", 9092) for node in (1, 2, 3)]
        former = FakeBroker(1, shown, {"t": [(1, 5)]})
        former.cluster = "former"
        scene.net.brokers[_upstream(1)] = former
        comes = Route("r1", Mode.ON)
        scene.refresher.follow(comes, _upstream(1))
        await trio.sleep(5)
        # Only node 3 itself says by now that it leads.
        for broker in scene.brokers.values():
            broker.answers[METADATA] = _lagging
        scene.brokers[3].leaders = {"t": [(3, 6), (2, 6), (3, 7)]}
        scene.hold(epoch=5)
        await trio.sleep(0.05)
        assert scene.leader() == Leader(3, 6)
        scene.net.brokers[_upstream(1)] = scene.brokers[1]
        await former.drop()
        await trio.sleep(0.3)
        assert comes.broker.view is scene.route.broker.view
        assert scene.leader() == Leader(3, 6)


async def test_old_links_of_one_route_do_not_keep_another_one_s_connection(
    autojump_clock: MockClock,
) -> None:
    """Both routes' names lead to another cluster by now; one has clients that ask all the time."""
    async with _scene(1, 2) as scene:
        body = messages.metadata_response(
            1, 12, _SHOWN, {"t": [messages.Partition(0, 3, 99)]}, cluster="another"
        )
        for number in range(60):
            scene.refresher.snooped(scene.routes[0], 12, body[4:])
            if number % 7 == 0:
                scene.refresher.snooped(scene.routes[1], 12, body[4:])
            await trio.sleep(0.5)
        for node in (1, 2):
            assert 2 <= scene.addresses().count(_upstream(node)) <= 5


async def test_a_broker_of_another_cluster_is_not_the_node_at_whose_address_it_answers(
    autojump_clock: MockClock,
) -> None:
    """Node 3 of the one cluster is advertised where a broker of the other one answers, to which
    the process has routes as well: that one's node 3 was believed to lead all that it leads.
    """
    shown = [Broker(7, "seven", 9092), Broker(3, "other-three", 9092)]
    async with _scene(1) as scene:
        others = [FakeBroker(one.node, shown, {"t": [(7, 5), (3, 5)]}) for one in shown]
        routes = [Route(f"other-{one.node}", Mode.ON) for one in shown]
        for route, broker in zip(routes, others, strict=True):
            broker.cluster = "other"
            scene.net.brokers[Address(route.name, 1)] = broker
            scene.refresher.follow(route, Address(route.name, 1))
        scene.net.brokers[_shown(3)] = others[0]
        await scene.brokers[3].drop()
        await trio.sleep(2)
        for epoch in range(6, 16):
            for broker in others:
                broker.leaders = {"t": [(7, epoch), (3, 5)]}
            begin = scene.now
            scene.hold(epoch=epoch - 1, route=routes[1])
            await trio.sleep(17)
            settled_at, (hint,) = scene.settled[-1]
            assert hint is not None
            assert (hint.leader, hint.epoch) == (7, epoch)
            assert settled_at - begin <= 0.02
        assert scene.told(LeaderMoved) == []
        # The first cluster's own node comes back.
        scene.net.brokers[_shown(3)] = scene.brokers[3]
        await others[0].drop()
        await trio.sleep(5)
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(3, 6), (2, 6), (3, 7)]}
        scene.hold(epoch=5)
        await trio.sleep(1)
        assert scene.leader() == Leader(3, 6)


async def test_a_name_that_has_led_to_another_cluster_is_looked_up_again(
    autojump_clock: MockClock,
) -> None:
    """As that of a pod whose former address another cluster's broker had by then: what answered
    there was asked for as long as it ran, and the node itself never again.
    """
    async with _scene(1) as scene:
        other = FakeBroker(3, [Broker(3, "other-three", 9092)], {"t": [(3, 5)]})
        other.cluster = "other"
        scene.net.brokers[_shown(3)] = other
        await scene.brokers[3].drop()
        await trio.sleep(2)
        # Of no use, but no more than one connection in each poll is for it.
        attempts, events = len(scene.net.attempts), len(scene.events)
        await trio.sleep(600)
        assert len(scene.net.attempts) - attempts <= 21
        assert scene.events[events:] == []
        scene.net.brokers[_shown(3)] = scene.brokers[3]
        await trio.sleep(70)
        scene.brokers[3].leaders = {"t": [(3, 6), (2, 6), (3, 7)]}
        scene.hold(epoch=5)
        await trio.sleep(1)
        assert scene.leader() == Leader(3, 6)


@pytest.mark.parametrize("cluster", ["", "k"], ids=["refused", "just started"])
async def test_a_broker_that_lists_no_broker_teaches_nothing(
    cluster: str, autojump_clock: MockClock
) -> None:
    """It refuses the request as a whole (``AbstractRequest.getErrorResponse``), as anybody can have
    it do; or it was just started, and with ZooKeeper knows nothing yet.
    """
    async with _scene(1, 2) as scene:
        own, endpoints = scene.route.broker.view, scene.route.broker.endpoints
        assert own is not None

        def nothing(correlation: int, version: int) -> bytes:
            return messages.metadata_response(
                correlation, version, [], {"t": []}, cluster=cluster, errors={"t": _NO_ANSWER}
            )

        forgotten = own.topics.forgotten
        connected = len(scene.addresses())
        scene.refresher.snooped(scene.route, 12, nothing(1, 12)[4:])
        assert (scene.route.broker.view, scene.route.broker.endpoints) == (own, endpoints)
        scene.brokers[2].answers[METADATA] = nothing
        scene.hold(epoch=5)
        await trio.sleep(5)
        assert scene.rounds(2, METADATA)
        assert len(scene.addresses()) == connected
        for route in scene.routes:
            assert (route.broker.view, route.broker.endpoints) == (own, endpoints)
        assert own.topics.forgotten == forgotten
        assert scene.leader() == Leader(1, 5)


async def test_brokers_that_were_all_just_started_take_no_topic_away(
    autojump_clock: MockClock,
) -> None:
    """With ZooKeeper, when a cluster is started again: a poll of everything finds nothing."""
    async with _scene(1, 2) as scene:
        for broker in scene.brokers.values():
            broker.answers[METADATA] = lambda correlation, version: messages.metadata_response(
                correlation, version, [], {}
            )
        await trio.sleep(200)
        for node in (1, 2):
            assert any(a.topics is None and a.at > 30 for a in scene.brokers[node].metadata())
        assert scene.leader() == Leader(1, 5)


async def test_metadata_that_goes_by_tells_first_that_an_address_leads_to_another_cluster(
    autojump_clock: MockClock,
) -> None:
    """Links are new, and the proxy's own connection is the old one."""
    async with _scene(1) as scene:
        old, new = scene.brokers[1], FakeBroker(1, list(_SHOWN), _BEFORE)
        topics = {"t": [messages.Partition(0, 2, 1)]}
        new.answers[METADATA] = lambda correlation, version: messages.metadata_response(
            correlation, version, _SHOWN, topics, cluster="another"
        )
        scene.net.brokers[_upstream(1)] = new
        body = messages.metadata_response(1, 12, _SHOWN, topics, cluster="another")
        asked = len(old.asked)
        scene.refresher.snooped(scene.route, 12, body[4:])
        await trio.sleep(1)
        assert len(old.asked) == asked
        assert scene.leader() == Leader(2, 1)


# Synthetic topic ids.

_IDS = {"t": synthetic_id("k", "t")}
_OFFERED = TopicIdsOffered(cluster="k")


def _all_proxied(scene: _Scene) -> None:
    """Let the others answer as behind proxies that synthesize ids."""
    for node in scene.brokers.keys() - {1}:
        scene.brokers[node].ids = _IDS


def _withheld(gives: str) -> TopicIdsWithheld:
    advice = "have it advertise a leader-hints proxy with topic_ids: synthesize"
    reason = f"it gives {gives}; {advice}"
    return TopicIdsWithheld(cluster="k", broker="3 at three:9092", reason=reason)


def _id_reports(scene: _Scene) -> list[TopicIdsOffered | TopicIdsWithheld]:
    return [e for e in scene.events if isinstance(e, TopicIdsOffered | TopicIdsWithheld)]


async def test_ids_are_synthetic_where_all_other_brokers_give_them(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, before=_all_proxied, synthesize=True) as scene:
        assert _id_reports(scene) == [_OFFERED]
        assert scene.route.broker.ids_everywhere
        assert scene.route.link_plan.synthetic
        asked = scene.brokers[3].metadata()[0]
        assert (asked.version, asked.topics) == (12, ["t"])
        await trio.sleep(100)
        assert _id_reports(scene) == [_OFFERED]


async def test_metadata_that_goes_by_costs_no_look_at_each_broker_where_ids_are_synthetic(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.7 ms of each response with 300 routes and as many brokers, and eight come in one step."""
    costs = []
    for count in (3, 200):
        _show_many(monkeypatch, count, leaders=3)
        async with _scene(1, 2, before=_all_proxied, synthesize=True) as scene:
            await trio.sleep(5)
            led = [messages.Partition(number, number + 1, 5) for number in range(3)]
            frame = messages.metadata_response(9, 12, _SHOWN, {"t": led})
            passing = partial(scene.refresher.snooped, scene.route, 12, frame[4:])
            passing()
            costs.append(lines_of(passing))
            assert scene.route.broker.node == 1
    assert costs[1] == costs[0]


async def test_without_the_setting_nothing_is_synthetic(autojump_clock: MockClock) -> None:
    async with _scene(1, before=_all_proxied) as scene:
        assert _id_reports(scene) == []
        assert not scene.route.broker.ids_everywhere
        assert not scene.route.link_plan.synthetic
        assert scene.brokers[3].metadata()[0].topics == []


@pytest.mark.parametrize(
    ("ids", "gives"), [({}, "no topic ids"), ({"t": bytes([4] * 16)}, "topic ids of its own")]
)
async def test_a_broker_that_does_not_give_them_is_reported(
    ids: Mapping[str, bytes], gives: str, autojump_clock: MockClock
) -> None:
    def third_is_not_proxied(scene: _Scene) -> None:
        _all_proxied(scene)
        scene.brokers[3].ids = ids

    async with _scene(1, before=third_is_not_proxied, synthesize=True) as scene:
        assert _id_reports(scene) == [_withheld(gives)]
        await trio.sleep(100)
        assert _id_reports(scene) == [_withheld(gives)]
        assert not scene.route.link_plan.synthetic
        scene.brokers[3].ids = _IDS
        await trio.sleep(31)
        assert _id_reports(scene) == [_withheld(gives), _OFFERED]
        assert scene.route.link_plan.synthetic


async def test_a_broker_that_cannot_be_asked_keeps_the_last_word(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, before=_all_proxied, synthesize=True) as scene:
        broker = scene.net.brokers.pop(_shown(3))
        await broker.drop()
        await trio.sleep(100)
        assert scene.route.broker.ids_everywhere
        broker.ids = {}
        scene.net.brokers[_shown(3)] = broker
        await trio.sleep(10)
        assert _id_reports(scene) == [_OFFERED, _withheld("no topic ids")]


async def test_a_broker_that_was_never_asked_has_them_withheld(
    autojump_clock: MockClock,
) -> None:
    def third_is_down(scene: _Scene) -> None:
        _all_proxied(scene)
        del scene.net.brokers[_shown(3)]

    async with _scene(1, before=third_is_down, synthesize=True) as scene:
        assert not scene.route.broker.ids_everywhere
        assert _id_reports(scene) == []
        # It is gone for good.
        scene.brokers[1].brokers.pop()
        await trio.sleep(31)
        assert _id_reports(scene) == [_OFFERED]


async def test_a_broker_that_does_not_give_them_restarts(autojump_clock: MockClock) -> None:
    """Clients that got ids in its absence would lose them: franz-go stands still then."""

    def third_is_not_proxied(scene: _Scene) -> None:
        _all_proxied(scene)
        scene.brokers[3].ids = {}

    async with _scene(1, before=third_is_not_proxied, synthesize=True) as scene:
        gone = scene.brokers[1].brokers.pop()
        await trio.sleep(61)
        assert not scene.route.broker.ids_everywhere
        scene.brokers[1].brokers.append(gone)
        await trio.sleep(61)
        assert not scene.route.broker.ids_everywhere
        # It leaves.
        scene.brokers[1].brokers.pop()
        await trio.sleep(AWAY_SECONDS)
        assert _id_reports(scene) == [_withheld("no topic ids")]
        await trio.sleep(61)
        assert _id_reports(scene) == [_withheld("no topic ids"), _OFFERED]


async def test_brokers_behind_routes_of_the_process_count_by_the_setting(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, 2, 3, synthesize=True) as scene:
        assert _id_reports(scene) == [_OFFERED]
        assert all(route.broker.ids_everywhere for route in scene.routes)


async def test_a_native_broker_behind_a_route_gives_ids_of_its_own(
    autojump_clock: MockClock,
) -> None:
    def second_is_native(scene: _Scene) -> None:
        _all_proxied(scene)
        scene.brokers[2].maxima = {0: 10, 1: 16, 3: 12, 18: 3}

    async with _scene(1, 2, before=second_is_native, synthesize=True) as scene:
        (withheld,) = _id_reports(scene)
        assert withheld == TopicIdsWithheld(
            cluster="k",
            broker="2 at up-2:1",
            reason="its version gives hints and topic ids itself; set topic_ids: broker",
        )
        assert not scene.route.broker.ids_everywhere


async def test_when_a_client_lacks_an_id_all_others_are_asked_again(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, before=_all_proxied, synthesize=True) as scene:
        asked = len(scene.brokers[3].metadata())
        scene.brokers[3].ids = {}
        scene.refresher.doubt(scene.route)
        assert scene.route.broker.ids_everywhere
        await trio.sleep(0.2)
        assert len(scene.brokers[3].metadata()) == asked + 1
        assert _id_reports(scene) == [_OFFERED, _withheld("no topic ids")]
        assert not scene.route.broker.ids_everywhere


async def test_in_doubt_old_connections_do_not_count(autojump_clock: MockClock) -> None:
    """The way to a broker may have changed for new ones alone."""
    async with _scene(1, before=_all_proxied, synthesize=True) as scene:
        way = scene.net.brokers[_shown(3)] = FakeBroker(3, list(_SHOWN), _BEFORE)
        old = scene.brokers[3].streams
        assert len(old) == 1
        scene.refresher.doubt(scene.route)
        await trio.sleep(0.2)
        assert not old
        assert len(way.streams) == 1
        assert _id_reports(scene)[-1] == _withheld("no topic ids")
        assert scene.told(SubscriptionLost) == []


async def test_what_clients_claim_withholds_nothing_and_asks_little(
    autojump_clock: MockClock,
) -> None:
    """Anybody can claim to be franz-go and lack an id, before he has authenticated."""
    async with _scene(1, before=_all_proxied, synthesize=True) as scene:
        before = len(scene.net.attempts)
        for _ in range(100):
            scene.refresher.doubt(scene.route)
            await trio.sleep(0.2)
            assert scene.route.broker.ids_everywhere
        assert _id_reports(scene) == [_OFFERED]
        # Two other brokers, about every ten seconds.
        assert len(scene.net.attempts) - before <= 3 * 2


async def test_what_clients_claim_takes_no_hints_from_others(autojump_clock: MockClock) -> None:
    """Anybody can have the others asked on new connections. For 0.1 s, as long as an error is held,
    nobody could be asked.
    """
    async with _scene(1, before=_all_proxied, synthesize=True) as scene:
        scene.refresher.doubt(scene.route)
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(3, 6), (2, 6), (2, 8)]}
        scene.brokers[1].answers[METADATA] = _lagging
        held_at = scene.now
        scene.hold(epoch=5)
        await trio.sleep(0.2)
        ((settled_at, (given,)),) = scene.settled
        assert given is not None
        assert (given.leader, given.epoch) == (3, 6)
        assert settled_at - held_at < 0.03


async def test_ids_of_topics_that_brokers_hide_are_not_synthetic(autojump_clock: MockClock) -> None:
    def hidden(scene: _Scene) -> None:
        _all_proxied(scene)
        for broker in scene.brokers.values():
            broker.hides = lambda topic: topic != "t"

    async with _scene(1, before=hidden, synthesize=True) as scene:
        assert not scene.route.broker.ids_everywhere
        (told,) = _id_reports(scene)
        assert isinstance(told, TopicIdsWithheld)
        assert told.reason.startswith("it hides topics")
        for broker in scene.brokers.values():
            broker.hides = lambda topic: False
        await trio.sleep(200)
        assert scene.route.broker.ids_everywhere


async def test_a_doubt_before_the_cluster_is_known_changes_nothing(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, before=_all_proxied, synthesize=True) as scene:
        scene.refresher.doubt(Route("new", Mode.ON, config=RouteConfig(synthesize=True)))
        assert _id_reports(scene) == [_OFFERED]
        assert scene.route.broker.ids_everywhere


async def test_it_is_reported_when_all_brokers_were_asked_for_ids(
    autojump_clock: MockClock,
) -> None:
    def third_is_slow(scene: _Scene) -> None:
        _all_proxied(scene)
        scene.brokers[3].gate = trio.Event()

    async with _scene(1, before=third_is_slow, synthesize=True) as scene:
        assert not scene.refresher.all_asked.is_set()
        scene.brokers[3].gate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert scene.refresher.all_asked.is_set()
        assert scene.route.broker.ids_everywhere


@pytest.mark.parametrize("missing", [_upstream(1), _shown(3)])
async def test_who_cannot_be_asked_is_not_waited_for(
    missing: Address, autojump_clock: MockClock
) -> None:
    def one_is_down(scene: _Scene) -> None:
        _all_proxied(scene)
        del scene.net.brokers[missing]

    async with _scene(1, before=one_is_down, synthesize=True) as scene:
        assert scene.refresher.all_asked.is_set()
        assert not scene.route.broker.ids_everywhere


async def test_a_broker_that_cannot_be_distinguished_keeps_all_waiting(
    autojump_clock: MockClock,
) -> None:
    def leads_nothing(scene: _Scene) -> None:
        for broker in scene.brokers.values():
            broker.leaders = {"t": [(3, 5)]}

    async with _scene(1, before=leads_nothing, synthesize=True) as scene:
        assert scene.route.broker.node is None
        assert not scene.refresher.all_asked.is_set()


# Brokers that are back.


async def test_a_broker_that_a_client_reaches_is_asked_at_once(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        del scene.net.brokers[_upstream(1)]
        await scene.brokers[1].drop()
        await trio.sleep(12)
        scene.net.brokers[_upstream(1)] = scene.brokers[1]
        assert (scene.route.broker.reachable, scene.route.broker.plan) == (False, None)
        scene.refresher.reached(scene.route, "1.1.1.1")
        await trio.sleep(0.01)
        assert scene.route.broker.reachable
        assert scene.route.broker.plan is not None


async def test_a_name_that_leads_to_another_broker_by_now_is_noticed(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy's connection lasts as long as the broker that had the address: it may be for
    ever, while clients' links lead to another one of the same cluster.
    """

    def show_peers(scene: _Scene) -> None:
        peer_of = "leader_hints.net.brokers.broker_connection.peer_of"
        monkeypatch.setattr(peer_of, scene.net.peers.__getitem__)

    async with _scene(1, before=show_peers) as scene:
        upstream = _upstream(1)
        assert scene.route.broker.node == 1
        for _ in range(200):
            scene.refresher.reached(scene.route, scene.net.peer(upstream))
            await trio.sleep(1)
        scene.net.brokers[upstream] = scene.brokers[2]
        # A name may have several addresses, of one broker: as long as any client is at the same.
        for _ in range(100):
            scene.refresher.reached(scene.route, scene.net.peer(upstream))
            scene.refresher.reached(scene.route, "10.0.0.1")
            await trio.sleep(1)
        assert (scene.addresses().count(upstream), scene.route.broker.node) == (1, 1)
        await trio.sleep(60)
        scene.refresher.reached(scene.route, scene.net.peer(upstream))
        await trio.sleep(2)
        assert (scene.addresses().count(upstream), scene.route.broker.node) == (2, 2)
        await trio.sleep(60)
        scene.refresher.reached(scene.route, scene.net.peer(upstream))
        scene.refresher.reached(scene.route, "")
        await trio.sleep(2)
        assert scene.addresses().count(upstream) == 2


async def test_a_broker_that_is_named_as_leader_is_asked_at_once(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        del scene.net.brokers[_shown(2)]
        await scene.brokers[2].drop()
        await trio.sleep(12)
        scene.net.brokers[_shown(2)] = scene.brokers[2]
        for broker in scene.brokers.values():
            broker.leaders = _AFTER
        scene.hold()
        await trio.sleep(0.03)
        assert len(scene.brokers[2].streams) == 1
        assert [hints for _, hints in scene.settled] == [
            [LeaderHint(2, 6, Endpoint("two", 9092, None))]
        ]


# What is seen from outside.


async def test_whether_a_routes_broker_answers_is_known(autojump_clock: MockClock) -> None:
    unknown = Route("unknown", Mode.OFF)
    async with _scene(1) as scene:
        assert scene.refresher.upstream(scene.route) == (True, "")
        assert scene.refresher.upstream(unknown) == (None, "")
        del scene.net.brokers[_upstream(1)]
        await scene.brokers[1].drop()
        await trio.sleep(1)
        answers, error = scene.refresher.upstream(scene.route)
        assert (answers, error) == (False, "cannot connect: connection refused")
        scene.net.brokers[_upstream(1)] = scene.brokers[1]
        await trio.sleep(10)
        assert scene.refresher.upstream(scene.route) == (True, "")


async def test_a_broker_that_was_never_heard_does_not_answer(autojump_clock: MockClock) -> None:
    def hang(scene: _Scene) -> None:
        scene.brokers[1].answers[18] = lambda correlation, version: b""

    async with _scene(1, before=hang) as scene:
        assert scene.refresher.upstream(scene.route).answers is False
        assert [*scene.refresher.clusters()] == []


async def test_the_age_of_a_view_is_since_its_last_poll(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        await trio.sleep(19)
        ((view, age),) = scene.refresher.clusters()
        assert view is scene.route.broker.view
        assert 19 <= age <= 20
        scene.hold()
        await trio.sleep(0.5)  # A refresh of one topic is no poll.
        ((_, age),) = scene.refresher.clusters()
        assert age > 19
        await trio.sleep(20)
        ((_, age),) = scene.refresher.clusters()
        assert age < 11


async def test_a_route_that_is_followed_later_is_asked_like_the_others(
    autojump_clock: MockClock,
) -> None:
    late = Route("late", Mode.OFF)
    async with _scene(1) as scene:
        late.switch(Mode.ON)
        scene.refresher.follow(late, _upstream(2))
        scene.refresher.follow(late, _upstream(2))
        await trio.sleep(1)
        assert scene.addresses().count(_upstream(2)) == 1
        assert (late.broker.node, late.broker.reachable) == (2, True)
        assert late.broker.view is scene.route.broker.view
        assert late.broker.plan is not None
        assert late.broker.plan.rows


async def test_each_answer_is_reported_with_its_cause_and_time(autojump_clock: MockClock) -> None:
    async with _scene(1, 2, 3) as scene:
        causes = {cause for cause, _ in scene.refreshed}
        assert causes == {Cause.POLL, Cause.LEADERSHIP}
        assert all(0 <= seconds < 2 for _, seconds in scene.refreshed)
        for broker in scene.brokers.values():
            broker.gate = trio.Event()
        scene.refreshed.clear()
        scene.hold()
        await trio.sleep(0.5)
        assert scene.refreshed == []
        for broker in scene.brokers.values():
            broker.gate.set()
        await trio.sleep(0.001)
        slow = [told for told in scene.refreshed if told[1] > 0.1]
        assert [cause for cause, _ in slow] == [Cause.LEADERSHIP] * 3
        assert [seconds for _, seconds in slow] == pytest.approx([0.5] * 3, abs=0.02)
        await trio.sleep(0.1)
        assert Cause.HOLD in {cause for cause, _ in scene.refreshed}
        scene.refreshed.clear()
        scene.refresher.look_up_ids(scene.route, [_UNKNOWN])
        await trio.sleep(0.1)
        assert Cause.UNKNOWN_TOPIC_ID in {cause for cause, _ in scene.refreshed}


# What the proxy may not see.


def _hidden(scene: _Scene) -> None:
    for broker in scene.brokers.values():
        broker.hides = lambda topic: True


@pytest.mark.parametrize("topic", ["t", bytes(15) + b"\1"], ids=["by-name", "by-id"])
async def test_errors_of_topics_that_brokers_hide_are_not_held(
    autojump_clock: MockClock, topic: str | bytes
) -> None:
    async with _scene(1, before=_hidden) as scene:
        if topic == "t":
            # By its name it is known to be hidden once it was asked for.
            scene.hold(topic)
            await trio.sleep(1)
        state = LinkState(scene.route, 2)
        scanned = Scanned((Failure(topic, 0, NOT_LEADER, 0, 0),), False, 0, 0)
        held = Held(state, ApiKey.PRODUCE, 10, memoryview(b""), scanned, [-1])
        assert scene.hold_timer.submit(held) == [None]
        assert scene.told(HintMissed)[-1].reason == MissReason.NOT_AUTHORIZED


async def test_that_topics_are_hidden_is_reported_once(autojump_clock: MockClock) -> None:
    async with _scene(1, before=_hidden) as scene:
        (told,) = scene.told(TopicsHidden)
        assert (told.broker, told.visible) == (str(_upstream(1)), 0)
        scene.hold("t")
        await trio.sleep(1000)
        assert scene.told(TopicsHidden) == [told]


async def test_topics_that_are_shown_again_get_hints_again(autojump_clock: MockClock) -> None:
    async with _scene(1, before=_hidden) as scene:
        for broker in scene.brokers.values():
            broker.hides = lambda topic: False
        await trio.sleep(1000)
        assert scene.leader(1) == Leader(2, 6)
        assert scene.route.broker.view is not None
        assert "t" not in scene.route.broker.view.hidden
        assert not scene.route.broker.view.hidden


async def test_of_brokers_that_say_it_at_the_same_time_one_is_reported(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, 2, 3) as scene:
        _hidden(scene)
        scene.hold("t")
        await trio.sleep(1)
        assert len(scene.told(TopicsHidden)) == 1


def _hidden_from_one(scene: _Scene) -> None:
    """Have the brokers of the first and the third route hide one topic, as from another principal
    than the second route's.
    """
    for node, broker in scene.brokers.items():
        broker.leaders = {**_BEFORE, "shown": [(1, 5), (2, 5), (3, 5)]}
        if node != 2:
            broker.hides = lambda topic: topic != "shown"


async def test_what_one_route_may_not_see_others_get_hints_of(autojump_clock: MockClock) -> None:
    """Of 100 errors 21 got a hint: the topic counted as hidden, or as deleted, for all routes."""
    async with _scene(1, 2, 3, before=_hidden_from_one) as scene:
        view = scene.route.broker.view
        assert view is not None
        for epoch in range(6, 106):
            leaders = {**_BEFORE, "t": [(2 + epoch % 2, epoch)] * 3}
            for broker in scene.brokers.values():
                broker.leaders = {**broker.leaders, **leaders}
            scene.hold(epoch=epoch - 1, route=scene.routes[epoch % 2])
            await trio.sleep(17)
            assert "t" in view.topics.names
        given = [hint for _, (hint,) in scene.settled if hint is not None]
        assert [hint.epoch for hint in given] == [*range(6, 106)]


async def test_fetch_by_ids_is_offered_by_the_routes_that_see_all(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, 2, 3, before=_hidden_from_one) as scene:
        view = scene.route.broker.view
        assert view is not None
        assert [view.hidden.none(route.name) for route in scene.routes] == [False, True, False]
        (told,) = scene.told(TopicsHidden)
        assert told.broker in (str(_upstream(1)), str(_upstream(3)))
        await trio.sleep(1000)
        assert [view.hidden.none(route.name) for route in scene.routes] == [False, True, False]


async def test_what_a_broker_reported_of_a_topic_that_it_hides_is_withdrawn(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, 2, 3, before=_hidden_from_one) as scene:
        view = scene.route.broker.view
        assert view is not None
        place, known = (view.topics.key("t"), 0), view.leader("t", 0)
        assert known is not None
        hides, shows = Source(1, "r1"), Source(2, "r2")
        for source in (hides, shows):
            view.disagreements.begin(place)
            view.disagreements.report(place, source, Leader(3, 99), known)
        await trio.sleep(100)
        assert not view.disagreements.contradicts(place, hides, known)


async def test_an_id_is_looked_up_by_a_route_that_sees_all(autojump_clock: MockClock) -> None:
    async with _scene(1, 2, 3, before=_hidden_from_one) as scene:
        for broker in scene.brokers.values():
            broker.leaders = {**broker.leaders, "new": [(2, 0)]}
            broker.ids = {"new": _UNKNOWN}
            broker.asked.clear()
        scene.refresher.look_up_ids(scene.route, [_UNKNOWN])
        await trio.sleep(0.1)
        assert [a.topics for a in scene.brokers[2].metadata()] == [None]
        assert scene.brokers[1].metadata() == []
        assert scene.route.broker.known.topics.name(_UNKNOWN) == "new"


async def test_a_route_that_is_of_another_cluster_hides_nothing_in_its_former_one(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, 2, before=_hidden_from_one) as scene:
        view = scene.route.broker.view
        assert view is not None
        assert view.hidden.some("r1")
        scene.brokers[1].cluster = "other"
        await scene.brokers[1].drop()
        await trio.sleep(10)
        assert scene.route.broker.view is not view
        assert not view.hidden
        assert [*view.hidden.routes] == ["r2"]


async def test_while_the_only_route_that_sees_a_topic_is_lost_no_error_waits_for_it(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, 2, before=_hidden_from_one) as scene:
        scene.hold()
        await trio.sleep(1)
        view = scene.route.broker.view
        assert view is not None
        assert "t" not in view.hidden
        del scene.net.brokers[_upstream(2)]
        await scene.brokers[2].drop()
        await trio.sleep(1)
        assert "t" in view.hidden
        scene.net.brokers[_upstream(2)] = scene.brokers[2]
        await trio.sleep(10)
        assert "t" not in view.hidden
        assert "t" in view.topics.names


# Errors that are held until all brokers name the leader.


async def test_a_broker_that_lags_is_asked_until_it_names_the_leader(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        scene.brokers[3].answers[METADATA] = _lagging
        scene.brokers[1].leaders = scene.brokers[2].leaders = _AFTER
        scene.hold(unhinted=_OLD)
        await trio.sleep(0.035)
        assert scene.settled == []
        del scene.brokers[3].answers[METADATA]
        scene.brokers[3].leaders = _AFTER
        await trio.sleep(1)
        assert scene.settled == [(1.04, [None])]
        assert scene.told(HintMissed)[-1].settling == "settled"
        # The leader is known from the first round on. Then who has not named it is asked in each.
        assert scene.rounds(2, METADATA) == [1.0, 1.03]
        assert scene.rounds(3, METADATA) == [1.01, 1.02, 1.03, 1.04]
        assert scene.rounds(3, LIST_OFFSETS) == [1.0]


async def test_a_broker_that_does_not_answer_is_left_out(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        scene.brokers[3].gate = trio.Event()
        scene.brokers[1].leaders = scene.brokers[2].leaders = _AFTER
        scene.hold(unhinted=_OLD)
        await trio.sleep(1)
        ((at, hints),) = scene.settled
        # In the round of that time, or the next one: the clock is in floating point.
        assert 1 + SILENT <= at <= 1.01 + SILENT
        assert hints == [None]
        # It is silent still, so the next error does not wait for it, but for node 2 at most:
        # Trio runs tasks that are ready at the same time in a random order.
        scene.brokers[1].leaders = scene.brokers[2].leaders = {"t": [(2, 7), (2, 6), (3, 7)]}
        scene.hold(unhinted=_OLD)
        await trio.sleep(1)
        ((at, hints),) = scene.settled[1:]
        assert 2 <= at < 2 + SILENT
        assert hints == [None]


async def test_a_broker_that_cannot_be_asked_is_left_out_at_once(autojump_clock: MockClock) -> None:
    async with _scene(1) as scene:
        scene.brokers[3].answers[METADATA] = _lagging
        scene.brokers[1].leaders = scene.brokers[2].leaders = _AFTER
        scene.hold(unhinted=_OLD)
        await trio.sleep(0.015)
        assert scene.settled == []
        del scene.net.brokers[_shown(3)]
        await scene.brokers[3].drop()
        await trio.sleep(1)
        assert scene.settled == [(1.02, [None])]


async def test_a_broker_that_hides_the_topic_from_the_proxy_is_left_out(
    autojump_clock: MockClock,
) -> None:
    """Routes may have users of their own: each error waited for the whole hold, in vain."""
    async with _scene(1, 2, 3, before=_hidden_from_one) as scene:
        # Only the broker of the second route shows it; the others never name a leader.
        for epoch in range(6, 12):
            leaders = {**_BEFORE, "t": [(2 + epoch % 2, epoch)] * 3}
            for broker in scene.brokers.values():
                broker.leaders = {**broker.leaders, **leaders}
            begin = scene.now
            scene.hold(epoch=epoch - 1, unhinted=_OLD, route=scene.routes[1])
            await trio.sleep(17)
            assert scene.settled[-1][0] - begin <= 0.02
        assert {event.settling for event in scene.told(HintMissed)} == {"settled"}


async def test_a_broker_that_shows_the_topic_again_is_awaited_again(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1, 2, 3, before=_hidden_from_one) as scene:
        scene.hold(epoch=5, unhinted=_OLD, route=scene.routes[1])
        await trio.sleep(1)
        for broker in scene.brokers.values():
            broker.hides = lambda topic: False
        # What is held is asked about meanwhile.
        await trio.sleep(1)
        scene.brokers[1].leaders = scene.brokers[2].leaders = _AFTER
        await trio.sleep(1)
        assert scene.settled == []
        scene.brokers[3].leaders = _AFTER
        await trio.sleep(1)
        assert len(scene.settled) == 1


async def test_questions_about_what_lags_are_as_many_as_about_what_nobody_knows(
    autojump_clock: MockClock,
) -> None:
    async with _scene(1) as scene:
        scene.brokers[3].answers[METADATA] = _lagging
        scene.brokers[1].leaders = scene.brokers[2].leaders = _AFTER
        scene.hold(unhinted=_OLD)
        await trio.sleep(20)
        assert 20 * 20 <= len(scene.rounds(3, METADATA)) <= 20 + 20 * 20 + 1
        assert len(scene.rounds(3, LIST_OFFSETS)) == 1


async def test_what_a_storm_leaves_to_be_settled_is_shared_among_refreshes(
    autojump_clock: MockClock,
) -> None:
    """5,000 partitions in 50 topics moved: each broker must name all, some in each round."""
    topics, width = [f"s{number}" for number in range(50)], 100
    before = {topic: [(1, 5)] * width for topic in topics}
    async with _scene(1, before=lambda scene: _believe(scene, before)) as scene:
        _believe(scene, {topic: [(2, 6)] * width for topic in topics})
        for topic in topics:
            for partition in range(width):
                scene.hold(topic, partition, unhinted=_OLD)
        asked = [len(broker.asked) for broker in scene.brokers.values()]
        await trio.sleep(0.5)
        assert len(scene.settled) == len(topics) * width
        assert max(at for at, _ in scene.settled) < 1.2
        assert {event.settling for event in scene.told(HintMissed)} == {"settled"}
        rounds: dict[float, int] = {}
        for broker, begin in zip(scene.brokers.values(), asked, strict=True):
            for one in broker.asked[begin:]:
                if one.key == METADATA:
                    at = round(one.at, 6)
                    rounds[at] = rounds.get(at, 0) + width * len(one.topics or ())
        assert max(rounds.values()) <= _SETTINGS.slice_partitions


def _believe(scene: _Scene, leaders: Leaders) -> None:
    for broker in scene.brokers.values():
        broker.leaders = leaders


async def test_brokers_behind_no_route_are_asked_as_a_route_that_brokers_still_take(
    autojump_clock: MockClock,
) -> None:
    """They were asked as the first route for as long as the process ran."""
    async with _scene(1, 2) as scene:
        assert scene.tried["r1", _shown(3)]
        scene.refused.add("r1")
        for node in (1, 3):
            await scene.brokers[node].drop()
        await trio.sleep(60)
        scene.tried.clear()
        asked = len(scene.brokers[3].asked)
        await trio.sleep(120)
        assert len(scene.brokers[3].asked) > asked
        assert not scene.tried["r1", _shown(3)]
        # They say nothing of the first route's own broker.
        assert scene.tried["r1", _upstream(1)]
