"""One broker that is asked: versions, pauses, polls, refreshes, its identity. Virtual time."""

import itertools
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from leader_hints.address import Address
from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.list_offsets import Partition
from leader_hints.apis.metadata import NO_BROKERS, Brokers, ClusterMetadata, Led, TopicMetadata
from leader_hints.core.cluster.broker_identity import Probe, probing
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.net.brokers.connector import Connector
from leader_hints.net.metadata.broker_poller import BrokerPoller, Cause, PollerSettings
from tests.net import messages
from tests.net.fake_broker import FakeBroker, FakeNetwork, Leaders, network
from tests.net.messages import API_VERSIONS, LIST_OFFSETS, METADATA, Broker
from tests.net.rig import LEGACY

_ADDRESS = Address("one", 9092)
_BROKERS = [Broker(1, "one", 1), Broker(2, "two", 2), Broker(3, "three", 3)]
_SETTINGS = PollerSettings(
    client=ClientSoftware("leader-hints", "1"),
    poll=30,
    answer=2,
    connect=10,
    reconnect_min=0.1,
    reconnect_max=5,
    slice_partitions=4,
)


class _Told:
    """A listener that learns into one view and notes what it gets."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self.opened_with: list[dict[int, int]] = []
        self.answers = 0
        self.behind: list[BrokerPoller] = []
        self.reasons: list[str] = []
        self.identities: list[int | None] = []
        self.causes: list[Cause] = []
        self.leaderships: list[tuple[dict[Partition, int], dict[Partition, int], float]] = []

    async def turn(self) -> None:
        await trio.lowlevel.checkpoint()

    def opened(self, poller: BrokerPoller, maxima: dict[int, int]) -> None:
        self.opened_with.append(maxima)

    def answered(self, poller: BrokerPoller) -> None:
        self.answers += 1

    def hints_behind(self, poller: BrokerPoller) -> None:
        self.behind.append(poller)

    def identified(self, poller: BrokerPoller) -> None:
        self.identities.append(poller.node)

    def lost(self, poller: BrokerPoller, reason: str) -> None:
        self.reasons.append(reason)

    def failed(self, error: Exception) -> None:
        raise error

    async def learn(
        self,
        poller: BrokerPoller,
        answer: ClusterMetadata,
        asked_at: float,
        *,
        poll: bool,
        whole: bool,
    ) -> set[str] | None:
        if not answer.tells:
            return None
        if self.route.broker.view is None:
            self.route.broker.view = LeaderView(answer.cluster_id)
        self.route.broker.endpoints = answer.endpoints
        names = set()
        for topic in answer.topics:
            names.add(topic.name)
            self.route.broker.view.learn(topic, poller.node, poll=poll)
        return names

    async def forget(
        self, poller: BrokerPoller, view: LeaderView, present: Collection[str]
    ) -> None:
        list(view.topics.forget_absent(present, poller.source.route))

    async def probe(self, poller: BrokerPoller, view: LeaderView) -> Probe:
        probe: Probe = {}
        list(probing(view, probe, poller.source))
        return probe

    def leadership(
        self,
        poller: BrokerPoller,
        epochs: Mapping[Partition, int],
        errors: Mapping[Partition, int],
        asked_at: float,
    ) -> None:
        self.leaderships.append((dict(epochs), dict(errors), asked_at))

    def refreshed(self, cause: Cause, seconds: float) -> None:
        self.causes.append(cause)

    def view(self, poller: BrokerPoller) -> LeaderView | None:
        return self.route.broker.view

    def listed(self, poller: BrokerPoller) -> Brokers:
        return NO_BROKERS

    def sample(self, poller: BrokerPoller) -> list[str]:
        return []


class _Scene:
    """A poller of one broker's route, and that broker."""

    def __init__(self, net: FakeNetwork, leaders: Leaders) -> None:
        self.net = net
        self.broker = FakeBroker(1, _BROKERS, leaders)
        self.route = Route("r", Mode.ON)
        self.told = _Told(self.route)
        self.poller = BrokerPoller(
            _ADDRESS,
            _SETTINGS,
            self.told,
            route=self.route,
            connector=Connector(open_tcp=net.open),
        )
        self._begin = trio.current_time()

    def attempts(self) -> list[float]:
        """When it was connected to."""
        return [round(at - self._begin, 6) for at, _ in self.net.attempts]

    def polled(self) -> list[tuple[float, list[str] | None]]:
        """When it was asked for which topics."""
        return [(round(m.at - self._begin, 6), m.topics) for m in self.broker.metadata()]


