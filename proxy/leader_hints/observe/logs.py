"""Logs: structlog to standard error, one JSON object on each line, or lines for people.

Client ids, topic names and other text from the network may hold anything. In JSON the encoding
escapes it; on a console each character that does not print is escaped, so that no text can end its
line, move the cursor or recolour a terminal.
"""

import contextlib
import json
import logging
import os
import select
import stat
import sys
import threading
import weakref
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

#: The levels by name, as numbers that rise with what matters.
LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

#: What each JSON line begins with.
_FIRST: Final = ("event", "level", "timestamp")
#: What somebody reads, who may be slow: files are not.
_READ: Final = (stat.S_ISFIFO, stat.S_ISSOCK, stat.S_ISCHR)


class LineWriter:
    """Writes finished lines to a stream. A stream that fails loses lines, and stops nothing else.

    The process relays other people's data: it must not end because the reader of its log is gone,
    nor wait for one that reads nothing. Any thread may write.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        #: Of what somebody reads: a pipe, a socket or a terminal.
        self._reader = _descriptor_of_reader(stream)
        if self._reader is not None and (own := _open_terminal(self._reader)) is not None:
            self._reader = own
            # Not at the end of the process, which may still have something to say.
            weakref.finalize(self, os.close, own).atexit = False
        self._room = select.poll()
        if self._reader is not None:
            self._room.register(self._reader, select.POLLOUT)
        self._lock = threading.Lock()
        #: The end of a line of which the reader has taken the beginning.
        self._rest = b""

    def write_line(self, line: str) -> None:
        """Write a line and flush it; any failure to do so is dropped."""
        try:
            if self._reader is None:
                self._stream.write(line + "\n")
                self._stream.flush()
            else:
                encoding = self._stream.encoding or "utf-8"
                # Of a stream that is closed it raises; the number may be another file's by now.
                self._stream.fileno()
                self._offer(self._reader, f"{line}\n".encode(encoding, "backslashreplace"))
        except (OSError, ValueError):  # ValueError: the stream is closed
            return

    debug = info = warning = error = critical = write_line

    def _offer(self, reader: int, line: bytes) -> None:
        """Write a line, or none of it, or the end of it before the next one."""
        with self._lock:
            rest, self._rest = self._rest, b""
            self._rest = self._taken(reader, rest)
            if not self._rest:
                left = self._taken(reader, line)
                self._rest = left if len(left) < len(line) else b""

    def _taken(self, reader: int, data: bytes) -> bytes:
        """Write what is taken at once; return the rest."""
        with contextlib.suppress(BlockingIOError):
            # As little as a pipe or socket that has room at all takes without a wait.
            while data and self._room.poll(0):
                data = data[os.write(reader, data[: select.PIPE_BUF]) :]
        return data


def _descriptor_of_reader(stream: TextIO) -> int | None:
    """Return the descriptor of a stream that may have to wait for its reader, ``None``: of none."""
    try:
        descriptor = stream.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return None
    return descriptor if any(is_read(mode) for is_read in _READ) else None


def _open_terminal(descriptor: int) -> int | None:
    """Open a terminal once more, for writes that do not wait; return the new descriptor.

    A terminal that has room for a byte says that it has room, and takes the others only when
    somebody reads. What it was opened as before is the shell's too, which must wait. ``None``: it
    is no terminal, or another user's.
    """
    try:
        return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return None


def configure_logs(level: str, log_format: str, stream: TextIO | None = None) -> None:
    """Set up structlog for the whole process; `structlog.get_logger()` gives the loggers.

    Args:
        level: debug, info, warning or error; what is below is dropped before it is formatted.
        log_format: json, console, or auto: console on a terminal and json elsewhere.
        stream: where the lines go; standard error if None.
    """
    stream = sys.stderr if stream is None else stream
    writer = LineWriter(stream)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *_renderers(log_format, stream),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        context_class=dict,
        logger_factory=lambda *_: writer,
        cache_logger_on_first_use=False,
    )


def _renderers(log_format: str, stream: TextIO) -> list[Processor]:
    if log_format == "console" or (log_format == "auto" and stream.isatty()):
        colours = stream.isatty() and not os.environ.get("NO_COLOR")
        return [
            _escape_event,
            structlog.dev.ConsoleRenderer(
                colors=colours, exception_formatter=structlog.dev.plain_traceback
            ),
        ]
    return [structlog.processors.JSONRenderer(serializer=_to_json)]


def _to_json(event: EventDict, **_: Any) -> str:
    """One line of ASCII that begins with the event's name, for people who read it.

    The encoder escapes all other control characters but leaves DEL alone.
    """
    named = {**{name: event[name] for name in _FIRST if name in event}, **event}
    return json.dumps(named, default=str).replace("\x7f", "\\u007f")


def _escape_event(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape texts. The console shows other values by their repr(), which escapes by itself."""
    escaped: EventDict = {
        key: escape(value) if isinstance(value, str) else value for key, value in event.items()
    }
    if "exception" in event:  # a traceback has lines of its own
        escaped["exception"] = "\n".join(map(escape, event["exception"].split("\n")))
    return escaped


def escape(text: str) -> str:
    """The text with each backslash and each character that does not print as a Python escape.

    Two different texts stay different. Letters of every script stay as they are.
    """
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(
        char if char.isprintable() and char != "\\" else char.encode("unicode_escape").decode()
        for char in text
    )
