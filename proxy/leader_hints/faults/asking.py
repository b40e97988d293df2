"""A request that passed the interposer, as far as faults need to know it.

Tested in ``tests/faults/test_interposer.py``.
"""

from collections.abc import Callable
from typing import NamedTuple

from leader_hints.apis.header import RequestHeader
from leader_hints.core.route import Route
from leader_hints.faults.refusal import Asked
from leader_hints.faults.session_partitions import Partitions


class Asking(NamedTuple):
    """A request on the connection number ``link``. ``about``: all partitions that it asks about,
    those of its session too. ``refused``: what is answered in place of a broker's response.
    """

    link: int
    header: RequestHeader
    frame: bytes
    asked: Asked
    about: Partitions = ()
    refused: bytes | None = None


#: Are called with each request, and with each response and the frame that the client gets.
OnRequest = Callable[[Route, Asking], None]
OnResponse = Callable[[Route, Asking, bytes], None]
