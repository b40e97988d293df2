"""How many file descriptors a number of client connections needs, and the reverse.

`check` and `run` both ask here, so that the one never promises what the other does not do.
"""

from typing import Final

#: For all but links: listeners, the subscription, the admin server, the journal, libraries.
_OTHER: Final = 256
_OF_A_LINK: Final = 2


def connections_within(allowed: int) -> int:
    """Return how many connections so many descriptors are enough for, at least one."""
    return max((allowed - _OTHER) // _OF_A_LINK, 1)


def descriptors_for(connections: int) -> int:
    """Return how many descriptors so many connections need."""
    return connections * _OF_A_LINK + _OTHER
