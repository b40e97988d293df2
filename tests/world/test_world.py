"""Worlds in which no rule may break, and what makes a broken one readable."""

import gc
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from leader_hints.core.link.budget import Budget
from tests.core.rules import DEFAULT_RULES
from tests.world import product, progress
from tests.world.brokers import is_proxy
from tests.world.clients import HINTED, Seen, Told
from tests.world.happenings import (
    BUSY,
    CALM,
    NODES,
    RACKS_FROM,
    REASSIGNED_FROM,
    SETTLING_FROM,
    WORKERS_END_FROM,
    WORKERS_FROM,
    WORKERS_STOP_FROM,
    Happening,
    Profile,
    happenings,
    profile,
)
from tests.world.model.broker import Error
from tests.world.model.releases import FETCH, PRODUCE
from tests.world.model.truth import Leader
from tests.world.product import shown
from tests.world.progress import Near
from tests.world.rack_readers import RackReader
from tests.world.rules import Lived, hint_is_news, hint_is_not_over, hint_was_true, views_go_forward
from tests.world.run import live
from tests.world.shrink import shrink
from tests.world.timeline import timeline
from tests.world.world import AWAKE, END, PAUSE, World

#: Worlds take twice the time where coverage is measured; unit tests cover what they pass through.
pytestmark = pytest.mark.no_cover

#: Worlds in all, and in each test. `.ci/run` lives 2000, from the same seed on.
_WORLDS = 60
#: More of them, in half of which errors that can carry no hint are held, too.
_SETTLING = range(SETTLING_FROM + 60, SETTLING_FROM + 100)
#: And in half of which there are racks, and consumers that are sent to the replica in theirs.
_RACKS = range(RACKS_FROM, RACKS_FROM + 20)
#: And more, in which links are in two workers.
_WITH_WORKERS = range(WORKERS_FROM, WORKERS_FROM + 50)
#: And with reassignments.
_REASSIGNED = range(REASSIGNED_FROM, REASSIGNED_FROM + 10)
_IN_EACH = 10
_SEED = 11
#: Prints a digest of all bytes that are sent in a world without the comparison with others.
_PRINT = """
import hashlib, sys
from tests.world.happenings import happenings, profile
from tests.world.network import End
from tests.world.world import World

sent, send = hashlib.sha256(), End.send

def noted(end, data):
    sent.update(f"{end._network.schedule.now} {end.principal} ".encode() + data)
    send(end, data)

End.send = noted
seed = int(sys.argv[1])
World(seed, profile(seed), happenings(seed), proxied=True).run()
print(sent.hexdigest())
"""


_FIRST = [
    *range(0, _WORLDS, _IN_EACH),
    *_SETTLING[::_IN_EACH],
    *_WITH_WORKERS[::_IN_EACH],
    *_RACKS[::_IN_EACH],
    *_REASSIGNED[::_IN_EACH],
]


@pytest.mark.parametrize("first", _FIRST)
def test_no_rule_breaks(first: int) -> None:
    for seed in range(first, first + _IN_EACH):
        life = live(seed)
        assert not life.broken, "\n".join(timeline(life))


def test_readers_are_sent_to_their_rack_and_back() -> None:
    """Else the rules about them have nothing to look at."""
    readers = [reader for seed in (RACKS_FROM, RACKS_FROM + 2) for reader in _readers(seed)]
    namings = [naming for reader in readers for naming in reader.namings]
    assert any(naming.node != naming.leader for naming in namings)
    assert any(naming.at > AWAKE and naming.node == naming.leader for naming in namings)


def _readers(seed: int) -> list[RackReader]:
    of = replace(profile(seed), fronted=NODES, sidecars=True, idle=0, crossed=(), hidden=())
    world = World(seed, of, (), proxied=True)
    world.run()
    return world.rack_readers


def test_links_of_both_workers_get_hints() -> None:
    worlds = [live(WORKERS_FROM + number).lived.world for number in range(4)]
    links = {hold.link for of in worlds for proxy in of.proxies for hold in proxy.holds}
    assert {link % 2 for link in links} == {0, 1}
    told = [seen for of in worlds for client in of.clients for seen in client.seen if seen.hint]
    assert told


