"""A worker and the process that decides, by what they say to each other."""

from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Failure, LeaderHint, Scanned
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.cluster.unknown_ids import MOST_IDS
from leader_hints.core.events import (
    ClientAsked,
    ClientSeen,
    HintGiven,
    HintMissed,
    LeaderMoved,
    NotUnderstood,
    Recovered,
    TaskFailed,
)
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.hold_rules import HoldRules
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.hints.recovery import Client
from leader_hints.core.link.budget import Account, Budget
from leader_hints.core.link.client import LinkClient
from leader_hints.core.link.held import Held
from leader_hints.core.link.topic_ids import LinkTopicIds
from leader_hints.core.link.traffic_counters import TrafficCounters
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.asked_versions import Origin
from leader_hints.core.versions.plan import plan_for
from leader_hints.core.workers.codec import encode
from leader_hints.core.workers.messages import (
    MOST_ENTRIES,
    BrokerFails,
    BrokerKnown,
    BrokerMissed,
    BrokerServes,
    BrokerWanted,
    ClientFailed,
    ClientServed,
    ErrorsCame,
    HintsDecided,
    IdsLacking,
    IdWithheld,
    LeaderMove,
    LeadersCame,
    LinkEnded,
    LoadReported,
    ModeSet,
    ReportAsked,
    TopicRecreated,
    TopicsAdded,
    VersionAsked,
)
from leader_hints.net.workers import waiting_events
from leader_hints.net.workers.parent_side import Worker
from leader_hints.net.workers.traffic_reports import TrafficReports, add
from tests.core.hold_queues import NODES, failed, learn
from tests.core.links import Driven
from tests.core.rules import DEFAULT_RULES
from tests.core.samples import (
    BROKER_3_6,
    USES_HINTS,
    produce_request,
    request,
    topic_id,
    versions_answer,
)
from tests.harness.lines import lines_of, most_lines
from tests.net.workers.sides import LONGEST, Hall, Seat
from tests.settings.samples import settings_of


def _hall(mode: Mode = Mode.ON) -> Hall:
    hall = Hall(settings_of(), mode)
    hall.route.broker.view = LeaderView("cluster", trio.current_time)
    return hall


def _met() -> tuple[Hall, Seat]:
    """A hall whose broker is known, and a worker that has been told so."""
    hall = _hall()
    hall.meet()
    seat = hall.seat(1)
    hall.exchange()
    return hall, seat


def _events(hall: Hall, kind: type[Any]) -> list[Any]:
    return [event for event, _ in hall.events if isinstance(event, kind)]


def _move(hall: Hall, epoch: int = 6, leader: int = 2) -> None:
    """Have the view learn that the partition has another leader, which serves."""
    view = hall.route.broker.view
    assert view is not None
    learn(hall.route, {0: (1, epoch - 1)}, source=1)
    learn(hall.route, {0: (leader, epoch)}, source=leader)
    for _ in view.leader_confirms("t", 0, view.leader("t", 0)):  # type: ignore[arg-type]
        pass


def _moved() -> tuple[Hall, Seat]:
    """Both sides, with a worker that has heard that the partition has another leader."""
    hall = _hall()
    hall.meet()
    _move(hall)
    seat = hall.seat(1)
    hall.exchange()
    return hall, seat


# What a worker gets to know.


async def test_a_worker_knows_what_came_before_and_after_it() -> None:
    hall = _hall()
    learn(hall.route, {0: (1, 5)}, topic="with an id", topic_id=topic_id(1))
    hall.meet()
    early = hall.seat(1)
    hall.exchange()
    learn(hall.route, {0: (1, 5)}, topic="without", source=1)
    hall.route.broker.serves_anybody = True
    late = hall.seat(2)
    hall.exchange()
    for seat in (early, late):
        broker = seat.route.broker
        assert broker.plan == hall.route.broker.plan
        assert (broker.node, broker.serves_anybody) == (1, True)
        assert broker.view is not None
        topics = broker.view.topics
        assert {*topics.names} == {"with an id", "without"}
        assert topics.name(topic_id(1)) == "with an id"
        assert topics.name(synthetic_id("cluster", "without")) == "without"
        assert not topics.have_ids


async def test_a_worker_that_begins_later_knows_the_topics_of_all_clusters() -> None:
    hall = Hall(settings_of(), others=["s", "t"])
    for number, route in enumerate(hall.routes):
        route.broker.view = LeaderView(f"cluster {number}", trio.current_time)
        route.broker.maxima = BROKER_3_6
        learn(route, {0: (1, 5)}, topic=f"topic {number}", topic_id=topic_id(number + 1))
    seat = hall.seat(1)
    hall.exchange()
    views = [route.broker.view for route in seat.routes.values()]
    assert [{*view.topics.names} for view in views if view is not None] == [
        {"topic 0"},
        {"topic 1"},
        {"topic 2"},
    ]


async def test_a_worker_forgets_a_cluster_that_no_route_has_in_short_steps() -> None:
    """Garbage collection freed 50,000 topics in one step of 305 ms."""
    hall, seat = _met()
    for number in range(10_000):
        learn(hall.route, {0: (1, 5)}, topic=f"t{number}", topic_id=topic_id(number + 1))
    hall.exchange()
    former = seat.route.broker.view
    assert former is not None
    hall.route.broker.view = LeaderView("another", trio.current_time)
    assert lines_of(hall.exchange) < 2_000
    assert seat.route.broker.view is not None
    assert seat.route.broker.view.cluster_id == "another"
    assert [*former.topics.names]
    (forgetting,) = seat.later
    assert most_lines(forgetting) < 100
    assert not [*former.topics.names]


async def test_what_becomes_of_topics_while_a_worker_begins_is_not_taken_back() -> None:
    hall = _hall()
    hall.meet()
    for number in range(10 * MOST_ENTRIES):
        learn(hall.route, {0: (1, 5)}, topic=f"t{number}", topic_id=topic_id(number + 1))
    hall.exchange()
    seat = hall.seat(1, told=False)
    next(seat.joining)
    hall.exchange()
    # Both are among the last that it gets.
    recreated, deleted = (f"t{10 * MOST_ENTRIES - last}" for last in (1, 2))
    new = topic_id(99_999)
    learn(hall.route, {0: (1, 0)}, topic=recreated, topic_id=new)
    view = hall.route.broker.view
    assert view is not None
    view.topics.drop(deleted)
    for _ in seat.joining:
        hall.exchange()
    hall.exchange()
    told = seat.route.broker.view
    assert told is not None
    assert told.topics.name(new) == recreated
    assert {*told.topics.names} == {*view.topics.names}


