"""When each held response is to be looked at, if nothing is learnt."""

import math
from bisect import bisect_left, insort

from leader_hints.core.hints.held_response import HeldResponse

#: Time and number of a response, and the response. Numbers are unique, so responses are never
#: compared.
_Entry = tuple[float, int, HeldResponse]

#: Responses that may be over and are not yet, of which one call takes note. Thousands may have come
#: at the same time.
_PASSED_AT_ONCE = 50


class _Timetable:
    """Responses in the order of a time. A sorted list: an entry can be dropped without a walk."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    @property
    def first(self) -> tuple[float, HeldResponse | None]:
        """The earliest time, infinity without any, and the response that is due then."""
        if not self._entries:
            return math.inf, None
        at, _, response = self._entries[0]
        return at, response

    def put(self, at: float, response: HeldResponse) -> None:
        insort(self._entries, (at, response.number, response))

    def drop(self, at: float, response: HeldResponse) -> None:
        del self._entries[bisect_left(self._entries, (at, response.number))]


class HoldDeadlines:
    """The deadlines of held responses, and when their unconfirmed hints are to be given.

    A response goes on at the later one of two times: ``earliest``, and its deadline less the delay
    of reviews, which changes all the time. So deadlines count only once ``earliest`` is over.

    ``passed``: of how many responses the last call of :meth:`due` took note that this is so.
    """

    def __init__(self) -> None:
        self.passed = 0
        self._earliest = _Timetable()
        self._not_yet = _Timetable()
        self._may_end = _Timetable()
        self._confirms = _Timetable()
        #: By response: ``earliest``, infinity once it is over; deadline; when to give hints.
        self._entered: dict[HeldResponse, tuple[float, float, float]] = {}

    def enter(self, response: HeldResponse) -> None:
        """Note the times of a response, in place of those it had before."""
        # What is only sought is held no longer: no deadline of it ends anything.
        earliest = math.inf if response.sought else response.earliest
        deadline = math.inf if response.sought else response.deadline
        self.remove(response)
        self._entered[response] = earliest, deadline, response.confirm_at
        if deadline < math.inf:
            self._earliest.put(earliest, response)
            self._not_yet.put(deadline, response)
        if response.confirm_at < math.inf:
            self._confirms.put(response.confirm_at, response)

    def remove(self, response: HeldResponse) -> None:
        """Drop the times of a response."""
        if response not in self._entered:
            return
        earliest, deadline, confirm_at = self._entered.pop(response)
        if earliest < math.inf:
            self._earliest.drop(earliest, response)
            self._not_yet.drop(deadline, response)
        elif deadline < math.inf:
            self._may_end.drop(deadline, response)
        if confirm_at < math.inf:
            self._confirms.drop(confirm_at, response)

    def due(self, now: float, ahead: float) -> HeldResponse | None:
        """Return a response whose time has come; the same one until its times change.

        ``None`` too if very many are to be looked at: then :meth:`next` says when to go on.
        ``ahead``: how many seconds late the next call may be.
        """
        self.passed = 0
        while self.passed < _PASSED_AT_ONCE:
            at, response = self._may_end.first
            if at - ahead <= now:
                return response
            at, response = self._earliest.first
            if response is None or at > now:
                break
            self._pass_earliest(response)
            self.passed += 1
        at, response = self._confirms.first
        return response if at <= now else None

    def _pass_earliest(self, response: HeldResponse) -> None:
        earliest, deadline, confirm_at = self._entered[response]
        self._earliest.drop(earliest, response)
        self._not_yet.drop(deadline, response)
        self._may_end.put(deadline, response)
        self._entered[response] = math.inf, deadline, confirm_at

    def next(self, ahead: float) -> float:
        """Return when the next response may be due; infinity if there is none."""
        return min(
            # No response among these is due before both.
            max(self._earliest.first[0], self._not_yet.first[0] - ahead),
            self._may_end.first[0] - ahead,
            self._confirms.first[0],
        )
