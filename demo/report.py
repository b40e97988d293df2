"""RoundReport: everything that was seen in one round."""

from collections.abc import Mapping
from dataclasses import dataclass

from demo.move import LogLine, Move

COUNTED_APIS = ("Produce", "Fetch")
"""The APIs whose requests the demo counts at the mock cluster and at the proxy."""


@dataclass(frozen=True)
class RoundReport:
    """What the clients, the proxy and the mock cluster say of the same round."""

    hints_on: bool
    moves: tuple[Move, ...]
    leaders: Mapping[tuple[int, int], int]
    """Partition and epoch -> the leader that the cluster really had."""
    offered: Mapping[int, Mapping[str, int]]
    """Node -> API name -> the highest version that the mock broker itself offers."""

    acknowledged: int
    lost: int
    doubled: int
    disordered: int
    client_errors: tuple[str, ...]
    """The errors that the clients handed to the application."""

    met_addresses: frozenset[str]
    """Every host:port to which a client made a connection."""
    client_bytes: int
    """Bytes that the clients sent."""
    proxy_addresses: frozenset[str]
    proxy_bytes: int
    """Bytes that the proxy got from clients."""
    proxy_requests: Mapping[str, int]
    """API -> requests that passed the proxy; empty with hints off, when it reads nothing."""
    mock_requests: Mapping[str, int]
    """API -> requests that reached the mock brokers."""

    hint_lines: tuple[LogLine, ...]
    """The proxy's `hint_given` lines."""
    missed_lines: tuple[LogLine, ...]
    """The proxy's `hint_missed` lines."""
    hints_counted: int
    """The hints given, by the proxy's metrics."""

    @property
    def errors(self) -> int | None:
        """Leader errors that the proxy saw; None with hints off, when it reads nothing."""
        return len(self.hint_lines) + len(self.missed_lines) if self.hints_on else None

    @property
    def wrong_hints(self) -> tuple[LogLine, ...]:
        """The hints whose leader and epoch the cluster never had together."""
        return tuple(
            line
            for line in self.hint_lines
            if self.leaders.get((line["partition"], line["epoch"])) != line["leader"]
        )
