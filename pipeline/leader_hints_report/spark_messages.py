"""What Java and Spark write besides their results: without the noise of each start."""

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Lines of each start that nobody can do anything about.
_NOISE: Final = re.compile(
    r"WARNING: Using incubator modules"
    r"|Using Spark's default log4j profile"
    r"|Setting default log level to"
    r"|To adjust logging level use"
    r"|.* WARN Utils: (?:Your hostname|Set SPARK_LOCAL_IP)"
    r"|.* WARN NativeCodeLoader: "
)
#: A line that says why Java ended.
_REASON: Final = re.compile(
    r"(?:Exception in thread \S+ |Caused by: )?(?:[\w.$]+(?:Exception|Error)|Error): "
)
_FRAME: Final = re.compile(r"\s+(?:at |\.\.\. )")
_ENDED_S: Final = 5.0
_CHUNK: Final = 65536


class Messages:
    """Reads what is written while Spark starts, and keeps it back; then lets it through.

    ``source``: a pipe's end, which is closed at the end; ``target``: where lines go.
    """

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._lock = threading.Lock()
        self._started = False
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def let_through(self) -> None:
        """Write what was kept back, and all that comes from now on, but no noise."""
        with self._lock:
            self._started = True
            self._write("".join(self._lines))

    def reason(self) -> str:
        """Why Java ended, as it wrote itself; it has ended."""
        self._thread.join(_ENDED_S)
        lines = [line.strip() for line in self._lines if not _FRAME.match(line)]
        found = [line[match.end() :] for line in lines if (match := _REASON.match(line))]
        return next((line for line in (*found, *lines) if line), "it says nothing")

    def _read(self) -> None:
        rest = ""
        with os.fdopen(self._source, "rb", buffering=0) as source:
            while chunk := source.read(_CHUNK):
                *lines, rest = (rest + chunk.decode("utf-8", "replace")).split("\n")
                self._take([f"{line}\n" for line in lines if not _NOISE.match(line)])
                if "\r" in rest:
                    # Spark's bar of progress has no end of line.
                    self._take([rest])
                    rest = ""
        self._take([rest])

    def _take(self, lines: list[str]) -> None:
        with self._lock:
            if self._started:
                self._write("".join(lines))
            else:
                self._lines += lines

    def _write(self, text: str) -> None:
        os.write(self._target, text.encode())


@contextmanager
def kept_back() -> Iterator[Messages]:
    """Keep back what is written to standard error, by the processes that are started meanwhile too,
    until it is let through, which is done at a good end.

    So is what they write to standard output, which is for results: Java says there that a module is
    missing, or what ``-Xlog`` asks for.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    output, target = os.dup(1), os.dup(2)
    source, sink = os.pipe()
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.close(sink)
    messages = Messages(source, target)
    try:
        yield messages
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(output, 1)
        os.dup2(target, 2)
        os.close(output)
    messages.let_through()
