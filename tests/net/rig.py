"""A Pump whose steps the test makes itself, and the far ends of its links."""

import contextlib
import gc
import os
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace

from leader_hints.core.broker_state import BrokerState
from leader_hints.core.events import (
    BadBrokerBytes,
    BadClientBytes,
    Event,
    LinkFailed,
    NotUnderstood,
)
from leader_hints.core.hints.hold_queue import HoldQueue
from leader_hints.core.hints.hold_rules import HoldRules
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.plan import PASS, plan_for
from leader_hints.net.metadata.hold_timer import HoldTimer
from leader_hints.net.pump.limits import PumpLimits
from leader_hints.net.pump.poller import Poller
from leader_hints.net.pump.pump import Pump
from leader_hints.net.pump.reports import Snoop
from leader_hints.settings.limits import LimitSettings
from tests.core.rules import DEFAULT_RULES
from tests.harness.waiting import until

#: What a broker of 3.6 takes, and so what is raised.
LEGACY = {0: 9, 1: 15, 3: 12, 18: 3}
LIMITS = PumpLimits(
    request_bytes=1 << 20,
    requests_in_flight=1000,
    queued_bytes=LimitSettings().queued_bytes,
)
#: Far more steps than any test needs: a pump that is still busy then spins on a socket.
_MOST_STEPS = 20_000
#: Bounds a broken test.
_SECONDS = 10.0


class Ends:
    """The two far ends of a link; neither blocks."""

    def __init__(self, client: socket.socket, broker: socket.socket) -> None:
        self.client = client
        self.broker = broker

    def close(self) -> None:
        """Close both."""
        self.client.close()
        self.broker.close()


class Rig:
    """A Pump with all that it needs.

    ``events``: what it told; ``lacks``: routes, ids that have no names, and which IP address uses
    them; ``doubts``: routes whose clients lack ids.
    """

    def __init__(
        self,
        *,
        rules: HoldRules | None = None,
        snoop: Snoop = lambda route, version, payload: None,
        limits: PumpLimits = LIMITS,
        link_buffer: int = 1 << 22,
        poller: Poller | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.lacks: list[tuple[str, list[bytes], str]] = []
        self.doubts: list[str] = []
        self.budget = Budget(link_buffer, 2 * link_buffer)
        # So long that only the view lets a held response go, unless a test says otherwise.
        self.hold_queue = HoldQueue(
            rules
            or replace(
                DEFAULT_RULES,
                deadline=3600,
                link_second=3600,
                shared=3600,
                grace=3600,
                confirm=0,
            )
        )
        self.hold_timer = HoldTimer(self.hold_queue, self.events.append)
        self.pump = Pump(
            self.budget,
            self.hold_timer,
            self.events.append,
            snoop,
            lambda route, ids, address: self.lacks.append((route.name, [*ids], address)),
            lambda route: self.doubts.append(route.name),
            Recovery([]),
            limits,
            poller=poller,
        )
        self.hold_timer.settle = self.pump.settle
        self._open: list[Ends] = []

    @property
    def complaints(self) -> list[Event]:
        """What was reported of messages that could not be read, and of links that were ended."""
        kinds = (BadBrokerBytes, BadClientBytes, LinkFailed, NotUnderstood)
        return [event for event in self.events if isinstance(event, kinds)]

    def link(
        self,
        route: Route,
        *,
        tcp: bool = False,
        buffers: int | None = None,
        address: str = "a client",
    ) -> Ends:
        """Make a link; ``buffers``: size of the kernel's."""
        client, ours = socket_pair(tcp=tcp, buffers=buffers)
        theirs, broker = socket_pair(tcp=tcp, buffers=buffers)
        self.pump.adopt(route, ours, theirs, address)
        ends = Ends(client, broker)
        self._open.append(ends)
        return ends

    def spin(self) -> None:
        """Have everything done that can be done now."""
        for _ in range(_MOST_STEPS):
            if not self.pump.step():
                return
        raise AssertionError("the pump is busy for ever")

    def sweep(self, now: float) -> None:
        """Have the pump do all steps of a sweep."""
        for _ in self.pump.sweep(now):
            pass

    def drain(self, exempt: Callable[[LinkState], bool]) -> None:
        """Have the pump do all steps of a drain."""
        for _ in self.pump.drain(exempt):
            pass

    def send(self, end: socket.socket, data: bytes) -> None:
        """Send all of ``data`` from a far end, with as many steps as that takes."""
        rest = memoryview(data)
        for _ in range(_MOST_STEPS):
            with contextlib.suppress(BlockingIOError):
                rest = rest[end.send(rest) :]
            if not rest:
                break
            self.spin()
        assert not rest, "the pump reads no more"
        self.spin()

    def send_what_fits(self, end: socket.socket, data: bytes) -> int:
        """Send of ``data`` what is taken while nobody reads the other end; return how much."""
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < len(data):
                sent += end.send(memoryview(data)[sent : sent + 65536])
                self.spin()
        return sent

    def close(self) -> None:
        """Close all far ends, and check that the pump then has nothing left."""
        for ends in self._open:
            ends.close()
        self.spin()
        assert self.budget.used == 0


@contextlib.contextmanager
def opened(rig: Rig) -> Iterator[Rig]:
    """Close the rig where the test went well."""
    yield rig
    rig.close()


def socket_pair(
    *, tcp: bool = False, buffers: int | None = None
) -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that do not block; only TCP knows resets."""
    if tcp:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            first = socket.create_connection(listener.getsockname())
            second, _ = listener.accept()
    else:
        first, second = socket.socketpair()
    for sock in (first, second):
        sock.setblocking(False)
        if buffers is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers)
    return first, second


def received(end: socket.socket) -> bytes:
    """What has arrived at a far end."""
    data, _ = _drain(end)
    return data


def ended(end: socket.socket) -> bool:
    """Whether nothing more will come to a far end; what had come is dropped."""
    _, over = _drain(end)
    return over


def _drain(end: socket.socket) -> tuple[bytes, bool]:
    chunks = []
    try:
        while chunk := end.recv(1 << 20):
            chunks.append(chunk)
    except BlockingIOError:
        return b"".join(chunks), False
    except ConnectionError:
        return b"".join(chunks), True
    return b"".join(chunks), True


def reset(end: socket.socket) -> None:
    """Close a far end so that the other one gets a reset."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.close()


def until_end(rig: Rig, end: socket.socket) -> bytes:
    """All that comes to a far end before its end."""
    data = bytearray()

    def over() -> bool:
        rig.spin()
        chunk, ended = _drain(end)
        data.extend(chunk)
        return ended

    until(over, "the connection ends", _SECONDS)
    return bytes(data)


def open_descriptors() -> int:
    """How many descriptors this process has open.

    A look-up of a name that a test before has begun may have some for a moment: it has a thread
    that nobody can end.
    """
    return len(os.listdir("/proc/self/fd"))


def descriptors_before() -> int:
    """How many this process has open before a test.

    What tests before have left in cycles goes first: else it may go in the middle.
    """
    gc.collect()
    return open_descriptors()


def hinting_route(name: str = "r") -> Route:
    """A route before node 1 of 3.6: clients may ask Produce 10 and Fetch 16."""
    return Route(name, Mode.ON, broker=BrokerState(plan=plan_for(LEGACY), node=1, reachable=True))


def opaque_route() -> Route:
    """A route before a native broker: nothing is looked at."""
    return Route("opaque", Mode.ON, broker=BrokerState(plan=PASS))
