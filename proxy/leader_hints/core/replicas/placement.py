"""Has another replica named in the responses of one link, or counts where one would be."""

import math
from collections.abc import Collection

from leader_hints.apis.preferred_replica import NONE, Offered, PreferredReplicaScan, without
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import ConsumerRead, ReplicaNamed
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.replicas.asked_epochs import AskedEpochs
from leader_hints.core.replicas.bytes_read import BytesRead
from leader_hints.core.replicas.closest_replica import (
    Consumer,
    Known,
    Outcome,
    closest,
    comes_back,
    ends_where_offsets_lack,
    may_be_deleted,
)
from leader_hints.core.replicas.followed import Followed, has_just_moved
from leader_hints.core.replicas.named_replicas import PAUSE, NamedReplicas
from leader_hints.core.replicas.rack_traffic import OTHER
from leader_hints.core.replicas.taken_out import TakenOut
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH

#: Seconds until a link's responses are looked at again, if nothing came of it last time, and the
#: most of it, to which it doubles. A look costs more than to relay a small response.
_LOOK_AGAIN, _LOOK_AGAIN_AT_MOST = 0.2, 5.0
#: So many in a row: a consumer may have some partitions in every second response.
_IN_A_ROW = 4
#: Whether a replica could have been named, whatever was named lately.
_AVOIDABLE = (Outcome.NAMED, Outcome.PAUSED)