async def test_many_topics_come_in_few_messages() -> None:
    hall = _hall()
    seat = hall.seat(1)
    seat.pending()
    for number in range(MOST_ENTRIES * 2 + 1):
        learn(hall.route, {0: (1, 5)}, topic=f"t{number}")
    hall.side.telling.flush()
    told = [message for message in seat.pending() if isinstance(message, TopicsAdded)]
    assert [len(message.topics) for message in told] == [MOST_ENTRIES, MOST_ENTRIES, 1]


def _leader_moved(partition: int, leader: int = 1) -> LeaderMoved:
    return LeaderMoved(
        cluster="cluster",
        topic="t",
        partition=partition,
        leader_before=2,
        epoch_before=1,
        leader=leader,
        epoch=2,
    )


async def test_moves_that_come_together_go_in_one_message() -> None:
    """Each was a system call for each worker: 200 of them 24 ms of one step with 32 workers."""
    hall, seat = _met()
    for partition in range(MOST_ENTRIES + 200):
        hall.emit(_leader_moved(partition), 0)
    assert len(seat.pending()) == 1
    learn(hall.route, {0: (1, 5)}, topic="t", source=1)
    hall.side.telling.flush()
    added, moved = seat.pending()
    assert isinstance(added, TopicsAdded)
    assert isinstance(moved, LeadersCame)
    assert len(moved.moves) == 200


async def test_hints_errors_and_successes_come_behind_the_moves(mock_clock: MockClock) -> None:
    hall, seat = _moved()
    other = hall.seat(2)
    hall.exchange()
    link = seat.link()
    seat.side.holds.submit(failed(link, {0: 5}, ApiKey.FETCH))
    said = seat.waiting
    hall.emit(_leader_moved(1), 0)
    for message in said:
        hall.side.take(seat.worker, message)  # type: ignore[arg-type]
    hall.emit(_leader_moved(2), 0)
    hall.side.take(seat.worker, ClientFailed("r", "c", "Fetch", (("t", 0),)))
    hall.emit(_leader_moved(3), 0)
    hall.side.take(seat.worker, ClientServed("r", 1, "c", "", "Fetch", "t", 0))
    kinds = [type(message).__name__ for message in seat.pending()]
    assert kinds.index("LeadersCame") < kinds.index("HintsDecided")
    kinds = [type(message).__name__ for message in other.pending()]
    assert kinds == ["LeadersCame"] * 2 + ["ClientFailed", "LeadersCame", "ClientServed"]


async def test_a_worker_takes_many_moves_in_few_lines_however_many_routes_it_has() -> None:
    def lines(others: int) -> int:
        hall = Hall(settings_of(), others=[f"r{number}" for number in range(others)])
        view = LeaderView("cluster", trio.current_time)
        for node, route in enumerate(hall.routes, 1):
            route.broker.view, route.broker.node = view, node
        seat = hall.seat(1)
        hall.exchange()
        moves = tuple(LeaderMove("t", number, 1) for number in range(MOST_ENTRIES))
        return lines_of(lambda: seat.side.takes(LeadersCame("cluster", moves)))

    assert lines(300) < lines(0) + 300 * 10


async def test_a_worker_that_begins_is_sent_moves_in_few_messages() -> None:
    hall = _hall()
    hall.meet()
    for partition in range(MOST_ENTRIES * 2):
        hall.emit(_leader_moved(partition), 0)
    hall.side.telling.flush()
    seat = hall.seat(1, told=False)
    assert most_lines(seat.joining) < 25_000
    moved = [message for message in seat.pending() if isinstance(message, LeadersCame)]
    assert [len(message.moves) for message in moved] == [MOST_ENTRIES] * 2


async def test_a_topic_that_is_forgotten_or_recreated_is_so_everywhere() -> None:
    hall = _hall()
    hall.meet()
    learn(hall.route, {0: (1, 5)}, topic_id=topic_id(1))
    seat = hall.seat(1)
    hall.exchange()
    view = seat.route.broker.view
    assert view is not None
    before = view.topics.forgotten
    learn(hall.route, {0: (1, 0)}, topic_id=topic_id(2), source=1)
    hall.exchange()
    assert view.topics.name(topic_id(1)) is None
    assert view.topics.name(topic_id(2)) == "t"
    assert view.topics.forgotten > before


async def test_that_a_topic_of_many_partitions_was_recreated_is_sent_once() -> None:
    """There was a message for each of its partitions, to each worker, in one step."""
    hall = _hall()
    hall.meet()
    former = dict.fromkeys(range(30), (1, 9))
    learn(hall.route, former)
    seat = hall.seat(1)
    hall.exchange()
    view = hall.route.broker.view
    assert view is not None
    recreated = TopicMetadata(0, "t", ZERO_ID, tuple(Led(number, 2, 0) for number in former))
    for _ in range(2):
        for moved in view.learn(recreated, 1, poll=True):
            hall.emit(moved, 0)
    hall.side.telling.flush()
    sent = [message for message in seat.pending() if not isinstance(message, BrokerKnown)]
    assert [type(message) for message in sent] == [TopicRecreated, LeadersCame]
    assert isinstance(sent[1], LeadersCame)
    assert len(sent[1].moves) == 30


async def test_a_lost_connection_leaves_the_former_plan() -> None:
    hall = _hall()
    hall.meet()
    early = hall.seat(1)
    hall.exchange()
    hall.route.broker.lose()
    late = hall.seat(2)
    hall.exchange()
    for seat in (early, late):
        assert seat.route.broker.plan is None
        assert seat.route.broker.former_plan == hall.route.broker.former_plan is not None


def _asks_versions(seat: Seat, maxima: dict[int, int]) -> Driven:
    link = Driven(seat.route)
    link.up(request(18, 3, 1, **USES_HINTS))
    link.down(versions_answer(3, 1, maxima))
    return link


