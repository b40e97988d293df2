"""Takes what workers say, in the process that decides.

Tested in ``tests/net/workers/test_sides.py``.
"""

import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import trio

from leader_hints.address import Address
from leader_hints.core.events import Event, TaskFailed
from leader_hints.core.hints.recovery import Client, Recovery
from leader_hints.core.route import Route
from leader_hints.core.workers import messages as said
from leader_hints.core.workers.codec import encode
from leader_hints.core.workers.messages import FromWorker, ToWorker
from leader_hints.errors import BrokerError, places_of
from leader_hints.net.brokers.own_connections import Made
from leader_hints.net.brokers.reachability import Reach
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.refresher import Refresher
from leader_hints.net.workers.decisions import Decisions
from leader_hints.net.workers.judged_holds import JudgedHolds, settle
from leader_hints.net.workers.telling import Telling
from leader_hints.net.workers.traffic_reports import add
from leader_hints.net.workers.worker_counts import Counting, WorkerCounts
from leader_hints.net.workers.worker_links import WorkerLinks

#: Messages of what is known that a worker gets before other tasks get their turn.
_TOLD_AT_ONCE: Final = 5
#: Links of a worker that has ended which are forgotten in one step: each may have a response held.
_LEFT_AT_ONCE: Final = 500

OpenLink = Callable[..., Awaitable[trio.SocketStream]]
SendBeside = Callable[[ToWorker | bytes, socket.socket | None], None]


class Worker:
    """One worker process. ``number``: from 1 on; ``links``: how many it has, or is to make.

    ``send``: a message to it or its bytes, with a socket beside it if any. ``told``: it has got
    what is known. ``ready``: it takes clients, at most ``most_links``; ``drained``: all its links
    have ended.
    """

    def __init__(self, number: int, send: SendBeside) -> None:
        self.number = number
        self.links = self.most_links = 0
        self.told = False
        self.ready = trio.Event()
        self.drained = trio.Event()
        self.counting = Counting()
        self._send = send

    def send(self, message: ToWorker | bytes, sock: socket.socket | None = None) -> None:
        """Send a message to it, or its bytes; ``sock`` is closed here when it was sent."""
        self._send(message, sock)


