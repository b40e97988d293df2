"""Which broker leads which partition of a cluster, and since which epoch.

The view is keyed by topic id where there is one (:mod:`leader_hints.core.cluster.known_topics`). It
only moves to a higher epoch, except where a topic was recreated
(:mod:`leader_hints.core.cluster.leader_reports`).
"""

from collections.abc import Iterator, Set
from itertools import chain, islice

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.list_offsets import Partition
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.clock import Clock, stopped
from leader_hints.core.cluster.doubts import Disagreements, Doubts, Place, Sides, Source
from leader_hints.core.cluster.hidden_topics import HiddenTopics
from leader_hints.core.cluster.known_topics import KnownTopics
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_moves import RECENT_MOVES, LeaderMoves
from leader_hints.core.cluster.leader_reports import LeaderReports, LowerEpochs, Votes
from leader_hints.core.cluster.topic_changes import TopicChanges
from leader_hints.core.cluster.topic_leaders import NO_ROUTES, UNKNOWN, TopicLeaders
from leader_hints.core.cluster.unknown_ids import UnknownIds
from leader_hints.core.events import LeaderChange
from leader_hints.core.partition_bits import PartitionBits

#: How far the number of a partition may lie beyond how many an answer has. Partitions are numbered
#: without gaps; larger gaps in a broker's answer are not plausible, and must not make the arrays
#: large.
_LARGEST_GAP = 1024
#: Partitions that are learnt in one go: each may have moved, which all takers of events get.
LEARNT_AT_ONCE = 100
#: As how many of them counts one of which brokers disagree: each of 500 may have reported it.
_DISPUTED = 20
#: Partitions of which one step looks up which nodes lead them, and as how many of these a topic
#: counts by itself.
_LOOKED_AT_AT_ONCE = 20_000
_TOPIC_COUNTS = 25
#: Partitions of a forgotten topic of which one step drops what was noted: it may have 100,000.
_DROPPED_AT_ONCE = 1000
#: Partitions of which one step forgets what one broker has reported.
_WITHDRAWN_AT_ONCE = 200


