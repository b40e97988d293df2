"""Which of the faults in force apply to a connection or message; each time is reported."""

from collections.abc import Callable, Iterator, Sequence

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.header import RequestHeader
from leader_hints.apis.keys import api_name
from leader_hints.core.events import Event, FaultDone
from leader_hints.core.route import Route
from leader_hints.faults.fault import Action, Begun, Fault, Faults
from leader_hints.faults.session_partitions import Partitions


class ChosenFaults:
    """Chooses among ``faults``. ``emit`` takes an event for each one that is applied."""

    def __init__(self, faults: Faults, emit: Callable[[Event], None]) -> None:
        self._faults = faults
        self._emit = emit

    def admits(self, routes: Sequence[str]) -> Sequence[str]:
        """Return which of some routes, by name, take a connection that is made now.

        A fault that leaves others of them only sends the connection there, as where one broker is
        down. It is done, and counted, where it leaves none.
        """
        for begun in self._faults:
            fault = begun.fault
            if fault.action is not Action.REFUSE or not fault.chooses_connections:
                continue
            left = [route for route in routes if not fault.chooses(route, "", "")]
            if left:
                routes = left
            elif routes and self._faults.due(begun):
                self._report(begun, routes[0], "", "")
                return ()
        return routes

    def of(self, action: Action, route: Route, header: RequestHeader) -> list[Begun]:
        """Return the faults of an action that choose a message, by its header."""
        return [
            begun
            for begun in self._faults
            if begun.fault.action is action
            and begun.fault.chooses(route.name, api_name(header.key), header.client_id or "")
        ]

    def applying(
        self, action: Action, route: Route, header: RequestHeader, about: Partitions
    ) -> Iterator[Begun]:
        """Yield the faults of an action that apply now to a message ``about`` partitions.

        Each is reported when it is reached.
        """
        for begun in self.of(action, route, header):
            if concerns(begun.fault, route, about) and self.due(begun, route, header):
                yield begun

    def due(self, begun: Begun, route: Route, header: RequestHeader) -> bool:
        """Whether a fault applies this time to what it chooses; it is reported then."""
        if not self._faults.due(begun):
            return False
        self._report(begun, route.name, api_name(header.key), header.client_id or "")
        return True

    def refuses(
        self, begun: Begun, route: Route, header: RequestHeader, partitions: Partitions
    ) -> bool:
        """Whether a fault refuses partitions this time; each of them is reported then."""
        if not self._faults.due(begun):
            return False
        client_id = header.client_id or ""
        for at in partitions:
            self._report(
                begun, route.name, api_name(header.key), client_id, refused=named(route, at)
            )
        return True

    def _report(
        self,
        begun: Begun,
        route: str,
        api: str,
        client_id: str,
        *,
        refused: tuple[str, int] | None = None,
    ) -> None:
        """Report that a fault was applied; ``refused``: to a topic's partition."""
        topic, partition = refused or ("", -1)
        self._emit(
            FaultDone(
                route=route,
                number=begun.number,
                action=begun.fault.action,
                api=api,
                client_id=client_id,
                topic=topic,
                partition=partition,
                error=begun.fault.error.code if refused else 0,
                hint=begun.fault.hint if refused else "",
            )
        )


def concerns(fault: Fault, route: Route, about: Partitions) -> bool:
    """Whether a fault chooses some of the partitions that a message is ``about``, or minds none."""
    return not fault.chooses_some_partitions or any(
        fault.chooses_partition(*named(route, at)) for at in about
    )


def named(route: Route, at: tuple[Topic, int]) -> tuple[str, int]:
    """Return a partition with its topic's name, also where a message has the topic's id."""
    return route.broker.topic_name(at[0]), at[1]