@asynccontextmanager
async def _scene(leaders: Leaders, *, up: bool = True) -> AsyncIterator[_Scene]:
    async with network() as net:
        scene = _Scene(net, leaders)
        if up:
            net.brokers[_ADDRESS] = scene.broker
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scene.poller.run)
            yield scene
            nursery.cancel_scope.cancel()


_ONE_TOPIC: Leaders = {"t": [(1, 5), (2, 6), (3, 7)]}


async def test_it_asks_versions_then_everything_then_who_the_broker_is(
    autojump_clock: MockClock,
) -> None:
    async with _scene(_ONE_TOPIC) as scene:
        await trio.sleep(1)
        asked = [(a.key, a.version) for a in scene.broker.asked]
        assert asked == [(API_VERSIONS, 3), (METADATA, 12), (LIST_OFFSETS, 4)]
        assert scene.told.opened_with == [LEGACY]
        assert scene.told.answers == 1
        assert scene.route.broker.view is not None
        assert scene.route.broker.view.leader("t", 1) == Leader(2, 6)
        assert (scene.route.broker.node, scene.poller.node) == (1, 1)
        assert scene.told.identities == [1]
        assert scene.poller.connected
        assert scene.told.reasons == []


async def test_a_broker_without_the_newest_api_versions_is_asked_the_oldest(
    autojump_clock: MockClock,
) -> None:
    def answer(correlation: int, version: int) -> bytes:
        if version == 3:
            return messages.unsupported_api_versions(correlation)
        return messages.api_versions_response(correlation, version, {**LEGACY, METADATA: 9})

    async with _scene(_ONE_TOPIC) as scene:
        scene.broker.answers[API_VERSIONS] = answer
        await trio.sleep(1)
        asked = [(a.key, a.version) for a in scene.broker.asked]
        assert asked[:3] == [(API_VERSIONS, 3), (API_VERSIONS, 0), (METADATA, 9)]
        assert scene.told.opened_with == [{**LEGACY, METADATA: 9}]
        assert scene.route.broker.node == 1


@pytest.mark.parametrize("produce", [9, 10])
async def test_a_proxy_that_gives_the_hints_is_distinguished_from_a_broker(
    produce: int, autojump_clock: MockClock
) -> None:
    """A proxy offers more to a client that uses hints than to one that it does not know."""
    offered = itertools.chain([10, produce], itertools.repeat(10))

    def answer(correlation: int, version: int) -> bytes:
        maxima = {**LEGACY, 0: next(offered)}
        return messages.api_versions_response(correlation, version, maxima)

    async with _scene(_ONE_TOPIC) as scene:
        scene.broker.answers[API_VERSIONS] = answer
        await trio.sleep(100)
        asked = [(a.key, a.version) for a in scene.broker.asked]
        # One that wants SASL first may close the connection at a second such question.
        assert asked[:2] == [(API_VERSIONS, 3), (METADATA, 12)]
        # As another client, and as itself again.
        assert asked[2:4] == [(API_VERSIONS, 3)] * 2
        assert asked.count((API_VERSIONS, 3)) == 3
        assert scene.told.behind == ([scene.poller] if produce == 9 else [])


async def test_pauses_double_up_to_the_longest_while_a_broker_is_down(
    autojump_clock: MockClock,
) -> None:
    async with _scene(_ONE_TOPIC, up=False) as scene:
        await trio.sleep(20)
        assert scene.attempts() == [0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 11.3, 16.3]
        assert set(scene.told.reasons) == {"cannot connect: connection refused"}
        assert not scene.poller.connected


