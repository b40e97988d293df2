"""Who leads which partition of a cluster, since which epoch.

The view only moves to a higher epoch. It is keyed by topic id where there is one, since a topic
that is recreated starts at epoch 0 again; a former id comes back only if two polls in a row
report it. Without ids (clusters before 2.8), an entry falls when the topic is reported absent.
Where a broker reports a lower epoch of such a topic, or another leader at the same epoch of any,
the partition is in doubt (:mod:`leader_hints.core.cluster.doubts`), and no hint is given of it.
Such a report takes the entry's place once the leaders themselves say so, or two polls of one
broker. A partition that two polls lack is forgotten: the recreated topic has fewer.

A synthetic id does not distinguish a topic from another of its name: it leads to the name. A topic
that is reported with one counts as reported without an id.
"""

from array import array
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import chain, islice

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.metadata import ANY_TOPIC, ZERO_ID, Led, TopicMetadata
from leader_hints.core.clock import Clock, stopped
from leader_hints.core.cluster.doubts import Doubts, Reporter
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.cluster.unknown_ids import UnknownIds
from leader_hints.core.events import LeaderMoved

#: No epoch is known; no leader is known, or there is none.
UNKNOWN = -1
_NO_EPOCH = array("i", [UNKNOWN])
#: Moves remembered in all: enough for every partition of a large broker to move at once.
RECENT_MOVES = 20_000
#: What a broker reports that knows no topic ids.
_NO_ID = b""
#: Former ids remembered for a name, so that a lagging broker cannot bring one back.
_RETIRED = 8
#: How far the number of a partition may lie beyond how many an answer has. Partitions are numbered
#: without gaps; a broker that leaves larger ones is out of its mind, and the arrays must not
#: follow it there.
_LARGEST_GAP = 1024
#: Synthetic ids whose names are remembered: more than there are topics in a large cluster.
_ALIASES = 100_000
#: Changes of which it is remembered what they were about.
_REMEMBERED_CHANGES = 10_000
#: Names of hidden topics that are remembered.
_MOST_HIDDEN = 10_000
#: Polls in which a topic must be absent before it is forgotten.
_ABSENT_POLLS = 2
#: Partitions that are learnt in one go: each may have moved, which all takers of events get.
_LEARNT_AT_ONCE = 100


class _Move:
    """Who led before, when that was over for the view, and the new leader's own word.

    ``word``: see :meth:`LeaderView.is_confirmed`. ``serves``: see :meth:`LeaderView.serves`.
    """

    __slots__ = ("at", "before", "serves", "word")

    def __init__(self, before: Leader, at: float, word: bool | None, serves: bool) -> None:
        self.before = before
        self.at = at
        self.serves = serves
        self.word = word


class _Topic:
    """Leaders and epochs by partition, in arrays: 100,000 partitions must stay small.

    ``called``: all names and ids by which clients may give the topic.
    """

    __slots__ = (
        "absent",
        "called",
        "claimant",
        "contradicted",
        "epochs",
        "id",
        "leaders",
        "name",
        "retired",
    )

    def __init__(
        self, name: str, topic_id: bytes, retired: tuple[bytes, ...], synthetic_id: bytes
    ) -> None:
        self.called: tuple[Topic, ...] = (name, synthetic_id, *([topic_id] if topic_id else ()))
        self.name = name
        self.id = topic_id
        self.retired = retired
        self.claimant: bytes | None = None
        self.leaders = array("i")
        self.epochs = array("i")
        self.contradicted: frozenset[tuple[Reporter, int]] = frozenset()
        self.absent = 0

    @property
    def key(self) -> Topic:
        return self.id or self.name

    def grow(self, partitions: int) -> int:
        """Have room for so many; return how many there were too few."""
        missing = max(partitions - len(self.leaders), 0)
        self.leaders.extend([UNKNOWN] * missing)
        self.epochs.extend([UNKNOWN] * missing)
        return missing