async def test_links_are_lowered_by_what_the_broker_has_answered_at_another_worker() -> None:
    """Clients share what one link was offered; the proxy's own connection may be late."""
    hall = _hall()
    one, other = hall.seat(1), hall.seat(2)
    hall.exchange()
    old = Driven(other.route)
    _asks_versions(one, BROKER_3_6)
    hall.exchange()
    late = hall.seat(3)
    hall.exchange()
    for link in (old, Driven(other.route), Driven(late.route)):
        link.up(produce_request(10, 1))
        assert link.to_broker == produce_request(9, 1)


async def test_what_many_links_are_answered_is_sent_once() -> None:
    hall = _hall()
    one, other = hall.seat(1), hall.seat(2)
    hall.exchange()
    for _ in range(3):
        _asks_versions(one, BROKER_3_6)
    one.deliver()
    assert sum(isinstance(message, BrokerKnown) for message in other.pending()) == 1


async def test_what_links_are_answered_counts_until_the_broker_answers_the_proxy() -> None:
    hall = _hall()
    one, other = hall.seat(1), hall.seat(2)
    hall.exchange()
    older = {**BROKER_3_6, ApiKey.PRODUCE: 8}
    for maxima in (BROKER_3_6, older):
        _asks_versions(one, maxima)
        hall.exchange()
        assert other.route.link_plan == plan_for(maxima)
    hall.meet()
    hall.exchange()
    _asks_versions(one, older)
    hall.exchange()
    assert other.route.link_plan == plan_for(BROKER_3_6)


async def test_a_mode_is_the_same_everywhere() -> None:
    hall = _hall()
    seat = hall.seat(1)
    hall.exchange()
    hall.route.switch(Mode.OFF)
    hall.side.telling.switched(hall.route)
    late = hall.seat(2)
    hall.exchange()
    assert [one.route.mode for one in (seat, late)] == [Mode.OFF, Mode.OFF]
    assert [one.route.raised for one in (seat, late)] == [True, True]


async def test_an_id_that_one_worker_has_made_up_is_known_to_all() -> None:
    hall = _hall()
    hall.meet()
    one, other = hall.seat(1), hall.seat(2)
    hall.exchange()
    assert one.route.broker.view is not None
    made = one.route.broker.view.topics.synthesize_id("hidden")
    hall.exchange()
    late = hall.seat(1)
    hall.exchange()
    for seat in (other, late):
        assert seat.route.broker.view is not None
        assert seat.route.broker.view.topics.name(made) == "hidden"


async def test_a_client_without_names_for_its_ids_is_withheld_them_everywhere() -> None:
    hall = _hall()
    hall.meet()
    learn(hall.route, {0: (1, 5)}, topic_id=topic_id(1))
    one, other = hall.seat(1), hall.seat(2)
    hall.exchange()
    parent, view, others = (route.broker.view for route in (hall.route, one.route, other.route))
    assert parent is not None
    assert view is not None
    assert others is not None
    parent.unknown_ids.used([topic_id(9)], 0.0)
    for asked in (1.0, 3.0):
        parent.unknown_ids.answered(parent.topics.name, asked, asked)
    hall.exchange()
    assert view.unknown_ids.unnameable(topic_id(9), hides=False)
    view.unknown_ids.withhold(("host", "client"), topic_id(9))
    hall.exchange()
    assert others.unknown_ids.withheld(("host", "client"), others.topics.name)
    late = hall.seat(2)
    hall.exchange()
    assert late.route.broker.view is not None
    assert late.route.broker.view.unknown_ids.withheld(("host", "client"), others.topics.name)


async def test_no_more_ids_are_sent_of_a_request_than_are_looked_for() -> None:
    """50,000 took 19 ms of one step here, and 16 ms of the process that decides."""
    _, seat = _met()
    ids = [number.to_bytes(16, "big") for number in range(50_000)]
    seat.side.lack(seat.route, ids, "10.1.2.3")
    (told,) = seat.waiting
    assert isinstance(told, IdsLacking)
    assert [*told.ids] == ids[:MOST_IDS]
    assert told.address == "10.1.2.3"


async def test_many_ids_of_one_client_withhold_them_once() -> None:
    """There was a message for each, and of those one for each other worker."""
    hall = _hall()
    hall.meet()
    learn(hall.route, {0: (1, 5)}, topic_id=topic_id(1))
    one, other = hall.seat(1), hall.seat(2)
    hall.exchange()
    ids = [number.to_bytes(16, "big") for number in range(MOST_IDS)]
    for seat in (one, other):
        assert seat.route.broker.view is not None
        seat.route.broker.view.unknown_ids.told([(one_id, True) for one_id in ids])
    client = LinkClient("10.1.2.3:4")
    asked = LinkTopicIds(one.route, client)
    asked.by_ids = True
    for _ in range(3):
        asked.lack(ids)
    assert asked.outdated
    (told,) = one.waiting
    assert isinstance(told, IdWithheld)
    hall.exchange()
    assert other.route.broker.view is not None
    view = other.route.broker.view
    assert view.unknown_ids.withheld(client.known_as, view.topics.name)


# Error responses.


async def test_a_hint_that_is_known_comes_at_once(mock_clock: MockClock) -> None:
    hall, seat = _moved()
    link = seat.link()
    assert seat.side.holds.submit(failed(link, {0: 5}, ApiKey.FETCH)) is None
    assert seat.side.holds.waiting.is_set()
    hall.exchange()
    ((number, hints),) = seat.settled
    assert number == link.number
    assert [(hint.leader, hint.epoch) for hint in hints if isinstance(hint, LeaderHint)] == [(2, 6)]
    assert not seat.side.holds.waiting.is_set()
    (given,) = _events(hall, HintGiven)
    assert (given.answered.link, given.answered.topic, given.leader) == (number, "t", 2)


async def test_a_hint_comes_when_the_view_learns_of_it(mock_clock: MockClock) -> None:
    hall = _hall()
    hall.meet()
    learn(hall.route, {0: (1, 5)}, source=1)
    seat = hall.seat(1)
    hall.exchange()
    link = seat.link()
    seat.side.holds.submit(failed(link, {0: 5}, ApiKey.FETCH))
    hall.exchange()
    assert not seat.settled
    assert hall.timer.queue.held == 1
    _move(hall)
    hall.timer.review()
    hall.exchange()
    assert len(seat.settled) == 1


