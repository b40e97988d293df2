"""Small fleets for tests."""

from typing import Any

from leader_hints_report.simulation.fleet import Fleet, make_fleet

SMALL: dict[str, Any] = {
    "cluster": {"brokers": 3},
    "topics": [{"name": "t", "partitions": 30}, {"name": "u", "partitions": 6, "count": 2}],
    "clients": [
        {"name": "p", "role": "producer", "count": 2, "records_per_second": 500, "acks": "1"},
        {"name": "q", "role": "producer", "version": "3.9", "records_per_second": 50},
        {"name": "c", "role": "consumer", "count": 3},
    ],
    "event": {"kind": "rolling_restart", "pause_s": 120},
}


def small(**changed: Any) -> Fleet:
    """Return the small fleet with some parts of it changed."""
    return make_fleet({**SMALL, **changed}, "small")
