"""Both sides of workers, without processes: what one says the other takes, as bytes."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import trio

from leader_hints.address import Address
from leader_hints.app.part_settings import poller_settings
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.refresh_rate import RefreshRate
from leader_hints.core.events import Event
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.plan import plan_for
from leader_hints.core.workers.codec import bytes_of, decode
from leader_hints.core.workers.messages import FromWorker, LinkBegan, Message, ToWorker
from leader_hints.net.brokers.reachability import Reachability
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.metadata.refresher import Refresher
from leader_hints.net.workers.parent_side import OpenLink, ParentSide, Worker
from leader_hints.net.workers.worker_side import WorkerSide
from leader_hints.settings.settings import Settings
from tests.core.hold_queues import NODES
from tests.core.rules import DEFAULT_RULES
from tests.core.samples import BROKER_3_6

LONGEST = 0.2


class Hall:
    """The side that decides, with a route ``r`` before node 1 of a cluster ``cluster``.

    ``events``: what it emitted, each with its worker; ``lost``: how many events were. ``routes``:
    all of them, ``others`` by name beside ``r``. ``open_broker``: connects to one for a link.
    """

    def __init__(
        self,
        settings: Settings,
        mode: Mode = Mode.ON,
        others: Sequence[str] = (),
        open_broker: OpenLink = trio.open_tcp_stream,
    ) -> None:
        self.route = Route("r", mode, broker=BrokerState(endpoints=NODES, reachable=True))
        self.routes = [self.route, *(Route(name, mode) for name in others)]
        self.events: list[tuple[Event, int]] = []
        self.lost = 0
        self.seats: list[Seat] = []
        self.recovery = Recovery(self.routes, trio.current_time)
        self.timer = HoldTimer(HoldQueue(DEFAULT_RULES), lambda event: self.emit(event, 0))
        self.refresher = Refresher(
            [], self.timer, RefreshRate(1, 1), 0.01, poller_settings(settings), lambda _: None
        )
        self.reach = Reachability(lambda route, peer: None, lambda route: None, self._reached)
        self.side = ParentSide(
            self.routes,
            2,
            lambda route: Address("127.0.0.1", 9),
            self.timer,
            self.refresher,
            self.recovery,
            self.reach,
            open_broker,
            1.0,
            self.emit,
            self._lose,
        )

    def emit(self, event: Event, worker: int) -> None:
        """Take an event as the observers do."""
        self.events.append((event, worker))
        self.recovery.take(event)
        self.side.telling.take(event)

    def _reached(self, event: Event) -> None:
        self.emit(event, 0)

    def _lose(self, events: int) -> None:
        self.lost += events

    def meet(self) -> None:
        """Have the broker report its versions, and be known as node 1."""
        self.route.broker.maxima = BROKER_3_6
        self.route.broker.plan = plan_for(BROKER_3_6)
        self.route.broker.node = 1

    def exchange(self) -> None:
        """Have all that was said taken, until nobody says anything."""
        some = True
        while some:
            more = self.side.send_some()
            some = bool(sum(seat.deliver() for seat in self.seats)) or more

    def seat(self, number: int, told: bool = True) -> "Seat":
        """Have one more worker join; without ``told`` ``joining`` is left to do."""
        seat = Seat(self, number)
        self.seats.append(seat)
        if told:
            for _ in seat.joining:
                pass
        return seat


class Seat:
    """A worker. ``settled``: its responses that went on, with their hints. ``routes``: all of its.

    ``joining``: tells it what is known, in steps. ``later``: what it does in steps.
    """

    def __init__(self, hall: Hall, number: int) -> None:
        self._hall = hall
        self._said: deque[bytes] = deque()
        self._told: deque[bytes] = deque()
        self.crowded = self.behind = False
        self.routes = {route.name: Route(route.name, Mode.ON) for route in hall.routes}
        self.route = self.routes["r"]
        self.settled: list[tuple[int, list[object]]] = []
        self.later: list[Iterator[None]] = []
        self.side = WorkerSide(
            self.routes,
            self._note(self._said),
            lambda: self.crowded,
            lambda: self.crowded or self.behind,
            LONGEST,
            self.later.append,
            trio.current_time,
        )
        self.side.holds.settle = lambda decided: self.settled.extend(
            (held.link.number, [*hints]) for held, hints in decided
        )
        self.worker = Worker(number, lambda message, sock: self._note(self._told)(message))
        self.joining = hall.side.joining(self.worker)

    def _note(self, queue: deque[bytes]) -> Callable[[Message | bytes], None]:
        return lambda message: queue.append(bytes_of(message))

    @property
    def waiting(self) -> list[Message]:
        """What it has said and nobody has taken yet."""
        return [decode(data) for data in self._said]

    def say(self, message: FromWorker) -> None:
        """Say something that the rest of a worker would."""
        self._said.append(bytes_of(message))

    def deliver(self) -> bool:
        """Have what was said and told taken; return whether there was anything."""
        while self.side.holds.send_some():
            pass
        self.side.events.send_some()
        some = bool(self._said or self._told)
        while self._said:
            self._hall.side.take(self.worker, decode(self._said.popleft()))  # type: ignore[arg-type]
        while self._told:
            message = decode(self._told.popleft())
            assert self.side.takes(message), message  # type: ignore[arg-type]
        return some

    def pending(self) -> list[ToWorker]:
        """Return what was sent to it and it has not taken, and have it forgotten."""
        told = [decode(data) for data in self._told]
        self._told.clear()
        return told  # type: ignore[return-value]

    def link(self) -> LinkState:
        """Begin a link."""
        number = self._hall.side.links.begin(self._hall.route, self.worker)
        self.say(LinkBegan(number))
        return LinkState(self.route, number, "client:1")
