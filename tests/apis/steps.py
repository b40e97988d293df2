"""Has what a module does in steps be done in as many as there may be."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from unittest.mock import patch


@contextmanager
def short_steps(module: ModuleType) -> Iterator[None]:
    """Have each step of a module look at one topic or partition of a response."""
    with patch.object(module, "ENTRIES_AT_ONCE", 1), patch.object(module, "ANSWERS_AT_ONCE", 1):
        yield
