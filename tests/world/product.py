"""The proxy in the world: its real links, hold queue and refresher, on connections in memory.

All that the world knows of the proxy's classes is in this file.
"""

import math
import socket
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVarTuple, Unpack, cast

import trio

from leader_hints.address import Address
from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.check.route_watch import RouteWatch, Watched
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.events import (
    BadBrokerBytes,
    BadClientBytes,
    Event,
    HintMissed,
    LeaderChange,
    LinkFailed,
    NotUnderstood,
    TaskFailed,
)
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.hints.recovery import Awaiting, Recovery
from leader_hints.core.link.budget import Budget, network_of
from leader_hints.core.link.flow import Flow, Pieces
from leader_hints.core.link.held import Held
from leader_hints.core.link.link import Link
from leader_hints.core.mode import Mode
from leader_hints.core.replicas.racks import Racks
from leader_hints.core.route import Route, RouteConfig
from leader_hints.core.sessions.fetch_sessions import FetchSessions
from leader_hints.core.workers.codec import bytes_of, decode
from leader_hints.core.workers.messages import FromWorker, LinkBegan, Message, ToWorker
from leader_hints.errors import BrokerError
from leader_hints.net.brokers.connector import Connector, Connectors
from leader_hints.net.brokers.own_connections import Made, OwnConnections
from leader_hints.net.brokers.reachability import Reachability
from leader_hints.net.metadata.broker_poller import PollerSettings
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.refresher import Refresher
from leader_hints.net.workers.parent_side import ParentSide, Worker
from leader_hints.net.workers.worker_side import WorkerSide
from tests.core.rules import DEFAULT_RULES
from tests.harness.resolver import ResolverTo
from tests.world.model.truth import Leader
from tests.world.network import End, Network, Stream
from tests.world.wire import Endpoint

#: Seconds between polls of everything; short, so that a world can come to rest.
POLL = 5.0
_REFRESHES = 50
#: Seconds for which a process that gives synthetic ids waits at most before it takes connections.
IDS_WAIT = 2.0
_RULES = DEFAULT_RULES
#: Longest hold, in seconds: in front of brokers of a ZooKeeper cluster, and of a KRaft one.
DEADLINE, KRAFT_DEADLINE = _RULES.deadline, _RULES.kraft
#: Longest hold of a response in which other partitions have their hint.
SHARED = _RULES.shared
_DEFECTS = (TaskFailed, BadBrokerBytes, BadClientBytes, LinkFailed, NotUnderstood)
_BUFFER = 1 << 18
#: Seconds of work on answers until others get their turn. The machine's clock decides nothing here.
SLICE = math.inf
#: Seconds for which a message of a worker is under way, or one to it, at most.
LAG = 0.005
#: Seconds between two steps in which a worker that begins gets what is known.
_STEP = 0.01
_LAGS = tuple(LAG * tenth / 10 for tenth in (0, 7, 1, 10, 3, 0, 5))


_Ts = TypeVarTuple("_Ts")


class Hold(NamedTuple):
    """A response that was held. ``key``: of its API; ``node``: of the broker that answered."""

    link: int
    client: str
    key: int
    node: int
    since: float
    until: float


class Stop(NamedTuple):
    """For how long a worker did nothing: its process was stopped, or starved."""

    since: float
    until: float


class Learnt(NamedTuple):
    """A move that the proxy has learnt of."""

    at: float
    topic: str
    partition: int
    epoch_before: int
    leader: Leader