async def test_a_large_response_comes_and_goes_in_parts(mock_clock: MockClock) -> None:
    hall = _hall()
    hall.meet()
    count = 2 * MOST_ENTRIES + 7
    view = hall.route.broker.view
    assert view is not None
    for epoch, node in ((5, 1), (6, 2)):
        learn(hall.route, dict.fromkeys(range(count), (node, epoch)), source=node)
    for partition in range(count):
        leader = view.leader("t", partition)
        assert leader is not None
        view.leader_confirms("t", partition, leader)
    seat = hall.seat(1)
    hall.exchange()
    seat.side.holds.submit(failed(seat.link(), dict.fromkeys(range(count), 5), ApiKey.FETCH))
    hall.exchange()
    for _ in range(100):
        hall.timer.review()
    hall.exchange()
    ((_, hints),) = seat.settled
    assert len(hints) == count
    assert all(hints)
    assert len(_events(hall, HintGiven)) == count


async def test_a_large_response_is_sent_some_at_a_time(mock_clock: MockClock) -> None:
    """20,000 partitions took 35 ms of one step, and as long in the process that decides."""
    hall, seat = _moved()
    link, count = seat.link(), 20 * MOST_ENTRIES
    hall.exchange()
    held = failed(link, dict.fromkeys(range(count), 5), ApiKey.FETCH)
    # How the first message of a kind is encoded has to be found out.
    seat.side.holds.submit(failed(link, {0: 5}, ApiKey.FETCH))
    hall.exchange()
    assert lines_of(lambda: seat.side.holds.submit(held)) < 15_000
    event = ClientSeen(route="r", link=link.number, client_id="c", software="x", version="1")
    seat.side.holds.emit([event])
    seat.side.holds.forget(link.number)
    more = iter(seat.side.holds.send_some, False)
    assert most_lines(more) < 15_000
    said = seat.waiting
    assert [type(message).__name__ for message in said] == [
        "ErrorsCame",
        *["MoreErrors"] * 19,
        "Happened",
        "LinkEnded",
    ]
    for message in said[:-2]:
        assert lines_of(lambda one=message: hall.side.take(seat.worker, one)) < 30_000  # type: ignore[misc]


async def test_hints_of_a_large_response_are_sent_some_at_a_time(mock_clock: MockClock) -> None:
    hall, seat = _moved()
    other = hall.seat(2)
    hall.exchange()
    count = 2 * MOST_ENTRIES + 1
    hall.timer.queue = queue = _Kept(DEFAULT_RULES)
    for one in (seat, other):
        one.side.holds.submit(failed(one.link(), dict.fromkeys(range(count), 5), ApiKey.FETCH))
    hall.exchange()
    hint = LeaderHint(2, 6, NODES[2])
    hall.timer.settle([(held, [hint] * count) for held in queue.kept])
    told = []
    while True:
        told.append([len(message.hints) for one in (seat, other) for message in _hints(one)])
        if not hall.side.send_some():
            break
    told.append([len(message.hints) for one in (seat, other) for message in _hints(one)])
    assert [some for some in told if some] == [
        [MOST_ENTRIES] * 2,
        [MOST_ENTRIES],
        [MOST_ENTRIES],
        [1],
        [1],
    ]


class _Kept(HoldQueue):
    """Keeps what is to be judged."""

    def __init__(self, rules: HoldRules) -> None:
        super().__init__(rules)
        self.kept: list[Held] = []

    def submit(self, held: Held, now: float) -> list[LeaderHint | None] | None:
        self.kept.append(held)
        return None


def _hints(seat: Seat) -> list[HintsDecided]:
    return [message for message in seat.pending() if isinstance(message, HintsDecided)]


async def test_a_worker_with_very_many_links_leaves_in_short_steps(mock_clock: MockClock) -> None:
    hall = _hall()
    hall.meet()
    learn(hall.route, {0: (1, 5)}, source=1)
    seat = hall.seat(1)
    hall.exchange()
    for _ in range(2000):
        seat.side.holds.submit(failed(seat.link(), {0: 5}, ApiKey.FETCH))
    hall.exchange()
    assert hall.timer.queue.held == 2000
    assert most_lines(hall.side.leaving(seat.worker)) < 100_000
    assert hall.timer.queue.held == seat.worker.links == hall.route.traffic.links_open == 0


async def test_a_worker_that_begins_is_sent_what_is_known_in_short_steps() -> None:
    hall = _hall()
    hall.meet()
    for number in range(20_000):
        learn(hall.route, {0: (1, 5)}, topic=f"t{number}", topic_id=topic_id(number + 1))
    worker = Worker(1, lambda message, sock: None)
    hall.side.telling.flush()
    assert most_lines(hall.side.joining(worker)) < 15_000


async def test_a_cluster_to_which_a_route_comes_back_is_sent_in_short_steps() -> None:
    """100,000 took 240 ms of one step: that of the Metadata on a link which says so."""
    hall, other = _hall(), LeaderView("other", trio.current_time)
    seat, view = hall.seat(1), hall.route.broker.view
    for number in range(5000):
        learn(hall.route, {0: (1, 5)}, topic=f"t{number}", topic_id=topic_id(number + 1))
    hall.route.broker.view = other
    hall.exchange()

    def meet(met: LeaderView | None) -> None:
        hall.route.broker.view = met

    assert lines_of(lambda: meet(view)) < 2000
    # It goes back and forth before all is sent, and nothing waits twice.
    hall.side.telling.flush()
    for met in (other, view) * 10:
        meet(met)
    assert most_lines(iter(hall.side.send_some, False)) < 100_000
    sent = sum(len(told.topics) for told in seat.pending() if isinstance(told, TopicsAdded))
    assert 5000 <= sent < 10_000


