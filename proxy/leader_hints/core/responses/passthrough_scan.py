"""Sees what a response answers that goes on at once."""

from contextlib import suppress

from leader_hints.apis.error_codes import HINTABLE
from leader_hints.apis.fetch_request import Asker, read_asker
from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.response_scan import Answered, AnswerScan
from leader_hints.core.events import HintMissed
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.hints.recovery import Awaiting, Client
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.link_state import Failed, LinkState
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH
from leader_hints.wire.errors import Truncated, WireError
from leader_hints.wire.steps import Steps

#: How often one step looks on at what passes.
_SEEN_AT_ONCE = 2


class PassthroughScan:
    """Follows one response, whose bytes are another's: none of them is kept back or changed.

    ``version``: of the response as it is seen, of ``length`` bytes in all. Errors are counted
    where ``reason`` says why they get no hint; without one they are counted elsewhere.
    Successes are reported where some are awaited on the route. ``over``: nothing more of it is of
    interest. ``left``: bytes at the end of what it has seen last that it must see again, in a later
    turn.
    """

    __slots__ = (
        "_asker",
        "_exchange",
        "_link",
        "_reason",
        "_recovery",
        "_scan",
        "_to_come",
        "left",
        "over",
    )

    def __init__(
        self,
        link: LinkState,
        recovery: Awaiting,
        exchange: Exchange,
        version: int,
        length: int,
        reason: MissReason | None,
    ) -> None:
        self._link = link
        self._recovery = recovery
        self._exchange = exchange
        self._to_come = length
        self._reason = reason
        self._asker: Asker | None = None
        self.over = False
        self.left = 0
        self._scan = AnswerScan(exchange.policy.key, version, successes=link.route.awaited)

    def see(self, piece: memoryview) -> bool:
        """Take the next bytes of the frame; return whether it is :attr:`over`."""
        self.over = self._see(piece)
        return self.over

    @property
    def passing(self) -> int:
        """As :attr:`leader_hints.apis.response_scan.AnswerScan.passing`, but for a last byte."""
        return max(min(self._scan.passing, self._to_come - 1), 0)

    def passed(self, size: int) -> None:
        """Take note of ``size`` bytes, at most :attr:`passing`, that it does not see."""
        self._scan.passed(size)
        self._to_come -= size

    def see_rest(self, piece: memoryview) -> Steps[None]:
        """See what is left of a piece that it has seen, in steps."""
        while self.left:
            for _ in range(_SEEN_AT_ONCE):
                if self.left:
                    self.see(piece[len(piece) - self.left :])
            if self.left:
                yield

    def _see(self, piece: memoryview) -> bool:
        self.left = 0
        failed: list[tuple[str, int]] = []
        try:
            answers = self._scan.advance(piece)
            self.left = self._scan.left
            self._to_come -= len(piece) - self.left
            for answered in answers:
                if answered.error in HINTABLE:
                    self._failed(answered, failed)
                else:
                    self._succeeded(answered)
            if failed:
                # Together: there may be as many routes as brokers.
                link, api = self._link, api_name(self._exchange.policy.key)
                self._recovery.failed(link.route, link.client.id or "", api, failed)
            if not self._scan.done and self._to_come <= 0:
                raise Truncated("response ends before its partitions do")
        except WireError as error:
            name, version = api_name(self._exchange.policy.key), self._exchange.policy.version
            self._link.misunderstood("broker", f"{name} v{version}: {error}")
            return True
        return self._scan.done

    def _failed(self, answered: Failed, failed: list[tuple[str, int]]) -> None:
        """Report an error that gets no hint; add its partition to those that ``failed``."""
        if self._reason is None:
            return
        link, exchange = self._link, self._exchange
        reason = MissReason.REPLICA if self._read_asker().replica else self._reason
        key = ApiKey(exchange.policy.key)
        told = link.answered(key, exchange.policy.version, answered, UNKNOWN_EPOCH, 0.0)
        if reason is not MissReason.REPLICA:
            failed.append((told.topic, told.partition))
        link.events.append(HintMissed(answered=told, reason=reason))

    def _succeeded(self, answered: Answered) -> None:
        link = self._link
        if self._exchange.policy.key == ApiKey.FETCH:
            asker = self._read_asker()
            if asker.replica or not (answered.brings or asker.full):
                return
        else:
            self._produced(answered)
        client = Client(link.number, link.client.id or "", link.client.software)
        name, topic = (
            api_name(self._exchange.policy.key),
            link.route.broker.topic_name(answered.topic),
        )
        recovered = self._recovery.succeeded(link.route, client, name, topic, answered.partition)
        if recovered is not None:
            link.events.append(recovered)

    def _produced(self, answered: Answered) -> None:
        """Have the view know that the broker serves as leader; a Fetch a follower may answer."""
        broker = self._link.route.broker
        if broker.view is not None and broker.proved_node is not None:
            broker.view.served(answered.topic, answered.partition, broker.proved_node)

    def _read_asker(self) -> Asker:
        """Return who asked, read once and only where something is to be reported."""
        if self._asker is None:
            self._asker = Asker(replica=False, full=False)
            if self._exchange.request is not None:
                # Not all of it may have been at hand, or the broker will refuse it.
                with suppress(WireError):
                    self._asker = read_asker(memoryview(self._exchange.request))
        return self._asker
