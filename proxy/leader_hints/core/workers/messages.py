"""All messages between the process that decides and its workers, which move bytes.

A link's number is unique among all workers. Routes and clusters go by name and id.

Tested in ``tests/core/workers/test_codec.py``.
"""

from dataclasses import dataclass
from typing import NamedTuple

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.events import Event
from leader_hints.core.mode import Mode
from leader_hints.core.versions.asked_versions import Origin

Topic = str | bytes

#: Topics, moves, failed partitions or hints in one message, so that none takes long to read.
MOST_ENTRIES = 500


class Failing(NamedTuple):
    """A partition that failed: see :class:`leader_hints.apis.leader_hint.Failure`. ``epoch``: the
    leader epoch that the client used, -1 where it is not known.
    """

    topic: Topic
    partition: int
    error: int
    epoch: int


class LeaderMove(NamedTuple):
    """A partition that ``leader`` leads now."""

    topic: str
    partition: int
    leader: int


class CellCount(NamedTuple):
    """See :class:`leader_hints.core.link.traffic_counters.TrafficCounters`."""

    key: int
    asked: int
    sent: int
    requests: int
    responses: int


# To a worker.


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin to serve, as worker ``number`` of ``workers``, by the ``settings`` (JSON)."""

    number: int
    workers: int
    settings: str


@dataclass(frozen=True, slots=True)
class BrokerKnown:
    """What links of a route need to know of its broker; the plans follow from ``maxima``.

    ``lost``: the connection was lost since; ``cluster``: "" while it is not known.
    """

    route: str
    maxima: dict[int, int]
    lost: bool
    cluster: str
    node: int | None
    guessed: bool
    serves_anybody: bool
    ids_everywhere: bool


@dataclass(frozen=True, slots=True)
class ModeSet:
    """What a route does about hints now; ``raised``: it has raised versions at some time."""

    route: str
    mode: Mode
    raised: bool


@dataclass(frozen=True, slots=True)
class TopicsAdded:
    """Topics that are known, by name, each with its id: see
    :meth:`leader_hints.core.cluster.known_topics.KnownTopics.told_id`.
    """

    cluster: str
    topics: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class TopicForgotten:
    """A topic that is not known any more."""

    cluster: str
    name: str


@dataclass(frozen=True, slots=True)
class TopicRecreated:
    """Some topic without an id was recreated."""

    cluster: str


@dataclass(frozen=True, slots=True)
class NameSynthesized:
    """A synthetic id leads to the name of a topic that is not known. To the other side, too."""

    cluster: str
    name: str


@dataclass(frozen=True, slots=True)
class TopicsHide:
    """Whether a route's broker hides topics: ``some``, and whether it was ``asked`` for that."""

    cluster: str
    route: str
    some: bool
    asked: bool


@dataclass(frozen=True, slots=True)
class IdsLackNames:
    """The ids that no broker has named: see
    :meth:`leader_hints.core.cluster.unknown_ids.UnknownIds.lacking`.
    """

    cluster: str
    ids: tuple[tuple[bytes, bool], ...]


@dataclass(frozen=True, slots=True)
class IdWithheld:
    """A client uses an id that cannot be named, or did so many seconds ``ago``. To the other side,
    too.
    """

    cluster: str
    host: str
    client_id: str
    topic_id: bytes
    ago: float = 0.0


@dataclass(frozen=True, slots=True)
class LeadersCame:
    """Partitions have other leader epochs than before; of one several may follow each other."""

    cluster: str
    moves: tuple[LeaderMove, ...]


@dataclass(frozen=True, slots=True)
class ClientCame:
    """A client's socket, beside this message, is to become a link of a route."""

    link: int
    route: str


@dataclass(frozen=True, slots=True)
class BrokerReached:
    """The socket beside this message leads to the broker of a link."""

    link: int


@dataclass(frozen=True, slots=True)
class BrokerMissed:
    """No connection to the broker of a link could be made."""

    link: int
    error: str


