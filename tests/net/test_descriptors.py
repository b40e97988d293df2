"""How many descriptors the process can have: counted alike by `check` and by `run`."""

import resource
import subprocess
import sys

from tests.harness.maven import ROOT

#: Prints what `check` counts, what `run` then has, and the soft limit after that.
_COUNTS = """
import resource
from leader_hints.net.descriptors import allowed_descriptors, raise_descriptors
print(allowed_descriptors(), raise_descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def test_check_counts_what_run_has() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COUNTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1024)),
    )

    assert done.stdout.split() == ["1024"] * 3
