"""Sees what a response answers whose errors are to be settled.

Tested in ``tests/core/link/test_link_settling.py``.
"""

from leader_hints.apis.fetch_request import read_asker
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Failure
from leader_hints.apis.response_scan import Answered
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.link_state import LinkState
from leader_hints.core.responses.passthrough_scan import PassthroughScan
from leader_hints.wire.errors import WireError


class SettlingScan(PassthroughScan):
    """Follows a response, and keeps its errors in place of counting them.

    They are counted by what came of them when the response was held; see
    :meth:`leader_hints.core.responses.response_notes.ResponseNotes.settled`. Those that must not
    wait are counted at once. ``failures``: the others, so far.
    """

    __slots__ = ("_may_wait", "failures")

    def __init__(
        self, link: LinkState, recovery: Recovery, exchange: Exchange, length: int
    ) -> None:
        policy = exchange.policy
        super().__init__(link, recovery, exchange, policy.version, length, policy.unhinted)
        self.failures: list[Failure] = []
        self._may_wait: bool | None = None

    @property
    def exchange(self) -> Exchange:
        """What the response answers."""
        return self._exchange

    @property
    def carries(self) -> bool:
        """Whether partitions that were seen have brought records or acknowledgements."""
        return self._scan.carries

    def see(self, piece: memoryview) -> bool:
        """See :meth:`PassthroughScan.see`: what cannot be read to its end is not held."""
        if super().see(piece) and not self._scan.done:
            failures, self.failures = self.failures, []
            for failure in failures:
                super()._failed(failure, [])
        return self.over

    def _failed(self, answered: Answered | Failure, failed: list[tuple[str, int]]) -> None:
        if self._may_wait is None:
            self._may_wait = _asked_by_client(self.exchange)
        if not self._may_wait:
            super()._failed(answered, failed)
            return
        topic, partition, error, *_ = answered
        self.failures.append(Failure(topic, partition, error, 0, 0))
        failed.append((self._link.route.broker.topic_name(topic), partition))


def _asked_by_client(exchange: Exchange) -> bool:
    """Whether no replica has asked, as far as the request is at hand; else it may be one."""
    if exchange.policy.key != ApiKey.FETCH:
        return True
    try:
        return exchange.request is not None and not read_asker(memoryview(exchange.request)).replica
    except WireError:
        return False