async def test_names_of_synthetic_ids_are_looked_up_some_in_each_step() -> None:
    """Of 100,000 topics 10,000 were looked up in one, beside a list of all: 21 to 23 ms."""
    hall, other = _hall(), LeaderView("other", trio.current_time)
    view = hall.route.broker.view
    assert view is not None
    hall.route.broker.view = other
    hall.seat(1)
    for number in range(8000):
        view.topics.adopt(f"t{number}", topic_id(number + 1))
    hall.exchange()
    hall.route.broker.view = view
    topics_told = 8000 // (5 * MOST_ENTRIES)
    for _ in range(topics_told):
        assert hall.side.send_some()
    # One message of topics, and the first names.
    assert lines_of(hall.side.send_some) < 20_000


async def test_a_worker_that_begins_withholds_ids_for_no_longer_than_others(
    autojump_clock: MockClock,
) -> None:
    """Each that began withheld them for ten minutes more, from clients of days ago as well."""
    hall, client = _hall(), ("10.0.0.1", "c")
    view = hall.route.broker.view
    assert view is not None
    view.unknown_ids.withhold(client, topic_id(9))
    await trio.sleep(500)
    seat = hall.seat(1)
    hall.exchange()
    told = seat.route.broker.view
    assert told is not None
    assert told.unknown_ids.withheld(client, told.topics.name)
    await trio.sleep(101)
    late = hall.seat(2)
    hall.exchange()
    for other in (view, told, late.route.broker.view):
        assert other is not None
        assert not other.unknown_ids.withheld(client, other.topics.name)


async def test_that_brokers_agree_about_ids_is_sent_for_some_routes_at_a_time() -> None:
    """300 routes and 16 workers took 25 ms of one step: each looked through all routes, too."""
    hall = Hall(settings_of(), others=[f"r{number}" for number in range(299)])
    view = LeaderView("cluster", trio.current_time)
    for node, route in enumerate(hall.routes, 1):
        route.broker.view, route.broker.node = view, node
    seats = [hall.seat(number) for number in (1, 2)]
    hall.exchange()

    def agree() -> None:
        for route in hall.routes:
            route.broker.ids_everywhere = True

    assert lines_of(agree) < 300 * 20
    # What is sent later is what is so then.
    hall.routes[-1].broker.ids_everywhere = False
    assert most_lines(iter(hall.side.send_some, False)) < 3000
    hall.exchange()
    for seat in seats:
        knows = [route.broker.ids_everywhere for route in seat.routes.values()]
        assert knows == [True] * 299 + [False]


async def test_what_all_workers_get_is_encoded_once() -> None:
    """To make its bytes costs most, and was done for each of them."""
    hall = _hall()
    workers = 32
    for number in range(workers):
        worker = Worker(number, lambda message, sock: None)
        for _ in hall.side.joining(worker):
            pass
    switch = hall.side.telling.switched
    switch(hall.route)
    once = lines_of(lambda: encode(ModeSet("r", Mode.ON, raised=True)))
    assert lines_of(lambda: switch(hall.route)) < once + 5 * workers + 20


async def test_the_end_of_a_link_costs_the_same_however_many_are_held(
    mock_clock: MockClock,
) -> None:
    def lines(count: int) -> int:
        hall, seat = _met()
        links = [seat.link() for _ in range(count)]
        for link in links:
            seat.side.holds.submit(failed(link, {0: 5}, ApiKey.FETCH))
        hall.exchange()
        assert hall.timer.queue.held == count
        # How the first message of a kind is encoded has to be found out.
        seat.side.holds.forget(links[0].number)
        return lines_of(lambda: seat.side.holds.forget(links[1].number))

    assert lines(1000) == lines(3)


async def test_where_hints_are_only_counted_nothing_waits(mock_clock: MockClock) -> None:
    hall = _hall(Mode.OBSERVE)
    hall.meet()
    _move(hall)
    seat = hall.seat(1)
    hall.exchange()
    assert seat.side.holds.submit(failed(seat.link(), {0: 5}, ApiKey.FETCH)) == [None]
    hall.exchange()
    (given,) = _events(hall, HintGiven)
    assert given.answered.observed


async def test_a_route_that_was_switched_meanwhile_gives_no_hint(mock_clock: MockClock) -> None:
    hall, seat = _moved()
    link = seat.link()
    seat.side.holds.submit(failed(link, {0: 5}, ApiKey.FETCH))
    # The worker does not know yet.
    hall.route.switch(Mode.OBSERVE)
    hall.side.telling.switched(hall.route)
    hall.exchange()
    assert seat.settled == [(link.number, [None])]
    (missed,) = _events(hall, HintMissed)
    assert missed.reason == MissReason.HINTS_OFF


async def test_what_a_response_reserves_is_given_back_once_it_was_reported(
    mock_clock: MockClock,
) -> None:
    hall, seat = _moved()
    given: list[int] = []

    class Account:
        def give_back(self, size: int) -> None:
            given.append(size)

    held = failed(seat.link(), {0: 5}, ApiKey.FETCH)
    held.account, held.reserved = Account(), 77
    seat.side.holds.submit(held)
    assert not given
    hall.exchange()
    assert given == [77]


async def test_a_link_that_ends_is_held_for_no_more(mock_clock: MockClock) -> None:
    hall = _hall()
    hall.meet()
    learn(hall.route, {0: (1, 5)}, source=1)
    seat = hall.seat(1)
    hall.exchange()
    link = seat.link()
    hall.exchange()
    assert hall.route.traffic.links_open == 1
    seat.side.holds.submit(failed(link, {0: 5}, ApiKey.FETCH))
    hall.exchange()
    seat.side.holds.forget(link.number)
    hall.exchange()
    hall.timer.review()
    hall.exchange()
    assert (hall.timer.queue.held, hall.route.traffic.links_open) == (0, 0)
    assert not seat.side.holds.waiting.is_set()
    assert not seat.settled


async def test_nothing_is_held_for_the_links_of_a_worker_that_dies(mock_clock: MockClock) -> None:
    hall = _hall()
    hall.meet()
    learn(hall.route, {0: (1, 5)}, source=1)
    seat, other = hall.seat(1), hall.seat(2)
    hall.exchange()
    for one in (seat, seat, other):
        one.side.holds.submit(failed(one.link(), {0: 5}, ApiKey.FETCH))
    hall.exchange()
    assert hall.timer.queue.held == 3
    assert await hall.side.leave(seat.worker) == 2
    hall.timer.review()
    assert (hall.timer.queue.held, hall.route.traffic.links_open) == (1, 1)
    # What it still says counts no more.
    hall.side.take(seat.worker, LinkEnded(1))


