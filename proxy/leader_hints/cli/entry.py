"""Where the command `leader-hints` begins, before anything large is imported."""

import os
import signal


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if os.getpid() == 1:
        # In a container: the kernel keeps from process 1 every signal that it has no handler for,
        # so a SIGTERM while Python still imports would be lost, and the container killed only when
        # its grace period is over. There is nothing to finish before the proxy sets its own.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    from leader_hints.cli.main import main as run

    run()
