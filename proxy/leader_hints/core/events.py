"""What happened, as data. Logs, metrics, the status and the journal are made of these.

All are in one file, as in a catalogue: each of these readers has one table over all of them.

Tested in ``tests/observe/test_event_log.py``.
"""

from dataclasses import dataclass

# Nobody changes an event. Those of which a storm of leader moves makes thousands at once are not
# frozen all the same: to make a frozen one takes three times as long.


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class LeaderMoved:
    """A partition has another leader than before, or none."""

    cluster: str
    topic: str
    partition: int
    leader_before: int
    epoch_before: int
    leader: int
    epoch: int


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class EpochRose:
    """A partition's leader epoch rose under the same leader, as where a reassignment begins.

    Where ``epoch`` is lower than ``epoch_before``, the topic was recreated.
    """

    cluster: str
    topic: str
    partition: int
    leader: int
    epoch_before: int
    epoch: int


#: What begins a leader epoch.
LeaderChange = LeaderMoved | EpochRose


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class ErrorAnswered:
    """What hints given and hints missed have in common.

    ``hold_ms``: how long the response was kept back. ``client_epoch``: the leader epoch that
    the client used, -1 where it is not known. ``observed``: nothing was changed or kept back;
    the line says what hints would have done. ``software``: "name/version" as the client says
    (KIP-511), "" where it says nothing.
    """

    route: str
    link: int
    client_id: str
    software: str
    api: str
    version: int
    topic: str
    partition: int
    error: int
    client_epoch: int
    hold_ms: float
    observed: bool


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class HintGiven:
    """An error response named the new leader."""

    answered: ErrorAnswered
    leader: int
    epoch: int


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class HintMissed:
    """An error response was forwarded without a hint; see
    :class:`leader_hints.core.hints.miss_reason.MissReason`.

    ``settling``: what came of it if it was to be settled (``Settling`` in that file), else "".
    """

    answered: ErrorAnswered
    reason: str
    settling: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSeen:
    """A client named its software (KIP-511), and its broker has served it; once for each link.

    ``address``: where it comes from; "" where that is not known. ``uses``: the forms of hints that
    it is known to use; with none it is offered its broker's versions. ``None``: its name is not
    known, which is the same for it.
    """

    route: str
    link: int
    client_id: str
    software: str
    version: str
    address: str = ""
    uses: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAsked:
    """What a client has asked today, in UTC, and was answered: again when there is more.

    Clients with the same ``software``, as "name/version", and ``client_id`` are one; both are ""
    where it says nothing. ``asked``: API key, oldest and newest version. ``addresses``:
    hosts that it came from, ``principals``: subjects of its certificates, where the proxy asks for
    them; of each the first few, and "(others)" if there were more.
    """

    route: str
    client_id: str
    software: str
    asked: tuple[tuple[int, int, int], ...]
    addresses: tuple[str, ...]
    principals: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A partition answers a client again: its first success after an error, or a leader move.

    ``api``: "Produce" or "Fetch". ``epoch``: leader epoch known for the partition then, -1: none.
    ``recovery_ms``: since the first error of (client id, api, partition) in this process, ``None``
    where it met none here. ``hinted``: whether that error was answered with a hint.
    """

    route: str
    link: int
    client_id: str
    software: str
    api: str
    topic: str
    partition: int
    epoch: int
    recovery_ms: float | None
    hinted: bool


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class ReplicaNamed:
    """A consumer that names its rack was sent to another replica of a partition (KIP-392).

    ``replica``: its node id; ``rack``: the consumer's. ``returned``: the replica is the leader, and
    this broker a follower that is not in sync any more. ``observed``: no byte was changed.
    """

    route: str
    link: int
    client_id: str
    software: str
    topic: str
    partition: int
    replica: int
    rack: str
    returned: bool
    observed: bool


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class ConsumerRead:
    """What a consumer that names its rack has read of a topic on a link, for up to five minutes.

    ``bytes``: of Fetch responses, with what is not records. ``rack``: the consumer's;
    ``broker_rack``: the broker's, "" where it is not known. ``avoidable_bytes``: where it is only
    observed, records that an in-sync replica in the consumer's rack has, too.
    """

    route: str
    link: int
    client_id: str
    software: str
    topic: str
    rack: str
    broker_rack: str
    bytes: int
    avoidable_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HintsSwitched:
    """An operator changed the hints mode of a route; see
    :class:`leader_hints.core.mode.Mode`.
    """

    route: str
    before: str
    hints: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchNotKept:
    """The file of the setting ``switch_file`` cannot be written; the proxy tries again."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePlan:
    """Which versions a route offers for its broker; ``raised``: API -> [broker's, offered]."""

    route: str
    native: bool
    raised: dict[str, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamGivesHints:
    """Behind a route is another proxy of leader-hints: its hints pass, and are counted there."""

    route: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BadClientBytes:
    """A client sent bytes that are not Kafka or cannot be served; its connection was closed."""

    route: str
    client: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRefused:
    """A client failed before its first request, for example in the TLS handshake."""

    route: str
    client: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """The process begins. ``version``: of the proxy; ``hints``: the mode of all routes.

    ``config``: the file with settings, "" without one. ``routes``: LISTEN=UPSTREAM of each.
    ``workers``: how many processes serve clients' connections; 1: this one does.
    """

    version: str
    hints: str
    config: str
    routes: tuple[str, ...]
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesReloaded:
    """SIGHUP had all TLS files read again.

    ``tls``: how many groups of TLS files are in use as they are now; ``refused``: of how many
    the former ones stay in use, which ``certificates_refused`` names.
    """

    tls: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsReloaded:
    """SIGHUP had the settings read again; ``keys``: those that changed, and are in force now."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsRefused:
    """SIGHUP had the settings read again, and none was taken; the former ones stay in force.

    ``keys``: those that a process does not change while it serves; none if the settings as a whole
    are not allowed, for ``reason``.
    """

    keys: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificatesReloaded:
    """A route's TLS files were read again; ``group``: of settings. Links keep what they have."""

    route: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificatesRefused:
    """A route's TLS files have changed and cannot be used; the old ones stay in use."""

    route: str
    group: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BadBrokerBytes:
    """A broker's response cannot be converted to the client's version; the link was closed."""

    route: str
    link: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotUnderstood:
    """A message could not be parsed; it was forwarded unchanged."""

    route: str
    link: int
    side: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamUnreachable:
    """The broker behind a route did not take a connection; the client's was closed."""

    route: str
    upstream: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCrossed:
    """Clients that look for a node at its advertised address reach another broker.

    ``leads_to``: the route of this process to which the address leads, "" where it leads elsewhere.
    ``found``: the node that answers there.
    """

    route: str
    node: int
    address: str
    leads_to: str
    found: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisedPast:
    """A route's broker advertises an address without a proxy: clients bypass the route."""

    route: str
    node: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisedRight:
    """The route is no longer crossed, or its broker now advertises the proxy."""

    route: str
    node: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteLoops:
    """A link's connection to its broker reached a listener of this process; it was closed.

    ``leads_to``: the route that it reached.
    """

    route: str
    leads_to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReached:
    """A limit of the settings was reached.

    ``limit``: its name; ``route``: "" if it is a limit of them all. ``client``: whose
    connection was closed or refused for it; "" if none was.
    """

    route: str
    limit: str
    client: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorsShort:
    """The system allows fewer file descriptors than ``limits.connections`` need.

    ``connections``: how many are taken instead.
    """

    allowed: int
    needed: int
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptFailed:
    """The system lacks a resource that connections need; new ones wait, or are closed."""

    listen: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLoopStalled:
    """The event loop stalled for ``seconds``; nothing was served in that time."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """The process is stopping: it accepts no connection, ``links`` may finish their requests."""

    links: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The process ends; ``links`` were still open, with requests under way."""

    links: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverBegun:
    """A new process, ``successor``, has the listening sockets; this one serves until that can."""

    successor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeoverFailed:
    """A new process did not take over. This one goes on to serve, unless ``error`` says that the
    other one took over and ended: then this one ends with exit code 1.
    """

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """This process serves from now on, and the one before it, ``predecessor``, ends."""

    predecessor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerBegan:
    """A worker process takes clients. ``worker``: its number; ``process``: the system's."""

    worker: int
    process: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnded:
    """A worker process ended, and with it ``links`` connections; it is started again."""

    worker: int
    process: int
    links: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionLost:
    """The proxy's own connection to a broker ended; the proxy reconnects."""

    broker: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionReady:
    """The proxy's own connection to a broker answers."""

    broker: str
    node: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsHidden:
    """Brokers hide topics from the proxy's own principal; those topics get no hints.

    Brokers of 2.8 and 3.0 are then asked by name alone: consumers get no hints there.

    ``visible``: how many it may see.
    """

    cluster: str
    broker: str
    visible: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdsOffered:
    """Every broker of a cluster gives synthetic topic ids; clients are offered them from now on.

    Links of before end when no request is under way on them.
    """

    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicIdsWithheld:
    """Synthetic topic ids are not offered to new links, since a broker does not give them."""

    cluster: str
    broker: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A route takes connections."""

    route: str
    listen: str
    upstream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMoved:
    """A broker of the virtual cluster is at another address than before; its port here stays."""

    route: str
    upstream_before: str
    upstream: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLeft:
    """No broker knows a broker of the virtual cluster any more; its port takes no connections."""

    route: str
    listen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOfAnotherCluster:
    """Where a broker of the virtual cluster was, a broker of another cluster answers.

    ``cluster``: the id of the virtual cluster's own, ``found``: of the other one.
    """

    route: str
    upstream: str
    cluster: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerWithoutPort:
    """A broker of the virtual cluster has no listener, so clients cannot reach it."""

    route: str
    upstream: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRestarted:
    """The mock cluster of this process crashed; a new one replaces it, without data."""

    brokers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNotRestarted:
    """The mock cluster of this process crashed, and does not start; the proxy tries again."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultDone:
    """A requested fault was applied to a message, or to a connection.

    ``number``: which one of those in force; ``action`` and ``hint``: see
    :mod:`leader_hints.faults.fault`. ``api``, ``client_id``: "" where a connection was refused.
    ``topic``: "", ``partition``: -1, ``error``: 0 where it was no refusal of a partition.
    """

    route: str
    number: int
    action: str
    api: str
    client_id: str
    topic: str
    partition: int
    error: int
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminListening:
    """The admin server takes connections."""

    listen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminExposed:
    """The admin server can be reached from other machines, which may read all that it has.

    Changes are taken from this machine only, or with the token of the setting ``admin_token``.
    """

    listen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminFailed:
    """A defect of the proxy ended one request to the admin server; see LinkFailed."""

    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFailed:
    """A defect of the proxy ended one link; ``traceback`` holds no values, only places."""

    route: str
    link: int
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed:
    """A defect of the proxy ended a piece of work that is no link; the process goes on.

    ``task``: which work, such as "subscription" or "connection"; it begins again where that makes
    sense. ``traceback`` holds no values, only places.
    """

    task: str
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySampled:
    """The latency of one ordinary exchange: from its request to the start of its response."""

    route: str
    link: int
    client_id: str
    software: str
    api: str
    version: int
    latency_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalFailing:
    """The journal cannot be written; its events are buffered, and dropped if the buffer is full."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalWritten:
    """The journal can be written again. ``dropped``: events that were lost until then, in all."""

    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalAbandoned:
    """The process ends, and ``events`` of its journal could not be written in time."""

    events: int


Event = (
    LeaderMoved
    | EpochRose
    | HintGiven
    | HintMissed
    | ClientSeen
    | ClientAsked
    | Recovered
    | ReplicaNamed
    | ConsumerRead
    | HintsSwitched
    | SwitchNotKept
    | RoutePlan
    | UpstreamGivesHints
    | BadClientBytes
    | ClientRefused
    | Starting
    | FilesReloaded
    | SettingsReloaded
    | SettingsRefused
    | CertificatesReloaded
    | CertificatesRefused
    | BadBrokerBytes
    | NotUnderstood
    | UpstreamUnreachable
    | RouteCrossed
    | AdvertisedPast
    | AdvertisedRight
    | RouteLoops
    | LimitReached
    | DescriptorsShort
    | AcceptFailed
    | EventLoopStalled
    | Stopping
    | Stopped
    | TakeoverBegun
    | TakeoverFailed
    | TakenOver
    | WorkerBegan
    | WorkerEnded
    | SubscriptionLost
    | SubscriptionReady
    | TopicsHidden
    | TopicIdsOffered
    | TopicIdsWithheld
    | Listening
    | BrokerMoved
    | BrokerLeft
    | BrokerWithoutPort
    | BrokerOfAnotherCluster
    | ClusterRestarted
    | ClusterNotRestarted
    | FaultDone
    | AdminListening
    | AdminExposed
    | AdminFailed
    | LinkFailed
    | TaskFailed
    | LatencySampled
    | JournalFailing
    | JournalWritten
    | JournalAbandoned
)
