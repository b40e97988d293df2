"""``python -m bench.stepped FILE SETTINGS``: the proxy, with the steps of its event loop timed.

SETTINGS is JSON as :class:`leader_hints.settings.settings.Settings` takes it. On SIGUSR1, and at
the end, FILE gets the longest step of each task since the last time: milliseconds of CPU by the
task's name; and the longest hold. SIGUSR1 resets them.
"""

import gc
import json
import signal
import sys
from functools import partial
from pathlib import Path
from time import thread_time

import trio

from leader_hints.app import serve
from leader_hints.core.events import Event, HintGiven, HintMissed
from leader_hints.observe.logs import configure_logs
from leader_hints.observe.metrics import Metrics
from leader_hints.settings.settings import Settings

#: Stands among the tasks for the garbage collector.
GARBAGE = "garbage collection"
#: Stands among the tasks for the longest time that an error response was held.
HOLD = "hold"


class Steps(trio.abc.Instrument):
    """The longest step of each task, in seconds of CPU: others on the machine do not count."""

    def __init__(self) -> None:
        self.longest: dict[str, float] = {}
        self._begun = 0.0
        self._collecting = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Begin to count."""
        self._begun = thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Keep what is longest."""
        took = thread_time() - self._begun
        if took > self.longest.get(task.name, 0.0):
            self.longest[task.name] = took

    def collected(self, phase: str, info: object) -> None:
        """Time the garbage collector, which stops whatever task it comes upon."""
        if phase == "start":
            self._collecting = thread_time()
            return
        took = thread_time() - self._collecting
        self.longest[GARBAGE] = max(took, self.longest.get(GARBAGE, 0.0))

    def told(self, event: Event) -> None:
        """Keep the longest hold. The status has but the newest thousand."""
        if isinstance(event, HintGiven | HintMissed):
            seconds = event.answered.hold_ms / 1000
            self.longest[HOLD] = max(seconds, self.longest.get(HOLD, 0.0))

    def write(self, file: Path) -> None:
        """Write the longest steps, and reset them."""
        longest, self.longest = self.longest, {}
        file.with_suffix(".new").write_text(
            json.dumps({name: round(seconds * 1000, 3) for name, seconds in longest.items()})
        )
        file.with_suffix(".new").rename(file)


def main() -> None:
    """Run the proxy."""
    file, settings = Path(sys.argv[1]), Settings(**json.loads(sys.argv[2]))
    configure_logs("info", "json")
    steps = Steps()
    gc.callbacks.append(steps.collected)
    signal.signal(signal.SIGUSR1, lambda number, frame: steps.write(file))
    take = Metrics.take

    def told(metrics: Metrics, event: Event) -> None:
        steps.told(event)
        take(metrics, event)

    Metrics.take = told  # type: ignore[method-assign, assignment]
    trio.run(partial(serve, settings), instruments=[steps], strict_exception_groups=True)
    steps.write(file)


if __name__ == "__main__":
    main()