@pytest.mark.parametrize("seed", range(2))
def test_a_broker_that_is_cut_off_for_ever_brings_no_former_leader_back(seed: int) -> None:
    """Without topic ids its lower epochs may be of a recreated topic, but the others disagree."""
    of = replace(
        profile(seed),
        kraft=False,
        ids=False,
        releases=("2.6",) * 3,
        lag=0.02,
        fronted=(1, 2, 3),
        sidecars=False,
        hidden=(),
        idle=0,
        clients=(("java", PRODUCE), ("franz-go", FETCH), ("librdkafka", PRODUCE), ("java", FETCH)),
    )
    moves = [Happening(3.1 + 0.9 * n, "move", n % 2, 1 + n // 2 % 2) for n in range(8)]
    world = World(seed, of, [Happening(3.0, "stale", 0, 3, END), *moves], proxied=True)
    world.run()
    lived = _alone(world)
    for rule in (views_go_forward, hint_was_true, hint_is_not_over, hint_is_news):
        assert not [*rule(lived)]
    assert sum(one.hint is not None for client in world.clients for one in client.seen) > 10


def test_brokers_that_lag_at_the_same_time_bring_no_former_topic_back() -> None:
    """All are polled at the same time, and two have not learnt that a topic was recreated."""
    of = replace(
        profile(0),
        kraft=True,
        ids=True,
        releases=("3.3",) * 3,
        lag=0.02,
        fronted=(1, 2, 3),
        sidecars=False,
        hidden=(),
        idle=0,
        crossed=(),
        synthesize=False,
        later="",
    )
    lag = [Happening(3.0, "stale", 0, node, 5.0) for node in (1, 3)]
    world = World(0, of, [*lag, Happening(3.5, "recreate", 0, 1)], proxied=True)
    known: list[Leader | None] = []
    world.schedule.at(
        6.0, lambda: known.extend(leader for _, leader, _ in world.proxies[0].leaders(BUSY, 0))
    )
    world.run()
    assert known == [Leader(2, 0)] * 3


def _alone(world: World) -> Lived:
    """Return a world for rules that compare it with no other."""
    return Lived(world, lambda *_: world, lambda *_: world, lambda _: Near(world, world, world))


def _one_partition(seed: int) -> Profile:
    """Brokers of 3.6 with KRaft and topic ids, of which every client uses one partition."""
    return replace(
        profile(seed),
        kraft=True,
        ids=True,
        releases=("3.6",) * 3,
        hidden=(),
        idle=0,
        crossed=(),
        synthesize=False,
        rogue=False,
        later="",
        partitions=1,
        slots=1000,
        clients=(("kafka-python", FETCH), ("java", FETCH), ("java", PRODUCE), ("franz-go", FETCH)),
    )


def _without_ids(
    release: str, partitions: int, clients: tuple[tuple[str, int], tuple[str, int]]
) -> Profile:
    """Brokers of one release with ZooKeeper and without topic ids, of which one has a route."""
    return replace(
        profile(0),
        kraft=False,
        ids=False,
        releases=(release,) * 3,
        fronted=(1,),
        clients=clients,
        partitions=partitions,
        idle=0,
        crossed=(),
        later="",
        slots=1000,
    )


def test_no_former_leader_is_named_by_a_process_that_begins_after_a_topic_was_recreated() -> None:
    """A broker that has not learnt of that leads the former topic at the epoch that comes next."""
    of = replace(_one_partition(0), lag=0.02, fronted=(1, 2), sidecars=True, large=True)
    begin = [Happening(3.7 + 0.3 * node, "process", 0, node) for node in (1, 2)]
    former = [Happening(3.0, "move", 0, 3), Happening(3.4, "stale", 0, 3, 5.0)]
    moved = [Happening(3.5, "recreate", 0, 1), *begin, Happening(4.8, "move", 0, 1)]
    world = World(0, of, [*former, *moved], proxied=True)
    world.run()
    assert not [*hint_was_true(_alone(world))]
    assert sum(one.hint is not None for client in world.clients for one in client.seen) > 10


def test_no_former_leader_is_named_that_was_cut_off_when_a_topic_was_recreated() -> None:
    """It leads the former topic for as long as it hears nothing, at the epoch that comes next."""
    of = replace(
        _one_partition(6), lag=0.3, latency=0.002, fronted=(1, 2, 3), sidecars=False, large=False
    )
    former = [Happening(3.0, "move", 0, 3), Happening(4.0, "stale", 0, 3, END)]
    moved = [Happening(4.1, "recreate", 0, 1), Happening(14.791976555436676, "move", 0, 1)]
    world = World(6, of, [*former, *moved], proxied=True)
    world.run()
    lived = _alone(world)
    assert not [*hint_was_true(lived), *views_go_forward(lived)]
    moves = [move for move in world.proxies[0].moves if move.topic == BUSY and move.at > 5.0]
    assert {move.leader.node for move in moves} == {1, 2}


def test_no_former_topic_is_back_after_an_outage_with_a_broker_that_is_cut_off() -> None:
    """That one was connected again before the others, when a poll of it was due."""
    of = replace(_one_partition(6), lag=0.02, latency=0.0002, fronted=(1, 2, 3), sidecars=False)
    former = [Happening(3.0, "move", 0, 3), Happening(4.0, "stale", 0, 3, END)]
    outage = [
        happening
        for at, node in ((24.5, 3), (24.9, 1), (24.9, 2))
        for happening in (
            Happening(at, "hang", 0, node, 0.7),
            Happening(at + 0.01, "reset", 0, node),
        )
    ]
    recreated = Happening(4.1, "recreate", 0, 1)
    world = World(6, replace(of, large=False), [*former, recreated, *outage], proxied=True)
    known: list[Leader | None] = []
    for at in range(230, 500):
        world.schedule.at(
            at / 10, lambda: known.extend(one for _, one, _ in world.proxies[0].leaders(BUSY, 0))
        )
    world.run()
    assert {*known} == {Leader(2, 0)}


def test_what_a_stopped_broker_lacked_takes_no_added_partition_away() -> None:
    """Another one is cut off for ever, so the third alone knows of the partition."""
    clients = (("java", PRODUCE), ("java", FETCH))
    of = replace(_without_ids("2.6", 1, clients), fronted=(1, 2, 3), sidecars=False, hidden=())
    cut_off = [Happening(3.0, "stale", 0, node, END) for node in (2, 3)]
    # Node 2 is polled once before it is stopped.
    added = [Happening(9.5, "grow", 0, 3), Happening(11.0, "restart", 0, 2, END)]
    world = World(0, of, [*cut_off, *added], proxied=True)
    known: list[Leader | None] = []
    for at in range(12, int(AWAKE)):
        world.schedule.at(
            at, lambda: known.extend(leader for _, leader, _ in world.proxies[0].leaders(BUSY, 1))
        )
    world.run()
    assert {*known} == {Leader(1, 0)}


def test_a_broker_that_restarts_again_and_again_keeps_no_partition_that_is_gone() -> None:
    """It is polled once in each of its lives, so it never lacks what is gone at two polls."""
    clients = (("java", PRODUCE), ("java", FETCH))
    of = replace(_without_ids("2.6", 3, clients), fronted=(1, 2), sidecars=False, hidden=())
    recreated = Happening(4.1, "recreate", 0, 1)
    restarts = [Happening(at, "restart", 1, 2, 6.0) for at in range(10, int(AWAKE), 10)]
    world = World(0, of, [recreated, *restarts], proxied=True)
    known: list[int] = []
    for at in range(30, int(AWAKE)):
        world.schedule.at(
            at,
            lambda: known.extend(
                partition
                for partition in range(3)
                for _, leader, _ in world.proxies[0].leaders(BUSY, partition)
                if leader is not None
            ),
        )
    world.run()
    assert {*known} == {0}


def test_no_request_that_a_broker_refuses_costs_the_proxy_its_own_connection() -> None:
    of = replace(
        profile(0),
        kraft=False,
        ids=True,
        releases=("2.8",) * 3,
        fronted=(1,),
        hidden=(),
        idle=0,
        crossed=(),
        large=False,
        synthesize=False,
        rogue=True,
        later="",
    )
    world = World(0, of, [], proxied=True)
    world.run()
    # Its subscription, and the test of the address that the broker advertises.
    assert sum(is_proxy(by) for _, by in world.brokers[1].accepted) == 2
    assert world.at_rest == []


def test_a_client_that_asks_the_wrong_broker_all_the_time_meets_no_error_of_a_move() -> None:
    assert not live(372).broken


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(463, id="Java asks by an id that a broker has not learnt"),
        pytest.param(493, id="a broker is stopped while it is fenced"),
        pytest.param(1230, id="brokers with synthetic ids are upgraded to 3.7"),
        pytest.param(1300, id="a Fetch by id waits for its names"),
        pytest.param(1494, id="a leader does not know the topic yet"),
        pytest.param(1728, id="a client asks a broker that lags for Metadata"),
        pytest.param(1764, id="a Fetch by an unknown id does not wait"),
        pytest.param(2658, id="a broker leads a former topic at another node's epoch"),
        pytest.param(30356, id="a process takes a former id for the newer one"),
        pytest.param(31285, id="Java waits for its turn, and then asks by an id without a pause"),
        pytest.param(65748, id="franz-go keeps a synthetic id where a broker is upgraded to 3.7"),
        pytest.param(10726, id="a link was made before synthetic ids were offered"),
        pytest.param(61708, id="a partition of a recreated topic is added later"),
        pytest.param(63998, id="Java gets a hint to a leader that has just been started"),
        pytest.param(100175, id="a fetch session is older than the process"),
        pytest.param(120136, id="a broker that is fenced goes on to serve a client"),
        pytest.param(210010, id="a broker leads at another's address before it is listed there"),
        pytest.param(210130, id="a broker knows nothing when it is polled"),
        pytest.param(223974, id="a node is not listed, and another is where it was"),
        pytest.param(221954, id="a sidecar's broker is outvoted by what is long over"),
        pytest.param(949590, id="a broker refuses to be the node that it is taken for"),
        pytest.param(310016, id="a broker leads a recreated topic as another node led the former"),
        pytest.param(3765, id="two brokers that have changed places outvote what is true"),
        pytest.param(4408, id="how much of a Fetch is left when a client goes away"),
        pytest.param(4580, id="how much of a Fetch is left when all clients pause"),
        pytest.param(5160, id="a held error has a client ask a broker that has gone"),
        pytest.param(310772, id="a former leader of 2.4 serves as a follower without the proxy"),
    ],
)
def test_what_once_broke_a_rule_breaks_none(seed: int) -> None:
    assert not live(seed).broken


