"""The workers of a process, as its other parts have them.

Tested in ``tests/app/workers/test_front.py``.
"""

import socket
from collections.abc import Callable, Sequence
from typing import Final

import trio

from leader_hints.address import Address
from leader_hints.core.events import Event
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.route import Route
from leader_hints.core.workers import messages as said
from leader_hints.net.brokers.reachability import Reach
from leader_hints.net.clients.reset import reset_when_closed
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.refresher import Refresher
from leader_hints.net.workers.parent_side import OpenLink, ParentSide
from leader_hints.net.workers.worker_links import next_worker
from leader_hints.net.workers.worker_pool import WorkerPool, worker_command
from leader_hints.observe.watched import Load
from leader_hints.settings.settings import Settings

#: What a worker runs.
_MODULE: Final = "leader_hints.cli.worker"
#: Seconds until all workers are ready, after which those that are begin to serve.
_PATIENCE: Final = 30.0
#: Seconds between two checks whether some are.
_MOMENT: Final = 0.02
#: Seconds after which a worker that says nothing gets no client if another one can.
_SILENT: Final = 3.0
#: Seconds for workers to say that their links have ended, beyond the time that links have.
_TO_SAY: Final = 2.0


class Workers:
    """The processes that have the links of this one. ``count``: how many there are."""

    def __init__(
        self,
        count: int,
        settings: Settings,
        routes: Sequence[Route],
        upstream: Callable[[Route], Address],
        hold_timer: HoldTimer,
        refresher: Refresher,
        recovery: Recovery,
        reach: Reach,
        open_broker: OpenLink,
        emit: Callable[[Event], None],
        journal_lost: Callable[[int], None],
    ) -> None:
        self.count = count
        #: The worker whose event is being emitted, 0 for none.
        self.speaking = 0
        self._sends = emit
        self._side = ParentSide(
            routes,
            count,
            upstream,
            hold_timer,
            refresher,
            recovery,
            reach,
            open_broker,
            settings.connect_timeout,
            self._emit,
            journal_lost,
        )
        #: What a worker begins with; it has no admin server, journal or takeover of its own.
        begins = settings.model_dump_json()
        command = worker_command(_MODULE)
        self._pool = WorkerPool(count, command, begins, self._side, emit)
        self.take = self._side.telling.take
        self.switched = self._side.telling.switched

    async def run(self) -> None:
        """Keep the workers running, until cancelled."""
        await self._pool.run()

    async def serving(self) -> None:
        """Wait until all workers take clients; if some do not in time, until one does."""
        with trio.move_on_after(_PATIENCE):
            await self._pool.serving.wait()
        while not self._side.ready:  # noqa: ASYNC110 - they begin in many ways
            await trio.sleep(_MOMENT)

    @property
    def ready(self) -> int:
        """How many workers take clients now."""
        return len(self._side.ready)

    @property
    def processes(self) -> list[int]:
        """The numbers of their processes."""
        return [*self._pool.processes.values()]

    def hand_over(self, route: Route, client: trio.SocketStream) -> bool:
        """Give a client to the worker with the fewest links; false where none takes any."""
        free = [one for one in self._side.ready if one.links < one.most_links]
        heard = trio.current_time() - _SILENT
        worker = next_worker([one for one in free if one.counting.at > heard] or free)
        if worker is None:
            return False
        number = self._side.links.begin(route, worker)
        # If that ends before it has taken the client the system closes it.
        reset_when_closed(client)
        sock = socket.socket(fileno=client.socket.detach())
        worker.send(said.ClientCame(number, route.name), sock)
        return True

    def worker_of(self, event: Event) -> int:
        """Return the number of the worker that an event comes from, 0 if it is none's."""
        link = getattr(event, "link", None) or getattr(
            getattr(event, "answered", None), "link", None
        )
        return self._side.links.worker_of(link) if link is not None else self.speaking

    async def fresh(self) -> None:
        """Return when all that workers have counted by now is added up."""
        await self._side.counts.fresh()

    def load(self, own: Load) -> Load:
        """Return the load of all processes together."""
        loads = [worker.counting.load for worker in self._side.workers]
        return Load(
            tasks=own.tasks + sum(load.tasks for load in loads),
            exchanges=[load.exchanges for load in loads],
            held=own.held,
            kept_bytes=own.kept_bytes + sum(load.kept_bytes for load in loads),
            queued_bytes=own.queued_bytes + sum(load.queued_bytes for load in loads),
        )

    def renew_certificates(self) -> None:
        """Have all workers read their TLS files again."""
        for worker in self._side.workers:
            worker.send(said.RenewCertificates())

    async def drain(self, seconds: float, routes: Sequence[str]) -> None:
        """End all links; see :class:`leader_hints.app.drain.Drain`."""
        self._pool.ending = True
        workers = self._side.ready
        for worker in workers:
            worker.send(said.Drain(seconds, tuple(routes)))
        with trio.move_on_after(seconds + _TO_SAY):
            for worker in workers:
                await worker.drained.wait()
        await self.fresh()

    def _emit(self, event: Event, worker: int) -> None:
        self.speaking = worker
        try:
            self._sends(event)
        finally:
            self.speaking = 0
