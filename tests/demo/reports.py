"""Rounds that went well, for tests to spoil."""

from typing import Any

from demo.move import LogLine, Move
from demo.report import RoundReport
from leader_hints.mock.cluster import BEFORE_HINTS


def hint_line(**changes: Any) -> LogLine:
    """A `hint_given` line that is right in the rounds below."""
    return {"api": "Fetch", "partition": 0, "leader": 2, "epoch": 2, "hold_ms": 12.4} | changes


def good_move(**changes: Any) -> Move:
    """A move of partition 0 from node 1 to node 2."""
    fields: dict[str, Any] = {
        "partition": 0,
        "leader_before": 1,
        "leader": 2,
        "epoch": 2,
        "produce_ms": 100.0,
        "fetch_ms": 120.0,
        "hints": (),
    }
    return Move(**fields | changes)


def good_round(hints_on: bool, **changes: Any) -> RoundReport:
    """A round in which nothing is wrong."""
    lines = (hint_line(),) if hints_on else ()
    fields: dict[str, Any] = {
        "hints_on": hints_on,
        "moves": (good_move(hints=lines),),
        "leaders": {(0, 1): 1, (0, 2): 2},
        "offered": {1: dict(BEFORE_HINTS), 2: dict(BEFORE_HINTS)},
        "acknowledged": 300,
        "lost": 0,
        "doubled": 0,
        "disordered": 0,
        "client_errors": (),
        "met_addresses": frozenset({"127.0.0.1:20001"}),
        "client_bytes": 5000,
        "proxy_addresses": frozenset({"127.0.0.1:20001", "127.0.0.1:20002"}),
        "proxy_bytes": 5000,
        "proxy_requests": {"Produce": 40, "Fetch": 50} if hints_on else {},
        "mock_requests": {"Produce": 40, "Fetch": 50, "Metadata": 7},
        "hint_lines": lines,
        "missed_lines": (),
        "hints_counted": len(lines),
    }
    return RoundReport(**fields | changes)
