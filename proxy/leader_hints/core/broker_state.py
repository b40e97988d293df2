"""What is known of the broker behind a route.

Tested in ``tests/core/test_route.py``.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.versions.plan import Plan, plan_for

#: What says which broker of which cluster it is.
_PLACE = frozenset({"view", "node"})
#: What is sent to worker processes besides.
_TOLD = _PLACE | {"plan", "guessed", "serves_anybody", "ids_everywhere"}


@dataclass(slots=True)
class BrokerState:
    """The broker's versions, its cluster, and which node it is.

    The refresher alone writes it, by its own questions to the broker; links only read it, but for
    ``former_plan``, and the ``synthetic_plan`` that goes with it.

    ``plan``: by the broker's newest answer to ApiVersions, ``None`` before the first, and after its
    connection was lost; ``former_plan``: the one before that, or by what a link's broker has
    answered while there is no ``plan``. ``synthetic_plan``: the newer of both with synthetic topic
    ids, where they are to be synthesized. ``endpoints``: the cluster's brokers on the route's own
    listener, by node id; hints take addresses from here only, so that no other listener's leak.
    ``left``: where nodes were that are not among them any more.
    ``node``: the broker's node id, ``guessed``: it is the only one left, and not proved;
    ``others``: node ids proved to be other brokers', ``forgotten``: the view's count of topics that
    were forgotten, when the last of them were; ``former_others``: those on the connection
    before, which go on to be polled until it is asked about them; ``refused``: since when the
    broker answers as none of these would; ``contradicted``: another node for which it answers now,
    and since when; ``proved_at``: where the node is advertised that it is proved to be; ``peer``:
    the IP address of the proxy's own connection, ``proved_peer``: what it was at the proof;
    ``disputed``: nodes of which no proof counts, and until when; see
    :mod:`leader_hints.core.cluster.broker_identity`.
    ``serves_anybody``: the broker has answered the proxy's own questions without authenticating it,
    so it does so for every client. ``reachable``: some broker of the cluster can be asked for a
    fresher view. ``ids_everywhere``: every broker of the cluster is behind a proxy that synthesizes
    topic ids; see :mod:`leader_hints.core.cluster.synthetic_id_agreement`.
    ``maxima``: by API key the newest versions of its newest answer. ``changed``: called when links
    are served differently from now on, in all processes that have links of the route, with the name
    of what has another value. ``met``:
    called with what a link's broker has answered, if that is news to the others of them.
    ``placements``: how often the ``view`` or the ``node`` of any broker became another one, so that
    what is looked up by these can be kept until then.

    Large because links read in one place all that is known of their broker.
    """

    placements: ClassVar[int] = 0

    changed: Callable[[str], None] | None = None
    met: Callable[[Mapping[int, int]], None] | None = None
    maxima: Mapping[int, int] = field(default_factory=dict)
    plan: Plan | None = None
    former_plan: Plan | None = None
    synthetic_plan: Plan | None = None
    view: LeaderView | None = None
    endpoints: Mapping[int, Endpoint] = field(default_factory=dict)
    left: Mapping[int, Endpoint] = field(default_factory=dict)
    node: int | None = None
    guessed: bool = False
    others: frozenset[int] = frozenset()
    forgotten: int = 0
    former_others: frozenset[int] = frozenset()
    refused: Mapping[int, float] = field(default_factory=dict)
    contradicted: tuple[int, float] | None = None
    proved_at: tuple[str, int] | None = None
    peer: str = ""
    proved_peer: str = ""
    disputed: tuple[frozenset[int], float] | None = None
    serves_anybody: bool = False
    reachable: bool = False
    ids_everywhere: bool = False

    if not TYPE_CHECKING:
        # A checker would take any attribute for one of a class that has this.

        def __setattr__(self, name: str, value: object) -> None:
            """Count each change of place, so that nothing that writes one can forget it."""
            changes = name in _TOLD and getattr(self, name, None) != value
            if changes and name in _PLACE:
                BrokerState.placements += 1
            object.__setattr__(self, name, value)
            if changes and self.changed is not None:
                self.changed(name)

    def lose(self) -> None:
        """Note that the connection is lost: the next broker here may have another version."""
        if self.plan is not None:
            self.former_plan = self.plan
        self.plan = None
        self.reachable = False

    def meet(self, maxima: Mapping[int, int]) -> None:
        """Take it that a link's broker has answered so, while there is no ``plan``.

        The client's other links may keep to what that one is offered.
        """
        if self.former_plan is None or maxima != self.maxima:
            self.maxima = maxima
            self.former_plan = plan_for(maxima)
            if self.synthetic_plan is not None:
                self.synthetic_plan = plan_for(maxima, synthetic=True)
            if self.met is not None:
                self.met(maxima)

    @property
    def kraft(self) -> bool:
        """Whether it is a broker of a KRaft cluster, as far as its last answer tells."""
        plan = self.plan or self.former_plan
        return plan is not None and plan.kraft

    @property
    def known(self) -> LeaderView:
        """The view; an empty one while nothing is known."""
        return self.view if self.view is not None else LeaderView("")

    @property
    def proved_node(self) -> int | None:
        """The broker's node id, ``None`` if it is not proved."""
        return None if self.guessed else self.node

    def is_self(self, node: int) -> bool | None:
        """Return whether ``node`` is this broker, ``None`` if that is not known."""
        if node == self.node:
            return True
        return False if node in self.others or self.proved_node is not None else None

    def elsewhere(self, nodes: Set[int]) -> Set[int]:
        """Return those of ``nodes`` that are proved to be other brokers, or were until now."""
        others = self.others | self.former_others
        known = nodes if self.proved_node is not None else nodes & others
        return known - {self.node} if self.node in known else known

    def topic_name(self, topic: Topic) -> str:
        """Return the name of a topic given by name or id; of an unknown id its hex digits."""
        name = self.view.topics.name(topic) if self.view is not None else None
        if name is None:
            name = topic.hex() if isinstance(topic, bytes) else topic
        return name
