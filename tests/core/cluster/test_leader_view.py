import math
import sys
from array import array
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.metadata import ANY_TOPIC, ZERO_ID, TopicMetadata
from leader_hints.core.cluster import known_topics
from leader_hints.core.cluster.doubts import Source
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import EpochRose, LeaderMoved
from tests.core.cluster.views import Partitions, answer, led_by_each, old_view_of, view_of
from tests.core.samples import topic_id
from tests.harness.lines import lines_of, most_lines

# What is known.


def test_nothing_is_known_of_what_nobody_told() -> None:
    view = view_of({0: (1, 5), 2: (1, 5)})
    assert view.leader("t", 0) == Leader(1, 5)
    unknown: list[tuple[Topic, int]] = [("t", 1), ("t", 3), ("t", -1), ("u", 0), (topic_id(1), 0)]
    for topic, partition in unknown:
        assert view.leader(topic, partition) is None
        assert view.before(topic, partition) is None


def test_a_leader_without_an_epoch_is_not_known() -> None:
    view = view_of({0: (1, -1)})
    assert view.leader("t", 0) is None
    assert not led_by_each(view)


def test_what_a_node_alone_has_said_is_withdrawn_if_another_broker_has_said_it() -> None:
    view = old_view_of(dict.fromkeys(range(4), (2, 5)), topic=topic_id(1))
    for partition, node in enumerate((1, 1, 3)):
        view.leader_confirms("t", partition, Leader(node, 6))
    view.learn(answer({1: (1, 6)}, topic=topic_id(1)), 2)
    view.withdraw({1})
    leaders = [Leader(-1, 6), Leader(1, 6), Leader(3, 6), Leader(2, 5)]
    assert [view.leader("t", partition) for partition in range(4)] == leaders
    view.learn(answer({0: (3, 6)}, topic=topic_id(1)), 2)
    assert view.leader("t", 0) == Leader(3, 6)


def test_what_a_node_alone_has_said_of_a_topic_that_is_forgotten_is_forgotten() -> None:
    view = view_of({0: (2, 5)})
    view.leader_confirms("t", 0, Leader(1, 6))
    view.learn(answer({}, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), 2)
    view.learn(answer({0: (1, 0)}), 2)
    view.withdraw({1})
    assert view.leader("t", 0) == Leader(1, 0)


def test_what_brokers_have_reported_that_are_elsewhere_now_outvotes_nobody() -> None:
    view = view_of({0: (1, 7)})
    view.learn(answer({0: (2, 4)}), 2)
    view.learn(answer({0: (3, 1)}), 3)
    for _ in range(2):
        view.learn(answer({0: (2, 1)}), None, route="r", poll=True)
    assert view.leader("t", 0) == Leader(1, 7)
    view.withdraw({2, 3})
    view.learn(answer({0: (2, 1)}), None, route="r", poll=True)
    assert view.leader("t", 0) == Leader(2, 1)


def test_what_a_broker_reported_of_a_topic_that_it_hides_outvotes_nobody() -> None:
    """Its polls never correct it: the former leader was known for ever."""
    view = view_of({0: (2, 7)})
    hides, shows = Source(1, "r1"), Source(2, "r2")
    # The topic was recreated, and broker 1 has not learnt of it when a client asks.
    view.learn(answer({0: (2, 0)}), 2, route="r2")
    view.learn(answer({0: (2, 7)}), 1, route="r1")
    for _ in range(3):
        view.learn(answer({0: (2, 0)}), 2, route="r2", poll=True)
    assert view.leader("t", 0) == Leader(2, 7)
    assert view.disagreements.contradicts(("t", 0), shows, Leader(2, 7))
    assert [*view.withdrawing("t", hides)] == [*view.withdrawing("other", hides)] == []
    view.learn(answer({0: (2, 0)}), 2, route="r2", poll=True)
    assert view.leader("t", 0) == Leader(2, 0)


def test_what_a_broker_reported_that_is_of_another_cluster_now_outvotes_nobody() -> None:
    """Its route leads elsewhere, and no other one leads to it."""
    view = view_of({0: (2, 7)})
    view.learn(answer({0: (2, 0)}), 2, route="r2", poll=True)
    for route in ("left", "stays"):
        view.learn(answer({0: (2, 7)}), 1, route=route)
    view.leave("left")
    view.learn(answer({0: (2, 0)}), 2, route="r2", poll=True)
    assert view.leader("t", 0) == Leader(2, 7)
    view.leave("stays")
    view.learn(answer({0: (2, 0)}), 2, route="r2", poll=True)
    assert view.leader("t", 0) == Leader(2, 0)


