"""Topics that brokers hide from the proxy's own principal (ACLs)."""

from collections.abc import Callable, Collection

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.metadata import ANY_TOPIC, TopicMetadata
from leader_hints.core.cluster.known_topics import KnownTopics
from leader_hints.core.cluster.topic_changes import TopicChanges

#: Names that are remembered.
_MOST = 10_000


class HiddenTopics:
    """The hidden topics of one cluster.

    ``changed``: called when there are some, or none, or that is known, and was not before.
    """

    def __init__(self, topics: KnownTopics, changes: TopicChanges) -> None:
        self._topics = topics
        self._changes = changes
        self._names: dict[str, None] = {}
        self._asked = False
        self.changed: Callable[[], None] | None = None

    def __bool__(self) -> bool:
        """Whether brokers hide any topic."""
        return bool(self._names)

    def __contains__(self, topic: Topic) -> bool:
        """Whether brokers hide a topic, given by name or id.

        An unknown id is likely a hidden topic's where brokers hide anything at all.
        """
        name = self._topics.name(topic)
        return bool(self._names) if name is None else name in self._names

    @property
    def names(self) -> Collection[str]:
        """Names of the topics that are known to be hidden."""
        return self._names

    @property
    def none(self) -> bool:
        """Whether brokers were asked whether they hide topics, and hide none that is known."""
        return self._asked and not self._names

    def take(self, answer: TopicMetadata) -> None:
        """Note whether an answer to the proxy's own question hides its topic.

        Answers to clients show what those may see.
        """
        if answer.name == ANY_TOPIC and not self._asked:
            self._asked = True
            self._tell()
        hidden = answer.error == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if hidden == (answer.name in self._names):
            return
        before = bool(self._names)
        if not hidden:
            del self._names[answer.name]
        elif len(self._names) < _MOST:
            self._names[answer.name] = None
        self._changes.add(self._topics.aliases(answer.name))
        if bool(self._names) != before:
            # An unknown id may be that of a hidden topic.
            self._changes.add_any()
            self._tell()

    @property
    def asked(self) -> bool:
        """Whether brokers were asked whether they hide topics."""
        return self._asked

    def told(self, *, some: bool, asked: bool) -> None:
        """Take from a process that asks brokers whether they hide topics."""
        self._asked = asked
        self._names = {ANY_TOPIC: None} if some else {}

    def _tell(self) -> None:
        if self.changed is not None:
            self.changed()
