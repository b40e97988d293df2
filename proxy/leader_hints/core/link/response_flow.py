"""The direction from the broker to the client.

Tested in ``tests/core/link/test_link.py``.
"""

import struct
from collections.abc import Sequence

from leader_hints.apis.fetch_response import SMALLEST_PARTITION
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import LeaderHint, Scanned
from leader_hints.apis.preferred_replica import PreferredReplicaScan
from leader_hints.core.hints.recovery import Awaiting
from leader_hints.core.link.ahead import Ahead
from leader_hints.core.link.budget import Account
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.flow import AT_ONCE, Flow, Pieces
from leader_hints.core.link.gathered_frame import GatheredFrame
from leader_hints.core.link.held import Held, cost
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.replicas.placement import Placement
from leader_hints.core.responses import fetch_responses
from leader_hints.core.responses.outcome import (
    Failed,
    Fault,
    Gather,
    Instead,
    InTurns,
    Outcome,
    settled,
)
from leader_hints.core.responses.passthrough_scan import PassthroughScan
from leader_hints.core.responses.response_notes import ResponseNotes
from leader_hints.core.responses.response_table import BY_API, OTHERS, reader_of
from leader_hints.core.responses.settling_scan import SettlingScan
from leader_hints.wire.steps import Steps, at_once

#: Size prefix, correlation id.
_HEAD = struct.Struct(">ii")
_SMALLEST = 4
_SIZE_PREFIX = 4
_NOTHING = memoryview(b"")
#: What a broker answers before it has authenticated a client: at anything else it ends the
#: connection, after SaslHandshake v1 with an error first (SaslServerAuthenticator). So any other
#: answer shows that it serves the client, or authenticates none on this listener; or the link ends.
_ANSWERED_TO_ANYBODY = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
#: As many answers show that it serves one that has begun SASL: one may be a refusal.
_PROOFS = 2
#: Bytes received at once where responses begin and are small; else as many as there is room for.
_LITTLE_AT_ONCE = 32_768
#: Bytes received for a partition's head behind records that went by unread: behind it others may.
_PARTITION_HEAD = 4096
#: No response is as large.
NEVER = 1 << 31
#: Bytes of a request that cost as much to read as an error does, and partitions of a response that
#: cost as much to be looked at.
_REQUEST = 1024
_LOOKED_AT = 4
#: Bytes of a response up to which it has little to be read.
_PLAIN = 80


