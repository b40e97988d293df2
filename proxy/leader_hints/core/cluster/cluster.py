"""One Kafka cluster, as far as the proxy knows it."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.list_offsets import Partition
from leader_hints.apis.metadata import NO_BROKERS, Brokers
from leader_hints.core.clock import Clock
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_candidates import LeaderCandidates
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.leadership_answer import LeadershipAnswer, leadership_answer
from leader_hints.core.cluster.synthetic_id_agreement import SyntheticIdAgreement
from leader_hints.core.events import LeaderChange, TopicsHidden
from leader_hints.core.route import Route


class Learnt(NamedTuple):
    """What a broker's answers about its leadership bring.

    ``moves``: that the view did not know. ``confirmed``: the topics of partitions of which the
    broker is the first to say that it leads them since they moved there. ``doubted``: the topics of
    those at whose higher epochs it may lead a former topic. ``of_the_view``: the errors of
    partitions that were asked about at the view's own epoch. ``epoch_over``: an epoch is over, and
    that is news.
    """

    moves: list[LeaderChange]
    confirmed: dict[str, None]
    doubted: dict[str, None]
    of_the_view: dict[Partition, int]
    epoch_over: bool


class Cluster:
    """What is known of one cluster, and what was reported of it.

    ``view``: leaders, epochs and topics. ``candidates``: who may lead, of what no broker reports
    yet. ``agreement``: whether its brokers give synthetic topic ids. ``polled_at``: when a poll
    last brought something into the view, by the view's clock, ``None`` before the first.
    ``listed``: the brokers in the last answer of one that is behind no route.
    """

    def __init__(self, view: LeaderView) -> None:
        self.view = view
        self.candidates = LeaderCandidates(view)
        self.agreement = SyntheticIdAgreement(view.cluster_id)
        self.polled_at: float | None = None
        self.listed = NO_BROKERS
        self._shared = NO_BROKERS
        #: What decided who is to be polled, when that was last looked at; and who that was.
        self._placement: object = None
        self._others: frozenset[int] = frozenset()
        self._hidden_reported = False

    def share(self, brokers: Brokers) -> Brokers:
        """Return what a route's broker has listed, with the endpoints of a former list if it says
        the same.

        A thousand brokers list each other, and each of them may be a route's.
        """
        shared = self._shared
        if brokers.endpoints is shared.endpoints:
            return brokers
        if brokers.endpoints != shared.endpoints:
            self._shared = brokers
            return brokers
        # Brokers may list each other in another order.
        return shared if brokers.raw == shared.raw else brokers._replace(endpoints=shared.endpoints)

    def hidden_topics(self, broker: str, route: str) -> list[TopicsHidden]:
        """Return the event that ``broker``, a route's, hides topics: once, until none is hidden.

        Each broker hides them, and each topic of each client would report it again.
        """
        reported, hidden = self._hidden_reported, self.view.hidden
        self._hidden_reported = bool(hidden) and (reported or hidden.some(route))
        if reported or not self._hidden_reported:
            return []
        visible = len(self.view.topics.names)
        return [TopicsHidden(cluster=self.view.cluster_id, broker=broker, visible=visible)]

    def learn_leadership(
        self, node: int | None, epochs: Mapping[Partition, int], errors: Mapping[Partition, int]
    ) -> Learnt:
        """Take a broker's answers whether it leads partitions at ``epochs``, as error codes.

        ``node``: the broker's, where it is proved. Without it the answers are no node's.
        """
        view = self.view
        # In doubt it was asked about another epoch than the view's.
        of_the_view = {place: e for place, e in errors.items() if not view.in_doubt(*place)}
        learnt = Learnt([], {}, {}, of_the_view, epoch_over=False)
        if node is None:
            return learnt
        epoch_over = False
        for (name, partition), epoch in epochs.items():
            answer = leadership_answer(errors.get((name, partition)))
            leader = Leader(node, epoch)
            if answer is LeadershipAnswer.LEADS:
                before = view.leader(name, partition), view.is_confirmed(name, partition)
                learnt.moves.extend(view.leader_confirms(name, partition, leader))
                after = view.leader(name, partition), view.is_confirmed(name, partition)
                if before != after == (leader, True):
                    learnt.confirmed[name] = None
                elif (known := after[0]) is not None and known.epoch < epoch:
                    learnt.doubted[name] = None
            elif answer is not None and answer.denies:
                learnt.moves.extend(view.leader_denies(name, partition, leader))
            elif answer is LeadershipAnswer.UNAWARE:
                view.leader_is_unaware(name, partition, leader)
            if answer is LeadershipAnswer.NEVER_LEADS:
                self.candidates.denied(node, (name, partition), epoch)
            if answer is LeadershipAnswer.EPOCH_OVER and not view.may_not_know(name, node):
                epoch_over |= self.candidates.fenced((name, partition), epoch)
        return learnt._replace(epoch_over=epoch_over)

    def others(self, listener: Route, routes: Sequence[Route]) -> dict[int, Endpoint] | None:
        """Return the brokers that are behind none of ``routes``, and where ``listener`` has them.

        They are to be polled, and what others have reported that were before does not count.
        Not those that may be behind one: their addresses lead through this very process. Nor those
        at whose address another broker answers: its answers are not that node's. ``None``: nothing
        has changed since the last call. Each Metadata response asks, and there may be a thousand
        brokers.
        """
        brokers = [route.broker for route in routes]
        placed = [(b.node, b.guessed, b.others, b.former_others) for b in brokers]
        names = [route.name for route in routes]
        placement = listener.name, listener.broker.endpoints, self.view.misled, names, placed
        if self._placement == placement:
            return None
        self._placement = placement
        # All brokers for each route at once, not each route for each broker: there may be hundreds.
        elsewhere: Set[int] = {*listener.broker.endpoints}
        for broker in brokers:
            elsewhere = broker.elsewhere(elsewhere)
        others = {
            node: endpoint
            for node, endpoint in listener.broker.endpoints.items()
            if node in elsewhere and (node, endpoint) not in self.view.misled
        }
        before, self._others = self._others, frozenset(others)
        # Nobody hears it if they report something else now, so what they have reported would count
        # against others for ever.
        if unheard := before - self._others:
            self.view.disagreements.forget(unheard)
            self.view.topics.forget_away(unheard)
        return others


class Clusters:
    """The clusters of all routes, by id. ``clock``: see :class:`LeaderView`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clusters: dict[str, Cluster] = {}

    def __iter__(self) -> Iterator[Cluster]:
        return iter([*self._clusters.values()])

    def get(self, cluster_id: str | None) -> Cluster | None:
        """Return a cluster, ``None`` where nothing is known of it."""
        return None if cluster_id is None else self._clusters.get(cluster_id)

    def met(self, cluster_id: str) -> Cluster:
        """Return the cluster that a broker says it is of; a new one is empty."""
        known = self._clusters.get(cluster_id)
        if known is None:
            known = self._clusters[cluster_id] = Cluster(LeaderView(cluster_id, self._clock))
        return known

    def keep(self, ids: Collection[str]) -> list[Cluster]:
        """Forget all other clusters; return them."""
        return [self._clusters.pop(gone) for gone in self._clusters.keys() - ids]
