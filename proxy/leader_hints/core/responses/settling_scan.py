"""Sees what a response answers whose errors are to be settled.

Tested in ``tests/core/link/test_link_settling.py``.
"""

from leader_hints.apis.leader_hint import Failure
from leader_hints.core.hints.recovery import Awaiting
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.link_state import Failed, LinkState
from leader_hints.core.responses.passthrough_scan import PassthroughScan


class SettlingScan(PassthroughScan):
    """Follows a response, and keeps its errors in place of counting them: ``failures``, so far.

    Once all have come they are held, or counted; see
    :meth:`leader_hints.core.responses.response_notes.ResponseNotes.settled`.
    """

    __slots__ = ("failures",)

    def __init__(
        self, link: LinkState, recovery: Awaiting, exchange: Exchange, length: int
    ) -> None:
        policy = exchange.policy
        super().__init__(link, recovery, exchange, policy.version, length, policy.unhinted)
        self.failures: list[Failure] = []

    @property
    def exchange(self) -> Exchange:
        """What the response answers."""
        return self._exchange

    @property
    def carries(self) -> bool:
        """Whether partitions that were seen have brought records or acknowledgements."""
        return self._scan.carries

    @property
    def understood(self) -> bool:
        """Whether it was read to its end."""
        return self._scan.done

    def _failed(self, answered: Failed, failed: list[tuple[str, int]]) -> None:
        topic, partition, error, *_ = answered
        self.failures.append(Failure(topic, partition, error, 0, 0))