async def test_a_broker_that_others_reach_is_tried_at_once_but_not_without_pause(
    autojump_clock: MockClock,
) -> None:
    async with _scene(_ONE_TOPIC, up=False) as scene:
        await trio.sleep(7)
        assert scene.attempts()[-2:] == [3.1, 6.3]
        scene.net.brokers[_ADDRESS] = scene.broker
        scene.poller.reached()
        await trio.sleep(0.01)
        assert scene.attempts()[-1] == 7
        assert scene.poller.connected
        del scene.net.brokers[_ADDRESS]
        await scene.broker.drop()
        for _ in range(100):
            scene.poller.reached()
            await trio.sleep(0.01)
        assert len([at for at in scene.attempts() if at > 7]) <= 10


async def test_a_broker_that_refuses_is_not_tried_sooner_because_others_reach_it(
    autojump_clock: MockClock,
) -> None:
    async with _scene(_ONE_TOPIC) as scene:
        scene.broker.answers[METADATA] = lambda correlation, version: messages.response(
            METADATA, version, correlation, b"too short"
        )
        for _ in range(20):
            scene.poller.reached()
            await trio.sleep(1)
        assert scene.attempts() == [0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 11.3, 16.3]


async def test_pauses_begin_again_after_a_poll_succeeded(autojump_clock: MockClock) -> None:
    async with _scene(_ONE_TOPIC, up=False) as scene:
        await trio.sleep(2)
        scene.net.brokers[_ADDRESS] = scene.broker
        await trio.sleep(2)
        assert scene.poller.connected
        del scene.net.brokers[_ADDRESS]
        await scene.broker.drop()
        await trio.sleep(1)
        assert scene.told.reasons[5] == "connection closed by the broker"
        # It was noticed at once, at 4 s.
        assert scene.attempts()[5:] == [3.1, 4.1, 4.3, 4.7]


async def test_a_broker_that_went_and_came_back_can_be_asked_at_once(
    autojump_clock: MockClock,
) -> None:
    async with _scene(_ONE_TOPIC) as scene:
        await trio.sleep(1)
        await scene.broker.drop()
        await trio.sleep(0.2)
        assert scene.poller.connected
        scene.poller.refresh({"t"})
        await trio.sleep(0.01)
        assert scene.polled()[-1] == (1.2, ["t"])


async def test_a_broker_that_breaks_at_each_poll_is_not_tried_without_pause(
    autojump_clock: MockClock,
) -> None:
    async with _scene(_ONE_TOPIC) as scene:
        scene.broker.answers[METADATA] = lambda correlation, version: messages.response(
            METADATA, version, correlation, b"too short"
        )
        await trio.sleep(20)
        assert scene.attempts() == [0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 11.3, 16.3]
        assert not scene.poller.connected


async def test_a_broker_that_breaks_when_it_is_asked_which_node_it_is_has_pauses_too(
    autojump_clock: MockClock,
) -> None:
    """As a gateway that forbids ListOffsets: four times a second it was asked for everything."""
    async with _scene(_ONE_TOPIC) as scene:
        scene.broker.answers[LIST_OFFSETS] = lambda correlation, version: b"\0\0\0\0"
        await trio.sleep(20)
        assert len(scene.attempts()) <= 9
        assert len(scene.broker.metadata()) <= 2 * len(scene.attempts())
        assert scene.told.reasons


async def test_a_broker_that_does_not_answer_is_left_in_time(autojump_clock: MockClock) -> None:
    async with _scene(_ONE_TOPIC) as scene:
        scene.broker.gate = trio.Event()
        await trio.sleep(3)
        assert scene.told.reasons == ["no answer within 2 s"]
        assert scene.attempts() == [0, 2.1]
        scene.broker.gate.set()
        await trio.sleep(3)
        assert scene.poller.connected
        assert len(scene.broker.streams) == 1