class LeaderView:
    """What is known of one cluster.

    ``clock``: seconds that never go back, by which moves are noted. ``topics``: which topics there
    are, by name and id. ``changes``: of which of them there was news. ``hidden``: those that
    brokers hide from routes of the proxy. ``disagreements``: the partitions about which brokers
    disagree. ``unknown_ids``: those that clients use and that have no name here.
    ``metadata_brokers``: which of them name the leaders to which partitions moved. ``misled``:
    nodes, and the addresses of theirs at which others answer; :mod:`leader_hints.core.destination`
    alone writes it. ``in_sync_changes``: how often replicas in sync were others than those known
    before; ``in_sync_disputed``: names of topics with partitions of which the leader is to be asked
    again, see :class:`leader_hints.core.replicas.in_sync_replicas.InSyncReplicas`.

    Large because it takes all that brokers report of leaders, and answers all that is asked of it.
    """

    def __init__(self, cluster_id: str, clock: Clock = stopped) -> None:
        self.cluster_id = cluster_id
        self.unknown_ids = UnknownIds(clock)
        self.changes = TopicChanges()
        self._clock = clock
        self._moves = LeaderMoves(clock)
        self.metadata_brokers = self._moves.brokers
        self._doubts = Doubts(clock, RECENT_MOVES)
        self.disagreements = Disagreements()
        #: What may have been noted of topics that were forgotten, and is still to be dropped.
        self._left: list[Iterator[Place]] = []
        self.topics = KnownTopics(cluster_id, self.changes, self._forget, clock)
        self.hidden = HiddenTopics(self.topics, self.changes)
        self.misled: frozenset[tuple[int, Endpoint]] = frozenset()
        self.in_sync_changes = 0
        self.in_sync_disputed: dict[str, None] = {}
        self._reports = LeaderReports(
            cluster_id,
            self.topics,
            self.changes,
            self._moves,
            self._doubts,
            self.disagreements,
            clock,
        )

    def __len__(self) -> int:
        """Partitions known."""
        return self.topics.partitions

    def __bool__(self) -> bool:
        """A view of which nothing is known is one all the same, and not taken for none."""
        return True

    def leader(self, topic: Topic, partition: int) -> Leader | None:
        """Return a partition's leader, ``None`` where nothing is known."""
        known = self.topics.get(topic)
        if known is None or not 0 <= partition < len(known.epochs):
            return None
        epoch = known.epochs[partition]
        return None if epoch == UNKNOWN else Leader(known.leaders[partition], epoch)

    @property
    def now(self) -> float:
        """The time by the view's clock."""
        return self._clock()

    def in_sync(self, topic: Topic, partition: int) -> tuple[int, ...] | None:
        """Return the replicas in sync under the present leader, ``None`` if they are not known."""
        known = self.topics.get(topic)
        if known is None or known.in_sync is None or not 0 <= partition < len(known.epochs):
            return None
        return known.in_sync.at(partition, known.epochs[partition])

    def _report_in_sync(
        self, topic: TopicLeaders, led: Led, nodes: bytes, node: int | None
    ) -> None:
        self.in_sync_changes += topic.report_in_sync(led, nodes, node)
        if topic.in_sync is not None and topic.in_sync.disputed:
            self.in_sync_disputed[topic.name] = None
        elif self.in_sync_disputed:
            self.in_sync_disputed.pop(topic.name, None)

    def before(self, topic: Topic, partition: int) -> Leader | None:
        """Return the leader before the present one, where that move was seen lately."""
        move = self._moves.get((self.topics.key(topic), partition))
        return move.before if move else None

    def moved_at(self, topic: Topic, partition: int) -> float | None:
        """Return when the view learnt of the present leader, where that was lately."""
        move = self._moves.get((self.topics.key(topic), partition))
        return move.at if move else None

    def is_confirmed(self, topic: Topic, partition: int) -> bool | None:
        """Whether the leader confirms its leadership; ``None``: it has not answered.

        True as well where it has led for long.
        """
        move = self._moves.get((self.topics.key(topic), partition))
        return True if move is None else move.confirmed

    def serves(self, topic: Topic, partition: int) -> bool:
        """Whether the present leader has answered as such, or has led for long."""
        move = self._moves.get((self.topics.key(topic), partition))
        return move is None or move.serves

    def in_doubt(self, topic: Topic, partition: int) -> bool:
        """Whether brokers contradict what the view has, and that is not settled."""
        return bool(self._doubts) and (self.topics.key(topic), partition) in self._doubts

    def claim(self, topic: Topic, partition: int) -> Leader | None:
        """Return the leader that was reported last in place of the known one, where in doubt."""
        return self._doubts.claim((self.topics.key(topic), partition))

    def one_led_by_each(self, found: dict[Partition, Leader], source: Source) -> Iterator[None]:
        """Add one partition with its leader to ``found`` for each node that leads any, in steps.

        ``source``: the broker that is to be asked. Partitions in doubt are left out: another node
        than the known one may lead them. So are those of which that broker itself has reported
        another leader, and topics of which it has reported another id, or none: it may lead another
        topic of the name, at the same epoch. And so are hidden topics, known from clients'
        Metadata: brokers answer nothing about them.
        """
        seen, left = {UNKNOWN}, _LOOKED_AT_AT_ONCE
        for topic in [*self.topics]:
            if left <= 0:
                left = _LOOKED_AT_AT_ONCE
                yield
            left -= _TOPIC_COUNTS + len(topic.leaders)
            if self.hidden.hides(source.route, topic.name) or not self.topics.has(topic):
                continue
            # Mostly neither: there may be 100,000 topics.
            if (topic.elsewhere or topic.former) and topic.is_another_to(source):
                continue
            # Partitions are not looked at one by one: there may be 100,000.
            new = set(topic.leaders) - seen
            first = topic.first_led(self._doubts) if new else {}
            for node in new & first.keys():
                partition = first[node]
                leader = Leader(node, topic.epochs[partition])
                if not self.disagreements.contradicts((topic.key, partition), source, leader):
                    seen.add(node)
                    found[topic.name, partition] = leader

    def leaders(self) -> Iterator[tuple[str, int, Leader]]:
        """Iterate over name, partition and leader of all partitions that anything is known of."""
        for topic in self.topics:
            for partition, leader in enumerate(map(Leader, topic.leaders, topic.epochs)):
                if leader.epoch != UNKNOWN:
                    yield topic.name, partition, leader

    def partitions(self, name: str) -> int:
        """Return how many partitions of a topic are known."""
        topic = self.topics.get(name)
        return len(topic.leaders) if topic else 0

    def learn(
        self, answer: TopicMetadata, source: int | None, *, route: str = "", poll: bool = False
    ) -> list[LeaderChange]:
        """Take what a broker reports of one topic; return the moves that it reveals.

        ``source``: the node that answered, where it is known; ``route``: by whose broker it was
        answered otherwise, so that two brokers are never taken for one. ``poll``: the answer
        belongs to a poll of everything, of which one broker makes one at a time.
        """
        return [*chain.from_iterable(self.learning(answer, source, route=route, poll=poll))]

    def learning(
        self, answer: TopicMetadata, source: int | None, *, route: str = "", poll: bool = False
    ) -> Iterator[list[LeaderChange]]:
        """As :meth:`learn`, in steps: yield moves when so much is learnt that others may wait."""
        broker = Source(source, route)
        for _ in self.dropping():
            pass
        topic = self.topics.reported(answer, broker, poll)
        if topic is None:
            return
        topic.absent = NO_ROUTES
        most = max(len(answer.partitions), len(topic.leaders)) + _LARGEST_GAP
        moves: list[LeaderChange] = []
        lower: LowerEpochs | None = None
        votes: dict[Sides, Votes] = {}
        contradicted = PartitionBits()
        stay = self.topics.stay(broker.poller)
        before = topic.contradicted_before(broker, stay) if poll else None
        settles, due = self.metadata_brokers.awaited > 0, LEARNT_AT_ONCE
        for number, led in enumerate(answer.partitions, 1):
            due -= 1
            if due <= 0:
                yield moves
                due = LEARNT_AT_ONCE
                if not self.topics.has(topic):
                    # Another answer reported that the topic is deleted, or is another.
                    return
                moves = []
            if not 0 <= led.partition < most:
                continue
            if led.partition >= len(topic.epochs):
                self.topics.partitions += topic.grow(led.partition + 1)
            known = topic.epochs[led.partition]
            if led.epoch > known and self._reports.is_news(topic, led, broker):
                moves += self._reports.newer(topic, led, broker)
            # A leader without an epoch cannot be ordered, nor paired with another's.
            elif led.epoch > UNKNOWN and not self._reports.agrees(topic, led, broker):
                if led.epoch == known or not topic.id:
                    contradicted.add(led.partition)
                    if topic.denied(before, led.partition):
                        moves += self._reports.persists(topic, led, broker, votes)
                        due -= _DISPUTED
                elif poll:
                    lower = lower or LowerEpochs(self.topics, topic, broker, self._clock())
                    moves += self._reports.restored(topic, led, lower)
            if answer.in_sync and led == (led.partition, *topic.leader(led.partition)):
                nodes = answer.in_sync[number - 1]
                self._report_in_sync(topic, led, nodes, broker.node)
            if settles or self._moves.claims:
                self._reports.named(topic, led, broker.name, settles=settles)
        if poll and not topic.id and len(answer.partitions) < len(topic.leaders):
            for _ in self._reports.missing(topic, answer, broker, before, contradicted):
                yield moves
                if not self.topics.has(topic):
                    return
                moves = []
        if poll:
            topic.contradicts(broker, contradicted, stay)
        yield moves

    def leader_confirms(self, name: str, partition: int, leader: Leader) -> list[LeaderChange]:
        """Take a node's answer that it leads at an epoch; return the move, if it is new.

        It was asked by name, so it may lead a former topic of that name: then only Metadata brings
        a higher epoch. It may also be the view that has the former topic's id. So until that node
        agrees, its answers prove no hint.
        """
        topic = self.topics.get(name)
        if topic is None or not 0 <= partition < len(topic.epochs):
            return []
        if leader.epoch > topic.epochs[partition] and self._may_lead_former(topic, leader.node):
            place, known = (topic.key, partition), topic.leader(partition)
            self.disagreements.begin(place)
            self.disagreements.report(place, Source(leader.node), leader, known)
            return []
        return self._reports.leads(topic, partition, leader)

    def leader_denies(self, name: str, partition: int, leader: Leader) -> list[LeaderChange]:
        """Take a node's answer that it does not lead a partition at an epoch, or not yet.

        Return the move where that settles which node leads instead.
        """
        topic = self.topics.get(name)
        if topic is None or self.leader(name, partition) != leader:
            return []
        return self._reports.does_not_lead(topic, partition)

    def leader_is_unaware(self, name: str, partition: int, leader: Leader) -> None:
        """Take a node's answer that it does not know the topic: it has just been started, say."""
        topic = self.topics.get(name)
        if topic is not None and self.leader(name, partition) == leader:
            self._reports.is_not_ready(topic, partition)

    def withdraw(self, nodes: Set[int]) -> None:
        """Take it that answers that counted as these nodes' were other brokers'.

        What nobody else has reported is not theirs: it is not known which broker leads there. Else
        a broker would be asked whether it leads what it has said itself, and so be proved to be
        the node. Nor does what they have reported count against what others report.
        """
        if not nodes:
            return
        self.disagreements.forget(nodes)
        for key, partition in [*self._moves.claims]:
            topic = self.topics.get(key)
            # A former topic of the name may not have been dropped yet.
            if topic is None or topic.key != key:
                continue
            if topic.leaders[partition] in nodes:
                topic.leaders[partition] = UNKNOWN
                self.changes.add(topic.aliases)

    def leave(self, route: str) -> None:
        """Take it that a route leads to another cluster now."""
        self.hidden.leave(route)
        self.disagreements.forget(self.topics.leave(route))

    def forgetting(self) -> Iterator[None]:
        """Forget all topics, in steps: nobody needs the view any more."""
        return chain(self.topics.forgetting(), self.dropping())

    def dropping(self) -> Iterator[None]:
        """Drop what is left of the moves and doubts of topics that were forgotten, in steps.

        To be done before :meth:`learning`: else its first step drops it all.
        """
        while self._left:
            places = [*islice(self._left[-1], _DROPPED_AT_ONCE)]
            if len(places) < _DROPPED_AT_ONCE:
                self._left.pop()
            for place in places:
                self._moves.drop(place)
                self._doubts.dropped(place)
                self.disagreements.drop(place)
            yield

    def withdrawing(self, name: str, source: Source) -> Iterator[None]:
        """Forget what a broker has reported of a topic that it hides now, in steps.

        Its polls report it no more, so what it last had would count against all others for ever.
        """
        topic = self.topics.get(name)
        if topic is None or not self.disagreements:
            return
        for partition in range(len(topic.leaders)):
            self.disagreements.withdraw((topic.key, partition), source)
            if partition % _WITHDRAWN_AT_ONCE == _WITHDRAWN_AT_ONCE - 1:
                yield

    def served(self, topic: Topic, partition: int, node: int) -> None:
        """Take note that a node has answered a Produce request without an error."""
        leader = self.leader(topic, partition)
        if leader is not None and leader.node == node:
            self._moves.served((self.topics.key(topic), partition))

    def may_not_know(self, name: str, node: int) -> bool:
        """Whether a node may not know a topic yet, and mean a former one of the name."""
        topic = self.topics.get(name)
        return topic is not None and not topic.was_reported_by(node)

    def _may_lead_former(self, topic: TopicLeaders, node: int) -> bool:
        """Whether a node may lead a former topic of the name, at an epoch that never ends here.

        Just after a topic with an id was recreated a broker that lags does, and one that is cut off
        for as long as that lasts. It may have been recreated just before the view began. So a node
        must have reported the id.
        """
        return bool(topic.id) and not topic.is_known_to(node, self._clock())

    def _forget(self, topic: TopicLeaders) -> None:
        """Drop the moves and doubts of a topic, of many partitions those of the first ones."""
        self.in_sync_disputed.pop(topic.name, None)
        self.metadata_brokers.forget(topic.key)
        noted = len(self._moves) + len(self._doubts) + len(self.disagreements)
        if noted < min(len(topic.leaders), _DROPPED_AT_ONCE):
            known = chain(self._moves, self._doubts, self.disagreements)
            places = iter([place for place in known if place[0] == topic.key])
        else:
            places = ((topic.key, partition) for partition in range(len(topic.leaders)))
        self._left.append(places)
        # The rest goes before a topic of that name or id is known again.
        next(self.dropping())
