"""Which broker is asked what while error responses are held.

A round of questions helps all responses that are held. Metadata of their topics is asked for, since
the first broker that knows is enough. And brokers are asked by ListOffsets whether they lead the
partitions at the epoch that comes next: Metadata lags the leader's own answer.

In a storm, with thousands of failed partitions or many brokers, that is too much. Then Metadata
must find the leaders, and only those are asked whether they lead. Each question costs brokers time
just when they have leaders to change.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.list_offsets import Partition
from leader_hints.core.cluster.cluster import Cluster
from leader_hints.core.cluster.doubts import Reporter
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.refresh_share import RefreshShare
from leader_hints.core.hints.wanted_leaders import WantedLeaders
from leader_hints.core.route import Route
from leader_hints.wire.steps import Steps

#: Partitions of which one round asks the leader whether it leads, in a storm. The confirmation
#: avoids a back-off of clients; the leader itself they learn from Metadata.
_QUESTIONS = 500
#: A request costs as much as so many partitions in it.
_REQUEST = 25
#: Failed partitions for which a round is planned in one step.
_FEW = 500
#: Answers that wait to be read, from which on no more Metadata is asked for in a storm: nothing is
#: learnt sooner by that.
_ENOUGH = 2
#: The last of so many rounds asks all brokers for Metadata, the others only those behind routes: it
#: is mostly the new leader itself that confirms first. And those that do not name a leader yet
#: whose move an error waits to see settled.
_ALL_IN_EVERY = 4


class Broker(Protocol):
    """One that can be asked. ``node``: where it is proved; ``route``: that it is behind, if any.

    ``reporter``: as whose its Metadata counts.
    """

    @property
    def node(self) -> int | None: ...

    @property
    def route(self) -> Route | None: ...

    @property
    def reporter(self) -> Reporter: ...


_B = TypeVar("_B", bound=Broker)


class Request(NamedTuple, Generic[_B]):
    """What to ask one broker: Metadata of ``topics``, and whether it leads at ``epochs``."""

    broker: _B
    topics: Collection[str]
    epochs: Mapping[Partition, int]


class Round(NamedTuple, Generic[_B]):
    """One round of questions for the responses that are held of a route.

    ``unnamed``: topic ids whose names must be looked up first. ``requests``: one for each broker,
    made as they are iterated over; those that ask nothing are left to the caller.
    """

    unnamed: list[bytes]
    requests: Iterator[Request[_B]]


class _Shares(NamedTuple):
    """Of one route: of the brokers behind routes, of ``all`` brokers, and of ``questions``.

    What one refresh could not ask for begins the next one of that route, so no two share this.
    """

    own: RefreshShare
    all: RefreshShare
    questions: RefreshShare


class RefreshPlan:
    """Plans rounds of questions.

    ``slice_partitions``: of how many partitions one round asks for Metadata, all brokers together;
    above that many pairs of partition and broker it is a storm.
    """

    def __init__(self, slice_partitions: int) -> None:
        self._most = slice_partitions
        self._shares: dict[str, _Shares] = {}
        self._rounds = 0

    def reset(self) -> None:
        """Take note that nothing is held any more."""
        self._rounds = 0

    def begin(self) -> None:
        """Begin a round; :meth:`round` then plans it, route by route."""
        self._rounds += 1

    def round(
        self, wanted: WantedLeaders, cluster: Cluster, brokers: Sequence[_B], unread: int
    ) -> Steps[Round[_B]]:
        """Find, in steps, what helps the held responses of one route.

        ``brokers``: of ``cluster``, that can be asked now. ``unread``: answers of brokers that wait
        to be read.
        """
        storm = self._is_storm(wanted, len(brokers))
        # Each step looks at all that is wanted once; few need a turn of the event loop for each.
        many = len(wanted) > _FEW
        if many:
            yield
        view = cluster.view
        topics = _metadata_topics(wanted, unread, storm=storm)
        if many:
            yield
        names = [*dict.fromkeys(name for t in topics if (name := view.topics.name(t)) is not None)]
        unnamed = [t for t in topics if isinstance(t, bytes) and view.topics.name(t) is None]
        if many:
            yield
        metadata = self._shared(wanted, names, cluster, brokers, storm=storm)
        if many:
            yield
        if storm:
            return Round(unnamed, self._to_leaders(wanted, brokers, metadata))
        claims = wanted.claims
        if many:
            yield
        epochs = wanted.epochs
        if many:
            yield
        return Round(unnamed, _to_candidates(epochs, claims, cluster, brokers, metadata))

    def _shares_of(self, wanted: WantedLeaders) -> _Shares:
        shares = self._shares.get(wanted.route.name)
        if shares is None:
            of_metadata = RefreshShare(self._most), RefreshShare(self._most)
            shares = self._shares[wanted.route.name] = _Shares(
                *of_metadata, RefreshShare(_QUESTIONS)
            )
        return shares

    def _is_storm(self, wanted: WantedLeaders, brokers: int) -> bool:
        """Whether it is too much to ask each broker about each partition."""
        if len(wanted) * brokers > self._most:
            wanted.single()
        return len(wanted) * brokers > self._most

    def _shared(
        self,
        wanted: WantedLeaders,
        names: Sequence[str],
        cluster: Cluster,
        brokers: Sequence[Broker],
        *,
        storm: bool,
    ) -> dict[int, list[str]]:
        """Return the topics of which each broker is asked for Metadata, by its position."""
        shares = self._shares_of(wanted)
        asked, share = [*range(len(brokers))], shares.all
        if not storm and self._rounds % _ALL_IN_EVERY:
            asked = [
                at
                for at, broker in enumerate(brokers)
                if broker.route is not None or wanted.awaits_metadata_of(broker.reporter)
            ]
            share = shares.own
        sizes = [cluster.view.partitions(name) for name in names]
        topics: dict[int, list[str]] = {}
        for broker, topic in share.pairs(len(asked), sizes):
            topics.setdefault(asked[broker], []).append(names[topic])
        return topics

    def _to_leaders(
        self, wanted: WantedLeaders, brokers: Sequence[_B], metadata: Mapping[int, list[str]]
    ) -> Iterator[Request[_B]]:
        """Ask the nodes that are named as leaders, of many in turn, whether they lead.

        A request to each of a hundred takes longer than it gains.
        """
        questions = wanted.questions(_QUESTIONS - _REQUEST)
        sizes = [_REQUEST + len(some) for _, some in questions]
        epochs: dict[int | None, dict[Partition, int]] = {}
        for _, number in self._shares_of(wanted).questions.pairs(1, sizes):
            node, some = questions[number]
            epochs.setdefault(node, {}).update(wanted.epochs_of(some))
        return (
            Request(broker, metadata.get(at, ()), epochs.get(broker.node, {}))
            for at, broker in enumerate(brokers)
        )


def _metadata_topics(wanted: WantedLeaders, unread: int, *, storm: bool) -> Collection[Topic]:
    if not storm:
        return wanted.topics
    return wanted.unknown if unread < _ENOUGH else ()


def _to_candidates(
    wanted: Mapping[Partition, int],
    claims: Mapping[Partition, Leader],
    cluster: Cluster,
    brokers: Sequence[_B],
    metadata: Mapping[int, list[str]],
) -> Iterator[Request[_B]]:
    """Ask each broker about the partitions that it may lead."""
    candidates = cluster.candidates
    epochs = {place: candidates.epoch(place, epoch) for place, epoch in wanted.items()}

    def asked(node: int | None) -> dict[Partition, int]:
        may = {
            place: epoch
            for place, epoch in epochs.items()
            if candidates.may_lead(node, place, epoch)
        }
        may.update((place, claim.epoch) for place, claim in claims.items() if claim.node == node)
        return may

    return (
        Request(broker, metadata.get(at, ()), asked(broker.node))
        for at, broker in enumerate(brokers)
    )