async def test_a_response_does_not_wait_for_a_process_that_says_nothing(
    autojump_clock: MockClock,
) -> None:
    hall, seat = _met()
    link = seat.link()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(seat.side.holds.run)
        begun = trio.current_time()
        seat.side.holds.submit(failed(link, {0: 5, 1: 5}, ApiKey.FETCH))
        went_on = trio.Event()
        settle = seat.side.holds.settle
        seat.side.holds.settle = lambda decided: (settle(decided), went_on.set())[0]
        await went_on.wait()
        assert LONGEST <= trio.current_time() - begun <= LONGEST + 0.2
        nursery.cancel_scope.cancel()
    assert seat.settled == [(link.number, [None, None])]
    # It decides in vain.
    hall.timer.review()
    hall.exchange()
    assert len(seat.settled) == 1


class _LetGo(trio.abc.Instrument):
    """Notes how many responses of a worker go on in the longest step."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._before = self.most = 0

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        now = len(self._seat.settled)
        self.most, self._before = max(self.most, now - self._before), now


async def test_a_process_that_says_nothing_lets_many_links_go_on_some_at_a_time(
    autojump_clock: MockClock,
) -> None:
    """2,000 in one step took 44 ms."""
    _, seat = _met()
    noted = _LetGo(seat)
    trio.lowlevel.add_instrument(noted)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(seat.side.holds.run)
        for _ in range(2000):
            seat.side.holds.submit(failed(seat.link(), {0: 5}, ApiKey.FETCH))
        await trio.sleep(2 * LONGEST)
        nursery.cancel_scope.cancel()
    trio.lowlevel.remove_instrument(noted)
    assert len(seat.settled) == 2000
    assert 0 < noted.most <= 50
    assert not seat.side.holds.waiting.is_set()


async def test_what_is_decided_too_late_lets_one_response_go_on(mock_clock: MockClock) -> None:
    hall, seat = _moved()
    for _ in range(100):
        seat.side.holds.submit(failed(seat.link(), {0: 5}, ApiKey.FETCH))
    for message in seat.waiting:
        hall.side.take(seat.worker, message)  # type: ignore[arg-type]
    mock_clock.jump(10)
    for number, told in enumerate(
        [message for message in seat.pending() if isinstance(message, HintsDecided)], 1
    ):
        seat.side.takes(told)
        assert len(seat.settled) == number
    assert not any(any(hints) for _, hints in seat.settled)


async def test_a_process_that_was_stopped_gives_no_hint_that_was_decided_long_ago(
    mock_clock: MockClock,
) -> None:
    """The leader has moved again meanwhile, as the process that decides knows."""
    hall, seat = _moved()
    link = seat.link()
    seat.side.holds.submit(failed(link, {0: 5}, ApiKey.FETCH))
    for message in seat.waiting:
        hall.side.take(seat.worker, message)  # type: ignore[arg-type]
    decided = seat.pending()
    mock_clock.jump(10)
    _move(hall, epoch=7, leader=3)
    for told in decided:
        assert seat.side.takes(told)
    assert seat.settled == [(link.number, [None])]


async def test_an_error_that_waits_until_it_is_settled_says_so(mock_clock: MockClock) -> None:
    hall, seat = _met()
    link = seat.link()
    scanned = Scanned((Failure("t", 0, 6, 0, 0),), True, 0, 0)
    held = Held(
        link,
        ApiKey.PRODUCE,
        8,
        memoryview(b""),
        scanned,
        [-1],
        MissReason.VERSION_WITHOUT_FIELD,
    )
    seat.side.holds.submit(held)
    hall.exchange()
    await hall.side.leave(seat.worker)
    hall.timer.review()
    missed = _events(hall, HintMissed)
    assert {event.reason for event in missed} <= {MissReason.VERSION_WITHOUT_FIELD}


# What workers say besides.


async def test_a_recovery_at_another_worker_is_reported_once() -> None:
    hall = _hall()
    hall.meet()
    one, other = hall.seat(1), hall.seat(2)
    hall.exchange()
    one.side.recovery.failed(one.route, "c", "Fetch", [("t", 0)])
    hall.exchange()
    assert (one.route.awaited, other.route.awaited) == (True, True)
    for seat in (other, one):
        seat.side.recovery.succeeded(seat.route, Client(4, "c", "x/1"), "Fetch", "t", 0)
        hall.exchange()
    (recovered,) = _events(hall, Recovered)
    assert (recovered.client_id, recovered.link) == ("c", 4)


async def test_a_worker_that_begins_awaits_what_others_do() -> None:
    hall = _hall()
    hall.meet()
    one = hall.seat(1)
    hall.exchange()
    one.side.recovery.failed(one.route, "c", "Fetch", [("t", 0)])
    moved = LeaderMoved(
        cluster="cluster",
        topic="u",
        partition=3,
        leader_before=2,
        epoch_before=1,
        leader=1,
        epoch=2,
    )
    hall.emit(moved, 0)
    hall.exchange()
    late = hall.seat(2)
    hall.exchange()
    for partition in (("t", 0), ("u", 3)):
        late.side.recovery.succeeded(late.route, Client(4, "c", "x/1"), "Fetch", *partition)
    hall.exchange()
    assert [(event.topic, event.partition) for event in _events(hall, Recovered)] == [
        ("t", 0),
        ("u", 3),
    ]


async def test_a_worker_gets_no_errors_of_a_cluster_that_no_route_leads_to() -> None:
    hall = _hall()
    hall.meet()
    one = hall.seat(1)
    hall.exchange()
    one.side.recovery.failed(one.route, "c", "Fetch", [("t", 0)])
    hall.exchange()
    hall.route.broker.view = LeaderView("another", trio.current_time)
    late = hall.seat(2)
    assert not any(isinstance(message, ClientFailed) for message in late.pending())


async def test_the_view_hears_from_a_worker_that_a_new_leader_serves(
    autojump_clock: MockClock,
) -> None:
    hall = _hall()
    hall.meet()
    seat = hall.seat(1)
    learn(hall.route, {0: (2, 5)}, source=2)
    hall.exchange()
    view, told = hall.route.broker.view, seat.route.broker.view
    assert view is not None
    learn(hall.route, {0: (1, 6)}, source=3)
    hall.emit(
        LeaderMoved(
            cluster="cluster",
            topic="t",
            partition=0,
            leader_before=2,
            epoch_before=5,
            leader=1,
            epoch=6,
        ),
        0,
    )
    hall.exchange()
    assert told is not None
    # An answer that comes so soon may be of an earlier time as leader.
    told.served("t", 0, 1)
    hall.exchange()
    assert not view.serves("t", 0)
    await trio.sleep(0.5)
    told.served("t", 0, 1)
    hall.exchange()
    assert view.serves("t", 0)


async def test_events_say_which_worker_they_come_from() -> None:
    hall = _hall()
    one, other = hall.seat(1), hall.seat(2)
    event = NotUnderstood(route="r", link=3, side="client", reason="x")
    other.side.emit(event)
    one.side.emit(event)
    hall.exchange()
    assert hall.events == [(event, 1), (event, 2)]


def _seen(number: int) -> ClientSeen:
    return ClientSeen(route="r", link=number, client_id="", software="x", version="1")


async def test_where_nothing_is_read_what_clients_cause_waits_and_too_much_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting_events, "_MOST", 3)
    hall = _hall()
    seat = hall.seat(1)
    hall.exchange()
    seat.crowded = True
    for number in range(5):
        seat.side.emit(_seen(number))
    seat.side.snoop(seat.route, 9, b"metadata")
    not_read = NotUnderstood(route="r", link=3, side="client", reason="x")
    seat.side.emit(not_read)
    hall.exchange()
    assert hall.events == [(not_read, 1)]
    seat.crowded = False
    seat.side.emit(_seen(5))
    hall.exchange()
    assert hall.events[1:] == [(_seen(number), 1) for number in range(3)]
    assert hall.lost == 3


async def test_errors_go_before_those_that_get_no_hint(autojump_clock: MockClock) -> None:
    """They waited behind thousands of those, which come when a broker restarts."""
    hall, seat = _moved()
    link = seat.link()
    hall.exchange()
    answered = link.answered(ApiKey.FETCH, 11, Failure("t", 0, 6, 0, 0), -1, 0.0)
    missed = HintMissed(answered=answered, reason=MissReason.REPLICA)
    seat.behind = True
    seat.side.holds.emit([missed] * 500)
    assert seat.side.holds.submit(failed(link, {0: 5}, ApiKey.FETCH)) is None
    (came,) = seat.waiting
    assert isinstance(came, ErrorsCame)
    seat.behind = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(seat.side.events.run)
        await trio.testing.wait_all_tasks_blocked(0.1)
        nursery.cancel_scope.cancel()
    hall.exchange()
    ((_, (hint,)),) = seat.settled
    assert hint
    assert [event for event, _ in hall.events if isinstance(event, HintMissed)] == [missed] * 500


async def test_where_nothing_is_read_errors_go_on_and_are_counted_as_lost() -> None:
    """After 64 MB of them, 3,500 responses of 500 failed partitions, the worker ended."""
    hall, seat = _moved()
    link = seat.link()
    hall.exchange()
    seat.crowded = True
    held, budget = failed(link, {0: 5, 1: 5}, ApiKey.FETCH), Budget(4096, 4096)
    held.account, held.reserved = Account(budget), 1300
    held.account.trust()
    assert held.account.take(held.reserved)
    seat.side.recovery.failed(seat.route, "c", "Fetch", [("t", 0), ("t", 1)])
    assert seat.side.holds.submit(held) == [None, None]
    assert not seat.side.holds.waiting.is_set()
    assert not seat.deliver()
    assert budget.used == 0
    seat.crowded = False
    assert seat.side.holds.submit(failed(link, {0: 5}, ApiKey.FETCH)) is None
    hall.exchange()
    assert hall.lost == 2
    ((_, hints),) = seat.settled
    assert all(hints)


async def test_little_of_the_metadata_that_goes_by_waits_to_be_read() -> None:
    """Errors wait behind it, and all clients ask for it when leaders move: none got its hint."""
    hall, seat = _met()
    for _ in range(2):
        for _ in range(100):
            seat.side.snoop(seat.route, 9, b"metadata")
        assert len(seat.waiting) == 4
        hall.exchange()
    seat.crowded = True
    seat.side.snoop(seat.route, 9, b"metadata")
    assert not seat.waiting
    seat.crowded = False
    seat.side.snoop(seat.route, 9, b"metadata")
    assert len(seat.waiting) == 1


async def test_where_not_all_is_read_no_ids_are_sent() -> None:
    """64 MB of them were 2,400 requests with 1,024 ids, and then the worker ended."""
    _, seat = _met()
    seat.behind = True
    ids = [number.to_bytes(16, "big") for number in range(MOST_IDS)]
    seat.side.lack(seat.route, ids, "10.1.2.3")
    assert not seat.waiting
    seat.behind = False
    seat.side.lack(seat.route, ids, "10.1.2.3")
    (told,) = seat.waiting
    assert isinstance(told, IdsLacking)


async def test_where_not_all_is_read_versions_that_clients_ask_are_noted_again_later() -> None:
    """A client that asks 65 kinds of small requests in turns has each noted: the worker ended."""
    _, seat = _met()
    asked = seat.route.asked
    assert not asked.begin_day("2026-01-01")
    seat.behind = True
    asked.note("x/1", "c", 0, 9)
    assert not asked.begin_day("2026-01-01")
    assert not seat.waiting
    seat.behind = False
    assert asked.begin_day("2026-01-01")
    assert not asked.begin_day("2026-01-01")
    asked.note("x/1", "c", 0, 9)
    (told,) = seat.waiting
    assert isinstance(told, VersionAsked)


async def test_a_broker_that_takes_no_connection_is_reported_once() -> None:
    hall = _hall()
    one, other = hall.seat(1), hall.seat(2)
    for seat in (one, other):
        seat.say(BrokerFails("r", "refused"))
    hall.exchange()
    assert hall.reach.unreachable == {"r": "refused"}
    assert len(hall.events) == 1
    one.say(BrokerServes("r", "127.0.0.1"))
    hall.exchange()
    assert hall.reach.unreachable == {}


async def test_versions_that_clients_ask_are_known_to_one_process() -> None:
    hall = _hall()
    one, other = hall.seat(1), hall.seat(2)
    one.route.asked.note("x/1", "c", 0, 9, Origin("192.0.2.1", "CN=c"))
    other.route.asked.note("x/1", "c", 0, 7, Origin("192.0.2.2"))
    hall.exchange()
    ((name, asked),) = hall.route.asked
    assert (name.client_id, asked.versions) == ("c", {0: (7, 9)})
    assert (asked.addresses, asked.principals) == (("192.0.2.1", "192.0.2.2"), ("CN=c",))


async def test_what_a_worker_notes_on_a_new_day_is_not_lost_in_the_old_one() -> None:
    """Each of the processes sees by itself that a day has begun."""
    hall = _hall()
    one, other = hall.seat(1), hall.seat(2)
    for route in (hall.route, one.route, other.route):
        route.asked.begin_day("2026-01-01")

    def noted(seat: Seat) -> list[ClientAsked]:
        seat.route.asked.note("x/1", "c", 0, 9)
        hall.exchange()
        return [event for events in hall.route.asked.changes("r") for event in events]

    assert len(noted(one)) == 1
    assert not noted(other)
    assert one.route.asked.begin_day("2026-01-02")
    assert len(noted(one)) == 1
    assert not hall.route.asked.begin_day("2026-01-02")
    # A worker that has not seen it yet.
    assert not noted(other)
    assert not noted(one)


async def test_what_a_worker_notes_after_the_clock_was_set_back_is_reported() -> None:
    """It was no news of the day ahead, and that day stayed the client's last."""
    hall = _hall()
    seat = hall.seat(1)
    for route in (hall.route, seat.route):
        route.asked.begin_day("2026-01-04")
    seat.route.asked.note("x/1", "c", 0, 9)
    hall.exchange()
    assert len(list(hall.route.asked.changes("r"))) == 1
    # The worker is the first to see it.
    seat.route.asked.begin_day("2026-01-01")
    seat.route.asked.note("x/1", "c", 0, 9)
    hall.exchange()
    hall.route.asked.begin_day("2026-01-01")
    assert len(list(hall.route.asked.changes("r"))) == 1
    ((_, asked),) = hall.route.asked
    assert asked.last_day == "2026-01-01"