class LeaderView:
    """What is known of one cluster.

    ``clock``: seconds that never go back, by which moves are noted. ``forgotten``: how many topics
    were forgotten, or found to be recreated, so far; while it stays, no id or name that was known
    has come to mean another topic, or none. ``unknown_ids``: those that
    clients use and that have no name here.
    """

    def __init__(self, cluster_id: str, clock: Clock = stopped) -> None:
        self.cluster_id = cluster_id
        self.unknown_ids = UnknownIds()
        self._clock = clock
        self.forgotten = 0
        self._with_ids = 0
        self._partitions = 0
        #: How often there was news of a topic, and of which the last times.
        self.changes = 0
        self._changed: deque[tuple[Topic, ...]] = deque(maxlen=_REMEMBERED_CHANGES)
        self._topics: dict[Topic, _Topic] = {}
        self._names: dict[str, Topic] = {}
        self._moves: OrderedDict[tuple[Topic, int], _Move] = OrderedDict()
        self._aliases: OrderedDict[bytes, str] = OrderedDict()
        self._hidden: set[str] = set()
        self._doubts = Doubts(clock, RECENT_MOVES)
        self._asked_what_is_hidden = False

    def __len__(self) -> int:
        """Partitions known."""
        return self._partitions

    def __bool__(self) -> bool:
        """A view of which nothing is known is one all the same, and not taken for none."""
        return True

    @property
    def names(self) -> Collection[str]:
        """Names of the topics known."""
        return self._names.keys()

    @property
    def topic_ids(self) -> bool:
        """Whether the cluster has topic ids: all topics known, and at least one, have one."""
        return 0 < self._with_ids == len(self._topics)

    @property
    def hides(self) -> bool:
        """Whether brokers keep some topic from the proxy's own principal."""
        return bool(self._hidden)

    @property
    def hidden(self) -> Collection[str]:
        """Names of topics that brokers keep from the proxy's own principal."""
        return self._hidden

    @property
    def shows_all(self) -> bool:
        """Whether brokers were asked whether they hide topics, and hide none that is known of."""
        return self._asked_what_is_hidden and not self._hidden

    def permitted(self, answer: TopicMetadata) -> None:
        """Note whether an answer to the proxy's own question hides its topic.

        Answers to clients tell of what those may see.
        """
        self._asked_what_is_hidden |= answer.name == ANY_TOPIC
        hidden = answer.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if hidden == (answer.name in self._hidden):
            return
        before = self.hides
        if not hidden:
            self._hidden.discard(answer.name)
        elif len(self._hidden) < _MOST_HIDDEN:
            self._hidden.add(answer.name)
        self._change(self.aliases(answer.name))
        if self.hides != before:
            # An id that is not known may be that of a topic that is hidden.
            self._changed.clear()

    def is_hidden(self, topic: Topic) -> bool:
        """Whether brokers hide a topic, given by name or id, from the proxy's own principal.

        Of an id that is not known that is likely where brokers hide anything at all.
        """
        name = self.name(topic)
        return self.hides if name is None else name in self._hidden

    def key(self, topic: Topic) -> Topic:
        """Return the key of a topic given by name or id: its id where there is one."""
        if isinstance(topic, bytes):
            if topic in self._topics or topic not in self._aliases:
                return topic
            topic = self._aliases[topic]
        return self._names.get(topic, topic)

    def name(self, topic: Topic) -> str | None:
        """Return the name of a topic given by name or id, ``None`` for an unknown id."""
        if isinstance(topic, str):
            return topic
        known = self._topics.get(topic)
        return known.name if known else self._aliases.get(topic)

    def make_up(self, name: str) -> bytes:
        """Return the synthetic id of a topic; it leads to the name from now on."""
        made = synthetic_id(self.cluster_id, name)
        self._aliases[made] = name
        self._aliases.move_to_end(made)
        if len(self._aliases) > _ALIASES:
            self._aliases.popitem(last=False)
        return made

    def leader(self, topic: Topic, partition: int) -> Leader | None:
        """Return who leads a partition, ``None`` where nothing is known."""
        known = self._topics.get(self.key(topic))
        if known is None or not 0 <= partition < len(known.epochs):
            return None
        epoch = known.epochs[partition]
        return None if epoch == UNKNOWN else Leader(known.leaders[partition], epoch)

    def before(self, topic: Topic, partition: int) -> Leader | None:
        """Return who led before the present leader, where that move was seen lately."""
        move = self._moves.get((self.key(topic), partition))
        return move.before if move else None

    def moved_at(self, topic: Topic, partition: int) -> float | None:
        """Return when the view learnt of the present leader, where that was lately."""
        move = self._moves.get((self.key(topic), partition))
        return move.at if move else None

    def is_confirmed(self, topic: Topic, partition: int) -> bool | None:
        """Whether the leader confirms its leadership; ``None``: it has not answered.

        True as well where it has led for long.
        """
        move = self._moves.get((self.key(topic), partition))
        return True if move is None else move.word

    def serves(self, topic: Topic, partition: int) -> bool:
        """Whether the present leader has answered as such, or has led for long.

        Metadata is no such answer: a KRaft broker's names it a while before its replica leads
        (BrokerMetadataPublisher sets the image first).
        """
        move = self._moves.get((self.key(topic), partition))
        return move is None or move.serves

    def in_doubt(self, topic: Topic, partition: int) -> bool:
        """Whether brokers contradict what the view has, and nobody knows yet who is right."""
        return bool(self._doubts) and (self.key(topic), partition) in self._doubts

    def claim(self, topic: Topic, partition: int) -> Leader | None:
        """Return who was named last in place of the leader, where that is in doubt."""
        return self._doubts.claim((self.key(topic), partition))

    def may_be_former(self, topic: Topic) -> bool:
        """Whether what is known of a topic may be of a former one of its name.

        Only who gives a topic's own id means the topic that is known: a name, or a synthetic id,
        may mean a recreated one, of whose id nobody has heard here.
        """
        return isinstance(topic, str) or topic not in self._topics

    def aliases(self, topic: Topic) -> tuple[Topic, ...]:
        """Return all names and ids by which clients may give a topic, given by one of them."""
        known = self._topics.get(self.key(topic))
        if known is not None:
            return known.called
        name = self.name(topic)
        return (topic,) if name is None else (name, synthetic_id(self.cluster_id, name))

    def changed_since(self, changes: int) -> Collection[tuple[Topic, ...]] | None:
        """Return of which topics there was news since ``changes`` had a value.

        Each with all its names and ids. ``None``: there may be news of any topic.
        """
        news = self.changes - changes
        if news > len(self._changed):
            return None
        return set(islice(reversed(self._changed), news))

    def one_led_by_each(self) -> Iterator[tuple[str, int, Leader]]:
        """Iterate over name, partition and leader of one partition for each node that leads any.

        Partitions in doubt are left out: whoever leads one may be another node than the view has.
        So are hidden topics, which are known from clients' Metadata: brokers answer no question of
        the proxy about them.
        """
        seen = {UNKNOWN}
        for topic in self._topics.values():
            if topic.name in self._hidden:
                continue
            # Partitions are not looked at one by one: there may be 100,000.
            for node in set(topic.leaders) - seen:
                partition = self._one_led_by(topic, node)
                if partition is not None:
                    seen.add(node)
                    yield topic.name, partition, Leader(node, topic.epochs[partition])

    def _one_led_by(self, topic: _Topic, node: int) -> int | None:
        partition = -1
        with suppress(ValueError):
            while True:
                partition = topic.leaders.index(node, partition + 1)
                if (topic.key, partition) not in self._doubts:
                    return partition
        return None

    def leaders(self) -> Iterator[tuple[str, int, Leader]]:
        """Iterate over name, partition and leader of all partitions that anything is known of."""
        for topic in self._topics.values():
            for partition, leader in enumerate(map(Leader, topic.leaders, topic.epochs)):
                if leader.epoch != UNKNOWN:
                    yield topic.name, partition, leader

    def partitions(self, name: str) -> int:
        """Return how many partitions of a topic are known."""
        topic = self._topics.get(self.key(name))
        return len(topic.leaders) if topic else 0

    def learn(
        self, answer: TopicMetadata, source: int | None, *, route: str = "", poll: bool = False
    ) -> list[LeaderMoved]:
        """Take what a broker says of one topic; return the moves that it brought to light.

        ``source``: the node that answered, where it is known; ``route``: by whose broker it was
        answered otherwise, so that two brokers are never taken for one. ``poll``: the answer
        belongs to a poll of everything, of which one broker makes one at a time.
        """
        return [*chain.from_iterable(self.learning(answer, source, route=route, poll=poll))]

    def learning(
        self, answer: TopicMetadata, source: int | None, *, route: str = "", poll: bool = False
    ) -> Iterator[list[LeaderMoved]]:
        """As :meth:`learn`, in steps: yield moves when so much is learnt that others may wait."""
        topic = self._topic(answer, poll)
        if topic is None:
            return
        reporter = route if source is None else source
        topic.absent = 0
        most = max(len(answer.partitions), len(topic.leaders)) + _LARGEST_GAP
        numbers = (led.partition for led in answer.partitions if led.partition < most)
        self._partitions += topic.grow(1 + max(numbers, default=-1))
        moves: list[LeaderMoved] = []
        contradicted = set()
        for number, led in enumerate(answer.partitions, 1):
            if number % _LEARNT_AT_ONCE == 0:
                yield moves
                if self._topics.get(topic.key) is not topic:
                    # Another answer has it that the topic is gone, or is another.
                    return
                moves = []
            if not 0 <= led.partition < most:
                continue
            known = topic.epochs[led.partition]
            if led.epoch <= UNKNOWN:
                # A leader without an epoch cannot be ordered, nor paired with another's.
                continue
            if led.epoch > known:
                moves += self._move(topic, led, source)
            elif not self._agree(topic, led, source, reporter) and (
                led.epoch == known or not topic.id
            ):
                contradicted.add((reporter, led.partition))
                if poll and (reporter, led.partition) in topic.contradicted:
                    moves += self._adopt(topic, led)
        if not topic.id and len(answer.partitions) < len(topic.leaders):
            contradicted |= self._missing(topic, answer, reporter, poll=poll)
        if poll:
            others = {pair for pair in topic.contradicted if pair[0] != reporter}
            topic.contradicted = frozenset(others | contradicted)
        yield moves

    def _missing(
        self, topic: _Topic, answer: TopicMetadata, reporter: Reporter, *, poll: bool
    ) -> set[tuple[Reporter, int]]:
        """Return of which partitions that are known an answer says nothing, and who says so.

        Topics never shrink, so the broker has not heard of them yet, or they are of a former topic
        that had more: then two polls of it lack them.
        """
        listed = {led.partition for led in answer.partitions}
        missing = {(reporter, n) for n in range(len(topic.leaders)) if n not in listed}
        if poll:
            for _, partition in missing & topic.contradicted:
                topic.leaders[partition] = topic.epochs[partition] = UNKNOWN
                self._moves.pop((topic.key, partition), None)
                self._doubts.dropped((topic.key, partition))
                self._change(topic.called)
            while topic.epochs[-1:] == _NO_EPOCH and (reporter, len(topic.epochs) - 1) in missing:
                topic.leaders.pop()
                topic.epochs.pop()
                self._partitions -= 1
        return missing

    def leader_confirms(self, name: str, partition: int, leader: Leader) -> list[LeaderMoved]:
        """Take it from a node that it leads at an epoch; return the move, if it is new."""
        topic = self._topics.get(self.key(name))
        if topic is None or not 0 <= partition < len(topic.epochs):
            return []
        led = Led(partition, leader.node, leader.epoch)
        if leader.epoch > topic.epochs[partition]:
            moves = self._move(topic, led, leader.node)
            self._note_serving(topic, led)
            return moves
        if self._agree(topic, led, leader.node, leader.node):
            self._note_serving(topic, led)
            return []
        place = topic.key, partition
        if leader.node == topic.leaders[partition]:
            # It leads at the lower epoch, so not at the other.
            self._doubts.denied(place)
        return self._settle(topic, partition, self._doubts.served(place, leader))

    def _note_serving(self, topic: _Topic, led: Led) -> None:
        move = self._moves.get((topic.key, led.partition))
        if move is not None:
            move.serves = True

    def leader_denies(self, name: str, partition: int, leader: Leader) -> list[LeaderMoved]:
        """Take it from a node that it does not lead a partition at an epoch, or not yet.

        Return the move where that settles who leads instead.
        """
        if self.leader(name, partition) != leader:
            return []
        topic = self._topics[self.key(name)]
        move = self._moves.get((topic.key, partition))
        if move is not None and move.word is None:
            move.word = False
            self._change(topic.called)
        return self._settle(topic, partition, self._doubts.denied((topic.key, partition)))

    def _topic(self, answer: TopicMetadata, poll: bool) -> _Topic | None:
        known = self._topics.get(self._names.get(answer.name, answer.name))
        if answer.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # With ids a lagging broker costs nothing: a recreated topic has another id.
            if known is not None and not known.id:
                self._forget(known)
            return None
        if answer.error and not answer.partitions:
            return None
        topic_id = b"" if self._is_none(answer) else answer.id
        if known is None:
            return self._add(_Topic(answer.name, topic_id, (), self.make_up(answer.name)))
        if known.id == topic_id:
            if poll or known.claimant == _NO_ID:
                known.claimant = None
            return known
        if (not topic_id or topic_id in known.retired) and not _insists(known, topic_id, poll):
            return None
        self._forget(known)
        # Without ids now, the same id may come back: a cluster that is upgraded again has it.
        former = (*known.retired, known.id) if known.id and topic_id else known.retired
        retired = tuple(one for one in former if one != topic_id)[-_RETIRED:]
        return self._add(_Topic(answer.name, topic_id, retired, self.make_up(answer.name)))

    def _is_none(self, answer: TopicMetadata) -> bool:
        return answer.id in (ZERO_ID, synthetic_id(self.cluster_id, answer.name))

    def _change(self, called: tuple[Topic, ...]) -> None:
        """Note that there is news of a topic."""
        self.changes += 1
        self._changed.append(called)

    def _add(self, topic: _Topic) -> _Topic:
        self._change(topic.called)
        self._topics[topic.key] = topic
        self._with_ids += bool(topic.id)
        self._names[topic.name] = topic.key
        return topic

    def _forget(self, topic: _Topic) -> None:
        self.forgotten += 1
        self._change(topic.called)
        self._partitions -= len(topic.leaders)
        self._with_ids -= bool(topic.id)
        self._topics.pop(topic.key, None)
        self._names.pop(topic.name, None)
        if not (self._moves or self._doubts):
            return
        for partition in range(len(topic.leaders)):
            self._moves.pop((topic.key, partition), None)
            self._doubts.dropped((topic.key, partition))

    def forget_absent(self, present: Collection[str]) -> None:
        """Forget the topics that a second poll of everything lacked; ``present`` are its names."""
        for _ in self.forgetting(present):
            pass

    def forgetting(self, present: Collection[str]) -> Iterator[None]:
        """As :meth:`forget_absent`, in steps: thousands of topics may have gone at once."""
        absent = [t for t in self._topics.values() if t.name not in present]
        for topic in absent:
            topic.absent += 1
        for topic in absent:
            # Others may have heard of it meanwhile.
            if topic.absent >= _ABSENT_POLLS and self._topics.get(topic.key) is topic:
                self._forget(topic)
                yield

    def _move(self, topic: _Topic, led: Led, source: int | None) -> list[LeaderMoved]:
        """Take what is newer than what the view has."""
        before = self._replace(topic, led)
        if before.epoch == UNKNOWN:
            return []
        key = (topic.key, led.partition)
        itself = led.leader == source
        if itself:
            self._doubts.confirmed(key)
        # Each election raises the epoch by one: a leader that stays has served at the next one too.
        stays = before == Leader(led.leader, led.epoch - 1)
        serves = stays and ((last := self._moves.get(key)) is None or last.serves)
        self._moves[key] = _Move(before, self._clock(), True if itself else None, serves)
        self._moves.move_to_end(key)
        if len(self._moves) > RECENT_MOVES:
            self._moves.popitem(last=False)
        return [self._moved(topic, before, led)]

    def _adopt(self, topic: _Topic, led: Led) -> list[LeaderMoved]:
        """Take what is true of the recreated topic in place of what was of the former one."""
        self.forgotten += 1
        before = self._replace(topic, led)
        # Whoever led the former topic never led this one.
        self._moves.pop((topic.key, led.partition), None)
        return [self._moved(topic, before, led)]

    def _settle(self, topic: _Topic, partition: int, leader: Leader | None) -> list[LeaderMoved]:
        if leader is None:
            return []
        return self._adopt(topic, Led(partition, leader.node, leader.epoch))

    def _replace(self, topic: _Topic, led: Led) -> Leader:
        """Note who leads now; return who did before."""
        self._change(topic.called)
        self._doubts.dropped((topic.key, led.partition))
        before = Leader(topic.leaders[led.partition], topic.epochs[led.partition])
        topic.leaders[led.partition] = led.leader
        topic.epochs[led.partition] = led.epoch
        return before

    def _moved(self, topic: _Topic, before: Leader, led: Led) -> LeaderMoved:
        return LeaderMoved(
            cluster=self.cluster_id,
            topic=topic.name,
            partition=led.partition,
            leader_before=before.node,
            epoch_before=before.epoch,
            leader=led.leader,
            epoch=led.epoch,
        )

    def _agree(self, topic: _Topic, led: Led, source: int | None, reporter: Reporter) -> bool:
        """Take what is no newer than what the view has; return whether it does not contradict."""
        leader, key = topic.leaders[led.partition], (topic.key, led.partition)
        lower = led.epoch < topic.epochs[led.partition]
        if lower or UNKNOWN != led.leader != leader != UNKNOWN:
            # Of a topic with an id a lower epoch is of a broker that lags, and nothing else.
            doubtful = not (lower and topic.id)
            claim = Leader(led.leader, led.epoch)
            if doubtful and self._doubts.contradicted(key, claim, reporter):
                self._change(topic.called)
            return False
        if leader == UNKNOWN != led.leader:
            # A ZooKeeper broker says -1 at the same epoch while it does not see the leader's
            # endpoint alive; who names the leader knows more.
            topic.leaders[led.partition] = led.leader
            self._change(topic.called)
        move = self._moves.get(key)
        if led.leader == source and (move is not None or self._doubts):
            self._confirm(topic, key, move)
        elif self._doubts and led.leader == leader and self._doubts.agreed(key, reporter):
            self._change(topic.called)
        return True

    def _confirm(self, topic: _Topic, key: tuple[Topic, int], move: _Move | None) -> None:
        """Take it from the leader itself that it leads."""
        ended = self._doubts.confirmed(key)
        if move is not None:
            move.word = True
        if ended or move is not None:
            self._change(topic.called)


def _insists(topic: _Topic, former: bytes, poll: bool) -> bool:
    """Whether a former id, or none at all, is reported by two polls in a row.

    A cluster whose brokers are downgraded has no ids any more, in no answer. Ids have no order. If
    a view hears the new one first and then a lagging broker's, it has taken the dead topic for the
    living: nobody lags for so long.
    """
    if not poll:
        return False
    again = topic.claimant == former
    topic.claimant = former
    return again