class Placement:
    """What is named to the client of one link."""

    __slots__ = (
        "_again_at",
        "_changes",
        "_consumer",
        "_followed",
        "_link",
        "_named",
        "_pause",
        "_read",
        "_row",
        "_taken_out",
    )

    def __init__(self, link: LinkState) -> None:
        self._link = link
        self._named: NamedReplicas | None = None
        #: Of a client that comes back to the leader each time.
        self._taken_out: TakenOut | None = None
        self._consumer: Consumer | None = None
        self._followed: Followed | None = None
        #: When the next responses are looked at, and how long after these; how many are left.
        self._again_at = 0.0
        self._row = 0
        self._pause = _LOOK_AGAIN
        #: Of the replicas in sync, when it was looked last.
        self._changes = 0
        self._read: BytesRead | None = None

    def begin(self, exchange: Exchange, length: int) -> PreferredReplicaScan | None:
        """Begin a Fetch response of ``length`` bytes; return what is to see it, if anything is.

        Where that is to take records out the response goes to :meth:`take_out` once it is whole, or
        to :meth:`leave_in`.
        """
        rack, mode = self._link.client.rack, self._link.route.closest_replica
        if not rack or mode is Mode.OFF:
            return None
        if self._read is None:
            self._read, self._followed = BytesRead(), Followed()
        places = self._places(rack)
        scan = self._scan(exchange, length, rack, mode, places)
        if scan is not None and scan.cuts is not None:
            return scan
        self._count(length, places)
        if scan is not None:
            self._report_if_due()
        return scan

    def _places(self, rack: str) -> tuple[str, str]:
        """Return the rack of the route's broker, and that under which the client's is counted."""
        return self._own_rack(), self._known_rack(rack)

    def _scan(
        self, exchange: Exchange, length: int, rack: str, mode: Mode, places: tuple[str, str]
    ) -> PreferredReplicaScan | None:
        """Return what is to see a response of so many bytes, if it is looked at."""
        assert self._followed is not None
        route, own = self._link.route, places[0]
        view, node = route.broker.view, route.broker.node
        if view is None or node is None:
            return None
        now = view.now
        if view.in_sync_changes != self._changes:
            # Perhaps of what this client reads: to be left, or to be named.
            self._changes = view.in_sync_changes
            self._again_at, self._pause = now, _LOOK_AGAIN
            self._followed.changed(now)
        # Where it is only observed, all that crosses is looked at: it is counted.
        due = now >= self._again_at
        if not (due or self._row) and (mode is Mode.ON or rack == own):
            return None
        if due:
            if mode is Mode.ON and self._followed.fell_out(view, node, now):
                self._link.client.asks_for_all = True
            self._row = _IN_A_ROW
            self._again_at = now + self._pause
            self._pause = min(2 * self._pause, _LOOK_AGAIN_AT_MOST)
        self._row = max(self._row - 1, 0)
        version = exchange.recoded or exchange.policy.sent
        asked = AskedEpochs(exchange, route.sessions, view)

        def place(offered: Offered) -> int:
            return self._place(offered, asked, view, node, places, now)

        takes_out = mode is Mode.ON and rack != own and comes_back(self._link.client.software)
        if takes_out and self._taken_out is None:
            self._taken_out = TakenOut()
        return PreferredReplicaScan(version, length, place, takes_out=takes_out)

    def _count(self, size: int, places: tuple[str, str]) -> None:
        """Count bytes that the client gets."""
        assert self._read is not None
        self._link.route.rack_traffic.read[places] += size
        self._read.size += size

    def _count_later(self, size: int) -> None:
        """Count those of a response that had to be kept before it was known what is left of it."""
        self._count(size, self._places(self._link.client.rack or ""))
        self._report_if_due()

    def _report_if_due(self) -> None:
        view = self._link.route.broker.view
        assert self._read is not None
        if view is not None and self._read.due(view.now):
            self._report_read()

    def take_out(self, scan: PreferredReplicaScan, frame: memoryview) -> memoryview:
        """Look at a whole response; return it without records for which a replica is named."""
        scan.see(frame, 0)
        left = without(frame, scan.cuts or ())
        self._count_later(len(left))
        return left

    def leave_in(self, scan: PreferredReplicaScan) -> None:
        """Have no records taken out of a response that cannot be kept until it is whole."""
        scan.cuts = None
        self._count_later(scan.size)

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
        self,
        offered: Offered,
        asked: AskedEpochs,
        view: LeaderView,
        node: int,
        places: tuple[str, str],
        now: float,
    ) -> int:
        """Return what is to be named for one partition."""
        route = self._link.route
        traffic, mode = route.rack_traffic, route.closest_replica
        if mode is Mode.OFF:
            # Since the response began.
            return NONE
        name = route.broker.topic_name(offered.topic)
        lately = self._lately(offered, name, view, now)
        chosen, outcome = self._choose(offered, asked, view, node, now, lately)
        traffic.outcomes[outcome] += 1
        observes = mode is Mode.OBSERVE
        avoidable = observes and outcome in _AVOIDABLE
        if avoidable:
            traffic.avoidable[places] += offered.size
        if self._read is not None:
            self._read.add(offered.topic, offered.size, avoidable=avoidable)
        assert self._followed is not None
        in_sync = node in (view.in_sync(offered.topic, offered.partition) or ())
        self._followed.note(name, offered.partition, outcome, now, in_sync=in_sync)
        if chosen is None:
            return NONE
        if self._named is None:
            self._named = NamedReplicas()
        if chosen not in self._named.lately(name, offered.partition, now):
            # Where nobody moves it is reported once.
            pause = math.inf if observes else PAUSE
            self._named.add(name, offered.partition, chosen, now, pause)
            self._report(offered, chosen, outcome, observed=observes)
        if observes:
            return NONE
        # More may be there to be named: at once.
        self._again_at, self._pause = now, _LOOK_AGAIN
        if self._taken_out is not None:
            self._link.client.sent_away = True
            if offered.size and offered.position is not None:
                self._taken_out.note(name, offered.partition, offered.position, now)
        return chosen

    def _lately(self, offered: Offered, name: str, view: LeaderView, now: float) -> Collection[int]:
        """Return the nodes that are not to be named for a partition."""
        partition, position = offered.partition, offered.position
        if self._taken_out is None:
            return () if self._named is None else self._named.lately(name, partition, now)
        if not offered.size or position is None:
            return ()
        again = self._taken_out.asked_again(name, partition, position, now)
        return (again and view.in_sync(offered.topic, partition)) or ()

    def _choose(
        self,
        offered: Offered,
        asked: AskedEpochs,
        view: LeaderView,
        node: int,
        now: float,
        lately: Collection[int],
    ) -> tuple[int | None, Outcome]:
        topic, partition = offered.topic, offered.partition
        traffic = self._link.route.rack_traffic
        if offered.error:
            return None, Outcome.ERROR
        traffic.selector |= offered.preferred != NONE
        if traffic.selector:
            return None, Outcome.SELECTOR
        leader, in_sync = view.leader(topic, partition), view.in_sync(topic, partition)
        if leader is None or leader.node < 0 or not in_sync or view.in_doubt(topic, partition):
            return None, Outcome.UNKNOWN
        if has_just_moved(view, topic, partition, now):
            return None, Outcome.MOVED
        endpoints = self._link.route.broker.endpoints
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
        if choice.outcome is Outcome.NAMED and ends_where_offsets_lack(self._link.client.software):
            return None, Outcome.CLIENT
        if choice.node is not None and not self._is_of_now(
            leader.epoch, asked.of(topic, partition)
        ):
            return None, Outcome.UNKNOWN
        return choice

    def _is_of_now(self, known: int, served: int) -> bool:
        """Whether the epoch of the view is that at which the broker has served the partition.

        ``served``: -1 if that is not known. If it is another one, replicas may be others, too. In a
        session a broker of 2.4 does not compare it (KAFKA-9338), and may have a newer one.
        """
        if served in (UNKNOWN_EPOCH, known):
            return True
        return served < known and self._link.policies.plan.rackless is not None

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