class ParentSide:
    """Joins the parts that decide with the workers, however many there are now.

    ``upstream``: where a route's broker is. ``open_broker``: connects to one for a link. ``emit``:
    takes an event, and the number of the worker that it comes from. ``journal_lost``: takes how
    many events of links were lost.

    Large because each message of a worker has its method here.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        workers: int,
        upstream: Callable[[Route], Address],
        hold_timer: HoldTimer,
        refresher: Refresher,
        recovery: Recovery,
        reach: Reach,
        open_broker: OpenLink,
        patience: float,
        emit: Callable[[Event, int], None],
        journal_lost: Callable[[int], None],
    ) -> None:
        self._routes = {route.name: route for route in routes}
        self._upstream = upstream
        self._hold_timer = hold_timer
        self._refresher = refresher
        self._recovery = recovery
        self._reach = reach
        self._open_broker = open_broker
        self._patience = patience
        self._emit = emit
        self._journal_lost = journal_lost
        self._workers: dict[Worker, JudgedHolds] = {}
        self._added = trio.Event()
        self._nursery: trio.Nursery | None = None
        self.links = WorkerLinks(self._routes, workers)
        self.counts = WorkerCounts(self._ask)
        self.telling = Telling(routes, recovery, self._to_all)
        self.telling.waits = lambda: self._added.set()
        self._decisions = Decisions(lambda: self._added.set())
        hold_timer.settle = partial(settle, self._decisions)
        self._takers = self._make_takers()

    def _make_takers(self) -> Mapping[type[FromWorker], Callable[..., None]]:
        return {
            said.WorkerReady: self._ready,
            said.Happened: self._happened,
            said.EventsLost: lambda worker, lost: self._journal_lost(lost.events),
            said.BrokerWanted: self._broker_wanted,
            said.BrokerServes: self._broker_serves,
            said.BrokerFails: self._broker_fails,
            said.BrokerMet: self._broker_met,
            said.LinkBegan: lambda worker, began: self.links.began(began.link),
            said.LinkEnded: self._link_ended,
            said.ErrorsCame: self._errors_came,
            said.MoreErrors: lambda worker, more: self._workers[worker].more(more),
            said.NameSynthesized: self._synthesized,
            said.IdWithheld: self._withheld,
            said.MetadataPassed: self._metadata_passed,
            said.IdsLacking: self._ids_lacking,
            said.IdsDoubted: lambda _, told: self._refresher.doubt(self._routes[told.route]),
            said.LeaderServed: self._leader_served,
            said.ClientFailed: self._client_failed,
            said.ClientServed: self._client_served,
            said.VersionAsked: self._version_asked,
            said.TrafficCounted: self._counted,
            said.LoadReported: lambda worker, load: self.counts.take(worker.counting, load),
            said.Drained: lambda worker, _: worker.drained.set(),
        }

    async def run(self) -> None:
        """Do what takes time, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            while True:
                await self._added.wait()
                self._added = trio.Event()
                # More come in the same step.
                await trio.lowlevel.checkpoint()
                while self.send_some():
                    await trio.lowlevel.checkpoint()

    def send_some(self) -> bool:
        """Send what was gathered, and some of what takes several turns; return whether that is
        not all.
        """
        more = self.telling.flush_some()
        return self._decisions.send_some() or more

    @property
    def ready(self) -> list[Worker]:
        """The workers that take clients."""
        return [worker for worker in self._workers if worker.told and worker.ready.is_set()]

    @property
    def workers(self) -> list[Worker]:
        """All workers."""
        return [*self._workers]

    async def join(self, worker: Worker) -> None:
        """Tell a new worker what is known."""
        for _ in self.joining(worker):
            await trio.lowlevel.checkpoint()

    def joining(self, worker: Worker) -> Iterator[None]:
        """Do so in steps."""

        def send(message: ToWorker) -> None:
            self.telling.flush()
            worker.send(message)

        self._workers[worker] = JudgedHolds(self._hold_timer.submit, send, self._decisions)
        left = _TOLD_AT_ONCE
        for message in self.telling.all():
            if message is not None:
                worker.send(message)
                left -= 1
            if message is None or not left:
                left = _TOLD_AT_ONCE
                yield
        worker.told = True

    async def leave(self, worker: Worker) -> int:
        """Take it that a worker has ended, with all its links; return how many it had."""
        links = worker.links
        for _ in self.leaving(worker):
            await trio.lowlevel.checkpoint()
        return links

    def leaving(self, worker: Worker) -> Iterator[None]:
        """Do so in steps."""
        self._workers.pop(worker, None)
        for count, number in enumerate(self.links.of(worker), 1):
            self._hold_timer.forget(number)
            self.links.ended(number)
            if count % _LEFT_AT_ONCE == 0:
                yield

    def take(self, worker: Worker, message: FromWorker) -> None:
        """Take a message of a worker."""
        if worker in self._workers:
            self._takers[type(message)](worker, message)

    def _ask(self, message: ToWorker) -> list[Counting]:
        asked = self.ready
        _send(message, asked)
        return [worker.counting for worker in asked]

    def _to_all(self, message: ToWorker) -> None:
        _send(message, self._workers)

    def _to_others(self, worker: Worker, message: ToWorker) -> None:
        self.telling.flush()
        _send(message, (other for other in self._workers if other is not worker))

    # Events and links.

    def _ready(self, worker: Worker, told: said.WorkerReady) -> None:
        worker.most_links = told.links
        worker.counting.begin()
        worker.ready.set()

    def _happened(self, worker: Worker, told: said.Happened) -> None:
        if self._hold_timer.reporting:
            # Behind those of former responses.
            self._hold_timer.emit([told.event])
        else:
            self._emit(told.event, worker.number)

    def _broker_wanted(self, worker: Worker, wanted: said.BrokerWanted) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(self._connect, worker, wanted.link, self._routes[wanted.route])

    async def _connect(self, worker: Worker, link: int, route: Route) -> None:
        try:
            stream = await self._open_broker(
                self._upstream(route), self._patience, made=Made(route.name)
            )
            sock = socket.socket(fileno=stream.socket.detach())
        except BrokerError as error:
            worker.send(said.BrokerMissed(link, str(error)))
        except Exception as error:
            # A defect must end one connection, and not this process.
            self._emit(TaskFailed(task="connection", traceback=places_of(error)), worker.number)
            worker.send(said.BrokerMissed(link, "a defect of the proxy"))
        else:
            worker.send(said.BrokerReached(link), sock)

    def _broker_serves(self, worker: Worker, told: said.BrokerServes) -> None:
        self._reach.serves(self._routes[told.route], told.peer)

    def _broker_fails(self, worker: Worker, told: said.BrokerFails) -> None:
        route = self._routes[told.route]
        self._reach.fails(route, self._upstream(route), told.error)

    def _broker_met(self, worker: Worker, told: said.BrokerMet) -> None:
        route = self._routes[told.route]
        if route.broker.plan is None:
            route.broker.meet(told.maxima)

    def _link_ended(self, worker: Worker, told: said.LinkEnded) -> None:
        self._hold_timer.forget(told.link)
        self.links.ended(told.link)

    # Errors and successes.

    def _errors_came(self, worker: Worker, came: said.ErrorsCame) -> None:
        self._workers[worker].came(self._routes[came.route], came)

    def _client_failed(self, worker: Worker, told: said.ClientFailed) -> None:
        self._recovery.failed(self._routes[told.route], told.client_id, told.api, told.failed)
        self._to_others(worker, told)

    def _client_served(self, worker: Worker, told: said.ClientServed) -> None:
        client = Client(told.link, told.client_id, told.software)
        recovered = self._recovery.succeeded(
            self._routes[told.route], client, told.api, told.topic, told.partition
        )
        if recovered is not None:
            self._happened(worker, said.Happened(recovered))
        self._to_others(worker, told)

    def _leader_served(self, worker: Worker, told: said.LeaderServed) -> None:
        view = self._routes[told.route].broker.view
        if view is not None:
            view.served(told.topic, told.partition, told.node)

    # What links learn.

    def _metadata_passed(self, worker: Worker, told: said.MetadataPassed) -> None:
        worker.send(said.MetadataTaken())
        self._refresher.snooped(self._routes[told.route], told.version, told.payload)

    def _ids_lacking(self, worker: Worker, told: said.IdsLacking) -> None:
        self._refresher.look_up_ids(self._routes[told.route], told.ids, told.address)

    def _synthesized(self, worker: Worker, told: said.NameSynthesized) -> None:
        for route in self._routes.values():
            view = route.broker.view
            if view is not None and view.cluster_id == told.cluster:
                # All workers get it by that.
                view.topics.synthesize_id(told.name)
                return

    def _withheld(self, worker: Worker, told: said.IdWithheld) -> None:
        for route in self._routes.values():
            view = route.broker.view
            if view is not None and view.cluster_id == told.cluster:
                view.unknown_ids.withhold((told.host, told.client_id), told.topic_id)
                return

    def _version_asked(self, worker: Worker, told: said.VersionAsked) -> None:
        asked = self._routes[told.route].asked
        asked.note_of(told.day, told.software, told.client_id, told.key, told.version, told.origin)

    def _counted(self, worker: Worker, told: said.TrafficCounted) -> None:
        add(self._routes[told.route].traffic, told)


def _send(message: ToWorker, workers: Iterable[Worker]) -> None:
    """Send a message to several workers; to make its bytes costs most of it."""
    data = encode(message)
    for worker in workers:
        worker.send(data)
