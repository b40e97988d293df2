"""Where the command `leader-hints` begins, before anything large is imported."""

import os
import signal
import sys


def main() -> None:
    """Run the command line and end the process with its exit code."""
    if os.getpid() == 1:
        # In a container: the kernel keeps from process 1 every signal that it has no handler for,
        # so a SIGTERM while Python still imports would be lost, and the container killed only when
        # its grace period is over. There is nothing to finish before the proxy sets its own.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if sys.argv[1:2] == ["run"]:
        # They would end it while Python still imports. There are no settings yet to read again, and
        # nothing to hand over: the proxy sets its own handlers.
        for number in (signal.SIGHUP, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)
    _open_streams()
    from leader_hints.cli.main import main as run

    run()


def _open_streams() -> None:
    """Open the standard streams that were closed before this process began.

    Python has none in their place, so nothing could be logged. And the next socket would get the
    number of one: a client would get what a library writes to standard error.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            # The system gives the lowest number that is free.
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
