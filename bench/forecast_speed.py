"""``python -m bench.forecast_speed NAME``: simulate a large fleet, and print what that took."""

import json
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from leader_hints_report.simulation.arms import Mode
from leader_hints_report.simulation.fleet import make_fleet
from leader_hints_report.simulation.simulate import simulate
from tests.harness.maven import PYTHONPATH, ROOT

_KB_IN_MB: Final = 1024


def _document(
    brokers: int,
    topics: dict[str, Any],
    producers: int,
    consumers: int,
    rate: float,
    version: str = "3.6.2",
) -> dict[str, Any]:
    its = {"version": version}
    return {
        "cluster": {"brokers": brokers},
        "topics": [topics],
        "clients": [
            {
                "name": "p",
                "role": "producer",
                "count": producers,
                "records_per_second": rate,
                **its,
            },
            {"name": "c", "role": "consumer", "count": consumers, **its},
        ],
        "event": {"kind": "rolling_restart"},
    }


class Case(NamedTuple):
    """A fleet's document, and what it is simulated with."""

    document: dict[str, Any]
    mode: Mode


_LARGE: Final = {"name": "t", "partitions": 200, "count": 1000}
#: Without a proxy, where most stalls are; and with hints for clients that use them, where each
#: hold has its questions planned.
FLEETS: Final = {
    "9,000 partitions, 6 brokers, 120 clients, 70 minutes": Case(
        {
            **_document(6, {"name": "t", "partitions": 9000}, 60, 60, 23_400),
            "duration_s": 4200,
        },
        Mode.NO_PROXY,
    ),
    "200,000 partitions, 1,000 brokers, 10,000 clients": Case(
        _document(1000, _LARGE, 5, 5, 1000), Mode.NO_PROXY
    ),
    "the same, with hints": Case(_document(1000, _LARGE, 5, 5, 1000, "3.9.1"), Mode.HINTS),
}


@dataclass
class Speed:
    """``seconds`` of CPU and ``megabytes`` at most, for one roll in one mode."""

    seconds: float
    megabytes: float


def measure(name: str) -> Speed:
    """Simulate a fleet in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.forecast_speed", name],
        env={"PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return Speed(**json.loads(done.stdout))


def main(name: str) -> None:
    """Simulate a fleet, and print what it took."""
    case = FLEETS[name]
    simulate(make_fleet(case.document, name), case.mode, 1)
    used = resource.getrusage(resource.RUSAGE_SELF)
    speed = Speed(used.ru_utime + used.ru_stime, used.ru_maxrss / _KB_IN_MB)
    print(json.dumps(asdict(speed)))


if __name__ == "__main__":
    main(sys.argv[1])