def test_what_a_broker_reported_of_many_partitions_is_withdrawn_in_short_steps() -> None:
    view = view_of(dict.fromkeys(range(_LARGE), (1, 7)))
    view.learn(answer(dict.fromkeys(range(_LARGE), (2, 4))), 2)
    assert most_lines(view.withdrawing("t", Source(2))) < 5_000
    assert not [*view.disagreements]
    assert view.disagreements._size == 0


def test_to_withdraw_what_a_node_has_reported_costs_no_walk() -> None:
    """Of 50,000 partitions about which brokers disagreed it took 50 ms of one step."""
    view = view_of(dict.fromkeys(range(_LARGE), (1, 7)))
    view.learn(answer(dict.fromkeys(range(_LARGE), (2, 4))), 2)
    view.learn(answer({0: (3, 4)}), 3)
    assert lines_of(lambda: view.withdraw({2, 4})) < _LARGE // 10
    assert lines_of(lambda: view.withdraw(set())) < _LARGE // 10
    # Nobody but node 3 contradicts any more. The rest goes with the next look at it.
    assert view.disagreements.contradicts(("t", 0), Source(3), Leader(1, 7))
    assert not view.disagreements.contradicts(("t", 0), Source(2), Leader(1, 7))
    assert view.disagreements.topics(_LARGE) == {"t"}
    assert [*view.disagreements] == [("t", 0)]


def test_a_topic_is_known_by_name_and_by_id() -> None:
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    assert view.leader("t", 0) == view.leader(topic_id(1), 0) == Leader(1, 5)
    assert view.topics.key("t") == topic_id(1)
    assert view.topics.name(topic_id(1)) == "t"
    assert view.topics.name(topic_id(2)) is None


def test_identity_is_asked_by_partitions_that_are_not_hidden() -> None:
    """Of a hidden topic brokers answer TOPIC_AUTHORIZATION_FAILED, which proves nothing."""
    view = view_of({0: (1, 5)})
    view.learn(answer({0: (1, 3)}, name="u"), None)
    view.hidden.take(answer({}, error=29), "")
    assert led_by_each(view) == [("u", 0, Leader(1, 3))]
    view.hidden.take(answer({0: (1, 5)}), "")
    assert led_by_each(view) == [("t", 0, Leader(1, 5))]


class _Counted(array):  # type: ignore[type-arg]
    """``looked_at``: how many elements were looked at to find one."""

    looked_at = 0

    def index(self, element: int, start: int = 0, stop: int = sys.maxsize) -> int:
        at: int = super().index(element, start, stop)
        self.looked_at += at - start + 1
        return at


def test_what_each_of_many_nodes_leads_is_found_without_a_search_for_each() -> None:
    """With a topic of a partition for each of a thousand brokers that took 16 ms of one step."""
    view = view_of({partition: (partition, 5) for partition in range(200)})
    topic = view.topics.get("t")
    assert topic is not None
    topic.leaders = counted = _Counted("i", topic.leaders)
    assert len(led_by_each(view)) == 200
    assert counted.looked_at <= 200


def test_so_it_is_where_all_partitions_are_in_doubt() -> None:
    """As of a large topic that was recreated without an id: 20,000 partitions took 0.3 s."""
    led = {partition: (partition % 200, 5) for partition in range(2000)}
    view = view_of(led, {partition: (node, 0) for partition, (node, _) in led.items()})
    topic = view.topics.get("t")
    assert topic is not None
    topic.leaders = counted = _Counted("i", topic.leaders)
    assert not led_by_each(view)
    assert counted.looked_at <= 2000


def test_what_each_node_leads_is_found_in_steps_by_the_number_of_partitions() -> None:
    view = LeaderView("cluster")
    for number in range(10):
        view.learn(answer(dict.fromkeys(range(5000), (1, 5)), name=f"t{number}"), None)
    assert len([*view.one_led_by_each({}, Source(None))]) >= 2


