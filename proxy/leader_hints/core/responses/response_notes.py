"""What is noted of responses, whatever becomes of them.

Tested in ``tests/core/link/test_link.py``.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import repeat

from leader_hints.apis.fetch_request import (
    FINAL_EPOCH,
    SMALL,
    Asked,
    read_asker,
    read_in_steps,
    read_session,
)
from leader_hints.apis.fetch_response import FetchScan
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.leader_hint import Failure, Scanned
from leader_hints.apis.response_scan import has_no_failure
from leader_hints.core.events import HintMissed
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.hints.recovery import Awaiting
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.responses.passthrough_scan import PassthroughScan
from leader_hints.core.responses.settling_scan import SettlingScan
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH
from leader_hints.wire.errors import WireError
from leader_hints.wire.steps import Steps, together

#: Failed partitions that are noted in one step.
_FAILED_AT_ONCE = 500
#: Steps of reading a request that are done as one: the client waits.
_READ_AT_ONCE = 4


class ResponseNotes:
    """Errors and successes that pass, why an error is not held, and the state of fetch sessions."""

    __slots__ = ("_misread", "_recovery", "link")

    def __init__(self, link: LinkState, recovery: Awaiting) -> None:
        self.link = link
        self._recovery = recovery
        #: Correlation id of the last request that could not be read.
        self._misread: int | None = None

    def passing(
        self, exchange: Exchange, frame: memoryview, length: int, version: int
    ) -> PassthroughScan | None:
        """Look at what a response answers that goes on, where that tells something.

        Return what has looked at it, and is to see the rest if that is of interest. It may be that
        some of ``frame`` is left, too.
        """
        reason = exchange.policy.unhinted
        if reason is None:
            if not (self.link.route.awaited and exchange.policy.hintable):
                # Of one that was asked while hints were off nothing is looked at.
                return None
        elif not self.link.route.awaited and has_no_failure(frame, exchange.policy.key, version):
            return None
        return self._follow(exchange, frame, length, version, reason)

    def passed(
        self, exchange: Exchange, frame: memoryview, length: int, version: int
    ) -> Steps[PassthroughScan | None]:
        """Do as :meth:`passing` with all of ``frame``, in steps."""
        scan = self.passing(exchange, frame, length, version)
        if scan is not None:
            yield from scan.see_rest(frame)
        return scan

    def settling(self, exchange: Exchange, frame: memoryview, length: int) -> SettlingScan | None:
        """Look at a response that goes on, but for errors that are to be settled.

        Return what has looked at it. Nothing in it changes, so what precedes its last partition may
        go on, and need not be kept.
        """
        policy = exchange.policy
        if not self.link.route.awaited and has_no_failure(frame, policy.key, policy.version):
            return None
        scan = SettlingScan(self.link, self._recovery, exchange, length)
        scan.see(frame)
        return scan

    def over_budget(
        self, exchange: Exchange, frame: memoryview, length: int, scan: FetchScan | None
    ) -> PassthroughScan | None:
        """Look at a response that should be gathered, and goes on since the budget is used up.

        Some of ``frame`` may be left to be looked at.
        """
        self.link.traffic.raw["budget"] += 1
        self.session_unread(exchange, scan)
        if not exchange.policy.hintable:
            return None
        return self._follow(exchange, frame, length, exchange.policy.version, MissReason.BUDGET)

    def _follow(
        self,
        exchange: Exchange,
        frame: memoryview,
        length: int,
        version: int,
        reason: MissReason | None,
    ) -> PassthroughScan:
        scan = PassthroughScan(self.link, self._recovery, exchange, version, length, reason)
        scan.see(frame)
        return scan

    def session_takes_long(self, exchange: Exchange) -> bool:
        """Whether there are steps to be done where the session of a response is noted."""
        request = exchange.request
        if request is None or len(request) <= SMALL:
            return False
        _, epoch, _ = read_session(memoryview(request))
        return epoch != FINAL_EPOCH

    def session_answered(
        self, exchange: Exchange, session_id: int, error: int
    ) -> Steps[None] | None:
        """Take note of the fetch session of a response; return what takes long of that."""
        sessions = self.link.route.sessions
        if exchange.request is None:
            sessions.missed(session_id)
            return None
        try:
            following = sessions.answered(exchange.request, session_id, error)
        except WireError as wrong:
            self._misunderstood(exchange, wrong)
            return None
        return None if following is None else self._following(exchange, following)

    def _following(self, exchange: Exchange, following: Steps[None]) -> Steps[None]:
        try:
            yield from following
        except WireError as wrong:
            self._misunderstood(exchange, wrong)

    def _misunderstood(self, exchange: Exchange, error: WireError) -> None:
        """Count a request that cannot be read: once, though its session and its errors need it."""
        if exchange.correlation_id != self._misread:
            self._misread = exchange.correlation_id
            version = exchange.policy.version
            self.link.misunderstood("client", f"Fetch v{version} request: {error}")

    def session_unread(self, exchange: Exchange, scan: FetchScan | None) -> None:
        """Take note that it is not known what came of a request whose response is not read.

        ``scan``: what was read of it all the same.
        """
        route = self.link.route
        if exchange.policy.key != ApiKey.FETCH:
            return
        if exchange.request is not None:
            with suppress(WireError):
                session_id, *_ = read_session(memoryview(exchange.request))
                route.sessions.missed(session_id)
        elif scan is not None and scan.started:
            route.sessions.missed(scan.session_id)
        else:
            # It may have changed any of them.
            route.sessions = route.sessions.empty()

    def held(self, exchange: Exchange, frame: memoryview, scanned: Scanned) -> Steps[Held | None]:
        """Return an error response to be held, in steps; ``None`` where it must not wait.

        That is a replica's, and one to a request that cannot be read: it might be a replica's.
        """
        link, policy = self.link, exchange.policy
        asked: tuple[Asked, int] = {}, 0
        if exchange.request is not None:
            try:
                reading = read_in_steps(memoryview(exchange.request))
                request = yield from together(reading, _READ_AT_ONCE)
            except WireError as error:
                self._misunderstood(exchange, error)
                return None
            if request.replica_id >= 0:
                yield from self._missed(
                    ApiKey(policy.key), policy.version, scanned, MissReason.REPLICA
                )
                return None
            asked = (yield from request.asked()), request.session_id
        epochs = yield from self._epochs(*asked, scanned)
        return Held(link, ApiKey(policy.key), policy.version, frame, scanned, epochs)

    def settled(
        self, exchange: Exchange, frame: memoryview, scanned: Scanned, *, understood: bool
    ) -> Steps[Held | None]:
        """Return an error response to be held until it is settled, in steps.

        ``frame``: what of it has not gone on. ``None`` where it must not wait, and its errors are
        counted: one that was not ``understood``, and unless it is known that no replica has asked.
        And a Produce error of a producer without an id: more requests would come to stand behind
        it, which fail too, and are sent again in reverse (Java's RecordAccumulator.reenqueue).
        """
        policy = exchange.policy
        key, unhinted = ApiKey(policy.key), policy.unhinted
        assert unhinted is not None
        replica, asked, session_id = yield from _read_asked(exchange)
        keeps_order = key != ApiKey.PRODUCE or self.link.client.numbers_records
        if understood and replica is False and keeps_order:
            epochs = yield from self._epochs(asked, session_id, scanned)
            return Held(self.link, key, policy.version, frame, scanned, epochs, unhinted)
        if replica:
            yield from self._missed(key, policy.version, scanned, MissReason.REPLICA)
        else:
            yield from self._came(key, scanned)
            yield from self._missed(key, policy.version, scanned, unhinted)
        return None

    def holding(
        self, exchange: Exchange, frame: memoryview, scanned: Scanned, *, understood: bool
    ) -> Steps[Held | PassthroughScan | None]:
        """Do all of :meth:`passing`, :meth:`held` and :meth:`hold_begins`, in steps; or of
        :meth:`settled` and :meth:`hold_begins`.

        ``frame`` stays. Return what becomes of it.
        """
        version, passing = exchange.policy.version, None
        if exchange.policy.unhinted is None:
            passing = yield from self.passed(exchange, frame, len(frame), version)
            held = yield from self.held(exchange, frame, scanned)
        else:
            held = yield from self.settled(exchange, frame, scanned, understood=understood)
        if held is None:
            return passing
        yield from self.hold_begins(held)
        return held

    def hold_begins(self, held: Held) -> Steps[None]:
        """Take note of the errors of a response that is held, in steps."""
        return self._came(held.key, held.scanned)

    def _came(self, key: ApiKey, scanned: Scanned) -> Steps[None]:
        link, broker = self.link, self.link.route.broker
        for some in _parts(scanned):
            if len(scanned.failures) > _FAILED_AT_ONCE:
                yield
            self._recovery.failed(
                link.route,
                link.client.id or "",
                api_name(key),
                ((broker.topic_name(failure.topic), failure.partition) for failure in some),
            )

    def lacks_budget(self, held: Held) -> Steps[None]:
        """Take note, in steps, that a response is not held since the budget is used up."""
        reason, settling = MissReason.BUDGET, ""
        if held.unhinted is not None:
            reason, settling = held.unhinted, MissReason.BUDGET
        return self._missed(held.key, held.version, held.scanned, reason, settling, held.epochs)

    def _missed(
        self,
        key: ApiKey,
        version: int,
        scanned: Scanned,
        reason: MissReason,
        settling: str = "",
        epochs: Iterable[int] = repeat(UNKNOWN_EPOCH),
    ) -> Steps[None]:
        of_each = iter(epochs)
        for some in _parts(scanned):
            if len(scanned.failures) > _FAILED_AT_ONCE:
                yield
            for failure, epoch in zip(some, of_each, strict=False):
                answered = self.link.answered(key, version, failure, epoch, 0.0)
                missed = HintMissed(answered=answered, reason=reason, settling=settling)
                self.link.events.append(missed)

    def _epochs(self, asked: Asked, session_id: int, scanned: Scanned) -> Steps[list[int]]:
        epochs: list[int] = []
        for some in _parts(scanned):
            if len(scanned.failures) > _FAILED_AT_ONCE:
                yield
            epochs += self.link.route.sessions.epochs(asked, session_id, some)
        return epochs


def _parts(scanned: Scanned) -> Iterator[Sequence[Failure]]:
    failures = scanned.failures
    return (
        failures[begin : begin + _FAILED_AT_ONCE]
        for begin in range(0, len(failures), _FAILED_AT_ONCE)
    )


def _read_asked(exchange: Exchange) -> Steps[tuple[bool | None, Asked, int]]:
    """Read, as far as it is at hand, whether a replica has asked, for what, and in which session.

    ``None`` in place of whether one has where that is not known.
    """
    policy = exchange.policy
    if policy.key != ApiKey.FETCH:
        return False, {}, 0
    if exchange.request is None:
        return None, {}, 0
    frame = memoryview(exchange.request)
    try:
        if not policy.follows_session:
            return read_asker(frame).replica, {}, 0
        request = yield from together(read_in_steps(frame), _READ_AT_ONCE)
    except WireError:
        return None, {}, 0
    return request.replica_id >= 0, (yield from request.asked()), request.session_id