class Proxy:
    """One process of the proxy, with a route for each of ``nodes``. ``name``: its principal.

    ``running``: it takes connections. ``holds``: those that are over. ``moves``: when it learnt of
    a leader, of which partition.
    ``defects``: what it reports of itself that must never be. ``mistaken``: when the broker of a
    node was taken for which other one, and if it could be asked. ``crossed``: when the route of a
    node was found to lead to another. ``withheld``: when synthetic ids were offered no longer.
    ``unknown_at``: when the broker of a node's route was last taken for none.
    ``stops``: of its workers.
    ``settled``: what came of errors that wait until all brokers name the leader, and how often.
    ``altered``: when a client that uses no hint was sent other bytes than its broker's.
    ``exceeded``: when links kept more bytes than they may, and how many; ``forgone``: when an error
    got no hint since they might not keep it.

    ``behind``: the nodes of the brokers behind the routes, where they are crossed. ``broker_at``:
    the broker that is there now. ``large``, ``synthesize``, ``settle``, ``late``, ``budget`` and
    ``workers``: see :class:`tests.world.happenings.Profile`. ``racks``: of all nodes, where
    consumers are sent to the replica in theirs.
    """

    def __init__(
        self,
        network: Network,
        name: str,
        nodes: Sequence[int],
        *,
        behind: Mapping[int, int],
        broker_at: Callable[[int], int],
        large: bool,
        synthesize: bool,
        settle: bool,
        late: float,
        budget: int,
        racks: Mapping[int, str],
        workers: int,
    ) -> None:
        self.name = name
        self.nodes = nodes
        self.holds: list[Hold] = []
        self.defects: list[tuple[float, str]] = []
        self.moves: list[Learnt] = []
        self.mistaken: list[tuple[float, int, int, bool]] = []
        self.crossed: list[tuple[float, int]] = []
        self.unknown_at: dict[int, float] = {}
        self.stops: list[Stop] = []
        self.withheld: list[float] = []
        self.settled: Counter[str] = Counter()
        self.altered: list[tuple[float, str]] = []
        self._behind = behind
        self._broker_at = broker_at
        self._large = large
        self._late = late
        self._agreed: set[int] = set()
        self._listens_at = network.schedule.now + (IDS_WAIT if synthesize else 0.0)
        self._network = network
        self._shared = memoryview(bytearray(_BUFFER))
        self.exceeded: list[tuple[float, int]] = []
        self.forgone: list[float] = []
        self._links: dict[int, _Relay] = {}
        self._numbers = 0
        self.running = True
        self._scope = trio.CancelScope()
        self._racks = racks
        config = RouteConfig(
            synthesize=synthesize,
            settle=settle,
            closest_replica=Mode.ON if racks else Mode.OFF,
            racks=Racks(racks),
        )
        self._routes = {node: Route(f"r{node}", Mode.ON, config) for node in nodes}
        upstreams = {node: Address(*upstream(behind.get(node, node))) for node in nodes}
        self._timer = HoldTimer(HoldQueue(_RULES), self._emit)
        self._timer.settle = self.settle
        settings = PollerSettings(
            client=ClientSoftware("leader-hints", "1"),
            poll=POLL,
            answer=2,
            connect=2,
            reconnect_min=0.1,
            reconnect_max=5,
            slice_partitions=2000,
            in_sync=bool(racks),
        )
        connectors = Connectors(Connector(open_tcp=self.open), Connector(open_tcp=self.open))
        self._refresher = Refresher(
            [(route, upstreams[node]) for node, route in self._routes.items()],
            self._timer,
            RefreshRate(_REFRESHES, _REFRESHES),
            0.01,
            settings,
            self._emit,
            connectors=lambda route: connectors,
        )
        # Work is done in turns by the machine's clock, which is none of the world's.
        self._refresher._answers.slices._seconds = SLICE
        #: Where links are: in this process, or in workers of it.
        self._seats: list[_Seat] = [_Here(self._routes, self._timer, self._refresher, budget)]
        self._side: ParentSide | None = None
        self._config, self._budget = config, budget // workers
        self._nursery: trio.Nursery | None = None
        if workers > 1:
            self._side = self._parent_side(workers, upstreams)
            self._seats = [self._worker(number) for number in range(1, workers + 1)]
            for seat in self._seats:
                seat.begin_at_once()
        self._watch = RouteWatch(
            [Watched(route, upstreams[node], connectors) for node, route in self._routes.items()],
            cast(OwnConnections, _OwnConnections(self)),
            self._emit,
        )

    def _worker(self, number: int) -> "_Elsewhere":
        assert self._side is not None
        return _Elsewhere(self, self._network, self._side, number, self._config, self._budget)

    def end_worker(self, number: int, seconds: float) -> None:
        """End a worker with all its links; the next one begins some seconds later."""
        number %= len(self._seats)
        ended = self._seats[number]
        if not ended.ready:
            return
        ended.end()
        for relay in [*self._links.values()]:
            if relay.seat is ended:
                relay.close()
        self._network.schedule.after(seconds, self._begin_worker, number)

    def stop_worker(self, number: int, seconds: float) -> None:
        """Have a worker do nothing for some seconds, from when it has a response held next.

        What comes meanwhile waits for it.
        """
        self._seats[number % len(self._seats)].stops_for = seconds

    def stop_no_worker(self) -> None:
        """Have none of them stop from now on."""
        for seat in self._seats:
            seat.stops_for = 0.0

    def _stop(self, seat: "_Seat") -> None:
        schedule = self._network.schedule
        self.stops.append(Stop(schedule.now, schedule.now + seat.stops_for))
        schedule.after(0.0, seat.stop)
        schedule.after(seat.stops_for, seat.go_on)
        seat.stops_for = 0.0

    def _begin_worker(self, number: int) -> None:
        if self.running:
            seat = self._seats[number] = self._worker(number + 1)
            seat.begin_in_steps()
            assert self._nursery is not None
            self._nursery.start_soon(seat.run)

    def unlike(self) -> Iterator[str]:
        """Iterate over what workers know otherwise than the process that decides."""
        for number, seat in enumerate(self._seats, 1):
            for node, route in self._routes.items():
                theirs = seat.routes[node]
                if (known := _known(theirs)) != (right := _known(route)):
                    yield f"worker {number} knows {known} of the route of {node}, not {right}"

    def _parent_side(self, workers: int, upstreams: Mapping[int, Address]) -> ParentSide:
        routes = [*self._routes.values()]
        return ParentSide(
            routes,
            workers,
            lambda route: Address("", 0),
            self._timer,
            self._refresher,
            self._recovery(routes),
            Reachability(self._refresher.reached, self._refresher.missed, self._emit),
            trio.open_tcp_stream,
            0,
            lambda event, _: self._emit(event),
            lambda lost: None,
        )

    def _recovery(self, routes: Sequence[Route]) -> Recovery:
        self._recoveries = Recovery(routes, trio.current_time)
        return self._recoveries

    def start(self, nursery: trio.Nursery) -> None:
        """Hold, poll and refresh in ``nursery`` until :meth:`stop`."""
        nursery.start_soon(self._run)

    async def _run(self) -> None:
        with self._scope:
            # No name leads to this machine: TEST-NET-1 (RFC 5737).
            trio.socket.set_custom_hostname_resolver(ResolverTo(["192.0.2.1"]))
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._timer.run)
                nursery.start_soon(self._refresher.run)
                nursery.start_soon(self._watch.run)
                if self._side is not None:
                    nursery.start_soon(self._side.run)
                for seat in self._seats:
                    nursery.start_soon(seat.run)

    def stop(self) -> None:
        """End the process, and all its connections."""
        self.running = False
        self._scope.cancel()
        for relay in [*self._links.values()]:
            relay.close()

    # What it knows, for the rules.

    def leaders(self, name: str, partition: int) -> Iterator[tuple[int, Leader | None, bool]]:
        """Iterate over the routes' nodes, the leader by their view, and if that is in doubt."""
        for node, route in self._routes.items():
            known = (
                route.broker.view.leader(name, partition) if route.broker.view is not None else None
            )
            doubt = route.broker.view is not None and route.broker.view.in_doubt(name, partition)
            yield node, Leader(*known) if known is not None else None, doubt

    def look_at_identities(self) -> None:
        """Note each broker that is taken for another now, and what follows for clients."""
        self._look_at_ids()
        for node, route in self._routes.items():
            if route.advertised.crossed:
                self.crossed.append((self.now, node))
            if route.broker.node is None:
                self.unknown_at[node] = self.now
            proved = route.broker.proved_node
            if proved is not None and proved != (there := self._broker_at(node)):
                self.mistaken.append((self.now, there, proved, route.broker.reachable))

    def _look_at_ids(self) -> None:
        """Note that synthetic ids are offered no longer."""
        brokers = [route.broker for route in self._routes.values()]
        everywhere = all(broker.ids_everywhere for broker in brokers)
        if not everywhere and not self._agreed:
            return
        lists = [{*broker.endpoints} for broker in brokers if broker.endpoints]
        listed = set().union(*lists)
        if everywhere:
            # One route's list counts, and others may have newer ones.
            self._agreed |= listed.intersection(*lists)
            return
        # One that is listed only now has to be asked first.
        if listed <= self._agreed:
            self.withheld.append(self.now)
        self._agreed = set()

    def unproved(self) -> Iterator[int]:
        """Iterate over the nodes whose broker is not proved to be what it is."""
        brokers = ((self._broker_at(node), route.broker) for node, route in self._routes.items())
        return (node for node, broker in brokers if broker.proved_node != node)

    def pending(self) -> Iterator[str]:
        """Iterate over what is still kept of former requests."""
        if self._timer.queue.held:
            yield f"{self._timer.queue.held} responses are held"
        for seat in self._seats:
            if seat.budget.used:
                yield f"{seat.budget.used} bytes of the links' budget are used"

    # Connections.

    async def open(self, address: Address, patience: float) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        end = self._network.connect((address.host, address.port), self.name)
        if end is None:
            raise BrokerError("cannot connect: connection refused")
        return Stream(end)

    def accept(self, node: int, client: End) -> bool:
        """Take a client's connection to the route of ``node``."""
        waits = self.now < self._listens_at and not self._refresher.all_asked.is_set()
        ready = [seat for seat in self._seats if seat.ready]
        if not self.running or waits or not ready:
            return False
        upstream_node = self._behind.get(node, node)
        broker = self._network.connect(upstream(upstream_node), client.principal)
        if broker is None:
            client.close()
            return True
        self._numbers += 1
        seat = ready[self._numbers % len(ready)]
        number = seat.begin(node, self._numbers)
        link = Link(
            seat.routes[node],
            number,
            self._shared,
            seat.budget,
            seat.recovery,
            largest_request=1 << 20,
            requests_in_flight=1000,
        )
        self._links[number] = _Relay(self, node, link, client, broker, seat)
        self._refresher.reached(self._routes[node], "")
        return True

    def responded(self, relay: "_Relay") -> None:
        """Look what a link wants after a response."""
        state = relay.link.state
        snooped, state.snooped = state.snooped, []
        for version, payload in () if self._large else snooped:
            relay.seat.snoop(state.route, version, payload)
        lacking, state.topic_ids.lacking = state.topic_ids.lacking, []
        if lacking:
            relay.seat.lack(state.route, lacking, network_of(state.client.address))
        self.told(relay)
        if state.topic_ids.outdated and relay.link.matched and relay.link.resting:
            relay.close()

    def doubted(self, relay: "_Relay") -> None:
        """Take it that a client had no id although it may have a synthetic one."""
        relay.seat.doubt(relay.link.state.route)

    def told(self, relay: "_Relay") -> None:
        """Take a link's events."""
        events, relay.link.state.events = relay.link.state.events, []
        relay.seat.holds.emit(events)
        used = sum(seat.budget.used for seat in self._seats)
        if used > sum(seat.budget.total for seat in self._seats):
            self.exceeded.append((self.now, used))

    def submit(self, relay: "_Relay", held: Held) -> list[LeaderHint | None] | None:
        """Have a response held, or return its hints."""
        hints = relay.seat.holds.submit(held)
        if hints is None and relay.seat.stops_for:
            self._stop(relay.seat)
        if hints is None or not self._late:
            return hints
        self._network.schedule.after(self._late, self._pass_late, held, hints)
        return None

    def _pass_late(self, held: Held, hints: Sequence[LeaderHint | None]) -> None:
        relay = self._links.get(held.link.number)
        if relay is not None:
            relay.pass_late(hints)

    def settle(self, decided: Iterable[tuple[Held, list[LeaderHint | None]]]) -> None:
        for held, hints in decided:
            relay = self._links.get(held.link.number)
            if relay is not None:
                relay.release(hints)

    def gone(self, relay: "_Relay") -> None:
        """Forget a link."""
        number = relay.link.state.number
        if self._links.pop(number, None) is not None:
            self.told(relay)
            relay.link.close()
            relay.seat.holds.forget(number)

    def _emit(self, event: Event) -> None:
        if isinstance(event, _DEFECTS):
            self.blame(f"{type(event).__name__}: {event}")
        elif isinstance(event, HintMissed):
            if event.settling:
                self.settled[event.settling] += 1
            if event.reason == MissReason.BUDGET:
                self.forgone.append(self.now)
        elif isinstance(event, LeaderChange):
            if self._side is not None:
                self._recoveries.take(event)
                self._side.telling.take(event)
            leader = Leader(event.leader, event.epoch)
            self.moves.append(
                Learnt(self.now, event.topic, event.partition, event.epoch_before, leader)
            )

    def blame(self, text: str) -> None:
        """Note a defect."""
        self.defects.append((self.now, text))

    @property
    def parent_routes(self) -> Collection[Route]:
        """The routes as the process that decides has them."""
        return self._routes.values()

    @property
    def now(self) -> float:
        """Seconds since the world began."""
        return self._network.schedule.now


