"""Where the journal's lines go, as the writer sees it.

Tested in ``tests/net/journal/test_journal_writer.py``.
"""

from collections.abc import Sequence
from typing import Protocol


class LinesLostError(Exception):
    """Lines that a sink took are lost; the text says why.

    ``first`` and ``last``: of them. What was to be done now is not done.
    """

    def __init__(self, reason: str, first: bytes, last: bytes) -> None:
        super().__init__(reason)
        self.first = first
        self.last = last


class Sink(Protocol):
    """Where lines go. Its methods block; one call is made at a time, each in a worker thread."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Take all of ``lines``, which lack their ends, or raise.

        After a failure the same lines come again. It is called without lines now and then, for
        what is due by time.

        :raises LinesLostError: the same, and of lines that were taken before some are lost.
        :raises Exception: not all was taken; the text says why.
        """

    def close(self) -> None:
        """Finish what was taken. After a failure it comes again, perhaps after a last write.

        :raises LinesLostError: see :meth:`write`.
        :raises Exception: not all is finished; the text says why.
        """
