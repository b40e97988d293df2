"""File descriptors: as many as the system allows this process."""

import contextlib
import resource
import sys


def allowed_descriptors() -> int:
    """Return how many this process can have without privilege: the hard limit."""
    return _number(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def raise_descriptors() -> int:
    """Let this process have as many as it may without privilege; return how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some sandboxes refuse it, and systems on which the hard limit is no number.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return _number(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _number(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
