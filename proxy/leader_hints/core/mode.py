"""What a route does about hints.

Tested in ``tests/core/test_route.py``.
"""

from enum import StrEnum


class Mode(StrEnum):
    """``on``: versions are raised and hints given. ``observe``: what would have been hinted is
    counted, and no byte changes. ``off``: a plain relay that reads nothing."""

    ON = "on"
    OBSERVE = "observe"
    OFF = "off"
