"""The direction from the client to the broker.

Tested in ``tests/core/link/test_link_recoded.py``.
"""

import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import ClassVar

from leader_hints.apis import api_versions, metadata_older, produce, produce_8, sasl_handshake
from leader_hints.apis.fetch_request import (
    ask_at_once,
    ask_for_all,
    read_in_steps,
    write_request,
)
from leader_hints.apis.fetch_response import TOPIC_IDS_FROM
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.metadata_older import AskedById
from leader_hints.core.link.budget import Account
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.flow import Flow, Pieces
from leader_hints.core.link.gathered_frame import GatheredFrame
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.sessions.fetch_by_name import FetchByName
from leader_hints.core.versions.request_policy import NOT_OFFERED, RequestPolicy, ResponseUse
from leader_hints.wire.errors import Truncated, WireError
from leader_hints.wire.steps import Steps, at_once, together

#: Size prefix, kind (key and version), correlation id.
_HEAD = struct.Struct(">iii")
_SIZE = struct.Struct(">i")
_VERSION = struct.Struct(">h")
#: Positions of key and version in a frame.
_KEY_AT, _VERSION_AT = 4, 6
#: Key, version and correlation id: no request is shorter.
_SMALLEST = 8
#: Bytes in which a Produce request's acks must stand: three strings of 32 KB go before it.
_PREFIX = 131_072
#: The same of a client that nobody has authenticated yet: it is kept, and no budget counts it.
_PREFIX_UNAUTHENTICATED = 8192

#: Bytes received at once where requests begin.
_LITTLE_AT_ONCE = 4096
_MOST_AT_ONCE = 32_768
#: A request of which the recoding takes no more than a millisecond, and the steps of that, unless
#: its session has to be looked through.
_SMALL = 4096
_STEPS_OF_SMALL = 4

#: A TLS record of a ClientHello (22), major version 3: what a client of a TLS listener sends.
_TLS_HELLO = range(0x16030000, 0x16030500)
_TLS_ALERT = range(0x15030000, 0x15030500)


#: As a policy has it.
_SETTLING = int(ResponseUse.SETTLING)

_Reader = Callable[["RequestFlow", memoryview, int, RequestPolicy, int], bool]


