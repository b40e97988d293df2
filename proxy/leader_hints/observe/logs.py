"""Logs: structlog to standard error, one JSON object on each line, or lines for people.

Client ids, topic names and other text from the network may hold anything. In JSON the encoding
escapes it; on a console each character that does not print is escaped, so that no text can end its
line, move the cursor or recolour a terminal.
"""

import json
import logging
import os
import sys
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


class LineWriter:
    """Writes finished lines to a stream. A stream that fails loses lines, and stops nothing else.

    The process relays other people's data: it must not end because the reader of its log is gone.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write_line(self, line: str) -> None:
        """Write a line and flush it; any failure to do so is dropped."""
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # ValueError: the stream is closed
            return

    debug = info = warning = error = critical = write_line


def configure_logs(level: str, log_format: str, stream: TextIO | None = None) -> None:
    """Set up structlog for the whole process; `structlog.get_logger()` gives the loggers.

    Args:
        level: debug, info, warning or error; what is below is dropped before it is formatted.
        log_format: json, console, or auto: console on a terminal and json elsewhere.
        stream: where the lines go; standard error if None.
    """
    stream = sys.stderr if stream is None else stream
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *_renderers(log_format, stream),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        context_class=dict,
        logger_factory=lambda *_: LineWriter(stream),
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
    """One line of ASCII. The encoder escapes all other control characters but leaves DEL alone."""
    return json.dumps(event, default=str).replace("\x7f", "\\u007f")


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
