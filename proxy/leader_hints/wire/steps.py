"""Long work in steps, so that something else can be done between them.

Tested in ``tests/core/link/test_link_steps.py``.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

#: Work of which each step takes a millisecond at most, and what comes of it.
Steps = Generator[None, None, T]
#: Topics, partitions and the like that one step looks at; and of those of responses all steps but
#: the first, which nearly all responses need alone.
ENTRIES_AT_ONCE = 128
ANSWERS_AT_ONCE = 256


def at_once(steps: Steps[T]) -> T:
    """Do all steps, and return what comes of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            done: T = end.value
            return done


def together(steps: Steps[T], number: int) -> Steps[T]:
    """Do so many steps as one."""
    while True:
        for _ in range(number):
            try:
                next(steps)
            except StopIteration as end:
                done: T = end.value
                return done
        yield
