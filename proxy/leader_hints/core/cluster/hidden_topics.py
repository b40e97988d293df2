"""Topics that brokers hide from the proxy's own principals (ACLs)."""

from collections.abc import Callable, Collection, Iterator, Set
from itertools import islice

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.metadata import ANY_TOPIC, TopicMetadata
from leader_hints.core.cluster.known_topics import KnownTopics
from leader_hints.core.cluster.topic_changes import TopicChanges

#: Names that are remembered.
_MOST = 10_000
#: Of these, how many are looked at for one that makes room.
_LOOKED_AT = 10
_NO_ROUTES: frozenset[str] = frozenset()


class HiddenTopics:
    """The hidden topics of one cluster, by the routes whose brokers were asked.

    Each route may have credentials of its own, and what is hidden from one principal is not from
    another. Brokers behind no route are asked with the credentials of a route, so what they answer
    is not noted.

    ``changed``: called with a route when its broker hides some topics, or none, or that is known,
    and was not before.
    """

    def __init__(self, topics: KnownTopics, changes: TopicChanges) -> None:
        self._topics = topics
        self._changes = changes
        #: By name: from which routes it is hidden.
        self._names: dict[str, frozenset[str]] = {}
        #: By route: how many of these are hidden from it, where any is.
        self._counts: dict[str, int] = {}
        #: Routes whose brokers were asked whether they hide topics.
        self._asked: set[str] = set()
        self.changed: Callable[[str], None] | None = None

    def __bool__(self) -> bool:
        """Whether brokers hide any topic from any route."""
        return bool(self._counts)

    def __contains__(self, topic: Topic) -> bool:
        """Whether a topic, given by name or id, is hidden from all routes that can be asked.

        What one of them sees, all get hints of: clients ask for their topics themselves. An unknown
        id is likely a hidden topic's where all brokers hide some.
        """
        name = self._topics.name(topic)
        if name is None:
            return bool(self._counts) and not self.seeing_all
        if name not in self._names:
            return False
        known = self._topics.get(name)
        return known is None or known.seen.isdisjoint(self._topics.answering)

    @property
    def seeing_all(self) -> Set[str]:
        """The routes that can be asked, and whose brokers hide no topic that is known."""
        return self._topics.answering & self._asked - self._counts.keys()

    @property
    def routes(self) -> Collection[str]:
        """The routes of which it is known whether their brokers hide topics."""
        return self._asked | self._counts.keys()

    def names(self, route: str) -> Iterator[str]:
        """Iterate over the topics that are known to be hidden from a route."""
        return (name for name, routes in self._names.items() if route in routes)

    def hides(self, route: str, name: str) -> bool:
        """Whether a topic is hidden from a route."""
        return route in self._names.get(name, _NO_ROUTES)

    def some(self, route: str) -> bool:
        """Whether any topic is hidden from a route."""
        return route in self._counts

    def asked(self, route: str) -> bool:
        """Whether a route's broker was asked whether it hides topics."""
        return route in self._asked

    def none(self, route: str) -> bool:
        """Whether a route's broker was asked that, and hides none that is known."""
        return route in self._asked and route not in self._counts

    def take(self, answer: TopicMetadata, route: str) -> None:
        """Note whether an answer to the proxy's own question to a route's broker hides its topic.

        After :meth:`leader_hints.core.cluster.leader_view.LeaderView.learning` has taken it.
        Answers to clients show what those may see.
        """
        self._topics.answers(route)
        name = answer.name
        if name == ANY_TOPIC and route not in self._asked:
            self._asked.add(route)
            self._tell(route)
        hidden = answer.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if hidden:
            self._topics.unseen(name, route)
        elif answer.error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._topics.seen(name, route)
        if hidden == self.hides(route, name):
            return
        if hidden:
            spent = None
            if name not in self._names and len(self._names) >= _MOST:
                spent = self._oldest_unknown()
                if spent is None:
                    return
            routes = self._names.get(name, _NO_ROUTES)
            self._names[name] = self._topics.joined(routes, route)
            self._count(route, 1)
            for of in self._names.pop(spent) if spent is not None else ():
                self._count(of, -1)
        else:
            self._show(name, route)
            self._count(route, -1)
        self._changes.add(self._topics.aliases(name))

    def lost(self, route: str) -> None:
        """Take it that a route's broker cannot be asked any more: nobody sees what it alone did."""
        self._topics.lost(route)
        if self._counts:
            self._changes.add_any()

    def leave(self, route: str) -> None:
        """Forget a route that leads to another cluster now."""
        self.lost(route)
        for name in [*self.names(route)]:
            self._show(name, route)
        if route in self._asked or route in self._counts:
            self._asked.discard(route)
            self._counts.pop(route, None)
            self._tell(route)

    def told(self, route: str, *, some: bool, asked: bool) -> None:
        """Take of a route from a process that asks brokers whether they hide topics."""
        self._asked.discard(route)
        self._counts.pop(route, None)
        if asked:
            self._asked.add(route)
        if some:
            self._counts[route] = 1

    def _oldest_unknown(self) -> str | None:
        """Return a name whose topic is not known any more, of the oldest ones.

        Brokers say of a deleted topic that it is hidden, as long as its ACL stays.
        """
        for name in [*islice(self._names, _LOOKED_AT)]:
            if self._topics.get(name) is None:
                return name
            # Behind all others, so that the next ones are looked at another time.
            self._names[name] = self._names.pop(name)
        return None

    def _show(self, name: str, route: str) -> None:
        left = self._topics.without(self._names[name], route)
        if left:
            self._names[name] = left
        else:
            del self._names[name]

    def _count(self, route: str, more: int) -> None:
        before = self._counts.pop(route, 0)
        if before + more:
            self._counts[route] = before + more
        if not before or not before + more:
            self._tell(route)

    def _tell(self, route: str) -> None:
        # An unknown id may be that of a hidden topic.
        self._changes.add_any()
        if self.changed is not None:
            self.changed(route)