async def test_an_old_broker_is_not_asked_for_leaders_until_a_newer_one_stands_there(
    autojump_clock: MockClock,
) -> None:
    async with _scene(_ONE_TOPIC) as scene:
        scene.broker.maxima = {**LEGACY, METADATA: 8}
        await trio.sleep(100)
        assert not scene.poller.connected
        assert {a.key for a in scene.broker.asked} == {API_VERSIONS}
        assert len(scene.told.opened_with) == 1

        await scene.broker.drop()
        scene.broker.maxima = LEGACY
        await trio.sleep(1)
        assert scene.poller.connected
        assert scene.told.opened_with[1:] == [LEGACY]


def _versions_of_2_3(correlation: int, version: int) -> bytes:
    if version > 2:
        return messages.unsupported_api_versions(correlation)
    return messages.api_versions_response(correlation, version, {**LEGACY, METADATA: 8})


async def test_an_old_broker_with_sasl_is_looked_at_on_a_new_connection_each_time(
    autojump_clock: MockClock,
) -> None:
    """It takes one question for its versions on each: the connection was lost at every poll."""
    async with _scene(_ONE_TOPIC) as scene:
        scene.broker.wants_sasl = True
        scene.broker.answers[API_VERSIONS] = _versions_of_2_3
        await trio.sleep(100)
        assert scene.told.reasons == []
        assert scene.attempts() == [0, 30.1, 60.2, 90.3]
        assert [(a.key, a.version) for a in scene.broker.asked] == [
            (API_VERSIONS, 3),
            (API_VERSIONS, 0),
        ] * 4
        assert len(scene.told.opened_with) == len(scene.broker.streams) == 1

        # It goes, and comes back as it was, and then as another one.
        await scene.broker.drop()
        await trio.sleep(1)
        assert scene.told.reasons == ["connection closed by the broker"]
        assert len(scene.told.opened_with) == 2
        del scene.broker.answers[API_VERSIONS]
        scene.broker.wants_sasl = False
        await trio.sleep(30)
        assert scene.poller.connected
        assert scene.told.opened_with[2:] == [LEGACY]