@dataclass(frozen=True, slots=True)
class HintsDecided:
    """A response goes on with these hints, one or ``None`` for each failure.

    ``last``: all hints have come; those of a large response come in several messages.
    """

    response: int
    hints: tuple[LeaderHint | None, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class ErrorsReported:
    """What failed in a response was reported, and counts no more."""

    response: int


@dataclass(frozen=True, slots=True)
class MetadataTaken:
    """A Metadata response that went by was read, so that another one may be sent."""


@dataclass(frozen=True, slots=True)
class RenewCertificates:
    """Read all TLS files again."""


@dataclass(frozen=True, slots=True)
class Drain:
    """End all links as :class:`leader_hints.app.drain.Drain` does."""

    seconds: float
    routes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportAsked:
    """Say what was counted until now, and then answer with the same number."""

    number: int


# From a worker.


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """It takes clients; it has descriptors for so many ``links``."""

    links: int


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of this process."""

    event: Event


@dataclass(frozen=True, slots=True)
class EventsLost:
    """So many events of links are lost, since they were not read."""

    events: int


@dataclass(frozen=True, slots=True)
class BrokerWanted:
    """A link needs a connection to its route's broker."""

    link: int
    route: str


@dataclass(frozen=True, slots=True)
class BrokerServes:
    """A link's broker at ``peer`` was connected to, TLS included."""

    route: str
    peer: str


@dataclass(frozen=True, slots=True)
class BrokerFails:
    """A link's broker was not connected to."""

    route: str
    error: str


@dataclass(frozen=True, slots=True)
class BrokerMet:
    """A link's broker has answered which versions it takes, while that was not known.

    ``maxima``: by API key.
    """

    route: str
    maxima: dict[int, int]


@dataclass(frozen=True, slots=True)
class LinkBegan:
    """A client was joined to its broker."""

    link: int


@dataclass(frozen=True, slots=True)
class LinkEnded:
    """A link has ended, or a client was turned away."""

    link: int


@dataclass(frozen=True, slots=True)
class ErrorsCame:
    """The beginning of an error response that may get hints: ``total`` of its partitions failed.

    ``response``: its number in the worker. ``refused``: it may not be held, and went on.
    ``observed``: it went on already. ``carries``, ``unhinted``: see
    :class:`leader_hints.core.link.held.Held`, the latter "" for ``None``. More
    :class:`MoreErrors` follow until all failures have come.
    """

    response: int
    link: int
    route: str
    key: int
    version: int
    client_id: str
    software: str
    refused: bool
    observed: bool
    carries: bool
    unhinted: str
    total: int
    failing: tuple[Failing, ...]


@dataclass(frozen=True, slots=True)
class MoreErrors:
    """More failures of a response."""

    response: int
    failing: tuple[Failing, ...]


@dataclass(frozen=True, slots=True)
class MetadataPassed:
    """A Metadata response went by on a link of a route."""

    route: str
    version: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class IdsLacking:
    """A client uses ids that have no names here. ``address``: what distinguishes where it comes
    from.
    """

    route: str
    ids: tuple[bytes, ...]
    address: str


@dataclass(frozen=True, slots=True)
class IdsDoubted:
    """A client had no synthetic id for a topic."""

    route: str


@dataclass(frozen=True, slots=True)
class LeaderServed:
    """A broker has answered a Produce request for a partition that moved lately."""

    route: str
    topic: Topic
    partition: int
    node: int


@dataclass(frozen=True, slots=True)
class ClientFailed:
    """A client met errors: see :class:`leader_hints.core.hints.recovery.Recovery`.

    To the other workers, too.
    """

    route: str
    client_id: str
    api: str
    failed: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ClientServed:
    """A partition answers a client again, or since its leader moved. To the others, too."""

    route: str
    link: int
    client_id: str
    software: str
    api: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class VersionAsked:
    """A client asks a version: see :class:`leader_hints.core.versions.asked_versions`.

    ``day``: the worker's, whose links note again what they have noted on an earlier one.
    """

    route: str
    day: str
    software: str
    client_id: str
    key: int
    version: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class TrafficCounted:
    """What a route's counters have gained since the last report."""

    route: str
    links: int
    up: int
    down: int
    cells: tuple[CellCount, ...]
    raw: dict[str, int]


@dataclass(frozen=True, slots=True)
class LoadReported:
    """The answer to :class:`ReportAsked`, or to none (0), behind all that was counted."""

    number: int
    tasks: int
    exchanges: int
    kept_bytes: int
    queued_bytes: int


@dataclass(frozen=True, slots=True)
class Drained:
    """All links have ended, or their time is over."""


ToWorker = (
    Begin
    | BrokerKnown
    | ModeSet
    | TopicsAdded
    | TopicForgotten
    | TopicRecreated
    | NameSynthesized
    | TopicsHide
    | IdsLackNames
    | IdWithheld
    | LeadersCame
    | ClientCame
    | BrokerReached
    | BrokerMissed
    | HintsDecided
    | ErrorsReported
    | MetadataTaken
    | RenewCertificates
    | ClientFailed
    | ClientServed
    | Drain
    | ReportAsked
)
FromWorker = (
    WorkerReady
    | Happened
    | EventsLost
    | BrokerWanted
    | BrokerServes
    | BrokerFails
    | BrokerMet
    | LinkBegan
    | LinkEnded
    | ErrorsCame
    | MoreErrors
    | NameSynthesized
    | IdWithheld
    | MetadataPassed
    | IdsLacking
    | IdsDoubted
    | LeaderServed
    | ClientFailed
    | ClientServed
    | VersionAsked
    | TrafficCounted
    | LoadReported
    | Drained
)
Message = ToWorker | FromWorker
#: Messages that have a socket beside them.
WITH_SOCKET = (ClientCame, BrokerReached)
