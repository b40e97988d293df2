"""The hold timer gives the hold queue its clock: virtual time, so that moments are exact."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint, Failure, LeaderHint, Scanned
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import Event, EventLoopStalled, HintGiven, HintMissed
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.net.metadata.hold_timer import HoldTimer
from tests.core.rules import DEFAULT_RULES
from tests.net.messages import NOT_LEADER
from tests.net.rig import hinting_route

_RULES = replace(
    DEFAULT_RULES, deadline=0.1, link_second=0.1, shared=0.02, grace=0.02, confirm=0.01
)
_HINT = LeaderHint(2, 4, Endpoint("two", 9092, None))
#: Task switches that no test here needs: a timer that makes them spins.
_MOST_SWITCHES = 500


class _Scene:
    """A hold timer at work, and when it settled what."""

    def __init__(self) -> None:
        self.route = hinting_route()
        self.route.broker.view = LeaderView("k", trio.current_time)
        self.route.broker.endpoints = {2: _HINT.endpoint}
        self.events: list[Event] = []
        self.timer = HoldTimer(HoldQueue(_RULES), self.events.append)
        self.settled: list[tuple[float, int, list[LeaderHint | None]]] = []
        self.timer.settle = self._settle
        self._begin = trio.current_time()
        self.learn(leader=1, epoch=3, source=1)

    @property
    def now(self) -> float:
        return round(trio.current_time() - self._begin, 6)

    def _settle(self, decided: list[tuple[Held, list[LeaderHint | None]]]) -> None:
        self.settled += [(self.now, held.link.number, hints) for held, hints in decided]

    def submit(
        self, link: int = 1, *, partition: int = 0, carries: bool = False
    ) -> list[LeaderHint | None] | None:
        """Submit an error response."""
        failures = (Failure("t", partition, NOT_LEADER, 0, 0),)
        scanned = Scanned(failures, carries, 0, 0)
        state = LinkState(self.route, link)
        return self.timer.submit(Held(state, ApiKey.FETCH, 16, memoryview(b""), scanned, [-1]))

    def learn(self, *, leader: int, epoch: int, source: int) -> None:
        """Take what node ``source`` says of partitions 0 and 1."""
        assert self.route.broker.view is not None
        led = tuple(Led(partition, leader, epoch) for partition in (0, 1))
        self.route.broker.view.learn(TopicMetadata(0, "t", ZERO_ID, led), source)
        self.timer.review()


class _Switches(trio.abc.Instrument):
    """Ends ``scope`` after too many task switches: a clock that stands still ends nothing."""

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope
        self._left = _MOST_SWITCHES

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._left -= 1
        if self._left == 0:
            self._scope.cancel()


@asynccontextmanager
async def _at_work() -> AsyncIterator[_Scene]:
    scene = _Scene()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.timer.run)
        yield scene
        nursery.cancel_scope.cancel()


async def test_a_response_goes_on_at_its_deadline(autojump_clock: MockClock) -> None:
    async with _at_work() as scene:
        assert scene.submit() is None
        assert scene.timer.waiting.is_set()
        await trio.sleep(1)
        assert scene.settled == [(0.1, 1, [None])]
        # The leader is looked for a while longer.
        assert scene.timer.waiting.is_set()
        await trio.sleep(0.11)
        assert not scene.timer.waiting.is_set()
        (missed,) = scene.events
        assert isinstance(missed, HintMissed)
        assert missed.reason == "hold_expired"
        assert missed.answered.hold_ms == pytest.approx(100)


async def test_an_earlier_deadline_is_kept_too(autojump_clock: MockClock) -> None:
    """The timer sleeps for the first one's when the second comes."""
    async with _at_work() as scene:
        scene.submit(1, partition=0)
        await trio.sleep(0.01)
        scene.submit(2, partition=1, carries=True)
        await trio.sleep(1)
        assert scene.settled == [(0.03, 2, [None]), (0.1, 1, [None])]


async def test_responses_go_on_before_that_is_reported(autojump_clock: MockClock) -> None:
    """To report 200 of them takes 10 ms, for which clients waited."""
    async with _at_work() as scene:
        reported: list[int] = []
        scene.timer.settle = lambda decided: reported.append(len(scene.events))
        for link in (1, 2):
            scene.submit(link)
        scene.learn(leader=2, epoch=4, source=2)
        scene.submit(3, partition=1)
        scene.timer.switch(scene.route, Mode.OFF)
        assert reported[0] == 0
        assert len(scene.events) >= 2


async def test_the_leaders_confirmation_settles_immediately(autojump_clock: MockClock) -> None:
    async with _at_work() as scene:
        scene.submit(1)
        scene.submit(2, partition=1)
        await trio.sleep(0.05)
        scene.learn(leader=2, epoch=4, source=2)
        assert scene.settled == [(0.05, 1, [_HINT]), (0.05, 2, [_HINT])]
        assert not scene.timer.waiting.is_set()
        assert [type(event) for event in scene.events] == [HintGiven, HintGiven]