def test_a_partition_number_out_of_all_reason_takes_no_memory() -> None:
    view = view_of({0: (1, 5), 2**31 - 1: (1, 5), 100_000: (1, 5), -1: (1, 5)})
    assert len(view) == 1


def test_partitions_are_counted_by_topic() -> None:
    view = view_of({0: (1, 5), 2: (1, 5)})
    assert view.partitions("t") == 3
    assert view.partitions("u") == 0


# Large topics.

_LARGE = 1000


def _large(node: int, epoch: int) -> TopicMetadata:
    return answer(dict.fromkeys(range(_LARGE), (node, epoch)))


def test_a_large_topic_is_learnt_in_steps() -> None:
    view = LeaderView("cluster")
    view.learn(_large(1, 5), None)
    steps = [*view.learning(_large(2, 6), None)]
    assert max(map(len, steps)) <= 100
    moved = [move.partition for moves in steps for move in moves]
    assert moved == [*range(_LARGE)]
    assert len(view) == _LARGE


def test_a_topic_that_is_deleted_while_it_is_learnt_stays_forgotten() -> None:
    view = LeaderView("cluster")
    view.learn(_large(1, 5), None)
    steps = view.learning(_large(2, 6), None)
    next(steps)
    view.learn(answer({}, error=3), None)
    assert [*steps] == []
    assert view.leader("t", 0) is None
    assert len(view) == 0


# Everything at once, against a model.

_NAMES = st.sampled_from(["a", "b"])
_SAID = st.dictionaries(
    st.integers(0, 2), st.tuples(st.integers(-1, 3), st.integers(-1, 6)), max_size=3
)
_SOURCE = st.none() | st.integers(0, 3)


#: Seconds, in place of those of the view: nothing else is to be over meanwhile.
_AWAY, _OUTAGE = 0.03, 0.005


