"""Sees what a response answers whose errors are to be settled.

Tested in ``tests/core/link/test_link_settling.py``.
"""

from leader_hints.apis.fetch_request import Asked, read_asker, read_request
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Failure
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.exchange import Exchange
from leader_hints.core.link.link_state import Failed, LinkState
from leader_hints.core.responses.passthrough_scan import PassthroughScan
from leader_hints.core.versions.request_policy import RequestPolicy
from leader_hints.wire.errors import WireError


class SettlingScan(PassthroughScan):
    """Follows a response, and keeps its errors in place of counting them.

    They are counted by what came of them when the response was held; see
    :meth:`leader_hints.core.responses.response_notes.ResponseNotes.settled`. Those that must not
    wait are counted at once. ``failures``: the others, so far; ``epochs``: for each of them the
    leader epoch that the client used, -1 where it is not known.
    """

    __slots__ = ("_asked", "_may_wait", "_session_id", "epochs", "failures")

    def __init__(
        self, link: LinkState, recovery: Recovery, exchange: Exchange, length: int
    ) -> None:
        policy = exchange.policy
        super().__init__(link, recovery, exchange, policy.version, length, policy.unhinted)
        self.failures: list[Failure] = []
        self.epochs: list[int] = []
        #: Not known before its request was read.
        self._may_wait: bool | None = None
        self._asked: Asked = {}
        self._session_id = 0

    @property
    def policy(self) -> RequestPolicy:
        """What was decided for such requests."""
        return self._exchange.policy

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
        elif new := self.failures[len(self.epochs) :]:
            sessions = self._link.route.sessions
            self.epochs += sessions.epochs(self._asked, self._session_id, new)
        return self.over

    def _failed(self, answered: Failed, failed: list[tuple[str, int]]) -> None:
        if self._may_wait is None:
            self._may_wait = self._read_request()
        if not self._may_wait:
            super()._failed(answered, failed)
            return
        topic, partition, error, *_ = answered
        self.failures.append(Failure(topic, partition, error, 0, 0))
        failed.append((self._link.route.broker.topic_name(topic), partition))

    def _read_request(self) -> bool:
        """Read what was asked, as far as it is at hand; return whether no replica has asked it.

        Where that is not known a replica may have.
        """
        if self.policy.key != ApiKey.FETCH:
            return True
        if self._exchange.request is None:
            return False
        frame = memoryview(self._exchange.request)
        try:
            if not self.policy.follows_session:
                return not read_asker(frame).replica
            request = read_request(frame)
        except WireError:
            return False
        self._asked, self._session_id = request.asked, request.session_id
        return request.replica_id < 0