async def test_news_are_reviewed_once_however_many_brokers_bring_them(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _at_work() as scene:
        scene.submit()
        await trio.testing.wait_all_tasks_blocked()
        reviews = []

        def review(whole: Callable[[], None] = scene.timer.review) -> None:
            reviews.append(scene.now)
            whole()

        monkeypatch.setattr(scene.timer, "review", review)
        for _ in range(5):
            scene.timer.news()
        await trio.testing.wait_all_tasks_blocked()
        assert len(reviews) == 1


async def test_very_many_are_all_settled_at_the_same_moment(autojump_clock: MockClock) -> None:
    async with _at_work() as scene:
        for link in range(1, 301):
            scene.submit(link, partition=link % 2)
        await trio.sleep(0.05)
        scene.learn(leader=2, epoch=4, source=2)
        assert 0 < len(scene.settled) < 300
        await trio.testing.wait_all_tasks_blocked()
        assert scene.settled == [(0.05, link, [_HINT]) for link in range(1, 301)]


async def test_anothers_word_settles_a_little_later(autojump_clock: MockClock) -> None:
    async with _at_work() as scene:
        scene.submit()
        await trio.sleep(0.05)
        scene.learn(leader=2, epoch=4, source=3)
        assert scene.settled == []
        await trio.sleep(1)
        assert scene.settled == [(0.06, 1, [_HINT])]


async def test_what_is_known_already_is_not_held(autojump_clock: MockClock) -> None:
    async with _at_work() as scene:
        scene.learn(leader=2, epoch=4, source=2)
        assert scene.submit() == [_HINT]
        assert not scene.timer.waiting.is_set()
        await trio.sleep(1)
        assert scene.settled == []


async def test_a_link_that_is_gone_is_never_settled_and_waited_for(
    autojump_clock: MockClock,
) -> None:
    async with _at_work() as scene:
        scene.submit(1)
        await trio.sleep(0.01)
        scene.timer.forget(1)
        assert not scene.timer.waiting.is_set()
        scene.learn(leader=2, epoch=4, source=2)
        await trio.sleep(1)
        assert scene.settled == []
        assert scene.events == []


async def test_all_of_a_link_that_is_gone_is_dropped_soon(autojump_clock: MockClock) -> None:
    """In steps, where there is very much of it."""
    async with _at_work() as scene:
        scene.route.switch(Mode.OBSERVE)
        for _ in range(1200):
            scene.submit(1)
        await trio.sleep(0.01)
        scene.timer.forget(1)
        assert scene.timer.queue.held > 0
        await trio.sleep(0.001)
        assert scene.timer.queue.held == 0
        assert not scene.timer.waiting.is_set()
        assert scene.events == []


async def test_the_others_are_waited_for_when_one_link_is_gone(autojump_clock: MockClock) -> None:
    async with _at_work() as scene:
        scene.submit(1)
        scene.submit(2, partition=1)
        scene.timer.forget(1)
        assert scene.timer.waiting.is_set()
        await trio.sleep(1)
        assert scene.settled == [(0.1, 2, [None])]


async def test_a_hint_that_is_overtaken_while_it_waits_makes_nobody_busy(
    autojump_clock: MockClock,
) -> None:
    """Its moment has passed, and it is good no more: the next thing to wait for is the deadline."""
    with trio.CancelScope() as scope:
        trio.lowlevel.add_instrument(_Switches(scope))
        async with _at_work() as scene:
            scene.submit()
            await trio.sleep(0.05)
            scene.learn(leader=2, epoch=4, source=3)
            await trio.sleep(0.005)
            scene.learn(leader=3, epoch=5, source=1)  # The route knows no endpoint of node 3.
            await trio.sleep(1)
            assert scene.settled == [(0.1, 1, [None])]
    assert not scope.cancelled_caught


async def test_no_hold_is_longer_than_promised_where_the_timer_comes_late(
    autojump_clock: MockClock,
) -> None:
    """Other tasks take 15 ms for each of their steps, and each brings news."""
    async with _at_work() as scene:
        scene.submit(1)
        while not scene.settled:
            scene.timer.news()
            autojump_clock.jump(0.015)
            await trio.testing.wait_all_tasks_blocked()
        # The last turn before the deadline, and not the first behind it.
        assert scene.settled[0][0] == 0.09


async def test_who_came_late_is_in_time_a_second_later(autojump_clock: MockClock) -> None:
    async with _at_work() as scene:
        scene.submit(1)
        await trio.testing.wait_all_tasks_blocked()
        autojump_clock.jump(10)
        await trio.sleep(0.5)
        assert scene.settled[0][0] == 10
        scene.submit(2, partition=1)
        await trio.sleep(2)
        # Late by seconds, but no hold is cut short by more than a quarter of the deadline.
        assert scene.settled[1][0] == 10.575
        scene.learn(leader=1, epoch=4, source=1)
        begin = scene.now
        scene.submit(3)
        await trio.sleep(1)
        assert scene.settled[2][0] == round(begin + 0.1, 6)


async def test_it_stays_ahead_for_as_long_as_it_comes_late(autojump_clock: MockClock) -> None:
    """Other tasks take 15 ms for each of their steps, for three seconds, and bring errors."""
    begun: list[float] = []
    async with _at_work() as scene:
        while scene.now < 3:
            begun.append(scene.now)
            scene.submit(len(begun), partition=len(begun))
            autojump_clock.jump(0.015)
            await trio.testing.wait_all_tasks_blocked()
        holds = [at - begun[link - 1] for at, link, _ in scene.settled]
    assert len(holds) > 190
    assert max(holds) == pytest.approx(0.09)
    assert min(holds) == pytest.approx(0.09)


async def test_a_task_that_is_no_longer_late_is_forgotten_while_something_is_held(
    autojump_clock: MockClock,
) -> None:
    async with _at_work() as scene:
        scene.submit(1)
        await trio.testing.wait_all_tasks_blocked()
        autojump_clock.jump(1)
        await trio.testing.wait_all_tasks_blocked()
        assert scene.settled[0][0] == 1
        await trio.sleep(0.98)
        scene.submit(2, partition=1)
        await trio.sleep(1)
        # A second after it came late, and before the hold would be cut, it is ahead no more.
        assert scene.settled[1][0] == 2.08


async def _run_until_idle(timer: HoldTimer) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timer.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()


async def test_thousands_of_events_are_handed_on_in_turns(autojump_clock: MockClock) -> None:
    taken: list[Event] = []
    timer = HoldTimer(HoldQueue(_RULES), taken.append)
    events = [EventLoopStalled(seconds=number) for number in range(1000)]
    timer.emit(events)
    assert len(taken) == 200
    await _run_until_idle(timer)
    assert taken == events


async def test_events_of_many_answers_of_one_step_are_handed_on_in_turns(
    autojump_clock: MockClock,
) -> None:
    """Moves in eight Metadata responses that came together took 34 ms of one step."""
    taken: list[Event] = []
    timer = HoldTimer(HoldQueue(_RULES), taken.append)
    events = [EventLoopStalled(seconds=number) for number in range(1200)]
    for begin in range(0, 1200, 150):
        timer.emit(events[begin : begin + 150])
    assert len(taken) == 200
    await _run_until_idle(timer)
    assert taken == events


async def test_events_that_wait_to_be_handed_on_are_bounded(autojump_clock: MockClock) -> None:
    taken: list[Event] = []
    timer = HoldTimer(HoldQueue(_RULES), taken.append)
    events = [EventLoopStalled(seconds=number) for number in range(50_000)]
    for begin in range(0, 50_000, 1000):
        timer.emit(events[begin : begin + 1000])
    assert taken == events[: len(taken)]
    assert len(events) - len(taken) == 20_000


async def test_errors_that_come_in_one_step_do_not_have_all_of_a_large_one_reported(
    autojump_clock: MockClock,
) -> None:
    """While 5,000 were reported, 16 errors of one link took 86 ms of one step: 200 with each."""
    async with _at_work() as scene:
        many = range(2000)
        view = scene.route.broker.view
        assert view is not None
        for node in (1, 2):
            led = tuple(Led(number, node, 2 + node) for number in many)
            view.learn(TopicMetadata(0, "u", ZERO_ID, led), node)
        failures = tuple(Failure("u", number, NOT_LEADER, 0, 0) for number in many)
        link = LinkState(scene.route, 1)
        scanned = Scanned(failures, False, 0, 0)
        epochs = [-1] * len(many)
        held = Held(link, ApiKey.PRODUCE, 10, memoryview(b""), scanned, epochs)
        assert scene.timer.submit(held) is None
        while not scene.settled:
            await trio.lowlevel.checkpoint()
        assert scene.timer.reporting
        before = len(scene.events)
        for number in range(16):
            scanned = Scanned((Failure("u", number, NOT_LEADER, 0, 0),), False, 0, 0)
            error = Held(link, ApiKey.PRODUCE, 10, memoryview(b""), scanned, [-1])
            assert scene.timer.submit(error) is not None
        assert len(scene.events) - before <= 200
        while scene.timer.reporting:
            await trio.lowlevel.checkpoint()
        assert len(scene.events) == 2016
