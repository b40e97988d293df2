"""The direction from the broker to the client."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress

from leader_hints.apis import api_versions, metadata, metadata_older, produce, produce_8
from leader_hints.apis.fetch_older import Names, Raised, response_up
from leader_hints.apis.fetch_request import read_request, read_session
from leader_hints.apis.fetch_response import FetchScan, glance
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.leader_hint import LeaderHint, Scanned
from leader_hints.apis.response_scan import has_no_failure
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.events import ErrorAnswered, HintMissed
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.budget import Account
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.flow import Flow, Pieces
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.link.passthrough_scan import PassthroughScan
from leader_hints.core.mode import Mode
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH
from leader_hints.core.versions.address_rewriting import NEWEST
from leader_hints.core.versions.plan import plan_for
from leader_hints.core.versions.request_policy import RequestPolicy
from leader_hints.wire.errors import WireError
from leader_hints.wire.reader import Reader
from leader_hints.wire.scatter import Rest
from leader_hints.wire.splice import spliced

#: Size prefix, correlation id.
_HEAD = struct.Struct(">ii")
_SMALLEST = 4
_SIZE_PREFIX = 4
#: Largest Metadata response that is read besides being passed on: some 1500 partitions,
#: so that reading never stops the event loop for long. The subscription reads larger ones.
_SNOOPED = 65_536
#: Metadata responses of one step that are read. Clients ask for one at a time; who asks for
#: hundreds would have all of them read while others wait.
_SNOOPED_AT_ONCE = 8
_NOTHING = memoryview(b"")
#: What a broker answers before it has authenticated a client: to anything else it ends the
#: connection (SaslServerAuthenticator). So any other answer shows that it serves the client, or
#: authenticates none on this listener.
_ANSWERED_TO_ANYBODY = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
#: Bytes received at once where responses begin and are small; else as many as there is room for.
_LITTLE_AT_ONCE = 32_768


class ResponseFlow(Flow):
    """Matches responses with exchanges and looks for errors that a hint can answer.

    ``held``: set when a response waits for its hints; then nothing may be received until
    :meth:`release` was called. ``snooped``: Metadata responses that went by, as (version,
    payload), for the view; the caller takes them out.
    """

    __slots__ = (
        "_backlog",
        "_behind",
        "_exchange",
        "_link",
        "_passthrough",
        "_recovery",
        "_scan",
        "held",
        "snooped",
    )

    def __init__(
        self,
        shared: memoryview,
        account: Account,
        link: LinkState,
        recovery: Recovery,
        opaque: bool,
    ) -> None:
        super().__init__(shared, account, opaque, little=_LITTLE_AT_ONCE, most=len(shared))
        self._link = link
        self._recovery = recovery
        self._backlog = bytearray()
        #: What is reserved of the budget for it, and was for one before it.
        self._behind = 0
        self._exchange: Exchange | None = None
        self._scan: FetchScan | None = None
        #: Of the frame whose rest is passed on as it comes.
        self._passthrough: PassthroughScan | None = None
        self.held: Held | None = None
        self.snooped: list[tuple[int, bytes]] = []

    def release(self, hints: Sequence[LeaderHint | None]) -> Pieces:
        """Let the held response go on with ``hints``, and what came behind it."""
        assert self.held is not None
        held, self.held = self.held, None
        # Its tag sections were read before: this cannot fail.
        pieces = held.answer(hints)
        # Where hints are only counted the hold queue keeps it on, and needs no more of it.
        held.frame = _NOTHING
        backlog, self._backlog = memoryview(self._backlog), bytearray()
        if backlog:
            pieces += [backlog] if self.opaque else self._walk(backlog)
        return pieces

    def _walk(self, data: memoryview) -> Pieces:
        size = len(data)
        at = self._skip
        if self._passthrough is not None and self._passthrough.see(data[:at]):
            self._passthrough = None
        if at >= size:
            self._skip -= size
            return [data]
        self._skip = 0
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
            end = at + _SIZE_PREFIX + length
            if not self._look(exchange, data[at:end], end - at):
                if self.held is not None:
                    self._put_behind(data[end:])
                if at > begun:
                    pieces.append(data[begun:at])
                return pieces
            if self._instead:
                self._replace(pieces, data[begun:at])
                begun = end
            at = end
            if at >= size:
                if size >= self._little:
                    self._fit(size, frames)
                self._skip = at - size
                if begun < size:
                    pieces.append(data[begun:])
                return pieces
        if at < size and not self._link.exchanges:
            # Nothing is awaited, so no header begins here: do not keep it back.
            self._stop_looking()
            return [*pieces, data[begun : at if self.fault else size]]
        if size >= self._little:
            self._fit(size, frames)
        self._carry = bytes(data[at:])
        if at > begun:
            pieces.append(data[begun:at])
        return pieces

    @property
    def passing(self) -> int:
        """See :attr:`leader_hints.core.link.flow.Flow.passing`."""
        if self._passthrough is not None or not (self._skip or self.opaque):
            return 0
        return super().passing

    def flushed(self) -> None:
        """See :meth:`leader_hints.core.link.flow.Flow.flushed`: what is held has not been sent."""
        if self.held is None:
            super().flushed()
            if not self._owed:
                self._behind = 0

    def close(self) -> None:
        """See :meth:`leader_hints.core.link.flow.Flow.close`."""
        self.held = None
        self._give_back_requests()
        super().close()

    def _put_behind(self, data: memoryview) -> None:
        """Keep what came behind a response that is held: at most one receive buffer.

        Where that was kept behind another one before, it is reserved already.
        """
        more = max(len(data) - self._behind, 0)
        self._account.take_anyway(more)
        self._owed += more
        self._behind += more
        self._backlog += data

    def _give_back_requests(self) -> None:
        for exchange in self._link.exchanges:
            self._give_back(exchange)

    def _give_back(self, exchange: Exchange) -> None:
        if exchange.request is not None:
            self._account.give_back_copy(len(exchange.request))
        if exchange.noted:
            self._account.give_back_note(exchange.noted)

    def _match(self, length: int, correlation_id: int) -> Exchange | None:
        """Return the exchange that a response answers; ``None``: stop looking at responses."""
        link = self._link
        exchanges = link.exchanges
        if exchanges and exchanges[0].correlation_id == correlation_id and length >= _SMALLEST:
            exchange = exchanges.popleft()
            self._give_back(exchange)
            exchange.policy.cell.responses += 1
            if not self._account.trusted and exchange.policy.key not in _ANSWERED_TO_ANYBODY:
                self._account.trust()
            if link.timed is exchange and link.latencies is not None:
                link.end_sample(link.latencies)
            return exchange
        self._stop_looking()
        return None

    def _stop_looking(self) -> None:
        self.opaque = True
        if self._link.route.config.address_rewriting is not None:
            self.fault = "response that answers no request"
        if not self._link.unread:
            self._link.misunderstood("broker", "response that answers no request")
        self._give_back_requests()
        self._link.stop_matching()

    def _gathered(self, frame: memoryview) -> Pieces:
        assert self._exchange is not None
        exchange = self._exchange
        policy = exchange.policy
        if policy.key == ApiKey.FETCH and not exchange.recoded and policy.rewriter is None:
            return self._gathered_fetch(exchange, frame)
        if self._filled < self._size:
            # Looked at whenever what there is of it has doubled, so that all looks together cost
            # no more than two.
            full = self._filled == len(frame)
            raises = exchange.recoded and policy.key == ApiKey.FETCH
            if not full or not raises or not self._begin_raise(exchange, frame, self._size):
                return []
            self._gather = None
            self._skip = self._size - self._filled
        else:
            self._gather = None
            if not self._look(exchange, frame, len(frame)):
                return []
        instead, self._instead = self._instead, []
        return instead or [frame]

    def _let_go(self, begun: memoryview) -> Pieces:
        exchange = self._exchange
        assert exchange is not None
        self._skip = self._size - self._filled
        self._over_budget(exchange, begun[: self._filled], self._size)
        return [begun[: self._filled]]

    def _gathered_fetch(self, exchange: Exchange, frame: memoryview) -> Pieces:
        done = self._look_at_fetch(exchange, frame, self._filled, self._size)
        if done:
            self._gather = None
            self._skip = self._size - self._filled
            return [frame[: self._filled]]
        if self.held is not None:
            self._gather = None
        return []

    # Each look returns whether the frame may go on as it is, or as it was changed in place.
    # Where it may not, it is held, or it has begun to be gathered.

    def _look(self, exchange: Exchange, frame: memoryview, length: int) -> bool:
        """``frame`` is as much as is there of ``length`` bytes."""
        if exchange.recoded:
            if len(frame) == length:
                return self._raise(exchange, frame)
            if exchange.policy.key == ApiKey.FETCH and self._begin_raise(exchange, frame, length):
                return True
            return self._gather_whole(exchange, frame, length)
        policy = exchange.policy
        if policy.hintable:
            if policy.key == ApiKey.FETCH:
                return self._begin_fetch(exchange, frame, length)
            if produce.has_no_failure(frame):
                return self._pass(exchange, frame, length, policy.version)
            if len(frame) < length:
                return self._pass_or_gather(exchange, frame, length)
            return self._look_at_produce(exchange, frame)
        if policy.unhinted is not None:
            return self._pass(exchange, frame, length, policy.version)
        if policy.key == ApiKey.API_VERSIONS:
            if len(frame) == length:
                return self._look_at_versions(exchange, frame)
            if self._link.route.config.address_rewriting is None:
                return self._pass_or_gather(exchange, frame, length)
            return self._gather_whole(exchange, frame, length)
        if policy.key == ApiKey.METADATA and len(frame) == length:
            self._snoop(policy.version, frame)
        if policy.rewriter is not None:
            return self._readdress(exchange, frame, length)
        return True

    def _gather_whole(self, exchange: Exchange, frame: memoryview, length: int) -> bool:
        """Begin to gather a frame that cannot go on as it is."""
        self._exchange = exchange
        self._gather_anyway(frame, length)
        return False

    def _readdress(self, exchange: Exchange, frame: memoryview, length: int) -> bool:
        """Put a virtual cluster's addresses into a response, and go on with that."""
        if len(frame) < length:
            return self._gather_whole(exchange, frame, length)
        try:
            self._instead = self._readdressed(exchange.policy, frame)
        except WireError as error:
            # Nothing of it may go on: it has addresses.
            policy = exchange.policy
            self.fault = f"{api_name(policy.key)} v{policy.version} response: {error}"
            return False
        return True

    def _readdressed(self, policy: RequestPolicy, frame: memoryview) -> Pieces:
        rewriting = self._link.route.config.address_rewriting
        assert policy.rewriter is not None
        assert rewriting is not None
        return spliced(frame, policy.rewriter(frame, policy.version, rewriting.readdress))

    def _snoop(self, version: int, frame: memoryview) -> None:
        room = _SNOOPED - sum(len(payload) for _, payload in self.snooped)
        if len(self.snooped) >= _SNOOPED_AT_ONCE or len(frame) > room:
            return
        if metadata.OLDEST <= version <= metadata.NEWEST:
            self.snooped.append((version, bytes(frame[_SIZE_PREFIX:])))

    def _raise(self, exchange: Exchange, frame: memoryview) -> bool:
        """Bring a whole response up to the client's version, and go on with that."""
        try:
            if exchange.policy.key == ApiKey.PRODUCE:
                return self._raise_produce(exchange, frame)
            if exchange.policy.key == ApiKey.METADATA:
                return self._raise_metadata(exchange, frame)
            return self._raise_fetch(exchange, frame)
        except (WireError, KeyError) as error:
            self.fault = f"{api_name(exchange.policy.key)} v{exchange.recoded} response: {error}"
            return False

    def _raise_produce(self, exchange: Exchange, frame: memoryview) -> bool:
        raised = memoryview(produce_8.response_up(frame))
        if not exchange.policy.hintable or produce.has_no_failure(raised):
            self._pass(exchange, raised, len(raised), exchange.policy.version)
        elif not self._look_at_produce(exchange, raised):
            return False
        self._instead = [raised]
        return True

    def _raise_metadata(self, exchange: Exchange, frame: memoryview) -> bool:
        assert exchange.by_id is not None
        self._snoop(exchange.recoded, frame)
        self._link.lack(exchange.by_id.unknown)
        self._instead = metadata_older.response_up(
            frame, exchange.recoded, exchange.policy.version, exchange.by_id, self._make_id
        )
        if exchange.policy.rewriter is not None:
            raised = memoryview(b"".join(self._instead))
            self._instead = self._readdressed(exchange.policy, raised)
        return True

    def _make_id(self, cluster_id: str, name: str) -> bytes:
        view = self._link.route.broker.view
        if view is not None and view.cluster_id == cluster_id:
            return view.topics.synthesize_id(name)
        return synthetic_id(cluster_id, name)

    def _raise_fetch(self, exchange: Exchange, frame: memoryview) -> bool:
        names = self._names(exchange)
        raised = response_up(frame, len(frame), exchange.recoded, names)
        if not exchange.policy.hintable or not raised.failed:
            self._go_raised(exchange, frame, len(frame), names, raised)
            return True
        self._opened(exchange, raised)
        whole = memoryview(b"".join(raised.pieces))
        self._scan = FetchScan(exchange.policy.version)
        if not self._look_at_fetch(exchange, whole, len(whole), len(whole)):
            return False
        self._instead = [whole]
        return True

    def _begin_raise(self, exchange: Exchange, frame: memoryview, length: int) -> bool:
        """Bring the beginning of a Fetch response up; false where all of it is needed."""
        names = self._names(exchange)
        try:
            raised = response_up(frame, length, exchange.recoded, names)
        except (WireError, KeyError):
            # That is judged once all of it is there.
            return False
        if exchange.policy.hintable and raised.failed:
            return False
        self._rest = raised.rest
        self._go_raised(exchange, frame, length, names, raised)
        return True

    def _go_raised(
        self,
        exchange: Exchange,
        frame: memoryview,
        length: int,
        names: Names | None,
        raised: Raised,
    ) -> None:
        """Let a Fetch response go on that has nothing for a hint, or what has come of it."""
        self._opened(exchange, raised)
        if names is None or not names.stale:
            # What is said of another topic is none of this client's.
            self._pass(exchange, frame, length, exchange.recoded)
        if exchange.policy.hintable:
            self._answered(exchange, raised.session_id, raised.error)
        self._instead = raised.pieces

    def _names(self, exchange: Exchange) -> Names | None:
        named = exchange.by_name
        return None if named is None else named.names(self._link.route.broker.known)

    def _opened(self, exchange: Exchange, raised: Raised) -> None:
        named = exchange.by_name
        if named is None:
            return
        self._link.lack(named.unknown)
        if raised.session_id and not raised.error:
            named.opened(self._link.route.sessions_by_name, raised.session_id)

    def _go_on(self, data: memoryview, rest: Rest) -> Pieces:
        if self._passthrough is not None and self._passthrough.see(data[: self._skip]):
            self._passthrough = None
        return super()._go_on(data, rest)

    def _pass(self, exchange: Exchange, frame: memoryview, length: int, version: int) -> bool:
        """Let a response go on, and look at what it answers where that tells something."""
        policy = exchange.policy
        if not policy.hintable and policy.unhinted is None:
            # Asked while hints were off: nothing of it is looked at.
            return True
        if self._link.route.awaited or (
            policy.unhinted is not None and not has_no_failure(frame, policy.key, version)
        ):
            self._follow(exchange, frame, length, version, policy.unhinted)
        return True

    def _follow(
        self,
        exchange: Exchange,
        frame: memoryview,
        length: int,
        version: int,
        reason: MissReason | None,
    ) -> None:
        """Look at what is at hand of a response, and at the rest as it comes."""
        passthrough = PassthroughScan(self._link, self._recovery, exchange, version, length, reason)
        if not passthrough.see(frame):
            self._passthrough = passthrough

    def _pass_or_gather(self, exchange: Exchange, frame: memoryview, length: int) -> bool:
        self._exchange = exchange
        if self._begin_gather(frame, length):
            return False
        self._over_budget(exchange, frame, length)
        return True

    def _over_budget(self, exchange: Exchange, frame: memoryview, length: int) -> None:
        self._link.traffic.raw["budget"] += 1
        self._missed(exchange)
        if exchange.policy.hintable:
            self._follow(exchange, frame, length, exchange.policy.version, MissReason.BUDGET)

    def _begin_fetch(self, exchange: Exchange, frame: memoryview, length: int) -> bool:
        glanced = glance(frame, exchange.policy.version)
        if glanced is not None:
            self._answered(exchange, *glanced)
            return self._pass(exchange, frame, length, exchange.policy.version)
        self._scan = FetchScan(exchange.policy.version)
        if self._look_at_fetch(exchange, frame, len(frame), length):
            return True
        return self.held is None and self._pass_or_gather(exchange, frame, length)

    def _look_at_fetch(self, exchange: Exchange, frame: memoryview, have: int, length: int) -> bool:
        assert self._scan is not None
        scan = self._scan
        try:
            scan.advance(frame, have, length)
            if not scan.clean and scan.scanned is None:
                return False
        except WireError as error:
            self._link.misunderstood("broker", f"Fetch v{exchange.policy.version}: {error}")
            self._missed(exchange)
            return True
        self._answered(exchange, scan.session_id, scan.error)
        self._pass(exchange, frame[:have], length, exchange.policy.version)
        return scan.scanned is None or not self._hold(exchange, frame, scan.scanned)

    def _answered(self, exchange: Exchange, session_id: int, error: int) -> None:
        if exchange.request is None:
            self._link.route.sessions.missed(session_id)
            return
        try:
            self._link.route.sessions.answered(exchange.request, session_id, error)
        except WireError as wrong:
            self._link.misunderstood("client", f"Fetch v{exchange.policy.version} request: {wrong}")

    def _missed(self, exchange: Exchange) -> None:
        """Note that nobody knows what came of a request that is not followed."""
        route, scan = self._link.route, self._scan
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

    def _look_at_produce(self, exchange: Exchange, frame: memoryview) -> bool:
        try:
            scanned = produce.scan_response(frame)
        except WireError as error:
            self._link.misunderstood("broker", f"Produce v{exchange.policy.version}: {error}")
            return True
        self._pass(exchange, frame, len(frame), exchange.policy.version)
        return not scanned.failures or not self._hold(exchange, frame, scanned)

    def _hold(self, exchange: Exchange, frame: memoryview, scanned: Scanned) -> bool:
        """Keep a response back; false where it must not wait.

        That is a replica's, and one to a request that cannot be read: it might be a replica's.
        """
        link = self._link
        epochs = [UNKNOWN_EPOCH] * len(scanned.failures)
        if exchange.request is not None:
            try:
                request = read_request(memoryview(exchange.request))
            except WireError as error:
                link.misunderstood("client", f"Fetch v{exchange.policy.version} request: {error}")
                return False
            if request.replica_id >= 0:
                for told in self._told(exchange, scanned):
                    link.events.append(HintMissed(answered=told, reason=MissReason.REPLICA))
                return False
            epochs = link.route.sessions.epochs(request, scanned.failures)
        if frame.obj is self._shared.obj or exchange.recoded:
            # What was gathered has its bytes reserved; this has not.
            if not self._account.take(len(frame)):
                for told in self._told(exchange, scanned):
                    link.events.append(HintMissed(answered=told, reason=MissReason.BUDGET))
                return False
            self._owed += len(frame)
            frame = memoryview(bytes(frame))
        self._recovery.failed(
            link.route,
            link.client_id or "",
            api_name(exchange.policy.key),
            ((link.route.broker.topic_name(f.topic), f.partition) for f in scanned.failures),
        )
        self.held = Held(
            link, ApiKey(exchange.policy.key), exchange.policy.version, frame, scanned, epochs
        )
        return True

    def _told(self, exchange: Exchange, scanned: Scanned) -> Iterator[ErrorAnswered]:
        key = ApiKey(exchange.policy.key)
        for failure in scanned.failures:
            yield self._link.answered(key, exchange.policy.version, failure, UNKNOWN_EPOCH, 0.0)

    def _look_at_versions(self, exchange: Exchange, frame: memoryview) -> bool:
        link = self._link
        try:
            reader = Reader(frame, api_versions.BODY)
            ranges = api_versions.read_ranges(reader, exchange.policy.version)
        except WireError as error:
            reason = f"ApiVersions v{exchange.policy.version}: {error}"
            if link.route.config.address_rewriting is not None:
                # What it offers might say addresses.
                self.fault = reason
                return False
            link.misunderstood("broker", reason)
            return True
        if ranges and link.route.raised:
            maxima = {key: versions.maximum for key, versions in ranges.items()}
            plan = plan_for(maxima, synthetic=link.synthesizes_ids)
            link.agree(plan if link.route.config.address_rewriting is None else plan.reading())
        if ranges and link.route.mode is Mode.ON:
            offers = link.plan.offers(link.hint_forms, topic_ids=link.ids_have_names)
            link.by_ids = ApiKey.FETCH in offers and not link.plan.synthetic
            api_versions.raise_maxima(frame, ranges, offers)
        if ranges and link.route.config.address_rewriting is not None:
            version = exchange.policy.version
            self._instead = spliced(frame, api_versions.withhold(frame, version, NEWEST))
        elif link.route.config.address_rewriting is not None:
            mended = api_versions.mended_refusal(frame)
            self._instead = [] if mended is None else [mended]
        return True