async def test_a_defect_of_one_message_is_that_messages_alone() -> None:
    hall = _hall()
    seat = hall.seat(1)
    with pytest.raises(KeyError):
        hall.side.take(seat.worker, ClientServed("another", 1, "c", "", "Fetch", "t", 0))


async def test_a_defect_in_connecting_to_a_broker_costs_one_connection() -> None:
    async def defect(*_: object, **__: object) -> trio.SocketStream:
        raise KeyError("a defect")

    hall = Hall(settings_of(), open_broker=defect)
    seat = hall.seat(1)
    hall.exchange()
    number = seat.link().number
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hall.side.run)
        await trio.testing.wait_all_tasks_blocked()
        seat.say(BrokerWanted(number, "r"))
        hall.exchange()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [*map(type, seat.pending())] == [BrokerMissed]
    (failed_task,) = _events(hall, TaskFailed)
    assert failed_task.task == "connection"


# Counters.


def test_counters_come_as_what_was_gained() -> None:
    hall = TrafficCounters()
    seen: list[object] = []
    traffic = TrafficCounters()

    class Route:
        name = "r"

    route: Any = Route()
    route.traffic = traffic
    reports = TrafficReports([route])
    for turn in range(1, 4):
        cell = traffic.cell(0, 10, 9)
        cell.requests += turn
        cell.responses += 1
        traffic.links += 1
        traffic.up += 100
        traffic.raw["budget"] += turn % 2
        gained = [one for one in reports.gained() if one is not None]
        seen += gained
        for one in gained:
            add(hall, one)
        assert not any(reports.gained())
    assert (hall.links, hall.up, hall.down) == (3, 300, 0)
    assert hall.requests == traffic.requests
    assert hall.responses == traffic.responses
    assert hall.raw == traffic.raw
    assert len(seen) == 3


