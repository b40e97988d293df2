"""How evenly the work of stages was spread over their tasks, from Spark's event log."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Final

#: Shorter ones are not looked at: what a task costs in itself is too large a part of them.
LONG_S: Final = 5.0


@dataclass(frozen=True)
class Stage:
    """``name``: what the session was at; ``seconds``: from its first task's start to the end of its
    last, since a stage may wait for others; ``work``: of all tasks together; ``longest`` and
    ``median`` task, seconds."""

    name: str
    seconds: float
    work: float
    longest: float
    median: float
    tasks: int

    @property
    def skew(self) -> float:
        """How many times the median the longest task took."""
        return self.longest / max(self.median, 0.001)


def stages(log: Iterable[str]) -> list[Stage]:
    """The stages of an event log, in the order of their ends."""
    tasks: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    names: dict[int, str] = {}
    done = []
    for line in log:
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            name = (event.get("Properties") or {}).get("spark.job.description", "")
            # Spark's own descriptions end with paths.
            names |= dict.fromkeys(event["Stage IDs"], name.partition(":")[0])
        elif event["Event"] == "SparkListenerTaskEnd":
            info = event["Task Info"]
            span = (info["Launch Time"], info["Finish Time"])
            tasks[event["Stage ID"], event["Stage Attempt ID"]].append(span)
        elif event["Event"] == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            spans = tasks[info["Stage ID"], info["Stage Attempt ID"]]
            if spans:
                seconds = (max(end for _, end in spans) - min(begin for begin, _ in spans)) / 1000
                times = [(end - begin) / 1000 for begin, end in spans]
                name = names.get(info["Stage ID"], "")
                done.append(Stage(name, seconds, sum(times), max(times), median(times), len(times)))
    return done


def work_by_name(stages: Iterable[Stage]) -> dict[str, float]:
    """Seconds of all tasks by what the session was at, in the order of the first ends."""
    work: dict[str, float] = {}
    for stage in stages:
        work[stage.name] = work.get(stage.name, 0.0) + stage.work
    return work