class View(RuleBasedStateMachine):
    """A view that hears anything from anybody, and the simplest model of what it may believe.

    ``told``: every (node, epoch) that was ever said of a partition. ``known``: what the model
    believes, by topic (id, or name without one) and partition. ``current``: the topic of a name;
    ``gone``: that of one that is not known any more, behind the former ones.
    ``reports``: what each said last of a partition about which they disagree. A broker whose node
    is not known is the one behind the route, which is node 0; the others are behind none.
    """

    @initialize(ids=st.booleans())
    def begin(self, ids: bool) -> None:
        self.ids = ids
        self.now = 0.0
        self.view = LeaderView("cluster", lambda: self.now)
        # What brokers said that cannot be asked does not count.
        self.view.hidden.take(answer({}, name=ANY_TOPIC), "route")
        self.told: set[tuple[bytes | str, int, int, int]] = set()
        self.known: dict[tuple[bytes | str, int], Leader] = {}
        self.current: dict[str, bytes | str] = {}
        self.retired: dict[str, list[bytes | str]] = {}
        self.gone: dict[str, list[bytes | str]] = {}
        self.claims: dict[str, dict[int, bytes | str]] = {}
        self.contradicted: dict[str, set[tuple[int, int]]] = {}
        self.absent: dict[str, int] = {}
        self.reports: dict[tuple[bytes | str, int], dict[int | None, Leader]] = {}
        #: To which broker the route led last; and since when that cannot be asked.
        self.at_route: int | None = None
        self.away_since = math.inf

    def _id(self, name: str, number: int) -> bytes:
        return topic_id(ord(name) * 10 + number) if self.ids else ZERO_ID

    @rule(name=_NAMES, number=st.integers(0, 2), said=_SAID, source=_SOURCE, poll=st.booleans())
    def hear(
        self, name: str, number: int, said: Partitions, source: int | None, poll: bool
    ) -> None:
        ident = self._id(name, number)
        topic = ident if self.ids else name
        before, listed = dict(self.known), self.view.partitions(name)
        route = "" if source else "route"
        told = answer(said, name=name, topic=ident)
        if not source:
            self._return(source)
        moves = self.view.learn(told, source, route=route, poll=poll)
        if topic in self.retired.get(name, []):
            claims = self.claims.setdefault(name, {})
            again = poll and claims.get(source or 0) == topic
            if poll:
                claims[source or 0] = topic
            if not again:
                assert moves == []
                return
            self.retired[name].remove(topic)
        old = self.current.get(name)
        gone = self.gone.pop(name, []) if old is None else []
        if gone:
            # Which of these is the last one is not known.
            self.retired[name] = gone[: gone.index(topic)] if topic in gone else gone
        if old is not None and old != topic:
            self.retired.setdefault(name, []).append(old)
            self._forget(name)
        elif poll:
            # Others' claims stay: no route of theirs has shown the topic here.
            self.claims.get(name, {}).pop(source or 0, None)
        self.current[name] = topic
        self.absent[name] = 0
        contradicted = set()
        for partition, (node, epoch) in said.items():
            self.told.add((topic, partition, node, epoch))
            known = self.known.get((topic, partition))
            if epoch < 0:
                continue
            place, leader = (topic, partition), Leader(node, epoch)
            said_before = self.reports.get(place, {})
            # It is known now who reported that before.
            voices = (source, None) if source == 0 else (source,)
            repeated = not self.ids and any(said_before.get(one) == leader for one in voices)
            better = known is not None and epoch == known.epoch and known.node == -1
            if known is None or better or (epoch > known.epoch and not repeated):
                if known is not None and not better:
                    self._begin_again(name, partition)
                self.known[place] = leader
                self._report(place, source, leader)
            elif (epoch != known.epoch and not self.ids) or (
                epoch == known.epoch and node not in (-1, known.node)
            ):
                contradicted.add((source or 0, partition))
                self.reports.setdefault(place, {})
                self._report(place, source, leader)
                twice = (source or 0, partition) in self.contradicted.get(name, set())
                if twice and poll and not self._outvoted(place, source, leader):
                    self._begin_again(name, partition)
                    self.known[place] = leader
                    if self.ids:
                        self.reports.pop(place)
            elif epoch == known.epoch:
                self._report(place, source, leader)
        listed = max(listed, 1 + max(said, default=-1))
        for partition in set(range(listed)) - set(said) if len(said) < listed else ():
            if not self.ids:
                contradicted.add((source or 0, partition))
                if poll and (source or 0, partition) in self.contradicted.get(name, set()):
                    self.known.pop((topic, partition), None)
                    self.reports.pop((topic, partition), None)
        if poll:
            of_all = self.contradicted.get(name, set())
            others = {pair for pair in of_all if pair[0] != (source or 0)}
            self.contradicted[name] = others | contradicted
        for moved in moves:
            was = before[topic, moved.partition]
            stayed = moved.leader == was.node
            assert isinstance(moved, EpochRose if stayed else LeaderMoved)
            assert was == Leader(getattr(moved, "leader_before", moved.leader), moved.epoch_before)
            assert self.known[topic, moved.partition] == Leader(moved.leader, moved.epoch)
            assert self.ids is False or moved.epoch >= moved.epoch_before

    @rule(name=_NAMES)
    def hear_that_it_is_unknown(self, name: str) -> None:
        self.view.learn(answer({}, name=name, error=3), None)
        if not self.ids:
            self._forget(name)

    @rule(seconds=st.sampled_from([0.001, 0.006, 0.04]))
    def lose_the_route(self, seconds: float) -> None:
        """Have its broker be away for a moment, for an outage, or for long."""
        self.view.hidden.lost("route")
        self.away_since = min(self.away_since, self.now)
        self.now += seconds

    def _return(self, source: int | None) -> None:
        self.view.hidden.take(answer({}, name=ANY_TOPIC), "route")
        if self.now >= self.away_since + _OUTAGE:
            for name, pairs in self.contradicted.items():
                self.contradicted[name] = {pair for pair in pairs if pair[0] != 0}
            for claims in self.claims.values():
                claims.pop(0, None)
        self.at_route, self.away_since = source, math.inf

    @rule(present=st.sets(_NAMES))
    def poll_everything(self, present: set[str]) -> None:
        list(self.view.topics.forget_absent(present))
        for name in set(self.current) - present:
            self.absent[name] += 1
            if self.absent[name] >= 2:
                if self.ids:
                    self.gone[name] = [*self.retired.pop(name, []), self.current[name]]
                self._forget(name)

    def _begin_again(self, name: str, partition: int) -> None:
        of_all = self.contradicted.get(name, set())
        self.contradicted[name] = {pair for pair in of_all if pair[1] != partition}

    def _report(self, place: tuple[bytes | str, int], source: int | None, leader: Leader) -> None:
        if place in self.reports:
            if source == 0:
                # It is known now who reported that.
                self.reports[place].pop(None, None)
            self.reports[place][source] = leader
            known = self.known[place]
            if {*self.reports[place].values()} <= {known, Leader(-1, known.epoch)}:
                del self.reports[place]

    def _outvoted(self, place: tuple[bytes | str, int], source: int | None, leader: Leader) -> bool:
        up = leader.epoch > self.known[place].epoch
        sides: tuple[set[int | None], set[int | None]] = set(), set()
        for by, one in self.reports[place].items():
            further = one.epoch > leader.epoch if up else one.epoch < leader.epoch
            silent = self.now >= self.away_since + _AWAY
            if by != source and not (silent and by in (None, self.at_route)):
                sides[one == leader or further].add(self._broker(by))
        against, backing = sides
        itself = self._broker(source)
        return len(backing | {itself}) <= len(against - {itself})

    def _broker(self, by: int | None) -> int | None:
        return self.at_route if by is None else by

    def _forget(self, name: str) -> None:
        topic = self.current.pop(name, None)
        self.reports = {key: said for key, said in self.reports.items() if key[0] != topic}
        self.contradicted.pop(name, None)
        self.claims.pop(name, None)
        self.known = {key: leader for key, leader in self.known.items() if key[0] != topic}

    def __init__(self) -> None:
        super().__init__()
        self._patched = [
            patch.object(known_topics, "_AWAY", _AWAY),
            patch.object(known_topics, "_OUTAGE", _OUTAGE),
        ]
        for patched in self._patched:
            patched.start()

    def teardown(self) -> None:
        for patched in self._patched:
            patched.stop()

    @invariant()
    def believes_what_the_model_does(self) -> None:
        if not hasattr(self, "view"):
            return
        topics = [self._id(n, k) for n in "ab" for k in range(3)] if self.ids else ["a", "b"]
        for topic in topics:
            for partition in range(4):
                leader = self.view.leader(topic, partition)
                assert leader == self.known.get((topic, partition))
                if leader is not None:
                    assert (topic, partition, *leader) in self.told
        for name, topic in self.current.items():
            assert self.view.topics.key(name) == topic
        assert {*self.view.topics.names} == {*self.current}
        led = led_by_each(self.view)
        leading = {
            leader.node
            for place, leader in self.known.items()
            if leader.node >= 0 and not self.view.in_doubt(*place)
        }
        assert sorted(leader.node for _, _, leader in led) == sorted(leading)
        for name, partition, leader in led:
            assert self.known[self.current[name], partition] == leader
        names = {topic: name for name, topic in self.current.items()}
        assert sorted(self.view.leaders()) == sorted(
            (names[topic], partition, leader)
            for (topic, partition), leader in self.known.items()
            if topic in names and leader is not None
        )
        assert len(self.view) == sum(self.view.partitions(name) for name in self.view.topics.names)


def test_a_report_of_who_was_not_known_yet_is_no_other_brokers() -> None:
    """The model once had a broker outvoted by what it had reported itself."""
    state = View()
    state.begin(ids=False)
    for source, said, poll in (
        (None, {0: (0, 1)}, False),
        (0, {}, True),
        (None, {0: (1, 0)}, False),
        (0, {0: (0, 0)}, True),
    ):
        state.hear(name="b", number=0, said=said, source=source, poll=poll)
        state.believes_what_the_model_does()
    assert state.view.leader("b", 0) == Leader(0, 0)


def test_a_report_of_who_is_not_known_stays_another_brokers() -> None:
    state = View()
    state.begin(ids=False)
    for source, said, poll in (
        (None, {0: (0, 1)}, False),
        (2, {}, True),
        (None, {0: (1, 0)}, False),
        (2, {0: (0, 0)}, True),
    ):
        state.hear(name="b", number=0, said=said, source=source, poll=poll)
        state.believes_what_the_model_does()
    assert state.view.leader("b", 0) == Leader(0, 1)


TestView = View.TestCase
TestView.settings = settings(max_examples=60, stateful_step_count=30)