class RequestFlow(Flow):
    """Notes each request as an exchange, and brings raised versions down, in place.

    Large because it has a reader for each API that is changed, and the steps of three of them.

    ``takes_no_more``: see :meth:`take_no_more`.
    """

    __slots__ = (
        "_begins",
        "_client",
        "_exchanges",
        "_largest",
        "_letting_go",
        "_link",
        "_policies",
        "_steps",
        "takes_no_more",
    )

    def __init__(
        self, shared: memoryview, account: Account, link: LinkState, largest: int, opaque: bool
    ) -> None:
        super().__init__(shared, account, opaque, little=_LITTLE_AT_ONCE, most=_MOST_AT_ONCE)
        self._link = link
        self._client = link.client
        self._policies = link.policies
        self._exchanges = link.exchanges
        self._largest = largest
        self._begins = True
        self._letting_go = False
        #: Of the recoding of a large request, which is done in the link's turns.
        self._steps: Steps[Pieces | None] | None = None
        self.takes_no_more = False

    def take_no_more(self) -> None:
        """Take a request that has begun, and none behind it.

        There is no room for what follows it: of a client that always has more to send, the next one
        would have begun with the rest of each.
        """
        self.takes_no_more = True
        self._most = 0

    def resume(self) -> Pieces:
        """See :meth:`leader_hints.core.link.flow.Flow.resume`."""
        if self._steps is None:
            return super().resume()
        if not self._step(self._steps):
            return []
        pieces, self._instead = self._instead, []
        # What came behind it has its own turn.
        self.unfinished = bool(self._backlog)
        return pieces

    @property
    def waits(self) -> bool:
        """See :attr:`leader_hints.core.link.flow.Flow.waits`."""
        return self._account.waits_for_turn

    def ended(self) -> Pieces:
        """See :meth:`leader_hints.core.link.flow.Flow.ended`."""
        self._link.client_ends()
        return super().ended()

    def close(self) -> None:
        """See :meth:`leader_hints.core.link.flow.Flow.close`."""
        self._steps = None
        super().close()

    def abandon(self) -> None:
        """Read nothing more, and keep nothing: the broker takes no more requests.

        It may have answered a last one of a client that it does not serve.
        """
        self.opaque = True
        self._carry, self._rest, self._skip = b"", None, 0
        self.close()

    def _step(self, steps: Steps[Pieces | None]) -> bool:
        """Do a step of recoding; whether it was the last one, and the request goes on."""
        try:
            next(steps)
        except StopIteration as end:
            self._steps, self.unfinished = None, False
            self._instead = end.value or []
            return bool(end.value)
        self._steps, self.unfinished = steps, True
        return False

    def _recode(
        self, frame: memoryview, begin: Callable[[memoryview], Steps[Pieces | None]]
    ) -> bool:
        """Put something else in place of a whole request; whether that is there.

        If it is not, it is made in the next turns, or the stream is at fault.
        """
        if len(frame) <= _SMALL:
            try:
                next(together(begin(frame), _STEPS_OF_SMALL))
            except StopIteration as end:
                self._instead = end.value or []
                return bool(self._instead)
            # Its session takes long: it begins again in memory that stays.
        own = self._own(frame)
        return own is not None and self._step(self._account.in_turn(len(own), begin(own)))

    def _own(self, data: memoryview) -> memoryview | None:
        """Return memory that outlives the step; ``None`` where the link may not keep so much."""
        if data.obj is not self._shared.obj:
            return data
        if not self._account.take_anyway(len(data)):
            self.fault = f"{len(data)} bytes of requests that must wait for their turn"
            return None
        self._owed += len(data)
        # Version numbers are changed in place.
        return memoryview(bytearray(data))

    def _put_behind(self, data: memoryview) -> None:
        """Keep what came behind a request that takes long: at most one receive buffer.

        Where nothing came, not even an empty part is kept: the whole request would be kept with it.
        """
        self._backlog = self._own(data) if data else None

    def _walk(self, data: memoryview) -> Pieces:
        size = len(data)
        at = self._skip
        if at >= size:
            self._skip -= size
            return [data]
        policies = self._policies
        if policies.mode is not policies.route.mode:
            policies.follow_mode()
        pieces: Pieces = []
        #: ``begun``: from here on data is forwarded unchanged.
        begun = frames = 0
        while size - at >= _SIZE.size:
            frames += 1
            (length,) = _SIZE.unpack_from(data, at)
            tls = self._begins and self._begins_with_tls(length)
            if tls and policies.route.config.relays_tls:
                self._stop_reading()
                return [data]
            if tls or not _SMALLEST <= length <= self._largest:
                self.fault = _describe(length, self._largest)
                return [*pieces, data[begun:at]]
            if size - at < _HEAD.size:
                break
            _, kind, correlation_id = _HEAD.unpack_from(data, at)
            length += _SIZE.size
            policy = policies.by_kind.get(kind) or self._decide(kind, data, at, length)
            reader = self._READERS.get(policy.key)
            if reader is None:
                self._exchanges.add(Exchange(correlation_id, policy))
            elif not reader(self, data[at : at + length], length, policy, correlation_id):
                if self.unfinished:
                    self._put_behind(data[at + length :])
                break
            if self._instead:
                self._replace(pieces, data[begun:at])
                begun = at + length
                if begun < size and not self.opaque and self._put_off():
                    self._skip = 0
                    self._put_behind(data[begun:])
                    return pieces
            at += length
            if self.opaque:
                # What follows are no Kafka requests, or cannot be distinguished.
                return [*pieces, data[begun:]]
            if at >= size:
                if size >= self._little:
                    self._fit(size, frames)
                self._skip = at - size
                if begun < size:
                    pieces.append(data[begun:])
                return pieces
        self._skip = 0
        if size >= self._little:
            self._fit(size, frames)
        if self._gather is None and not self.unfinished:
            self._carry = bytes(data[at:])
        if at > begun:
            pieces.append(data[begun:at])
        return pieces

    def _decide(self, kind: int, data: memoryview, at: int, length: int) -> RequestPolicy:
        """Return what is done with requests of a kind, of which the first is at ``at``."""
        if self._client.id is None:
            # Not all kinds are read, and each is noted under the client's id.
            self._client.meet(data[at : at + length])
        return self._policies.decide(kind)

    def _gathered(self, gather: GatheredFrame) -> Pieces:
        if gather.filled < gather.size:
            return []
        self._gather = None
        return self._walk(gather.memory)

    def _let_go(self, gather: GatheredFrame) -> Pieces:
        self._letting_go = True
        pieces = self._walk(gather.memory)
        self._letting_go = False
        return pieces

    def _begin_gather(self, begun: memoryview, size: int) -> bool:
        return not self._letting_go and super()._begin_gather(begun, size)

    def _fit(self, size: int, frames: int) -> None:
        # Whom nobody has authenticated may send small requests next, and each of them is noted.
        if self._account.trusted and not self.takes_no_more:
            super()._fit(size, frames)

    def _stop_reading(self) -> None:
        self.opaque = self._exchanges.unread = True

    def _begins_with_tls(self, length: int) -> bool:
        """Whether the first length of all is the head of a TLS record and no length.

        As a length it may be below the limit; a link that began otherwise is not TLS.
        """
        self._begins = False
        return _is_tls(length)

    # Each reader returns whether it is done with the frame. Where it is not, more bytes are
    # needed: it has begun to gather them, or the few at hand are carried over.

    def _produce(
        self, frame: memoryview, length: int, policy: RequestPolicy, correlation_id: int
    ) -> bool:
        try:
            acks = produce.read_acks(frame)
        except Truncated:
            prefix = _PREFIX if self._account.trusted else _PREFIX_UNAUTHENTICATED
            if len(frame) < min(length, prefix):
                return False
            return self._lost("Produce request whose acks cannot be found")
        except WireError as error:
            return self._lost(f"Produce request: {error}")
        if policy.recoded:
            return self._recoded_produce(frame, length, policy, correlation_id, acks)
        if policy.sent != policy.version:
            _VERSION.pack_into(frame, _VERSION_AT, policy.sent)
        if self._client.id is None:
            self._client.meet(frame)
        if policy.use == _SETTLING and self._client.numbers_records is not False:
            self._client.produce(frame)
        self._note_produce(Exchange(correlation_id, policy), acks)
        return True

    def _note_produce(self, exchange: Exchange, acks: int) -> None:
        if acks:
            self._exchanges.add(exchange)
        else:
            # No response will come.
            exchange.policy.cell.requests += 1
            if self._account.trusted and not exchange.policy.noted:
                self._link.note_asked(exchange.policy)

    def _recoded_produce(
        self, frame: memoryview, length: int, policy: RequestPolicy, correlation_id: int, acks: int
    ) -> bool:
        exchange = Exchange(correlation_id, policy, recoded=policy.sent)
        if len(frame) == length > _SMALL:
            return self._recode(frame, lambda own: self._recode_produce(own, exchange, acks))
        # Its beginning may do, and its records go on as they come.
        try:
            self._instead, self._rest = at_once(produce_8.request_down(frame, length))
        except WireError as error:
            if isinstance(error, Truncated) and len(frame) < length:
                self._gather_anyway(frame, length)
                return False
            return self._lost(f"Produce v{policy.version} request: {error}")
        if self._client.id is None:
            self._client.meet(frame)
        self._note_produce(exchange, acks)
        return True

    def _recode_produce(
        self, frame: memoryview, exchange: Exchange, acks: int
    ) -> Steps[Pieces | None]:
        try:
            pieces, _ = yield from produce_8.request_down(frame, len(frame))
        except WireError as error:
            # The broker refuses the version, and with it what nobody understands.
            return self._unread(frame, f"Produce v{exchange.policy.version} request: {error}")
        if self._client.id is None:
            self._client.meet(frame)
        self._note_produce(exchange, acks)
        return pieces

    def _fetch(
        self, frame: memoryview, length: int, policy: RequestPolicy, correlation_id: int
    ) -> bool:
        lacks_rack = policy.places and self._client.rack is None
        if lacks_rack and len(frame) == length:
            self._client.locate(frame)
        if policy.places and self._client.sent_away:
            self._client.sent_away = False
            # If too little of it is there it waits for records.
            with suppress(WireError):
                ask_at_once(frame)
        if policy.places and self._client.asks_for_all:
            with suppress(WireError):
                ask_for_all(frame)
                self._client.asks_for_all = False
        if policy.recoded:
            if len(frame) < length:
                self._gather_anyway(frame, length)
                return False
            return self._recode(frame, lambda own: self._recode_fetch(own, policy, correlation_id))
        request = None
        # The rack stands last, and some name all their partitions in each request.
        reads = policy.follows_session or lacks_rack
        if reads and len(frame) < length and self._begin_gather(frame, length):
            return False
        if policy.follows_session:
            request = self._copy(frame) if len(frame) == length else None
        elif policy.unhinted is not None:
            request = self._copy(frame)
        if self._client.id is None and len(frame) == length:
            self._client.meet(frame)
        if policy.sent != policy.version:
            _VERSION.pack_into(frame, _VERSION_AT, policy.sent)
        self._exchanges.add(Exchange(correlation_id, policy, request))
        return True

    def _recode_fetch(
        self, frame: memoryview, policy: RequestPolicy, correlation_id: int
    ) -> Steps[Pieces | None]:
        link, route = self._link, self._link.route
        version = policy.version
        if self._client.id is None:
            self._client.meet(frame)
        try:
            request = yield from read_in_steps(frame)
            if self._policies.plan.synthetic and version >= TOPIC_IDS_FROM:
                if request.replica_id >= 0:
                    # A broker asks another by its own ids, and only for what that takes.
                    cell = link.traffic.cell(policy.key, version, version)
                    as_it_is = RequestPolicy(policy.key, version, cell, sent=version)
                    self._exchanges.add(Exchange(correlation_id, as_it_is))
                    return [frame]
                if request.lacks_id:
                    link.topic_ids.without_ids = True
                    self.fault = f"Fetch v{version} for a topic without an id"
                    return None
            if policy.rackless is not None and not request.rack:
                policy = policy.rackless
            sent = policy.sent
            exchange = Exchange(correlation_id, policy)
            if sent < TOPIC_IDS_FROM:
                if not route.sessions.asks_one(request):
                    # Its response is kept until its last partition begins.
                    largest = self._account.per_link
                    request = request._replace(max_bytes=min(request.max_bytes, largest))
                exchange.recoded = sent
                if version >= TOPIC_IDS_FROM:
                    request, exchange.by_name = yield from route.sessions_by_name.down(
                        request, route.broker.known
                    )
            instead = yield from write_request(frame, request, sent)
        except WireError as error:
            return self._unread(frame, f"Fetch v{version} request: {error}")
        if len(frame) > _SMALL:
            # To write, to free and to copy what is large takes some milliseconds each.
            yield
            del request
            yield
        if exchange.by_name is not None and not self._note(exchange, exchange.by_name):
            return None
        if policy.hintable or policy.unhinted is not None:
            exchange.request = self._copy(frame)
        self._exchanges.add(exchange)
        return [instead]

    def _metadata(
        self, frame: memoryview, length: int, policy: RequestPolicy, correlation_id: int
    ) -> bool:
        exchange = Exchange(correlation_id, policy)
        if not policy.recoded:
            self._exchanges.add(exchange)
            return True
        if len(frame) < length:
            self._gather_anyway(frame, length)
            return False
        return self._recode(frame, lambda own: self._recode_metadata(own, exchange))

    def _recode_metadata(self, frame: memoryview, exchange: Exchange) -> Steps[Pieces | None]:
        version, sent = exchange.policy.version, exchange.policy.sent
        view = self._link.route.broker.known
        exchange.recoded = sent
        try:
            pieces, exchange.by_id = yield from metadata_older.request_down(
                frame, version, sent, view.topics.name
            )
        except WireError as error:
            return self._unread(frame, f"Metadata v{version} request: {error}")
        if not self._note(exchange, exchange.by_id):
            return None
        self._exchanges.add(exchange)
        return pieces

    def _sasl_handshake(
        self, frame: memoryview, length: int, policy: RequestPolicy, correlation_id: int
    ) -> bool:
        if policy.version == sasl_handshake.BARE_TOKENS_VERSION:
            self._stop_reading()
        self._exchanges.add(Exchange(correlation_id, policy))
        return True

    def _api_versions(
        self, frame: memoryview, length: int, policy: RequestPolicy, correlation_id: int
    ) -> bool:
        if len(frame) < length and self._begin_gather(frame, length):
            return False
        if self._client.id is None:
            self._client.meet(frame)
        if policy.version >= api_versions.SOFTWARE_FROM and not policy.unreadable:
            try:
                self._link.introduce(api_versions.read_software(frame))
            except WireError:
                # A version newer than we know may be laid out differently; the broker judges.
                self._link.traffic.raw["client software"] += 1
                policy.unreadable = True
        if policy.version < api_versions.SOFTWARE_FROM or policy.unreadable:
            self._link.asked_without_name()
        self._exchanges.add(Exchange(correlation_id, policy))
        # It goes as it came, and counts as one that costs much.
        self._instead = [frame]
        return True

    def _copy(self, frame: memoryview) -> bytes | None:
        """Copy a request that its response will be judged by; ``None`` where that cannot be kept.

        The copy is the exchange's, and so is what it reserves.
        """
        if self._exchanges.waiting.maxlen == 0 or not self._account.take_copy(len(frame)):
            return None
        return bytes(frame)

    def _note(self, exchange: Exchange, by_ids: FetchByName | AskedById) -> bool:
        """Reserve what the response needs of a request that names topics by ids.

        A broker may take its time to answer, and what it is asked instead may be small. False where
        the link may not keep so much. A client that knows ids with names got them from a broker.
        """
        size = by_ids.size(named=self._account.trusted)
        if not size or self._exchanges.waiting.maxlen == 0:
            return True
        if not self._account.take_note(size):
            self.fault = (
                f"topic ids that take {size} bytes, before the broker has answered anything that "
                "shows that the client may use it"
            )
            return False
        exchange.noted = size
        return True

    def _refuse(
        self, frame: memoryview, length: int, policy: RequestPolicy, correlation_id: int
    ) -> bool:
        key = _VERSION.unpack_from(frame, _KEY_AT)[0]
        self.fault = f"{api_name(key)} ({key}) v{policy.version} is not offered here"
        return False

    def _unread(self, frame: memoryview, reason: str) -> Pieces | None:
        return [frame] if self._lost(reason) else None

    def _lost(self, reason: str) -> bool:
        """Give up reading: whether a response will come is not known from here on."""
        if self._link.route.config.address_rewriting is not None:
            # Unread responses would tell the brokers' own addresses.
            self.fault = reason
            return False
        self._stop_reading()
        self._link.misunderstood("client", reason)
        return True

    #: Of the class and not of each flow: bound methods there would keep every link, once it has
    #: gone, until all garbage is looked through.
    _READERS: ClassVar[Mapping[int, _Reader]] = {
        ApiKey.PRODUCE: _produce,
        ApiKey.FETCH: _fetch,
        ApiKey.METADATA: _metadata,
        ApiKey.SASL_HANDSHAKE: _sasl_handshake,
        ApiKey.API_VERSIONS: _api_versions,
        NOT_OFFERED: _refuse,
    }


def _is_tls(length: int) -> bool:
    return length in _TLS_HELLO or length in _TLS_ALERT


def _describe(length: int, largest: int) -> str:
    """Say in words what a first length that cannot be one most likely is."""
    if _is_tls(length):
        return "TLS bytes on a plaintext listener"
    if length < 0:
        return f"negative request size {length}"
    if length < _SMALLEST:
        return f"request size {length} is too small for a request"
    return f"request size {length} is above the limit of {largest} bytes, or no Kafka request"