def test_workers_that_were_stopped_give_no_old_hints() -> None:
    lives = [live(WORKERS_STOP_FROM + number) for number in range(304, 308)]
    assert any(proxy.stops for life in lives for proxy in life.lived.world.proxies)
    assert not any(life.broken for life in lives)


def test_workers_that_begin_again_know_what_their_process_knows() -> None:
    life = live(WORKERS_END_FROM + 1)
    assert any("a worker of the proxy" in text for _, text in life.lived.world.said)
    assert not life.broken


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(503096, id="a hint has Fetches in step, and a broker that lags is asked"),
        pytest.param(512724, id="a client connects again a millisecond before its error comes"),
    ],
)
def test_a_client_that_is_behind_by_luck_alone_is_not_behind(seed: int) -> None:
    assert not live(seed).broken


def test_a_proxy_that_only_slows_clients_is_found() -> None:
    assert "clients_make_progress" in {broken.rule for broken in live(36, late=0.5).broken}


def test_clients_meet_errors_and_get_hints() -> None:
    seen = [
        one for seed in range(4) for client in live(seed).lived.world.clients for one in client.seen
    ]
    assert sum(one.hint is not None for one in seen) > 10


def test_errors_come_as_late_in_a_twin_as_is_said() -> None:
    worlds = [
        World(_SEED, profile(_SEED), happenings(_SEED), proxied=False, luck=1, delays=delays)
        for delays in ((), ((0.05,),) * 4)
    ]
    for world in worlds:
        world.run()
    prompt, late = ([c for c in world.clients if c.seen] for world in worlds)
    assert prompt
    assert late
    assert not any(client.late for client in prompt)
    for client in late:
        refused = {seen.at for seen in client.seen if seen.error in HINTED}
        assert {round(until - since, 6) for since, until in client.late} == {0.05}
        assert {until for _, until in client.late} >= refused


