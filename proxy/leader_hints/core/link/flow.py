"""One direction of a link: bytes in, pieces to be sent out.

Tested in ``tests/core/link/test_link.py``.
"""

import struct
from abc import ABC, abstractmethod

from leader_hints.core.link.ahead import Ahead
from leader_hints.core.link.budget import Account
from leader_hints.core.link.gathered_frame import GatheredFrame
from leader_hints.wire.scatter import Rest

#: Pieces to be sent, in order. They may be views of the shared buffer: what cannot be sent at
#: once must be copied before anything else is received there.
Pieces = list[memoryview | bytes]

#: A frame's size, which it begins with.
_SIZE = struct.Struct(">i")
#: Bytes of each frame, on average, from which on a link may receive much at once; and frames at
#: once after which it never may again: nobody sends so many who means well.
_LARGE = 128
_MANY = 512
#: Received at once from which on more is expected where nothing is looked at, and how much.
_BULK = 65_536
#: Frames that are recoded, held or scanned, or tell who the client is, in a turn of a link. Each
#: costs some 50 microseconds.
AT_ONCE = 16
_ENDLESS = 1 << 30


class Flow(ABC):
    """Walks the frames of one direction.

    The driver receives into :meth:`buffer` and then calls :meth:`received`. The buffer is one
    for all links of a process, so that idle links cost none; while a frame is gathered it is
    that frame's own, so that no byte is copied twice.

    Each frame costs some microseconds, however small it is, and all other links wait meanwhile. So
    where frames begin ``little`` is received at once, and ``most`` only where frames are large. If
    ``_most`` is 0, nothing behind a frame that has begun is received with its rest.

    A frame that does not go on as it came leaves what goes instead in ``_instead``. Where only its
    beginning is there, ``_rest`` says how it goes on.

    What costs much more than others, such as errors, is done ``_left`` times in a turn. The rest is
    kept, and :meth:`resume` goes on when other links have had their turn.

    Large because it is what both directions share.

    ``unfinished``: nothing may be received until :meth:`resume` has done the rest.
    ``opaque``: bytes are no longer looked at. ``fault``: the stream is beyond repair, in
    words; the driver sends what was returned and closes the link. ``ahead``: nothing is to be
    received before the driver has looked there.
    """

    __slots__ = (
        "_account",
        "_backlog",
        "_begun",
        "_bulk",
        "_carry",
        "_gather",
        "_instead",
        "_left",
        "_little",
        "_most",
        "_most_ever",
        "_owed",
        "_rest",
        "_shared",
        "_skip",
        "ahead",
        "fault",
        "opaque",
        "unfinished",
    )

    def __init__(
        self, shared: memoryview, account: Account, opaque: bool, *, little: int, most: int
    ) -> None:
        self._shared = shared
        self._little = self._most = little
        self._most_ever = most
        self._begun = shared[:little]
        self._account = account
        self._carry = b""
        #: Bytes of a frame's own that are still to come and of which nothing more is read.
        self._skip = 0
        self._rest: Rest | None = None
        self._gather: GatheredFrame | None = None
        self._instead: Pieces = []
        #: What is reserved of the budget for frames that are gathered or were not sent yet.
        self._owed = 0
        self._bulk = False
        #: What came behind what must be waited for, or had no room in a turn.
        self._backlog: memoryview | None = None
        self._left = AT_ONCE
        self.ahead: Ahead | None = None
        self.unfinished = False
        self.opaque = opaque
        self.fault: str | None = None

    def buffer(self) -> memoryview:
        """Return where the next bytes are to be received; never empty."""
        if self._gather is not None:
            return self._gather.memory[self._gather.filled :]
        if self._carry:
            size = len(self._carry)
            self._shared[:size] = self._carry
            return self._shared[size : size + (self._most or self._lacking)]
        if self.opaque:
            return self._shared
        if self._skip:
            # The rest of a frame costs nothing, but others may follow it.
            return self._shared[: self._skip + self._most]
        return self._begun

    @property
    def _lacking(self) -> int:
        """How many bytes are lacking at least of the frame whose beginning is carried over."""
        have = len(self._carry)
        if have < _SIZE.size:
            return _SIZE.size - have
        return _SIZE.size + int(_SIZE.unpack_from(self._carry)[0]) - have

    def received(self, size: int) -> Pieces:
        """Take ``size`` bytes that stand at the start of :meth:`buffer`; return what to send."""
        if self._gather is not None:
            return self._gather_more(self._gather, size)
        if self._carry:
            size += len(self._carry)
            self._carry = b""
        data = self._shared[:size]
        if self._rest is not None:
            return self._go_on(data, self._rest)
        if self.opaque:
            self._bulk = size >= _BULK
            return [data]
        return self._walk(data)

    def resume(self) -> Pieces:
        """Go on with what is ``unfinished``, and return what to send."""
        backlog, self._backlog, self.unfinished = self._backlog, None, False
        if not backlog:
            return []
        return [backlog] if self.opaque else self._walk(backlog)

    @property
    def waits(self) -> bool:
        """Whether :meth:`resume` leads nowhere before other links have gone on."""
        return False

    @property
    def passing(self) -> int:
        """How many of the bytes that come next go on as they come, whatever they are.

        They may be moved without being received here; then call :meth:`passed`.
        """
        if self._skip:
            # The last one of a frame that was rewritten brings what stands behind it.
            return self._skip if self._rest is None else self._skip - self._rest.dropped - 1
        return _ENDLESS if self.opaque and self._bulk else 0

    def passed(self, size: int) -> None:
        """Take note of ``size`` bytes, at most :attr:`passing`, that went on as they came."""
        if self._skip:
            self._skip -= size
        else:
            self._bulk = size >= _BULK

    def ended(self) -> Pieces:
        """Return what was kept back of an unfinished frame: the sender has no more to say."""
        pieces: Pieces = []
        if self._gather is not None:
            pieces.append(self._gather.memory[: self._gather.filled])
            self._gather = None
        if self._carry:
            pieces.append(self._carry)
            self._carry = b""
        return pieces

    def flushed(self) -> None:
        """Say that all pieces have been sent: gathered memory is no longer in use."""
        if self._owed and self._gather is None and not self.unfinished:
            self._account.give_back(self._owed)
            self._owed = 0

    @property
    def begun(self) -> bool:
        """Whether a frame has begun of which the rest is still to come."""
        waits = self._gather is not None or self.unfinished
        return waits or bool(self._carry) or self._skip > 0

    def close(self) -> None:
        """Give back what is reserved; the flow is of no further use."""
        self._gather = self._backlog = None
        self.unfinished = False
        self.flushed()

    def _put_off(self, cost: int = 1) -> bool:
        """Count a frame that cost much; whether the rest must wait for the link's next turn."""
        self._left -= cost
        if self._left > 0:
            return False
        self._left = AT_ONCE
        self.unfinished = True
        return True

    def _fit(self, size: int, frames: int) -> None:
        """Fit what is received at once to what came: ``size`` bytes with so many frames."""
        if frames > _MANY:
            self._most = self._most_ever = self._little
        elif size >= frames * _LARGE and size >= self._most:
            self._most = self._most_ever
        else:
            return
        self._begun = self._shared[: self._most]

    def _go_on(self, data: memoryview, rest: Rest) -> Pieces:
        """Take what comes of a frame that was rewritten before all of it was there."""
        kept = max(self._skip - rest.dropped, 0)
        if any(data[kept : self._skip]):
            self.fault = "tag sections that go on behind the end of their frame"
            return []
        pieces: Pieces = [data[:kept]] if kept else []
        if len(data) < self._skip:
            self._skip -= len(data)
            return pieces
        behind = data[self._skip :]
        self._skip = 0
        self._rest = None
        if rest.put:
            pieces.append(rest.put)
        if behind:
            pieces += [behind] if self.opaque else self._walk(behind)
        return pieces

    @abstractmethod
    def _walk(self, data: memoryview) -> Pieces:
        """Walk the frames in ``data``, which begins where the last call ended."""

    @abstractmethod
    def _let_go(self, gather: GatheredFrame) -> Pieces:
        """Go on with a frame, gathered up to here, that would need more than the budget has left.

        It goes on as one that was never gathered.
        """

    @abstractmethod
    def _gathered(self, gather: GatheredFrame) -> Pieces:
        """Go on after bytes arrived in the gathered frame, of which some are there."""

    def _replace(self, pieces: Pieces, before: memoryview) -> None:
        """Append what goes in place of a frame, after what is forwarded unchanged ``before`` it."""
        if before:
            pieces.append(before)
        pieces += self._instead
        self._instead = []

    def _begin_gather(self, begun: memoryview, size: int) -> bool:
        """Receive the frame that ``begun`` begins into memory of its own; false if over budget.

        What it takes is reserved as it is taken: anybody can claim that a frame is large. So the
        budget may be used up before all of it is there; see :meth:`_let_go`.
        """
        return size <= self._account.per_link and self._gather_into(begun, size, must=False)

    def _gather_anyway(self, begun: memoryview, size: int) -> None:
        """As :meth:`_begin_gather`, for a frame that cannot go on as it is.

        Where the link may not take what it needs the stream is at fault.
        """
        self._gather_into(begun, size, must=True)

    def _gather_more(self, gather: GatheredFrame, size: int) -> Pieces:
        gather.filled += size
        pieces = self._gathered(gather)
        full = gather.filled == len(gather.memory) < gather.size
        if self._gather is not gather or not full:
            return pieces
        if not self._grow(gather) and self.fault is None:
            pieces += self._let_go(gather)
        return pieces

    def _gather_into(self, begun: memoryview, size: int, *, must: bool) -> bool:
        self._gather = GatheredFrame(self._account, begun, size, must=must)
        return self._grow(self._gather)

    def _grow(self, gather: GatheredFrame) -> bool:
        """Make room for more of the gathered frame; false if over budget."""
        before = gather.reserved
        if gather.grow():
            self._owed += gather.reserved - before
            return True
        self._gather = None
        if gather.must:
            self.fault = (
                f"frame of {gather.size} bytes that must be kept whole, before the broker has "
                "answered anything that shows that the client may use it"
            )
        return False
