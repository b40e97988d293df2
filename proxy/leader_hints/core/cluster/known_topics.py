"""Which topic a name or an id means, and which topics were deleted or recreated.

A topic is known by its id where there is one, since a topic that is recreated starts at epoch 0
again; a former id comes back only if two polls in a row of one broker report it, and most brokers
that are polled do. Without ids (clusters before 2.8), a topic is forgotten when it is reported
absent.

Clients older than Java 2.8 ask for Metadata that has no ids (up to v9), in front of any broker. A
topic that only such an answer has named is known by its name, and does not count as one without an
id where others have ids.

A synthetic id does not distinguish a topic from another of its name: it leads to the name. A topic
that is reported with one counts as reported without an id.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Set
from itertools import count
from typing import Any, NamedTuple, Protocol, TypeVar

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.metadata import UNTOLD_ID, ZERO_ID, TopicMetadata
from leader_hints.core.clock import Clock
from leader_hints.core.cluster.doubts import Reporter, Source
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.cluster.topic_changes import TopicChanges
from leader_hints.core.cluster.topic_leaders import TopicLeaders

#: Seconds for which a broker that cannot be asked may be back at any moment, with what it reported.
#: Brokers close idle connections, and a network that fails takes all of them.
_AWAY = 30.0
#: Seconds of absence after which what a broker reported before it is no first poll of two: in an
#: outage of all brokers others may be away for longer.
_OUTAGE = 5.0
#: What a broker reports that knows no topic ids.
_NO_ID = b""
#: Former ids remembered for a name, so that a lagging broker cannot bring one back.
_RETIRED = 8
#: Synthetic ids whose names are remembered: more than there are topics in a large cluster.
_SYNTHETIC_IDS = 100_000
#: Names of forgotten topics with ids that are remembered.
_MOST_FORGOTTEN = 10_000
#: Sets of routes, or of nodes, that topics share.
_MOST_GROUPS = 1000
#: Topics of which one step looks up whether a poll has found them.
_LOOKED_UP_AT_ONCE = 1000
#: Where each cluster's count of topics that were forgotten begins, far from all others'.
_COUNTS_FROM = count(0, 1 << 32)
_Member = TypeVar("_Member", str, int, Reporter)


class _Forgotten(NamedTuple):
    """What is remembered of a topic that was forgotten: ``ids``, its own behind the former ones of
    its name; ``shown``: the routes whose brokers had shown one of these when they were last heard.
    """

    ids: tuple[bytes, ...]
    shown: frozenset[str]


class TopicFollower(Protocol):
    """Follows which topics there are, for links in other processes."""

    def added(self, name: str, topic_id: bytes) -> None:
        """Take a topic that is known from now on, with its :meth:`KnownTopics.told_id`."""

    def forgotten(self, name: str) -> None:
        """Take it that a topic is forgotten."""

    def recreated(self) -> None:
        """Take it that a topic without an id was found to be recreated."""

    def synthesized(self, name: str) -> None:
        """Take the name of a topic that is not known, and to which a synthetic id leads now."""


class KnownTopics:
    """The topics of one cluster.

    ``partitions``: how many of all topics are known. ``forgotten``: rises with each topic that was
    forgotten, or found to be recreated; while it stays, no id or name that was known has come to
    mean another topic, or none. No two objects have the same. ``on_forgotten`` takes each topic
    that is forgotten; ``follower`` follows all that links look up here. ``answering``: the routes
    whose brokers have been asked for topics, and can be asked;
    :mod:`leader_hints.core.cluster.hidden_topics` alone has it written.

    Large because each way in which a topic comes to be known, or is looked up, is here.
    """

    def __init__(
        self,
        cluster_id: str,
        changes: TopicChanges,
        on_forgotten: Callable[[TopicLeaders], None],
        clock: Clock,
    ) -> None:
        self.forgotten = next(_COUNTS_FROM)
        self.partitions = 0
        self.follower: TopicFollower | None = None
        self.answering: set[str] = set()
        self._cluster_id = cluster_id
        self._changes = changes
        self._on_forgotten = on_forgotten
        self._clock = clock
        self._with_ids = 0
        #: Names of topics of which no answer has told whether they have ids, as others here do.
        self._untold: set[str] = set()
        #: Topics with ids that were forgotten, by name, the last one last.
        self._former: OrderedDict[str, _Forgotten] = OrderedDict()
        self._topics: dict[Topic, TopicLeaders] = {}
        self._keys: dict[str, Topic] = {}
        self._synthetic_ids: OrderedDict[bytes, str] = OrderedDict()
        #: The routes whose brokers were asked for topics.
        self._routes: set[str] = set()
        #: By route, the broker to which it led when that was heard last.
        self._brokers: dict[Reporter, Reporter] = {}
        #: Since when brokers cannot be asked, by route or node; and how often they were back.
        self._away: dict[Reporter, float] = {}
        self._stays: dict[Reporter, int] = {}
        #: Sets of routes and of nodes, each once; and each with one more, or less.
        self._groups: dict[frozenset[Any], frozenset[Any]] = {}
        self._others: dict[tuple[frozenset[Any], Reporter], frozenset[Any]] = {}

    def __iter__(self) -> Iterator[TopicLeaders]:
        return iter(self._topics.values())

    @property
    def names(self) -> Collection[str]:
        """Names of the topics known."""
        return self._keys.keys()

    @property
    def have_ids(self) -> bool:
        """Whether the cluster has topic ids: all topics known, and at least one, have one.

        Those do not count of which that was not told.
        """
        return 0 < self._with_ids == len(self._topics) - len(self._untold)

    def get(self, topic: Topic) -> TopicLeaders | None:
        """Return a topic given by name or id, ``None`` where it is not known."""
        if isinstance(topic, str):
            return self._topics.get(self._keys.get(topic, topic))
        return self._topics.get(topic) or self._topics.get(self.key(topic))

    def key(self, topic: Topic) -> Topic:
        """Return the key of a topic given by name or id: its id where there is one."""
        if isinstance(topic, bytes):
            if topic in self._topics or topic not in self._synthetic_ids:
                return topic
            topic = self._synthetic_ids[topic]
        return self._keys.get(topic, topic)

    def name(self, topic: Topic) -> str | None:
        """Return the name of a topic given by name or id, ``None`` for an unknown id."""
        if isinstance(topic, str):
            return topic
        known = self._topics.get(topic)
        return known.name if known else self._synthetic_ids.get(topic)

    def told_id(self, topic: TopicLeaders) -> bytes:
        """Return a topic's id; ``b""``: it has none, ``UNTOLD_ID``: that was not told."""
        return UNTOLD_ID if topic.name in self._untold else topic.id

    def aliases(self, topic: Topic) -> tuple[Topic, ...]:
        """Return all names and ids by which clients may give a topic, given by one of them."""
        known = self._topics.get(self.key(topic))
        if known is not None:
            return known.aliases
        name = self.name(topic)
        return (topic,) if name is None else (name, synthetic_id(self._cluster_id, name))

    def synthesize_id(self, name: str) -> bytes:
        """Return the synthetic id of a topic; it leads to the name from now on."""
        topic_id = synthetic_id(self._cluster_id, name)
        if self.follower is not None and topic_id not in self._synthetic_ids:
            self.follower.synthesized(name)
        self._lead(topic_id, name)
        return topic_id

    def learn_synthetic(self, name: str) -> bytes:
        """Have a synthetic id lead to a name, as it does in another process; return the id."""
        topic_id = synthetic_id(self._cluster_id, name)
        self._lead(topic_id, name)
        return topic_id

    def _lead(self, topic_id: bytes, name: str) -> None:
        self._synthetic_ids[topic_id] = name
        self._synthetic_ids.move_to_end(topic_id)
        if len(self._synthetic_ids) > _SYNTHETIC_IDS:
            self._synthetic_ids.popitem(last=False)

    @property
    def synthetic_names(self) -> Collection[str]:
        """The names to which synthetic ids lead, of topics known or not, in any order."""
        # What an OrderedDict gives itself costs ten times as much, of which there may be 100,000.
        return dict.values(self._synthetic_ids)

    def may_be_former(self, topic: Topic) -> bool:
        """Whether what is known of a topic may be of a former one of its name.

        Only a client that gives a topic's own id means the topic that is known: a name, or a
        synthetic id, may mean a recreated one whose id no broker has reported here.
        """
        return isinstance(topic, str) or topic not in self._topics

    def reported(self, answer: TopicMetadata, source: Source, poll: bool) -> TopicLeaders | None:
        """Return the topic that an answer is about, new or known; ``None`` if it teaches nothing.

        Forget a topic that the answer shows to be deleted or recreated. ``source``: the broker that
        answered; ``poll``: see :meth:`leader_hints.core.cluster.leader_view.LeaderView.learn`.
        """
        if source.route:
            self._brokers[source.route] = source.name
        if self._away:
            self._heard(source)
        known = self._topics.get(self._keys.get(answer.name, answer.name))
        if answer.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # With ids a lagging broker costs nothing: a recreated topic has another id. Without,
            # one that is cut off has the topic forgotten until another one answers. While an error
            # is held all are asked each few milliseconds, and 100 of 100 errors got a hint all the
            # same. To keep the topic would be to hint a recreated one by former epochs.
            if known is not None and not known.id:
                self._forget(known)
            return None
        if answer.error and not answer.partitions:
            return None
        none = answer.id in (ZERO_ID, UNTOLD_ID, synthetic_id(self._cluster_id, answer.name))
        topic_id = _NO_ID if none else answer.id
        other = self._topics.get(topic_id)
        if other is not None and other is not known:
            # No broker that is right gives two topics one id.
            return None
        untold = answer.id == UNTOLD_ID
        if known is None:
            told = UNTOLD_ID if untold and self._with_ids else topic_id
            return self._add_unknown(answer.name, told, topic_id, source)
        if known.id == topic_id:
            if known.name in self._untold and not untold:
                self._has_no_id(known)
            known.reported_by(source.node, self._clock(), self.joined)
            if known.elsewhere or known.former:
                known.elsewhere = self._without_all(known.elsewhere, source.names)
                known.former = self.without(known.former, source.route)
            if any(claim.topic_id == _NO_ID for claim in known.claimed.values()):
                known.claimed.clear()
            elif poll:
                known.claimed.pop(source.poller, None)
            return known
        is_former = not topic_id or topic_id in known.retired
        if is_former and not (poll and self._insists(known, topic_id, source)):
            # One that shows no ids, as others here do, may mean a topic recreated since.
            if not untold:
                for name in source.names:
                    known.elsewhere = self.joined(known.elsewhere, name)
            return None
        self._forget(known)
        # Without ids now, the same id may come back: a cluster that is upgraded again has it.
        gone = self._former.get(answer.name) if topic_id else None
        former = known.retired if gone is None else gone.ids
        retired = tuple(one for one in former if one != topic_id)
        topic = self._add(answer.name, topic_id, retired, source)
        if known.id and topic_id:
            topic.former = self.without(self._shown(known), source.route)
            topic.elsewhere = self._without_all(known.elsewhere, source.names)
        return topic

    def _add_unknown(
        self, name: str, told_id: bytes, topic_id: bytes, source: Source
    ) -> TopicLeaders:
        """Add a topic of a name that is not known, or not any more: it may have been hidden."""
        gone = self._former.get(name)
        if gone is None:
            return self._add(name, told_id, (), source)
        if topic_id in gone.ids:
            # It may also be a former one. Ids have no order, so those after it may come back.
            return self._add(name, told_id, gone.ids[: gone.ids.index(topic_id)], source)
        # So may the last one of a topic that is shown without its id.
        retired = gone.ids if topic_id else gone.ids[:-1]
        topic = self._add(name, told_id, retired, source)
        topic.former = self.without(gone.shown, source.route)
        return topic

    def _shown(self, topic: TopicLeaders) -> frozenset[str]:
        """Return which routes' brokers have shown a topic, or a former one of its name."""
        # One set for all topics, mostly: they may be recreated together.
        both = topic.former and self._shared(topic.seen | topic.former)
        return both or topic.seen

    def _insists(self, known: TopicLeaders, topic_id: bytes, source: Source) -> bool:
        stay = self.stay(source.poller)
        return known.insists(topic_id, source, self.present, self.brokers, stay)

    def brokers(self, pollers: Collection[Reporter]) -> int:
        """Return of how many brokers these polls are: several routes may lead to one.

        What brokers said does not count that cannot be asked any more.
        """
        present, gone = self.present, self._gone
        counted: list[Reporter] = [one for one in pollers if one in present]
        counted += [one for one in pollers if isinstance(one, int) and one not in gone]
        return len({self.broker(one) for one in counted})

    def outvote(self, topic: TopicLeaders, pollers: Set[Reporter]) -> bool:
        """Whether polls of more brokers say something of a topic than of those that do not."""
        return self.brokers(pollers) > self.brokers(topic.seen & self.present - pollers)

    @property
    def present(self) -> Set[str]:
        """The routes that can be asked, or may be back at any moment."""
        if not self._away:
            return self.answering
        away = {one for one in self._away if isinstance(one, str)}
        return self.answering | away - self._gone

    @property
    def silent(self) -> Set[Reporter]:
        """The brokers that cannot be asked, by no route, and were not heard for a while."""
        silent = {self.broker(one) for one in self._gone}
        heard = self._brokers.keys() - self._away.keys() if silent else ()
        return silent - {self._brokers[route] for route in heard}

    @property
    def _gone(self) -> Set[Reporter]:
        now = self._clock()
        return {one for one, since in self._away.items() if now >= since + _AWAY}

    def broker(self, one: Reporter) -> Reporter:
        """Return the broker to which a route led when that was heard last; a node is one itself."""
        return self._brokers.get(one, one)

    def stay(self, poller: Reporter) -> int:
        """Return how often a broker was back from an outage: two polls in a row are of one stay."""
        return self._stays.get(poller, 0)

    def lost(self, poller: Reporter) -> None:
        """Take it that the broker of a route, or a node behind none, cannot be asked any more."""
        self.answering.discard(poller)
        self._away.setdefault(poller, self._clock())

    def forget_away(self, nodes: Set[Reporter]) -> None:
        """Take it that nobody asks these nodes any more."""
        for node in self._away.keys() & nodes:
            del self._away[node]

    def answers(self, route: str) -> None:
        """Take it that a route's broker was asked for topics, and can be asked."""
        self.answering.add(route)
        if self._away:
            self._returns(route)

    def _heard(self, source: Source) -> None:
        """Take it that a broker has reported something."""
        if self._returns(source.poller) and source.route:
            # It may not be asked yet: a client's link may have heard it.
            self._away[source.route] = self._clock()

    def _returns(self, poller: Reporter) -> bool:
        """Take it that a broker is not away any more; return whether it was."""
        since = self._away.pop(poller, None)
        if since is not None and self._clock() >= since + _OUTAGE:
            self._stays[poller] = self._stays.get(poller, 0) + 1
        return since is not None

    def _has_no_id(self, topic: TopicLeaders) -> None:
        """Take it that a topic has no id, of which that was not told before."""
        self._untold.remove(topic.name)
        if self.follower is not None:
            self.follower.added(topic.name, topic.id)

    def has(self, topic: TopicLeaders) -> bool:
        """Whether a topic is still known, and was neither forgotten nor recreated."""
        return self._topics.get(topic.key) is topic

    def recreated(self) -> None:
        """Take note that a topic without an id was found to be recreated."""
        self.forgotten += 1
        if self.follower is not None:
            self.follower.recreated()

    def adopt(self, name: str, topic_id: bytes) -> None:
        """Take a topic, in place of one of its name, from a process that knows the brokers."""
        self.drop(name)
        self._add(name, topic_id, (), Source(None))

    def drop(self, name: str) -> None:
        """Forget a topic, if it is known, as that process does."""
        known = self._topics.get(self._keys.get(name, name))
        if known is not None:
            self._forget(known)

    def seen(self, name: str, route: str) -> None:
        """Take note that a route's broker shows a topic to the proxy, if it is known."""
        self._routes.add(route)
        topic = self.get(name)
        if topic is not None and route not in topic.seen:
            topic.seen = self.joined(topic.seen, route)

    def unseen(self, name: str, route: str) -> None:
        """Take note that a route's broker hides a topic from the proxy."""
        topic = self.get(name)
        if topic is not None and route in topic.seen:
            topic.seen = self.without(topic.seen, route)

    def joined(self, group: frozenset[_Member], one: _Member) -> frozenset[_Member]:
        """Return a set of routes, nodes, or both, with ``one``.

        All topics share it that have the same: they may be 100,000.
        """
        return group if one in group else self._other(group, one)

    def without(self, group: frozenset[_Member], one: _Member) -> frozenset[_Member]:
        """Return a set of routes, nodes, or both, without ``one``; topics share it, too."""
        return self._other(group, one) if one in group else group

    def _without_all(self, group: frozenset[Reporter], names: Set[Reporter]) -> frozenset[Reporter]:
        for name in names:
            group = self.without(group, name)
        return group

    def _other(self, group: frozenset[_Member], one: _Member) -> frozenset[_Member]:
        other = self._others.get((group, one))
        if other is None:
            if len(self._others) >= _MOST_GROUPS:
                self._others.clear()
            other = self._others[group, one] = self._shared(group ^ {one})
        return other

    def _shared(self, group: frozenset[_Member]) -> frozenset[_Member]:
        if len(self._groups) >= _MOST_GROUPS:
            self._groups.clear()
        return self._groups.setdefault(group, group)

    def leave(self, route: str) -> Set[Reporter]:
        """Take it that a route leads to another cluster now: what it alone has seen, nobody has.

        Return the names of its broker, unless another route leads there.
        """
        self._routes.discard(route)
        self._away.pop(route, None)
        gone = {route, self._brokers.pop(route, route)}
        return gone - {*self._brokers.values()}

    def forget_absent(self, present: Collection[str], route: str = "") -> Iterator[None]:
        """Forget the topics that a second poll of everything by a route lacked, two in a row.

        ``present``: the names that it has found. It says nothing of topics that it has never shown,
        if others have: ACLs may hide them from its principal.

        In steps: there may be very many topics, and thousands may have been deleted at once.
        """
        again = []
        for number, topic in enumerate([*self._topics.values()], 1):
            if topic.name not in present and self._would_show(topic, route):
                if route in topic.absent:
                    again.append(topic)
                topic.absent = self.joined(topic.absent, route)
            if number % _LOOKED_UP_AT_ONCE == 0:
                yield
        for topic in again:
            # Another broker may have reported it meanwhile.
            if route in topic.absent and self.has(topic):
                self._forget(topic)
                yield

    def _would_show(self, topic: TopicLeaders, route: str) -> bool:
        return route in topic.seen or topic.seen.isdisjoint(self._routes)

    def forgetting(self) -> Iterator[None]:
        """Forget all topics, in steps: to free 100,000 at once takes long."""
        while self._topics:
            self._forget(self._topics.popitem()[1])
            yield
        while self._synthetic_ids:
            self._synthetic_ids.popitem()
            yield

    def _add(
        self, name: str, told_id: bytes, retired: tuple[bytes, ...], source: Source
    ) -> TopicLeaders:
        now = self._clock()
        topic_id = told_id
        if told_id == UNTOLD_ID:
            self._untold.add(name)
            topic_id = _NO_ID
        recreated = name in self._former
        made_up = self.learn_synthetic(name)
        topic = TopicLeaders(name, topic_id, retired, made_up, now, recreated=recreated)
        topic.reported_by(source.node, now, self.joined)
        self._changes.add(topic.aliases)
        self._topics[topic.key] = topic
        self._with_ids += bool(topic_id)
        self._keys[name] = topic.key
        if self.follower is not None:
            self.follower.added(name, told_id)
        return topic

    def _forget(self, topic: TopicLeaders) -> None:
        self.forgotten += 1
        self._changes.add(topic.aliases)
        self.partitions -= len(topic.leaders)
        self._with_ids -= bool(topic.id)
        self._untold.discard(topic.name)
        self._topics.pop(topic.key, None)
        self._keys.pop(topic.name, None)
        if self.follower is not None:
            self.follower.forgotten(topic.name)
        if topic.id:
            ids = (*topic.retired, topic.id)[-_RETIRED:]
            self._former[topic.name] = _Forgotten(ids, self._shown(topic))
            self._former.move_to_end(topic.name)
            if len(self._former) > _MOST_FORGOTTEN:
                self._former.popitem(last=False)
        self._on_forgotten(topic)
