"""Error responses of workers, judged by the one hold queue.

Tested in ``tests/net/workers/test_sides.py``.
"""

from collections.abc import Callable, Iterable, Sequence

from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.leader_hint import Failure, LeaderHint, Scanned
from leader_hints.core.events import ErrorAnswered
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.held import Held
from leader_hints.core.link.link_state import Failed
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.workers.messages import (
    MOST_ENTRIES,
    ErrorsCame,
    ErrorsReported,
    Failing,
    HintsDecided,
    MoreErrors,
    ToWorker,
)

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


class JudgedHolds:
    """Those of one worker. ``send``: to it; ``submit``: to the hold timer."""

    def __init__(self, submit: Submit, send: Send) -> None:
        self._submit = submit
        self._send = send
        #: Those of which failures are still to come.
        self._coming: dict[int, tuple[Route, ErrorsCame, list[Failing]]] = {}

    def came(self, route: Route, came: ErrorsCame) -> None:
        """Take a response, or the beginning of a large one."""
        if len(came.failing) < came.total:
            self._coming[came.response] = route, came, [*came.failing]
        else:
            self._judge(route, came, came.failing)

    def more(self, more: MoreErrors) -> None:
        """Take more of its failures."""
        route, came, failing = self._coming[more.response]
        failing += more.failing
        if len(failing) >= came.total:
            del self._coming[more.response]
            self._judge(route, came, failing)

    def _judge(self, route: Route, came: ErrorsCame, failing: Sequence[Failing]) -> None:
        failures = tuple(
            Failure(topic, partition, error, 0, 0) for topic, partition, error, _ in failing
        )
        epochs = [one.epoch for one in failing]
        scanned = Scanned(failures, came.carries, 0, 0)
        held = _Judged(_Link(route, came), came, scanned, epochs, self._send)
        hints = self._submit(held)
        if hints is not None:
            _decided(held, hints)


def settle(decided: Iterable[tuple[Held, Sequence[LeaderHint | None]]]) -> None:
    """Tell workers which of their responses may go on."""
    for held, hints in decided:
        assert isinstance(held, _Judged)
        _decided(held, hints)


def _decided(held: _Judged, hints: Sequence[LeaderHint | None]) -> None:
    if not held.waits:
        return
    response = held.came.response
    if not any(hints):
        hints = ()
    parts = range(0, max(len(hints), 1), MOST_ENTRIES)
    for begin in parts:
        some, last = tuple(hints[begin : begin + MOST_ENTRIES]), begin == parts[-1]
        held.send(HintsDecided(response, some, last))