def test_what_many_routes_have_gained_comes_in_short_steps() -> None:
    """1,000 routes took 29 ms of one step each second."""
    routes = [Route(str(number), Mode.ON) for number in range(1000)]
    reports = TrafficReports(routes)
    assert most_lines(reports.gained()) < 100


async def test_fresh_counts_are_waited_for_but_not_for_ever(autojump_clock: MockClock) -> None:
    hall = _hall()
    one, other = hall.seat(1), hall.seat(2)
    for seat in (one, other):
        seat.worker.ready.set()
        seat.pending()
    begun = trio.current_time()

    async def answer() -> None:
        await trio.sleep(0.1)
        for seat in (one, other):
            (asked,) = seat.pending()
            assert isinstance(asked, ReportAsked)
            seat.say(LoadReported(asked.number, 1, 2, 3, 4))
        hall.exchange()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        await hall.side.counts.fresh()
    assert trio.current_time() - begun == pytest.approx(0.1)
    assert [seat.worker.counting.load.exchanges for seat in (one, other)] == [2, 2]
    # Nobody answers any more.
    await hall.side.counts.fresh()
    assert trio.current_time() - begun < 2


async def test_several_wait_for_fresh_counts_at_the_same_time(autojump_clock: MockClock) -> None:
    hall = _hall()
    seat = hall.seat(1)
    seat.worker.ready.set()
    seat.pending()
    begun = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(hall.side.counts.fresh)
            await trio.testing.wait_all_tasks_blocked()
        for asked in seat.pending():
            assert isinstance(asked, ReportAsked)
            seat.say(LoadReported(asked.number, 1, 2, 3, 4))
        hall.exchange()
    assert trio.current_time() == begun


async def test_only_a_worker_that_has_got_all_and_is_ready_gets_clients() -> None:
    hall = _hall()
    worker = Worker(1, lambda message, sock: None)
    steps = hall.side.joining(worker)
    worker.ready.set()
    assert hall.side.ready == []
    for _ in steps:
        pass
    assert hall.side.ready == [worker]
