"""The proxy's own command, with a clock: the longest CPU time between two looks at its sockets.

That is how long others wait at most for what one link sends. It is written into the file that the
variable TIMED_STEPS names, in seconds, whenever it grows.
"""

import math
import os
import time
from pathlib import Path
from unittest.mock import patch

from leader_hints.cli.main import main
from leader_hints.net.pump.poller import Poller, make_poller

VARIABLE = "TIMED_STEPS"


class TimedPoller:
    """A poller that notes how much CPU time was used since it was asked before."""

    def __init__(self, poller: Poller, file: Path) -> None:
        self._poller = poller
        self._file = file
        self._longest = 0.0
        #: The first look comes behind the start, which is none of a link's.
        self._since = math.inf
        self.fileno = poller.fileno
        self.watch = poller.watch
        self.close = poller.close

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        """See :class:`leader_hints.net.pump.poller.Poller`."""
        used = time.thread_time() - self._since
        if used > self._longest:
            self._longest = used
            # A process that reads it meanwhile must find a number.
            unfinished = self._file.with_suffix(".part")
            unfinished.write_text(f"{used}\n")
            unfinished.replace(self._file)
        ready = self._poller.poll(seconds)
        self._since = time.thread_time()
        return ready


if __name__ == "__main__":
    into = Path(os.environ[VARIABLE])
    with patch("leader_hints.net.pump.pump.make_poller", lambda: TimedPoller(make_poller(), into)):
        main()