def test_hints_come_with_a_twins_errors_as_is_said() -> None:
    of = _without_ids("3.0", 1, (("java", PRODUCE), ("java", PRODUCE)))
    moves = [Happening(5.0, "move", node=2)]
    told = Told(5.0, 5.5, (BUSY, 0), Leader(2, 1), shown(2))
    late, other = told._replace(since=6.0, until=7.0), told._replace(place=(CALM, 0))
    hints = []
    for some in ((), (told,), (late,), (other,)):
        world = World(0, of, moves, proxied=False, luck=1, told=(some, ()))
        world.run()
        hints.append([[seen.hint for seen in c.seen if seen.at < PAUSE] for c in world.clients])
    none, all_told, *others = hints
    assert none[0]
    assert not any(none[0])
    assert all_told == [[Leader(2, 1)], none[1]]
    assert others == [none, none]


@pytest.mark.parametrize(
    ("at", "leader", "since", "until"),
    [
        pytest.param(6.2, Leader(2, 5), 5.7, 6.7, id="a long poll sooner and later"),
        pytest.param(5.2, Leader(2, 5), 5.0, 5.7, id="not before the election"),
        pytest.param(6.9, Leader(2, 5), 6.4, 7.0, id="not once the topic is another"),
        pytest.param(8.2, Leader(2, 1), 8.0, 8.7, id="as a leader of a former topic"),
    ],
)
def test_a_hint_comes_in_a_near_world_as_long_as_it_may_by_luck(
    at: float, leader: Leader, since: float, until: float
) -> None:
    world = World(0, _one_partition(0), [], proxied=False)
    truth, client = world.truth, world.clients[0]
    for moved_at, node in ((1.0, 2), (2.0, 1), (3.0, 2), (4.0, 1), (5.0, 2)):
        truth.move(moved_at, BUSY, 0, node)
    truth.delete(7.0, BUSY)
    truth.create(7.1, BUSY, ((3, 1, 2),))
    truth.move(8.0, BUSY, 0, 2)
    error, request = Error.NOT_LEADER_OR_FOLLOWER, (client.name, 1)
    client.seen.append(Seen(at, at, PRODUCE, 9, request, (BUSY, 0), BUSY, error, leader, shown(2)))
    ((told,), *others) = progress.hints(world)
    assert [told.since, told.until] == pytest.approx([since, until])
    assert (told.place, told.leader, told.endpoint) == ((BUSY, 0), leader, shown(2))
    assert not any(others)


