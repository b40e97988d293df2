"""Bytes to be looked at while those that precede them have not been received.

Tested in ``tests/core/link/test_link_ahead.py``.
"""

from typing import NamedTuple


class Ahead(NamedTuple):
    """``distance``: how many bytes precede them of those that have not been received. ``least``:
    how many of them are needed. ``most``: how many are of interest.
    """

    distance: int
    least: int
    most: int
