"""The faults of a process, with their interposer, admin pages and scenario.

Only `leader-hints local --allow-faults` has one.
"""

import socket
from collections.abc import Callable, Collection, Mapping, Sequence

import trio

from leader_hints.core.events import Event, TaskFailed
from leader_hints.core.route import Route
from leader_hints.errors import places_of
from leader_hints.faults.asking import OnRequest, OnResponse
from leader_hints.faults.fault import Fault, Faults
from leader_hints.faults.fault_pages import FaultPages
from leader_hints.faults.interposer import Interposer
from leader_hints.faults.scenario import Scenario, Step

#: Returns leader and epoch by topic and partition, as they are known now.
Leaders = Callable[[], Mapping[tuple[str, int], tuple[int, int]]]


class FaultInjector:
    """Injects the faults of a process. Call :meth:`bind` first.

    ``scenario``: faults that begin and end by time. ``on_request`` and ``on_response``: are called
    with each message that passes.
    """

    def __init__(
        self,
        scenario: Scenario | None = None,
        on_request: OnRequest = lambda route, asking: None,
        on_response: OnResponse = lambda route, asking, frame: None,
    ) -> None:
        self.faults = Faults(scenario.seed if scenario is not None else 0)
        self.pages = FaultPages(self.faults, self.begin, lambda: self._routes())
        self._scenario = scenario
        self._watchers = on_request, on_response
        self._emit: Callable[[Event], None] = lambda event: None
        self._leaders: Leaders = dict
        self._routes: Callable[[], Collection[str]] = list
        self._interposer: Interposer | None = None

    def bind(
        self,
        emit: Callable[[Event], None],
        leaders: Leaders,
        routes: Callable[[], Collection[str]] = list,
    ) -> None:
        """Connect it to the process.

        ``emit``: takes events. ``leaders``: returns the leaders, ``routes`` the routes' names.
        """
        self._emit = emit
        self._leaders = leaders
        self._routes = routes
        self._interposer = Interposer(self.faults, emit, *self._watchers)

    def begin(self, fault: Fault) -> int:
        """Put a fault in force; return its number."""
        return self.faults.begin(fault, self._leaders())

    def admits(self, routes: Sequence[str]) -> Sequence[str]:
        """Return which of some routes, by name, take a connection that is made now."""
        assert self._interposer is not None
        return self._interposer.admits(routes)

    def interpose(
        self, nursery: trio.Nursery, route: Route, client: trio.SocketStream
    ) -> trio.SocketStream:
        """Put the interposer in front of a client; return the stream to use in its place.

        :raises OSError: the system is short of descriptors; the client is as it was.
        """
        assert self._interposer is not None
        ours, theirs = trio.socket.socketpair()
        # The listener closes the stream that it accepted, so the client gets a new one.
        sock = socket.socket(fileno=client.socket.detach())
        client = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        nursery.start_soon(self._interposer.serve, route, client, trio.SocketStream(ours))
        return trio.SocketStream(theirs)

    async def play(self) -> None:
        """Play the scenario to its end, if there is one."""
        begun_at = trio.current_time()
        begun: dict[str, int] = {}
        for step in self._scenario.steps if self._scenario is not None else ():
            await trio.sleep_until(begun_at + step.at_ms / 1000)
            try:
                self._take(step, begun)
            except Exception as error:  # A defect here must not end the process.
                self._emit(TaskFailed(task="scenario", traceback=places_of(error)))

    def _take(self, step: Step, begun: dict[str, int]) -> None:
        for name in step.end:
            self.faults.end(begun.pop(name, 0))
        for name, fault in step.begin.items():
            begun[name] = self.begin(fault)
