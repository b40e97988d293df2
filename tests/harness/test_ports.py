"""Two runs of the tests on one machine never choose the same ports."""

import subprocess
import sys

from tests.harness import ports
from tests.harness.maven import ROOT


def _another_run_takes(port: int) -> bool:
    """Whether a process of another run gets a port; it ends at once."""
    code = f"from tests.harness import ports; print(ports._reserve([{port}]))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip() == "True"


def test_what_this_run_has_chosen_is_not_given_to_another_one() -> None:
    """Nobody listens there yet: each of two runs had the port, and the later proxy ended."""
    (port,) = ports.free_ports(1)
    first = ports.free_range(3)
    assert not any(map(_another_run_takes, (port, first, first + 2)))


def test_what_a_run_had_chosen_is_free_when_it_has_ended() -> None:
    free = (port for port in ports._RANGES if ports._can_bind(port))
    taken = next(port for port in free if _another_run_takes(port))
    assert ports._reserve([taken])
