"""Error responses of workers, judged by the one hold queue.

Tested in ``tests/net/workers/test_sides.py``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.leader_hint import Failure, LeaderHint, Scanned
from leader_hints.core.events import ErrorAnswered
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import Failed
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.workers.messages import (
    ErrorsCame,
    ErrorsReported,
    Failing,
    MoreErrors,
    ToWorker,
)
from leader_hints.net.workers.decisions import Decisions

Send = Callable[[ToWorker], None]
#: See :meth:`leader_hints.net.metadata.hold_timer.HoldTimer.submit`.
Submit = Callable[[Held], list[LeaderHint | None] | None]

_NO_BYTES = memoryview(b"")


class _Link:
    """A worker's link; see :class:`leader_hints.core.link.held.HeldLink`."""

    __slots__ = ("_came", "number", "route")

    def __init__(self, route: Route, came: ErrorsCame) -> None:
        self.route = route
        self.number = came.link
        self._came = came

    def hintable(self, key: ApiKey, version: int) -> bool:
        return not self._came.refused

    def answered(
        self,
        key: ApiKey,
        version: int,
        failed: Failed,
        epoch: int,
        hold_ms: float,
        *,
        observed: bool | None = None,
    ) -> ErrorAnswered:
        return ErrorAnswered(
            route=self.route.name,
            link=self.number,
            client_id=self._came.client_id,
            software=self._came.software,
            api=api_name(key),
            version=version,
            topic=self.route.broker.topic_name(failed.topic),
            partition=failed.partition,
            error=failed.error,
            client_epoch=epoch,
            hold_ms=hold_ms,
            observed=self._came.observed if observed is None else observed,
        )


class _Reported:
    """Tells a worker that what failed in a response was reported, so that it counts no more."""

    __slots__ = ("_response", "_send")

    def __init__(self, response: int, send: Send) -> None:
        self._response = response
        self._send = send

    def give_back(self, size: int) -> None:
        self._send(ErrorsReported(self._response))


class _Judged(Held):
    """A worker's response, of which the worker has the bytes."""

    __slots__ = ("came", "send")

    def __init__(
        self, link: _Link, came: ErrorsCame, scanned: Scanned, epochs: list[int], send: Send
    ) -> None:
        unhinted = MissReason(came.unhinted) if came.unhinted else None
        super().__init__(link, ApiKey(came.key), came.version, _NO_BYTES, scanned, epochs, unhinted)
        self.came = came
        self.send = send
        self.account = _Reported(came.response, send)

    @property
    def refusal(self) -> MissReason | None:
        """The route may have been switched since, of which the worker will hear."""
        mode = Mode.OBSERVE if self.came.observed else Mode.ON
        agrees = not self.came.refused and self.link.route.mode is mode
        return None if agrees else MissReason.HINTS_OFF

    @property
    def observed(self) -> bool:
        return self.came.observed

    @property
    def waits(self) -> bool:
        """Whether the worker waits for its hints."""
        return not (self.came.refused or self.came.observed)


@dataclass(slots=True)
class _Coming:
    """A response, and those of its failures that have come."""

    route: Route
    came: ErrorsCame
    failures: list[Failure] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)

    def add(self, failing: Iterable[Failing]) -> None:
        for topic, partition, error, epoch in failing:
            self.failures.append(Failure(topic, partition, error, 0, 0))
            self.epochs.append(epoch)


class JudgedHolds:
    """Those of one worker. ``send``: to it; ``submit``: to the hold timer."""

    def __init__(self, submit: Submit, send: Send, decisions: Decisions) -> None:
        self._submit = submit
        self._send = send
        self._decisions = decisions
        #: Those of which failures are still to come.
        self._coming: dict[int, _Coming] = {}

    def came(self, route: Route, came: ErrorsCame) -> None:
        """Take a response, or the beginning of a large one."""
        coming = self._coming[came.response] = _Coming(route, came)
        self._add(coming, came.failing)

    def more(self, more: MoreErrors) -> None:
        """Take more of its failures."""
        self._add(self._coming[more.response], more.failing)

    def _add(self, coming: _Coming, failing: Iterable[Failing]) -> None:
        coming.add(failing)
        if len(coming.failures) >= coming.came.total:
            del self._coming[coming.came.response]
            self._judge(coming)

    def _judge(self, coming: _Coming) -> None:
        came = coming.came
        scanned = Scanned(tuple(coming.failures), came.carries, 0, 0)
        held = _Judged(_Link(coming.route, came), came, scanned, coming.epochs, self._send)
        hints = self._submit(held)
        if hints is not None:
            settle(self._decisions, [(held, hints)])


def settle(
    decisions: Decisions, decided: Iterable[tuple[Held, Sequence[LeaderHint | None]]]
) -> None:
    """Have workers get to know which of their responses may go on."""
    for held, hints in decided:
        assert isinstance(held, _Judged)
        if held.waits:
            decisions.take(held.send, held.came.response, hints)