async def test_an_old_broker_is_left_if_its_name_leads_to_a_newer_one_by_now(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection lasts for as long as it runs. All that time clients of the newer one got no
    hints.
    """
    monkeypatch.setattr(
        "leader_hints.net.brokers.broker_connection.peer_of", lambda stream: "10.0.0.1"
    )
    async with _scene(_ONE_TOPIC) as scene:
        scene.broker.maxima = {**LEGACY, METADATA: 8}
        await trio.sleep(1)
        newer = FakeBroker(1, _BROKERS, _ONE_TOPIC)
        scene.net.brokers[_ADDRESS] = newer
        for _ in range(65):
            scene.poller.reached("10.0.0.2")
            await trio.sleep(1)
        assert scene.poller.connected
        assert (len(scene.broker.streams), len(newer.streams)) == (0, 1)


async def test_an_old_broker_is_left_if_it_is_to_be_asked_elsewhere(
    autojump_clock: MockClock,
) -> None:
    async with _scene(_ONE_TOPIC) as scene:
        scene.broker.maxima = {**LEGACY, METADATA: 8}
        await trio.sleep(1)
        # Nothing else makes a difference to it.
        scene.poller.refresh(["t"])
        scene.poller.identify()
        await trio.sleep(1)
        assert {a.key for a in scene.broker.asked} == {API_VERSIONS}
        newer = FakeBroker(1, _BROKERS, _ONE_TOPIC)
        scene.poller.address = Address("another", 9092)
        scene.net.brokers[scene.poller.address] = newer
        scene.poller.reconnect()
        await trio.sleep(1)
        assert scene.poller.connected
        assert (len(scene.broker.streams), len(newer.streams)) == (0, 1)


async def test_polls_between_full_ones_ask_slices_of_the_known_topics(
    autojump_clock: MockClock,
) -> None:
    leaders: Leaders = {
        "a": [(1, 1)] * 3,
        "b": [(1, 1)] * 2,
        "c": [(1, 1)] * 2,
        "big": [(1, 1)] * 9,
    }
    async with _scene(leaders) as scene:
        await trio.sleep(301)
        polled = scene.polled()
        assert polled[0] == (0, None)
        second = [topics for at, topics in polled if 30 <= at < 31]
        assert second == [["a"], ["b", "c"], ["big"]]
        assert [at for at, topics in polled if topics is None] == [0, 150, 300]


async def test_a_topic_that_is_gone_in_two_full_polls_is_forgotten(
    autojump_clock: MockClock,
) -> None:
    async with _scene({"t": [(1, 5)], "u": [(1, 5)]}) as scene:
        await trio.sleep(1)
        scene.broker.answers[METADATA] = lambda correlation, version: messages.metadata_response(
            correlation, version, _BROKERS, {"t": [messages.Partition(0, 1, 5)]}
        )
        await trio.sleep(150)
        assert scene.route.broker.view is not None
        assert set(scene.route.broker.view.topics.names) == {"t", "u"}
        await trio.sleep(150)
        assert set(scene.route.broker.view.topics.names) == {"t"}


async def test_who_the_broker_is_is_asked_again_while_it_is_not_known(
    autojump_clock: MockClock,
) -> None:
    """No partition has a leader yet: there is nothing to ask a broker by."""
    async with _scene({"t": [(-1, 1)]}) as scene:
        await trio.sleep(3)
        assert scene.route.broker.node is None
        assert [at for at, _ in scene.polled()] == [0, 0.25, 0.75, 1.75]
        scene.broker.leaders = {"t": [(1, 2)]}
        await trio.sleep(4)
        assert scene.route.broker.node == 1
        await trio.sleep(20)
        assert len(scene.polled()) == 5


async def test_a_broker_that_is_asked_again_soon_does_not_repeat_what_it_reported(
    autojump_clock: MockClock,
) -> None:
    """Two polls that contradict the view count, but only if others were polled meanwhile."""
    async with _scene({"t": [(-1, 0)]}) as scene:
        view = scene.route.broker.view = LeaderView("c")
        view.learn(TopicMetadata(0, "t", bytes(16), (Led(0, 3, 1),)), 3)
        await trio.sleep(20)
        assert len(scene.polled()) > 2
        assert view.leader("t", 0) == Leader(3, 1)
        await trio.sleep(40)
        assert view.leader("t", 0) == Leader(-1, 0)


async def test_a_broker_that_knows_nothing_yet_is_soon_asked_for_everything_again(
    autojump_clock: MockClock,
) -> None:
    """One with ZooKeeper that restarts. Who it is was proved before, so that is not asked again."""
    async with _scene(_ONE_TOPIC) as scene:
        await trio.sleep(1)
        scene.broker.answers[METADATA] = lambda correlation, version: messages.metadata_response(
            correlation, version, [], {}
        )
        await scene.broker.drop()
        await trio.sleep(0.9)
        del scene.broker.answers[METADATA]
        scene.broker.leaders = {"t": [(2, 6), (2, 6), (3, 7)]}
        await trio.sleep(1)
        assert scene.route.broker.view is not None
        assert scene.route.broker.view.leader("t", 0) == Leader(2, 6)
        await trio.sleep(20)
        assert scene.polled()[1:] == [(1.1, None), (1.35, None), (1.85, None), (2.85, None)]


async def test_refreshes_that_come_while_one_is_under_way_become_one(
    autojump_clock: MockClock,
) -> None:
    async with _scene(_ONE_TOPIC) as scene:
        await trio.sleep(1)
        scene.broker.gate = trio.Event()
        scene.poller.refresh({"t"})
        await trio.sleep(0.01)
        for name in ("u", "v", "u"):
            scene.poller.refresh({name})
            await trio.sleep(0.01)
        scene.broker.gate.set()
        await trio.sleep(1)

        first, second = [topics for _, topics in scene.polled()][1:]
        assert first == ["t"]
        assert sorted(second or []) == ["u", "v"]
        assert scene.broker.most_waiting == 1


async def test_a_refresh_for_an_unknown_name_asks_for_everything(
    autojump_clock: MockClock,
) -> None:
    async with _scene(_ONE_TOPIC) as scene:
        await trio.sleep(1)
        scene.poller.refresh({"t"}, everything=True)
        await trio.sleep(1)
        assert [topics for _, topics in scene.polled()] == [None, None]


async def test_a_refresh_asks_first_whether_the_broker_leads(autojump_clock: MockClock) -> None:
    leaders: Leaders = {"t": [(1, 5), (2, 5), (1, 6), (1, 4)], "u": [(1, 5)]}
    async with _scene(leaders) as scene:
        await trio.sleep(1)
        begin = trio.current_time()
        asked = {("t", 0): 5, ("t", 1): 5, ("t", 2): 5, ("t", 3): 5}
        scene.poller.refresh({"t"}, asked)
        scene.poller.refresh({"u"}, {("u", 0): 6})
        await trio.sleep(1)
        assert [a.key for a in scene.broker.asked[-2:]] == [LIST_OFFSETS, METADATA]
        errors = {("t", 0): 0, ("t", 1): 6, ("t", 2): 74, ("t", 3): 75, ("u", 0): 75}
        assert scene.told.leaderships == [(asked | {("u", 0): 6}, errors, begin)]


async def test_whether_a_broker_leads_very_many_partitions_is_asked_some_at_a_time(
    autojump_clock: MockClock,
) -> None:
    """The answer about 10,000 took 77 ms of one step, and more where errors waited for it."""
    many = 1200
    async with _scene({"t": [(1, 5)] * many}) as scene:
        await trio.sleep(1)
        asked = {("t", partition): 5 for partition in range(many)}
        scene.poller.refresh({"t"}, asked)
        await trio.sleep(1)
        questions = [LIST_OFFSETS, METADATA, LIST_OFFSETS, LIST_OFFSETS]
        assert [a.key for a in scene.broker.asked[-4:]] == questions
        assert [len(epochs) for epochs, _, _ in scene.told.leaderships] == [500, 500, 200]
        answered = {
            place: e for _, errors, _ in scene.told.leaderships for place, e in errors.items()
        }
        assert answered == dict.fromkeys(asked, 0)


async def test_a_broker_whose_cluster_changed_leaders_is_identified_again(
    autojump_clock: MockClock,
) -> None:
    async with _scene({"t": [(-1, 1)]}) as scene:
        await trio.sleep(2)
        scene.broker.leaders = {"t": [(1, 2)]}
        scene.poller.refresh({"t"})
        await trio.sleep(0.1)
        assert scene.route.broker.node is None
        scene.poller.identify()
        await trio.sleep(0.1)
        assert scene.route.broker.node == 1
        assert scene.told.identities == [1]


async def test_a_refresh_does_not_wait_for_all_slices_of_a_poll(
    autojump_clock: MockClock,
) -> None:
    leaders: Leaders = {f"t{n}": [(1, 1)] * 4 for n in range(5)}
    async with _scene(leaders) as scene:
        await trio.sleep(1)
        scene.broker.gate = trio.Event()
        await trio.sleep(30)  # The first slice of the second poll is under way.
        scene.poller.refresh({"t4"})
        scene.broker.gate.set()
        await trio.sleep(1)
        assert [topics for _, topics in scene.polled()][1:4] == [["t0"], ["t4"], ["t1"]]


@pytest.mark.parametrize("everything", [True, False])
async def test_a_broker_behind_no_route_is_asked_what_is_wanted_only(
    autojump_clock: MockClock, everything: bool
) -> None:
    async with network() as net:
        broker = net.brokers[_ADDRESS] = FakeBroker(2, _BROKERS, _ONE_TOPIC)
        told = _Told(Route("r", Mode.ON))
        poller = BrokerPoller(
            _ADDRESS,
            _SETTINGS,
            told,
            node=2,
            connector=Connector(open_tcp=net.open),
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run)
            await trio.sleep(31)
            assert [m.topics for m in broker.metadata()] == [[], []]
            poller.refresh({"t"}, everything=everything)
            await trio.sleep(1)
            assert broker.metadata()[-1].topics == (None if everything else ["t"])
            assert LIST_OFFSETS not in {a.key for a in broker.asked}
            nursery.cancel_scope.cancel()
