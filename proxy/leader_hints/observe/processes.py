"""What the system knows of a process and of its workers, as one."""

import resource
from collections.abc import Sequence
from functools import partial
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric

#: What all processes have together is the sum; the rest is of the first one.
_ADDED: Final = (
    "process_cpu_seconds",
    "process_virtual_memory_bytes",
    "process_resident_memory_bytes",
    "process_open_fds",
)
_CPU: Final = "process_cpu_seconds"


class Processes:
    """Reads them for this process and others."""

    def __init__(self) -> None:
        self._own = ProcessCollector(registry=None)

    def collect(self, others: Sequence[int]) -> list[Metric]:
        """Return the metrics; ``others``: the numbers of this process's children that run."""
        metrics = {metric.name: metric for metric in self._own.collect()}
        for number in others:
            for metric in ProcessCollector(pid=partial(int, number), registry=None).collect():
                if metric.name in _ADDED and metric.name in metrics:
                    _add(metrics[metric.name], metric.samples[0].value)
        if _CPU in metrics and others:
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            _add(metrics[_CPU], ended.ru_utime + ended.ru_stime)
        return [*metrics.values()]


def _add(metric: Metric, value: float) -> None:
    sample = metric.samples[0]
    metric.samples[0] = sample._replace(value=sample.value + value)
