"""File descriptors: as many as the system allows, and how many connections that is enough for."""

import resource
from typing import Final

#: For all but links: listeners, the subscription, the admin server, the journal, libraries.
OTHER: Final = 256
OF_A_LINK: Final = 2


def raise_descriptors() -> int:
    """Let this process have as many as it may without privilege; return how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def enough_for(allowed: int) -> int:
    """Return how many connections so many descriptors are enough for, at least one."""
    return max((allowed - OTHER) // OF_A_LINK, 1)
