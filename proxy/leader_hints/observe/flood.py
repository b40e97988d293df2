"""Tells which of many like events get a log line: what others can cause must not fill a disk.

Tested in ``tests/observe/test_event_log.py``.
"""

from typing import Any

#: Seconds in which only so many are let through.
_SPAN = 60.0


class _Window:
    __slots__ = ("begun", "left_out", "let_through")

    def __init__(self, begun: float) -> None:
        self.begun = begun
        self.let_through = 0
        self.left_out = 0


class Flood:
    """Lets some of each kind through in a minute; the others are counted, then reported.

    A kind is an event's name, its route or broker, and its limit where it has one.
    """

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str, str, str], _Window] = {}

    def takes(self, kind: tuple[str, str, str, str], most: int, now: float) -> bool:
        """Whether one of ``kind``, of which ``most`` are let through, gets no line."""
        window = self._windows.get(kind)
        if window is None:
            window = self._windows[kind] = _Window(now)
        if window.let_through < most:
            window.let_through += 1
            return False
        window.left_out += 1
        return True

    def over(self, now: float) -> list[dict[str, Any]]:
        """Return the fields of the lines that tell how many had none, kind by kind."""
        told = []
        for kind, window in list(self._windows.items()):
            if now - window.begun < _SPAN:
                continue
            del self._windows[kind]
            if window.left_out:
                fields = zip(("of", "route", "broker", "limit"), kind, strict=True)
                told.append({**dict(fields), "left_out": window.left_out})
        return told
