"""What a command loads before it can do its work."""

import subprocess
import sys


def test_run_loads_nothing_of_what_faults_need() -> None:
    code = "import sys, leader_hints.cli.main, leader_hints.app; print('kio' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