class _Holds(Protocol):
    def submit(self, held: Held) -> list[LeaderHint | None] | None: ...
    def forget(self, link: int) -> None: ...
    def emit(self, events: Sequence[Event]) -> None: ...


class _Seat(Protocol):
    """Where links are, and whom they tell what. ``routes``: by node; ``ready``: it takes links.

    ``stops_for``: seconds for which it stops once a response is held, 0: it does not.
    """

    routes: Mapping[int, Route]
    budget: Budget
    ready: bool
    stops_for: float

    @property
    def holds(self) -> _Holds: ...
    @property
    def recovery(self) -> Awaiting: ...
    def begin(self, node: int, number: int) -> int: ...
    def snoop(self, route: Route, version: int, payload: bytes) -> None: ...
    def lack(self, route: Route, ids: Collection[bytes], address: str) -> None: ...
    def doubt(self, route: Route) -> None: ...
    def begin_at_once(self) -> None: ...
    def do(self, call: Callable[[Unpack[_Ts]], None], *arguments: *_Ts) -> None: ...
    def end(self) -> None: ...
    def stop(self) -> None: ...
    def go_on(self) -> None: ...
    async def run(self) -> None: ...


class _Here:
    """Links are in the process that decides."""

    def __init__(
        self, routes: Mapping[int, Route], timer: HoldTimer, refresher: Refresher, budget: int
    ) -> None:
        self.routes = routes
        self.ready = True
        self.stops_for = 0.0
        self.budget = Budget(budget // 2, budget)
        self.holds = timer
        self.recovery = Recovery([])
        self.snoop = refresher.snooped
        self.lack = refresher.look_up_ids
        self.doubt = refresher.doubt

    def begin(self, node: int, number: int) -> int:
        return number

    def begin_at_once(self) -> None:
        pass

    def do(self, call: Callable[[Unpack[_Ts]], None], *arguments: *_Ts) -> None:
        call(*arguments)

    def end(self) -> None:
        self.ready = False

    def stop(self) -> None:
        pass

    def go_on(self) -> None:
        pass

    async def run(self) -> None:
        pass


class _Lagging:
    """One direction of a channel: messages come in their order, some time later."""

    def __init__(self, network: Network, take: Callable[[Message], None]) -> None:
        self.schedule = network.schedule
        self._take = take
        self._sent = 0
        self._last = 0.0

    def send(self, message: Message | bytes) -> None:
        self._sent += 1
        lag = _LAGS[self._sent % len(_LAGS)]
        self._last = max(self._last, self.schedule.now + lag)
        self.schedule.at(self._last, self._come, bytes_of(message))

    def _come(self, data: bytes) -> None:
        self._take(decode(data))


class _Elsewhere:
    """Links are in a worker, which learns what it knows some milliseconds later."""

    def __init__(
        self,
        proxy: Proxy,
        network: Network,
        side: ParentSide,
        number: int,
        config: RouteConfig,
        budget: int,
    ) -> None:
        self.routes: Mapping[int, Route] = {
            node: Route(f"r{node}", Mode.ON, config) for node in proxy.nodes
        }
        for route in self.routes.values():
            route.sessions = FetchSessions(moves=True)
        self.budget = Budget(budget // 2, budget)
        self._proxy = proxy
        self._parent = side
        back, forth = _Lagging(network, self._said), _Lagging(network, self._told)

        def told(message: ToWorker | bytes, sock: socket.socket | None) -> None:
            forth.send(message)

        self._worker = Worker(number, told)
        self._back = back
        by_name = {route.name: route for route in self.routes.values()}
        longest = max(DEADLINE, KRAFT_DEADLINE) + _RULES.grace
        self._side = WorkerSide(
            by_name,
            back.send,
            lambda: False,
            lambda: False,
            longest,
            self._forget,
            trio.current_time,
        )
        self.holds, self.recovery = self._side.holds, self._side.recovery
        self.snoop, self.lack, self.doubt = self._side.snoop, self._side.lack, self._side.doubt
        self.holds.settle = proxy.settle
        self.ready = False
        self.stops_for = 0.0
        self._ended = self._stopped = False
        self._waiting: list[Callable[[], None]] = []
        self._scope = trio.CancelScope()
        self._goes_on = trio.Event()
        self._joining = side.joining(self._worker)

    @staticmethod
    def _forget(steps: Iterator[None]) -> None:
        for _ in steps:
            pass

    def begin_at_once(self) -> None:
        for _ in self._joining:
            pass
        self._begun()

    def begin_in_steps(self) -> None:
        """Get what is known in steps, between which other things happen."""
        if self._ended or not self._proxy.running:
            return
        if next(self._joining, self) is self:
            self._begun()
        else:
            self._back.schedule.after(_STEP, self.begin_in_steps)

    def _begun(self) -> None:
        self._worker.ready.set()
        self.ready = True

    def do(self, call: Callable[[Unpack[_Ts]], None], *arguments: *_Ts) -> None:
        """Do what has become due, or when it goes on."""
        if self._stopped:
            self._waiting.append(partial(call, *arguments))
        else:
            call(*arguments)

    def stop(self) -> None:
        """Do nothing until :meth:`go_on`."""
        self._stopped = True
        self._goes_on = trio.Event()
        self._scope.cancel()

    def go_on(self) -> None:
        """Do what has become due, in the order in which it came; after that, what time has ended.

        Trio may take them in any order; so most of what is late is used.
        """
        if self._ended or not self._proxy.running:
            return
        self._stopped = False
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()
        self._goes_on.set()

    def end(self) -> None:
        """End, as a process does that is killed."""
        self.ready, self._ended = False, True
        for _ in self._parent.leaving(self._worker):
            pass

    def begin(self, node: int, number: int) -> int:
        route = next(r for r in self._proxy.parent_routes if r.name == self.routes[node].name)
        link = self._parent.links.begin(route, self._worker)
        self.do(self._back.send, LinkBegan(link))
        return link

    def _said(self, message: Message) -> None:
        if self._proxy.running:
            self._parent.take(self._worker, cast(FromWorker, message))

    def _told(self, message: Message) -> None:
        self.do(self._take, message)

    def _take(self, message: Message) -> None:
        if self._proxy.running and not self._ended:
            assert self._side.takes(cast(ToWorker, message)), message

    async def run(self) -> None:
        while True:
            with trio.CancelScope() as self._scope:
                await self.holds.run()
            await self._goes_on.wait()


class _OwnConnections:
    """Knows which connections of a process come out at one of its own routes."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    async def open(self, address: Address, patience: float, made: Made) -> trio.abc.Stream:
        """See :class:`leader_hints.net.brokers.own_connections.OwnConnections`."""
        reached = [node for node in self._proxy.nodes if address.host == shown(node).host]
        stream = await self._proxy.open(address, patience)
        if reached:
            made.arrived = f"r{reached[0]}"
            await stream.aclose()
        return stream


class _Relay:
    """What the pump is in a process: it moves a link's bytes."""

    def __init__(
        self, proxy: Proxy, node: int, link: Link, client: End, broker: End, seat: "_Seat"
    ) -> None:
        self.link = link
        self.seat = seat
        self._proxy = proxy
        self._node = node
        self._client = client
        self._broker = broker
        #: What has come from the broker behind a response that is held, and since when it is.
        self._behind: deque[bytes] = deque()
        self._since: float | None = None
        self._ended = self._closed = False
        #: What the broker has answered and the client has not got yet; ``None``: some of it differs
        #: on purpose.
        self._owed: bytearray | None = bytearray()
        client.taken = lambda data: seat.do(self._unless_closed, self._requested, data)
        client.ended = partial(seat.do, self.close)
        broker.taken = lambda data: seat.do(self._unless_closed, self._responded, data)
        broker.ended = partial(seat.do, self._broker_ended)

    def _unless_closed(self, take: Callable[[bytes], None], data: bytes) -> None:
        """Take what has come, but not what came while the worker was stopped that closes it."""
        if not self._closed:
            take(data)

    def _requested(self, data: bytes) -> None:
        self._broker.send(self._feed(self.link.requests, data))
        if self.link.requests.fault is not None:
            self.close()
            if self.link.state.topic_ids.without_ids:
                self._proxy.doubted(self)
            else:
                self._proxy.blame(f"client blamed: {self.link.requests.fault}")
            return
        self._proxy.told(self)

    def _responded(self, data: bytes) -> None:
        self._behind.append(data)
        if self._owed is not None:
            self._owed += data
        self._go_on()

    def _go_on(self) -> None:
        responses = self.link.responses
        while self._behind and self._since is None and self._client.open:
            data = self._behind.popleft()
            buffer = responses.buffer()
            some, rest = data[: len(buffer)], data[len(buffer) :]
            if rest:
                self._behind.appendleft(rest)
            buffer[: len(some)] = some
            self._send(responses.received(len(some)))
            self._look_at_held()
        if self._ended and not self._behind and self._since is None:
            self.close()

    def _look_at_held(self) -> None:
        responses = self.link.responses
        while responses.held is not None or responses.unfinished:
            if responses.held is None:
                self._send(responses.resume())
                continue
            key = responses.held.key
            hints = self._proxy.submit(self, responses.held)
            if hints is None:
                self._since, self._key = self._proxy.now, int(key)
                break
            self._send(responses.release(hints))
        if responses.fault is not None:
            self._proxy.blame(f"broker blamed: {responses.fault}")
            self.close()
            return
        self._proxy.responded(self)

    def release(self, hints: Sequence[LeaderHint | None]) -> None:
        """Let the held response go on."""
        assert self._since is not None
        number = self.link.state.number
        client = self._client.principal
        hold = Hold(number, client, self._key, self._node, self._since, self._proxy.now)
        self._proxy.holds.append(hold)
        self._since = None
        self._send(self.link.responses.release(hints, waited=True))
        self._look_at_held()
        self._go_on()

    def pass_late(self, hints: Sequence[LeaderHint | None]) -> None:
        """Let a response go on that has waited by a planted defect, as if it had not."""
        self._since = self._proxy.now
        self.release(hints)

    def _send(self, pieces: Pieces) -> None:
        data = b"".join(pieces)
        self._compare(data)
        self._client.send(data)
        self.link.responses.flushed()

    def _compare(self, data: bytes) -> None:
        """Note what differs from the broker's bytes, for a client that uses no hint."""
        state = self.link.state
        if state.client.hint_forms or state.route.config.synthesize or state.client.rack:
            self._owed = None
        if self._owed is None:
            return
        if not self._owed.startswith(data):
            self._proxy.altered.append((self._proxy.now, f"link {state.number}"))
        del self._owed[: len(data)]

    def _feed(self, flow: Flow, data: bytes) -> bytes:
        out = b""
        while data and flow.fault is None:
            buffer = flow.buffer()
            some, data = data[: len(buffer)], data[len(buffer) :]
            buffer[: len(some)] = some
            out += b"".join(flow.received(len(some)))
            flow.flushed()
            while flow.unfinished and flow.fault is None:
                out += b"".join(flow.resume())
                flow.flushed()
        return out

    def _broker_ended(self) -> None:
        self._ended = True
        self._go_on()

    def close(self) -> None:
        """End both connections."""
        self._closed = True
        self._client.close()
        self._broker.close()
        self._proxy.gone(self)


def _known(route: Route) -> dict[str, object]:
    """Return what links look up of a route's broker and cluster."""
    broker, view = route.broker, route.broker.view
    known: dict[str, object] = {
        "plan": broker.plan,
        "node": (broker.node, broker.guessed),
        "ids": (broker.serves_anybody, broker.ids_everywhere),
    }
    if view is not None:
        known["topics"] = sorted((topic.name, topic.id) for topic in view.topics)
        known["have ids"] = view.topics.have_ids
        known["hidden"] = view.hidden.some(route.name), view.hidden.none(route.name)
    return known


def shown(node: int) -> Endpoint:
    """Return where a broker is advertised."""
    return Endpoint(f"shown-{node}", 9092)


def upstream(node: int) -> tuple[str, int]:
    """Return the address at which the proxy reaches a broker."""
    return f"up-{node}", 9092