class ResponseFlow(Flow):
    """Matches responses with exchanges, has them read, and does what comes of that.

    Large because a response may go on as it came, or changed, or later, and each of these may begin
    before all of it is there.

    ``held``: set when a response waits for its hints; then nothing may be received until
    :meth:`release` was called. ``unread``: the fault is the client's, which reads no answers.
    ``looks_from``: the driver can look at a partition's head without receiving it, where at least
    so many bytes precede it that have not been received.
    """

    __slots__ = (
        "_behind",
        "_brief",
        "_exchanges",
        "_link",
        "_looked",
        "_notes",
        "_passthrough",
        "_placement",
        "_placing",
        "_reserved",
        "_steps",
        "held",
        "looks_from",
        "unread",
    )

    def __init__(
        self,
        shared: memoryview,
        account: Account,
        link: LinkState,
        recovery: Awaiting,
        opaque: bool,
    ) -> None:
        super().__init__(shared, account, opaque, little=_LITTLE_AT_ONCE, most=len(shared))
        self._link = link
        self._exchanges = link.exchanges
        self._notes = ResponseNotes(link, recovery)
        #: What is reserved of the budget for what came behind a held response, now or before.
        self._behind = 0
        #: Of the frame whose rest is passed on as it comes.
        self._passthrough: PassthroughScan | None = None
        self._placement = Placement(link)
        #: Of the frame that passes, or is gathered, where another replica may be named in it.
        self._placing: PreferredReplicaScan | None = None
        #: Of a large response, which is read, held, or released, in the link's turns.
        self._steps: Steps[Pieces] | None = None
        #: What is reserved for what failed in it, until it is held.
        self._reserved = 0
        #: Records have just gone by unread, and others stand behind the next partition's head.
        self._brief = False
        #: Heads of the last response were looked at without receiving them. The next one may be
        #: like it: the less is received of it the better.
        self._looked = False
        self.looks_from = NEVER
        self.held: Held | None = None
        self.unread = False

    def release(self, hints: Sequence[LeaderHint | None], *, waited: bool = False) -> Pieces:
        """Let the held response go on with ``hints``, and what came behind it.

        Each failed partition costs as much as a response does that has one alone. ``waited``: it is
        not the link's turn. Many links' responses go on together, so what is behind has its own.
        """
        assert self.held is not None
        held, self.held = self.held, None
        cost = AT_ONCE if waited else len(held.scanned.failures)
        # Its tag sections were read before: this cannot fail.
        pieces = self._step(held.answer(hints))
        # Where hints are only counted the hold queue keeps it on, and needs no more of it.
        held.frame = _NOTHING
        if self._steps is None and not (self._backlog and self._put_off(cost)):
            pieces += self.resume()
        return pieces

    def resume(self) -> Pieces:
        """See :meth:`leader_hints.core.link.flow.Flow.resume`."""
        if self._steps is not None:
            return self._take_turn(self._steps)
        if self._gather is not None:
            self.unfinished = False
            return self._gather_more(self._gather, 0)
        return super().resume()

    def _take_turn(self, steps: Steps[Pieces]) -> Pieces:
        """Do a step; what came behind the response has its own turn."""
        pieces = self._step(steps)
        if self._steps is None and self.held is None:
            self.unfinished = bool(self._backlog)
        return pieces

    def _step(self, steps: Steps[Pieces]) -> Pieces:
        """Do a step; return what goes on if it was the last one."""
        try:
            next(steps)
        except StopIteration as end:
            self._steps, self.unfinished = None, False
            pieces: Pieces = end.value
            return pieces
        self._steps, self.unfinished = steps, True
        return []

    def _walk(self, data: memoryview) -> Pieces:
        size = len(data)
        at = self._skip
        if at and (rest := self._rest_of_begun(data)) is not None:
            return rest
        self._looked = False
        pieces: Pieces = []
        #: From here on data is forwarded unchanged.
        begun = 0
        frames = 0
        while size - at >= _HEAD.size:
            frames += 1
            length, correlation_id = _HEAD.unpack_from(data, at)
            exchange = self._match(length, correlation_id)
            if exchange is None:
                return [*pieces, data[begun : at if self.fault else size]]
            length += _SIZE_PREFIX
            end = at + length
            policy = exchange.policy
            readers = BY_API.get(policy.key, OTHERS)
            reader = readers.recoded if exchange.recoded else readers[policy.use]
            looks = policy.places or self._placing is not None
            if looks and self._look(exchange, data[at:end], length):
                if self.unfinished:
                    self._wait_behind(data, end)
                return [*pieces, data[begun:at]] if at > begun else pieces
            outcome = None
            if reader is not None:
                frame = data[at:end]
                outcome = reader(self._notes, exchange, frame, length)
            if outcome is not None:
                if not self._do(outcome, exchange, frame, length):
                    if self.held is not None or self.unfinished:
                        self._wait_behind(data, end)
                    return [*pieces, data[begun:at]] if at > begun else pieces
                if self._instead:
                    self._replace(pieces, data[begun:at])
                    begun = end
                later = self._later(end, size)
                if later < size:
                    return self._wait(pieces, data, begun, later)
            elif end < size and (looks or reader) and self._put_off(_cost_of(exchange, length)):
                return self._wait(pieces, data, begun, end)
            at = end
            if at >= size:
                if size >= self._little:
                    self._fit(size, frames)
                self._skip = at - size
                if begun < size:
                    pieces.append(data[begun:])
                return pieces
        if at < size and not self._exchanges.waiting:
            # Nothing is awaited, so no header begins here: do not keep it back.
            self._stop_looking()
            return [*pieces, data[begun : at if self.fault else size]]
        if size >= self._little:
            self._fit(size, frames)
        self._carry = bytes(data[at:])
        return [*pieces, data[begun:at]] if at > begun else pieces

    def _rest_of_begun(self, data: memoryview) -> Pieces | None:
        """Go on with a frame that has begun; ``None`` if it ends in ``data``, and others follow."""
        end, size = self._skip, len(data)
        self._brief = False
        if self._placing is not None:
            self._place(data[:end], self._placing.size - end)
        scan = self._passthrough
        if scan is not None and scan.see(data[:end]):
            self._passthrough = None
            if isinstance(scan, SettlingScan) and (failed := settled(scan, data[:end])):
                if not self._in_turns(failed, scan.exchange, data[:end], end):
                    self._wait_behind(data, end)
                    return []
                self._instead = []
        if self._unseen:
            return self._wait([], data, 0, self._later(end, size))
        if end < size:
            self._skip = 0
            return self._wait([], data, 0, end) if self._put_off(0) else None
        self._skip -= size
        return [data]

    def _look(self, exchange: Exchange, frame: memoryview, length: int) -> bool:
        """Look at a response that begins, and no longer at the last one, whose bytes may have ended
        before its partitions did; return whether it is gathered, to have records taken out.
        """
        places = exchange.policy.places
        self._placing = scan = self._placement.begin(exchange, length) if places else None
        if scan is not None and scan.cuts is not None:
            if self._begin_gather(frame, length) and self._gather is not None:
                self._gather.exchange = exchange
                self.unfinished = len(frame) == length
                return True
            self._placement.leave_in(scan)
        self._place(frame, 0)
        return False

    def _place(self, piece: memoryview, begin: int) -> None:
        """See more of a frame before it goes on: from ``begin`` on. It costs by what is seen."""
        scan = self._placing
        if scan is not None:
            before = scan.looked_at
            scan.see(piece, begin)
            self._left -= 1 + (scan.looked_at - before) // _LOOKED_AT
            if scan.done:
                self._placing = None

    def _wait_behind(self, data: memoryview, end: int) -> None:
        """Have what came behind a frame that is kept wait; ``end``: as in :meth:`_later`."""
        if self._gather is None:
            self._skip = max(end - len(data), 0)
        self._put_behind(data[end:])

    @property
    def _unseen(self) -> int:
        """How many of the bytes that have come are to be seen again by what reads them."""
        return 0 if self._passthrough is None else self._passthrough.left

    def _later(self, end: int, size: int) -> int:
        """Return from where on what came waits for the link's next turn; ``size``: nothing does.

        ``end``: of a frame that goes on, which may lie beyond ``size``.
        """
        if self._unseen:
            seen = min(end, size) - self._unseen
            self._skip = end - seen
            self.unfinished = True
            return seen
        return end if end < size and not self.opaque and self._put_off() else size

    def _wait(self, pieces: Pieces, data: memoryview, begun: int, later: int) -> Pieces:
        """Have what came wait from ``later`` on; return what goes on before it."""
        self._put_behind(data[later:])
        if begun < later:
            pieces.append(data[begun:later])
        return pieces

    @property
    def passing(self) -> int:
        """See :attr:`leader_hints.core.link.flow.Flow.passing`."""
        if self._placing is not None or not (self._skip or self.opaque):
            return 0
        scan = self._passthrough
        return super().passing if scan is None else min(super().passing, scan.passing)

    def passed(self, size: int) -> None:
        """See :meth:`leader_hints.core.link.flow.Flow.passed`."""
        if self._passthrough is not None:
            self._passthrough.passed(size)
            self._brief = True
        super().passed(size)

    def buffer(self) -> memoryview:
        """See :meth:`leader_hints.core.link.flow.Flow.buffer`."""
        scan = self._passthrough
        if self._brief and scan is not None and not self._carry:
            # What is left of the records, and the head behind them.
            return self._shared[: scan.passing + _PARTITION_HEAD]
        if self._looked and self._gather is None and not self._carry:
            return self._shared[: self._skip + _PARTITION_HEAD]
        return super().buffer()

    def flushed(self) -> None:
        """See :meth:`leader_hints.core.link.flow.Flow.flushed`: what is held has not been sent."""
        if self.held is None and not self.unfinished:
            super().flushed()
            if not self._owed:
                self._behind = 0

    def ended(self) -> Pieces:
        """See :meth:`leader_hints.core.link.flow.Flow.ended`."""
        self._link.broker_ends()
        self.ahead = None
        return super().ended()

    def close(self) -> None:
        """See :meth:`leader_hints.core.link.flow.Flow.close`."""
        if self.held is not None:
            self.held.give_back()
        self._account.give_back(self._reserved)
        self._reserved = 0
        self.held = self._steps = self.ahead = None
        self._placement.close()
        self._give_back_requests()
        super().close()

    def _put_behind(self, data: memoryview) -> None:
        """Keep what came behind a response that is held or took long: at most one receive buffer.

        Where that was kept behind another one before, it is reserved already.
        """
        more = max(len(data) - self._behind, 0)
        if not self._account.take_anyway(more):
            self.unread = True
            self.fault = f"{more} bytes of answers that it does not read, before it is served"
            return
        self._owed += more
        self._behind += more
        # What was kept before is memory of its own. Versions in it are changed in place.
        self._backlog = memoryview(bytearray(data)) if data.obj is self._shared.obj else data

    def _give_back_requests(self) -> None:
        for exchange in self._exchanges.waiting:
            self._give_back(exchange)

    def _give_back(self, exchange: Exchange) -> None:
        if exchange.request is not None:
            self._account.give_back_copy(len(exchange.request))
        if exchange.noted:
            self._account.give_back_note(exchange.noted)

    def _match(self, length: int, correlation_id: int) -> Exchange | None:
        """Return the exchange that a response answers; ``None``: stop looking at responses."""
        waiting = self._exchanges.waiting
        if waiting and waiting[0].correlation_id == correlation_id and length >= _SMALLEST:
            exchange = waiting.popleft()
            if exchange.request is not None or exchange.noted:
                self._give_back(exchange)
            exchange.policy.cell.responses += 1
            if not exchange.policy.noted:
                self._note_answered(exchange)
            if self._exchanges.timed is exchange:
                self._link.sampled(exchange, self._exchanges.end_timing())
            return exchange
        self._stop_looking()
        return None

    def _note_answered(self, exchange: Exchange) -> None:
        """Note that the broker answers such requests of this client."""
        link, key = self._link, exchange.policy.key
        if key not in _ANSWERED_TO_ANYBODY:
            self._account.trust()
            link.unproved = max(link.unproved - 1, 0)
        elif key == ApiKey.SASL_HANDSHAKE and not self._account.trusted:
            link.unproved = _PROOFS
        if self._account.trusted:
            link.note_asked(exchange.policy)

    def _stop_looking(self) -> None:
        self.opaque = True
        reason = "response that answers no request"
        link, exchanges = self._link, self._exchanges
        if link.route.config.address_rewriting is not None or (
            # What follows would be of another version than the client has asked.
            any(exchange.recoded for exchange in exchanges.waiting)
            or (link.policies.recodes and not exchanges.unread)
        ):
            self.fault = reason
        elif not exchanges.unread:
            link.misunderstood("broker", reason)
        self._give_back_requests()
        exchanges.stop()

    def _do(self, outcome: Outcome, exchange: Exchange, frame: memoryview, length: int) -> bool:
        """Return whether a response goes on, as it is or with what is ``_instead``.

        If it does not, it is held, or it has begun to be gathered, or it has ended the link.
        """
        if isinstance(outcome, Instead):
            self._instead, self._rest, scan, cost = outcome
            self._left -= cost - 1
            if scan is not None:
                self._follow(scan)
        elif isinstance(outcome, Gather):
            return self._keep(outcome, exchange, frame, length)
        elif isinstance(outcome, Held):
            return not self._hold(outcome, exchange)
        elif isinstance(outcome, Failed):
            return self._in_turns(outcome, exchange, frame, length)
        elif isinstance(outcome, InTurns):
            own = self._own_read_in_turns(frame, exchange)
            if own is not None:
                return self._in_turns(outcome, exchange, own, length)
            self._follow(self._notes.over_budget(exchange, frame, length, None))
        elif isinstance(outcome, Fault):
            self.fault = outcome.reason
            return False
        else:
            self._follow(outcome)
        return True

    def _follow(self, scan: PassthroughScan | None) -> None:
        self._passthrough = None if scan is None or scan.over else scan

    def _keep(self, outcome: Gather, exchange: Exchange, frame: memoryview, length: int) -> bool:
        """Begin to gather a response; true where it goes on all the same, over budget."""
        if outcome.must:
            self._gather_anyway(frame, length)
        elif not self._begin_gather(frame, length):
            self._follow(self._notes.over_budget(exchange, frame, length, outcome.scan))
            return True
        if self._gather is not None:
            self._gather.exchange, self._gather.scan = exchange, outcome.scan
            self.unfinished = outcome.scan is not None and outcome.scan.paused
            self._look_ahead(self._gather)
        return False

    def _hold(self, held: Held, exchange: Exchange) -> bool:
        """Keep an error response until it is released; false if it goes on, over budget."""
        at_once(self._notes.hold_begins(held))
        frame, reserved = self._own(held.frame, held.scanned, exchange)
        if not reserved:
            at_once(self._notes.lacks_budget(held))
            if exchange.recoded:
                self._instead = [held.frame]
            return False
        held.frame, held.account, held.reserved = frame, self._account, reserved
        self.held = held
        return True

    def _own(
        self, frame: memoryview, scanned: Scanned, exchange: Exchange
    ) -> tuple[memoryview, int]:
        """Return the same bytes in memory that outlives the step, to be held.

        And what was reserved for what failed: nothing if over budget.
        """
        size, reserved, shared = len(frame), cost(scanned), frame.obj is self._shared.obj
        if not (shared or exchange.recoded):
            # What was gathered, or waited behind another one, has its bytes reserved.
            size = 0
        if self._account.take(size, reserved):
            self._owed += size
        else:
            reserved = 0
        return memoryview(bytes(frame)) if shared else frame, reserved

    def _own_read_in_turns(self, frame: memoryview, exchange: Exchange) -> memoryview | None:
        """Return the same bytes in memory that outlives the step, to be read in turns.

        ``None`` if over budget. One that cannot go on unread is kept in any case: the link may keep
        it, since the broker has answered what it answers only those whom it serves.
        """
        if frame.obj is not self._shared.obj:
            # What was gathered, or waited behind another one, has its bytes reserved.
            return frame
        if exchange.recoded or not exchange.policy.hintable:
            self._account.take_anyway(len(frame))
        elif not self._account.take(len(frame)):
            return None
        self._owed += len(frame)
        return memoryview(bytes(frame))

    def _in_turns(
        self, outcome: Outcome, exchange: Exchange, frame: memoryview, length: int
    ) -> bool:
        """Begin to do in turns what becomes of a response; true if it goes on at once."""
        self._instead = self._step(self._becoming(outcome, exchange, frame, length))
        return bool(self._instead)

    def _becoming(
        self, outcome: Outcome, exchange: Exchange, frame: memoryview, length: int
    ) -> Steps[Pieces]:
        """Do what becomes of a response, whose frame stays; return what of it goes on."""
        if isinstance(outcome, InTurns):
            outcome = yield from outcome.begin(self._notes, exchange, frame, length)
        if isinstance(outcome, Failed):
            return (yield from self._holding(outcome, exchange))
        if outcome is not None and not self._do(outcome, exchange, frame, length):
            return []
        instead, self._instead = self._instead, []
        scan = self._passthrough
        if scan is not None:
            # What is there goes on in one piece.
            yield from scan.see_rest(frame)
            self._follow(scan)
            if isinstance(scan, SettlingScan) and (failed := settled(scan, frame)):
                return (yield from self._holding(failed, exchange))
        return instead or [frame]

    def _holding(self, failed: Failed, exchange: Exchange) -> Steps[Pieces]:
        # Without budget it goes on before anything else is received.
        frame, self._reserved = self._own(failed.frame, failed.scanned, exchange)
        outcome = yield from self._notes.holding(
            exchange, frame, failed.scanned, understood=failed.understood
        )
        reserved, self._reserved = self._reserved, 0
        if not isinstance(outcome, Held):
            self._account.give_back(reserved)
        elif reserved:
            outcome.account, outcome.reserved = self._account, reserved
            self.held = outcome
            return []
        else:
            yield from self._notes.lacks_budget(outcome)
        return [frame]

    def looked(self, there: bytes) -> Pieces:
        """Look at what is there of the bytes that are ``ahead``; return what to send.

        Where ``ahead`` is still the same object too few are there. Then the driver calls this again
        once, when there are enough, or it has waited in vain.
        """
        gather, ahead = self._gather, self.ahead
        assert gather is not None
        assert ahead is not None
        if len(there) >= ahead.least:
            gather.waited = False
            return self._gathered(gather, memoryview(there))
        if gather.waited:
            self.look_no_more()
        gather.waited = True
        return []

    def look_no_more(self) -> None:
        """Have all of this response received."""
        assert self._gather is not None
        assert self._gather.scan is not None
        self._gather.scan.whole = True
        self.ahead = None

    def _look_ahead(self, gather: GatheredFrame) -> None:
        """Have the next partition's head looked at without receiving it, if it is far away.

        Where no partition failed the records that precede it are then never received.
        """
        self.ahead, scan = None, gather.scan
        if scan is None or scan.whole or self._placing is not None:
            return
        distance, left = scan.at - gather.filled, gather.size - scan.at
        if distance >= self.looks_from and left > 0 and not scan.failed:
            self.ahead = Ahead(distance, min(left, SMALLEST_PARTITION), min(left, _PARTITION_HEAD))

    def _gathered(self, gather: GatheredFrame, ahead: memoryview | None = None) -> Pieces:
        exchange = gather.exchange
        assert exchange is not None
        frame = gather.memory[: gather.filled]
        if self._placing is not None and self._placing.cuts is not None:
            if gather.filled < gather.size:
                return []
            frame = self._placement.take_out(self._placing, frame)
            self._placing = None
            gather.filled = gather.size = len(frame)
        self._place(frame, 0)
        if gather.scan is not None:
            outcome = fetch_responses.go_on(
                self._notes, exchange, gather.scan, frame, gather.size, ahead
            )
        elif gather.filled == gather.size or (
            exchange.recoded and gather.filled == len(gather.memory)
        ):
            # The beginning of one that is recoded may do. It is read whenever what there is of it
            # has doubled, so that all times together cost no more than two.
            outcome = self._read(exchange, frame, gather.size)
        else:
            return []
        if isinstance(outcome, Gather):
            gather.scan = gather.scan or outcome.scan
            self.unfinished = gather.scan is not None and gather.scan.paused
            self._look_ahead(gather)
            return []
        self._gather = self.ahead = None
        self._looked = ahead is not None
        self._skip = gather.size - gather.filled
        return self._take_turn(self._becoming(outcome, exchange, frame, gather.size))

    def _read(self, exchange: Exchange, frame: memoryview, length: int) -> Outcome:
        reader = reader_of(exchange)
        return reader and reader(self._notes, exchange, frame, length)

    def _let_go(self, gather: GatheredFrame) -> Pieces:
        exchange = gather.exchange
        assert exchange is not None
        self.ahead = None
        begun, placing, outcome = gather.memory[: gather.filled], self._placing, None
        if placing is not None and placing.cuts is not None:
            self._placement.leave_in(placing)
            self._place(begun, 0)
            outcome = self._read(exchange, begun, gather.size)
        else:
            self._place(begun, 0)
            self._follow(self._notes.over_budget(exchange, begun, gather.size, gather.scan))
        self._skip = gather.size - gather.filled
        pieces = self._take_turn(self._becoming(outcome, exchange, begun, gather.size))
        if self._gather is not None:
            # It is gathered after all, for what else is to be found in it.
            self._skip = 0
        return pieces


def _cost_of(exchange: Exchange, length: int) -> int:
    """As how many errors it counts that a response of ``length`` bytes was read and got no hint.

    It may have many topics, or record errors. That of a Fetch whose request's copy is followed in
    its session costs by the size of that.
    """
    if exchange.request is not None:
        return 1 + len(exchange.request) // _REQUEST
    return int(length > _PLAIN or exchange.policy.key == ApiKey.FETCH)
