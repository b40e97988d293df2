"""Drives a link as the pump does, and counts what each of its steps costs."""

from collections.abc import Callable, Iterator, Sequence

from leader_hints.apis.leader_hint import LeaderHint
from leader_hints.core.hints.recovery import Recovery
from leader_hints.core.link.budget import Budget
from leader_hints.core.link.flow import Flow
from leader_hints.core.link.link import Link
from leader_hints.core.route import Route
from tests.harness.lines import lines_of

#: Lines of a step at most: some two milliseconds.
MOST = 16_000
#: Bytes of the receive buffer.
SHARED = 1 << 18


class Stepped:
    """A link that is given bytes as the pump does, and how much each step costs."""

    def __init__(self, on: Route, *others: Route, budget: int = 1 << 26) -> None:
        self.shared = memoryview(bytearray(SHARED))
        self.budget = Budget(1 << 22, budget)
        self.link = Link(
            on,
            1,
            self.shared,
            self.budget,
            Recovery([on, *others]),
            largest_request=1 << 30,
            requests_in_flight=1000,
        )
        self.most = 0
        self.sent = bytearray()

    def take(self, flow: Flow, data: bytes | memoryview) -> None:
        """Receive all of ``data``, and do all that comes of it."""
        for step in self.steps(flow, data):
            self.most = max(self.most, lines_of(step))
            self.shared[:] = bytes(SHARED)

    def pass_on(self, flow: Flow, data: bytes | memoryview) -> None:
        """Receive all of ``data`` where nobody asks what a step costs: to count takes as long."""
        for step in self.steps(flow, data):
            step()
            self.shared[:] = bytes(SHARED)

    def steps(self, flow: Flow, data: bytes | memoryview) -> Iterator[Callable[[], None]]:
        """Iterate over the steps in which all of ``data`` is received."""
        left = memoryview(data)
        while left and flow.fault is None:
            if flow.unfinished:
                yield lambda: self.send(flow, flow.resume())
                continue
            buffer = flow.buffer()
            size = min(len(buffer), len(left))
            buffer[:size] = left[:size]
            left = left[size:]
            yield lambda size=size: self.send(flow, flow.received(size))  # type: ignore[misc]
        while flow.unfinished and flow.fault is None:
            yield lambda: self.send(flow, flow.resume())

    def release(self, hints: Sequence[LeaderHint | None]) -> None:
        """Let the held response go on; what failed counts as reported."""
        responses = self.link.responses
        assert responses.held is not None
        responses.held.give_back()
        self.send(responses, responses.release(hints))

    def send(self, flow: Flow, pieces: list[memoryview | bytes]) -> None:
        """Take what goes on."""
        self.sent += b"".join(pieces)
        if pieces:
            flow.flushed()