def test_a_twin_asks_former_leaders_of_2_4_as_is_said() -> None:
    of = _without_ids("2.4", 2, (("java", FETCH), ("unhinted", FETCH)))
    moves = [Happening(5.0, "move", number=0, node=2), Happening(5.0, "move", number=1, node=3)]
    refused = []
    for delays in ((), ((0.0,),) * 2):
        world = World(0, of, moves, proxied=False, luck=1, delays=delays)
        world.run()
        refused.append(
            {
                (client.kind.name, world.failures[seen.request][seen.place].node, seen.version)
                for client in world.clients
                for seen in client.seen
                if seen.at < PAUSE
            }
        )
    # The unhinted client has no session, so its epochs are known to the brokers.
    unhinted = {("sarama", 1, 11), ("sarama", 2, 11)}
    assert refused == [unhinted, {*unhinted, ("apache-kafka-java", 1, 10)}]


def test_errors_that_can_carry_no_hint_are_settled_where_the_world_says_so() -> None:
    worlds = [live(SETTLING_FROM + number).lived.world for number in range(8)]
    settled = {
        of.profile.settle: sum(proxy.settled["settled"] for proxy in of.proxies) for of in worlds
    }
    assert settled[True] > 0
    assert not any(proxy.settled for of in worlds if not of.profile.settle for proxy in of.proxies)


def test_the_same_seed_lives_the_same_world() -> None:
    assert live(_SEED).trace == live(_SEED).trace
    assert live(_SEED).trace != live(_SEED + 1).trace


def test_garbage_is_looked_for_between_worlds() -> None:
    live(_SEED)
    assert gc.isenabled()


@pytest.mark.parametrize("seed", [11, 1010, SETTLING_FROM + 61])
def test_a_world_does_not_depend_on_the_process(seed: int) -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", _PRINT, str(seed)],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hashing in ("1", "2")
    }
    assert len(digests) == 1


def test_a_failing_world_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    unbound = replace(DEFAULT_RULES, deadline=1.0, link_second=10.0, shared=1.0, grace=1.0)
    monkeypatch.setattr(product, "_RULES", unbound)
    life = next(life for seed in range(10) if (life := live(seed)).broken)
    smaller = shrink(life)
    assert len(smaller.happenings) < len(life.happenings)
    assert smaller.broken[0].rule == life.broken[0].rule
    assert any("BROKEN" in line for line in timeline(smaller))


def test_memory_that_is_taken_in_any_case_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(budget: Budget, size: int, beside: int = 0) -> bool:
        budget.used += size + beside
        return True

    monkeypatch.setattr(Budget, "take", take)
    broken = [one.rule for seed in range(9, 60, 10) for one in live(seed).broken]
    assert "memory_stays_within_the_budget" in broken
