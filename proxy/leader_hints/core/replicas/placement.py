"""Has another replica named in the responses of one link, or counts where one would be."""

import math

from leader_hints.apis.preferred_replica import NONE, Offered, PreferredReplicaScan
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import ConsumerRead, ReplicaNamed
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.replicas.bytes_read import BytesRead
from leader_hints.core.replicas.closest_replica import (
    Consumer,
    Known,
    Outcome,
    closest,
    may_be_deleted,
    stays_at_replicas,
)
from leader_hints.core.replicas.named_replicas import PAUSE, NamedReplicas
from leader_hints.core.replicas.rack_traffic import OTHER

#: Seconds after a leader move for which no replica is named: clients and followers find the leader.
_SETTLED = 5.0
#: Seconds until a link's responses are looked at again, if nothing came of it last time, and the
#: most of it, to which it doubles. A look costs more than to relay a small response.
_LOOK_AGAIN, _LOOK_AGAIN_AT_MOST = 0.2, 5.0
#: So many in a row: a consumer may have some partitions in every second response.
_IN_A_ROW = 4
#: Whether a replica could have been named, whatever was named lately.
_AVOIDABLE = (Outcome.NAMED, Outcome.PAUSED)


class Placement:
    """What is named to the client of one link."""

    __slots__ = ("_again_at", "_changes", "_consumer", "_link", "_named", "_pause", "_read", "_row")

    def __init__(self, link: LinkState) -> None:
        self._link = link
        self._named: NamedReplicas | None = None
        self._consumer: Consumer | None = None
        #: When the next responses are looked at, and how long after these; how many are left.
        self._again_at = 0.0
        self._row = 0
        self._pause = _LOOK_AGAIN
        #: Of the replicas in sync, when it was looked last.
        self._changes = 0
        self._read: BytesRead | None = None

    def look(
        self, exchange: Exchange, frame: memoryview, length: int
    ) -> PreferredReplicaScan | None:
        """Look at a Fetch response of ``length`` bytes that begins with ``frame``.

        Return what is to see the rest of it, if that is of interest.
        """
        rack, route = self._link.client.rack, self._link.route
        mode = route.closest_replica
        if not rack or mode is Mode.OFF:
            return None
        broker = route.broker
        view, node, own = broker.view, broker.node, self._own_rack()
        places = own, self._known_rack(rack)
        route.rack_traffic.read[places] += length
        if self._read is None:
            self._read = BytesRead()
        self._read.size += length
        if view is None or node is None:
            return None
        now = view.now
        if view.in_sync_changes != self._changes:
            # Perhaps of what this client reads: to be left, or to be named.
            self._changes = view.in_sync_changes
            self._again_at, self._pause = now, _LOOK_AGAIN
        # Where it is only observed, all that crosses is looked at: it is counted.
        due = now >= self._again_at
        if not (due or self._row) and (mode is Mode.ON or rack == own):
            return None
        if self._read.due(now):
            self._report_read()
        if due:
            self._row = _IN_A_ROW
            self._again_at = now + self._pause
            self._pause = min(2 * self._pause, _LOOK_AGAIN_AT_MOST)
        self._row = max(self._row - 1, 0)
        version = exchange.recoded or exchange.policy.sent

        def place(offered: Offered) -> int:
            return self._place(offered, view, node, places, now)

        scan = PreferredReplicaScan(version, length, place)
        scan.see(frame, 0)
        return None if scan.done else scan

    def close(self) -> None:
        """Report what was read since the last report: the link ends."""
        if self._read is not None:
            self._report_read()

    def _own_rack(self) -> str:
        """Return the rack of the route's broker, "" if that is not known."""
        # A guess does: a broker that leads nothing is not proved, and followers may lead nothing.
        route = self._link.route
        node, endpoints = route.broker.node, route.broker.endpoints
        return "" if node is None else route.config.racks.of(node, endpoints)

    def _known_rack(self, rack: str) -> str:
        """Return the rack under which bytes are counted: a known one, so that labels are few."""
        config, endpoints = self._link.route.config, self._link.route.broker.endpoints
        return rack if config.racks.has(rack, endpoints) else OTHER

    def _place(
        self, offered: Offered, view: LeaderView, node: int, places: tuple[str, str], now: float
    ) -> int:
        """Return what is to be named for one partition."""
        route = self._link.route
        traffic, mode = route.rack_traffic, route.closest_replica
        if mode is Mode.OFF:
            # Since the response began.
            return NONE
        chosen, outcome = self._choose(offered, view, node, now)
        traffic.outcomes[outcome] += 1
        observes = mode is Mode.OBSERVE
        avoidable = observes and outcome in _AVOIDABLE
        if avoidable:
            traffic.avoidable[places] += offered.size
        if self._read is not None:
            self._read.add(offered.topic, offered.size, avoidable=avoidable)
        if chosen is None:
            return NONE
        if self._named is None:
            self._named = NamedReplicas()
        # Where nobody moves it is reported once.
        pause = math.inf if observes else PAUSE
        name = route.broker.topic_name(offered.topic)
        self._named.add(name, offered.partition, chosen, now, pause)
        self._report(offered, chosen, outcome, observed=observes)
        if observes:
            return NONE
        # More may be there to be named: at once.
        self._again_at, self._pause = now, _LOOK_AGAIN
        return chosen

    def _choose(
        self, offered: Offered, view: LeaderView, node: int, now: float
    ) -> tuple[int | None, Outcome]:
        broker, topic, partition = self._link.route.broker, offered.topic, offered.partition
        traffic = self._link.route.rack_traffic
        if offered.error:
            return None, Outcome.ERROR
        traffic.selector |= offered.preferred != NONE
        if traffic.selector:
            return None, Outcome.SELECTOR
        if not stays_at_replicas(self._link.client.software):
            return None, Outcome.CLIENT
        leader, in_sync = view.leader(topic, partition), view.in_sync(topic, partition)
        if leader is None or leader.node < 0 or not in_sync or view.in_doubt(topic, partition):
            return None, Outcome.UNKNOWN
        moved_at = view.moved_at(topic, partition)
        if moved_at is not None and now - moved_at < _SETTLED:
            return None, Outcome.MOVED
        endpoints, lately = broker.endpoints, frozenset[int]()
        if self._named is not None:
            lately = self._named.lately(broker.topic_name(topic), partition, now)
        choice = closest(
            node,
            Known(leader.node, in_sync),
            self._who(),
            lambda one: self._link.route.config.racks.of(one, endpoints),
            lambda one: self._link.route.endpoint(one) is not None,
            lately,
        )
        if choice.outcome is Outcome.NAMED and may_be_deleted(
            offered.position, offered.start, offered.high
        ):
            return None, Outcome.OLDEST
        return choice

    def _who(self) -> Consumer:
        if self._consumer is None:
            host, client_id = self._link.client.known_as
            identity = f"{host} {client_id}".encode("utf-8", "surrogatepass")
            self._consumer = Consumer(self._link.client.rack or "", identity)
        return self._consumer

    def _report_read(self) -> None:
        assert self._read is not None
        link = self._link
        broker, rack, own = link.route.broker, link.client.rack or "", self._own_rack()
        for topic, size, avoidable in self._read.take():
            link.events.append(
                ConsumerRead(
                    route=link.route.name,
                    link=link.number,
                    client_id=link.client.id or "",
                    software=link.client.software,
                    topic=broker.topic_name(topic),
                    rack=rack,
                    broker_rack=own,
                    bytes=size,
                    avoidable_bytes=avoidable,
                )
            )

    def _report(self, offered: Offered, node: int, outcome: Outcome, *, observed: bool) -> None:
        link = self._link
        link.events.append(
            ReplicaNamed(
                route=link.route.name,
                link=link.number,
                client_id=link.client.id or "",
                software=link.client.software,
                topic=link.route.broker.topic_name(offered.topic),
                partition=offered.partition,
                replica=node,
                rack=link.client.rack or "",
                returned=outcome is Outcome.RETURNED,
                observed=observed,
            )
        )
