"""Faults of requests: what is refused, with an answer that no broker gave or by a reset."""

from collections import defaultdict
from typing import Final

from leader_hints.apis.header import RequestHeader, read_request_header
from leader_hints.apis.keys import ApiKey
from leader_hints.core.route import Route
from leader_hints.faults.asking import Asking
from leader_hints.faults.chosen_faults import ChosenFaults, concerns, named
from leader_hints.faults.fault import Action, Begun, hint_for
from leader_hints.faults.refusal import Asked, read_asked, read_session_id, refuse
from leader_hints.faults.session_partitions import Partitions, SessionPartitions
from leader_hints.wire.errors import WireError

_NOTHING: Final = Asked(())


class ConnectionRefused(Exception):
    """A connection is to end as if there were no listener."""


class RequestFaults:
    """Applies faults to requests, and follows the fetch sessions of each route for that."""

    def __init__(self, chosen: ChosenFaults) -> None:
        self._chosen = chosen
        self._sessions: defaultdict[str, SessionPartitions] = defaultdict(SessionPartitions)

    def look(self, route: Route, link: int, frame: bytes) -> Asking:
        """Read a request as far as the faults need it, and refuse it if one does.

        :raises ConnectionRefused: a fault refuses its connection.
        """
        header = read_request_header(memoryview(frame))
        asked = _NOTHING
        if header.key in (ApiKey.PRODUCE, ApiKey.FETCH):
            asked = _read(frame)
        of_session: Partitions | None = None
        if asked.incremental:
            sessions = self._sessions[route.name]
            of_session = sessions.change(asked.session, asked.partitions, asked.forgotten)
        about: Partitions = asked.partitions if of_session is None else of_session
        for _ in self._chosen.applying(Action.REFUSE, route, header, about):
            raise ConnectionRefused
        for begun in self._chosen.of(Action.ERROR, route, header):
            if not asked.partitions and not asked.incremental:
                continue
            # A session that is not known may have what the fault chooses.
            if of_session is not None and not concerns(begun.fault, route, of_session):
                continue
            refused = self._refuse(begun, route, header, frame, asked)
            if refused is not None:
                return Asking(link, header, frame, asked, about, refused)
        return Asking(link, header, frame, asked, about)

    def _refuse(
        self, begun: Begun, route: Route, header: RequestHeader, frame: bytes, asked: Asked
    ) -> bytes | None:
        fault = begun.fault
        if not asked.incremental:
            # An incremental Fetch is asked for in full first: it does not say its partitions.
            chosen = [at for at in asked.partitions if fault.chooses_partition(*named(route, at))]
            if not chosen or not self._chosen.refuses(begun, route, header, chosen):
                return None
        return refuse(
            memoryview(frame),
            header.correlation_id,
            fault.error.code,
            lambda topic, partition: fault.chooses_partition(*named(route, (topic, partition))),
            lambda topic, partition: hint_for(fault.hint, route, topic, partition),
        )

    def follow(self, route: Route, asking: Asking, frame: bytes) -> None:
        """Remember what a new fetch session asks about, once it is answered."""
        if not asking.asked.opens:
            return
        session = read_session_id(memoryview(frame), asking.header.version)
        if session:
            self._sessions[route.name].begin(session, asking.asked.partitions)


def _read(frame: bytes) -> Asked:
    try:
        return read_asked(memoryview(frame))
    except WireError:
        # A version that is not known here passes: no fault that minds partitions chooses it.
        return _NOTHING
