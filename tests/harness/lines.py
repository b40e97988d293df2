"""What a step costs, in lines of Python that it executes: no times, so load changes nothing."""

import gc
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


def lines_of(step: Callable[[], object]) -> int:
    """Return how many lines of Python a step executes."""
    lines = 0

    def trace(frame: FrameType, event: str, of: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    # A collection would have the lines counted with which objects of other tests end.
    gc.disable()
    sys.settrace(trace)
    try:
        step()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return lines


def most_lines(steps: Iterator[object]) -> int:
    """Return how many lines the longest of ``steps`` executes; all are done."""
    most, over = 0, object()
    last = None

    def step() -> None:
        nonlocal last
        last = next(steps, over)

    while last is not over:
        most = max(most, lines_of(step))
    return most
