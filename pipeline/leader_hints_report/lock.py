"""One run at a time in a folder: two would each remove what the other is about to complete.

The run that has the folder writes a file there, and writes it again every few seconds. A file that
stays as it is was left by a run that was killed. This works wherever files can be written, and
compares no clocks.

Tested in ``tests/pipeline/test_lock.py``.
"""

import contextlib
import json
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from leader_hints_report.errors import PipelineError
from leader_hints_report.journal.files import Files

#: From one writing to the next.
BEAT_S: Final = 5.0
#: A file that has not changed for so long is of a run that was killed.
PATIENCE_S: Final = 30.0
#: Two runs that begin together may both find no file; the later one overwrites the other's.
_SETTLE_S: Final = 0.2
#: If they write at the same moment both may be spoilt: Hadoop keeps a file's checksums in another
#: one. Then they write again, so often at most.
_ATTEMPTS: Final = 5


@contextlib.contextmanager
def locked(files: Files, path: str) -> Iterator[None]:
    """Have ``path`` while the body runs.

    :raises PipelineError: another run has it.
    """
    mine = _Mine(files, path)
    found = _read(files, path)
    if found is not None:
        _wait_until_left(files, path, found)
    mine.settle()
    if not mine.is_there():
        raise _taken(path, _read(files, path) or {})
    ended = threading.Event()
    beating = threading.Thread(target=mine.beat, args=(ended,), daemon=True)
    beating.start()
    try:
        yield
    finally:
        ended.set()
        beating.join()
        if mine.is_there():
            files.remove(path)


class _Mine:
    """The file of this run."""

    def __init__(self, files: Files, path: str) -> None:
        self._files, self._path = files, path
        self._says: dict[str, Any] = {
            "run": uuid.uuid4().hex,
            "machine": _machine(),
            "process": os.getpid(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "beat": 0,
        }

    def write(self) -> None:
        self._says["beat"] += 1
        self._files.overwrite(self._path, json.dumps(self._says))

    def settle(self) -> None:
        """Write it, and wait until it, or that of another run, can be read."""
        for _ in range(_ATTEMPTS):
            self.write()
            time.sleep(_SETTLE_S)
            if _read(self._files, self._path) != {}:
                return
            # One that is only being written can be read after a while, which differs, so that two
            # runs do not go on writing at the same moment.
            time.sleep(_SETTLE_S * (1 + random.random()))
            if _read(self._files, self._path) != {}:
                return

    def is_there(self) -> bool:
        found = _read(self._files, self._path)
        return found is not None and found.get("run") == self._says["run"]

    def beat(self, ended: threading.Event) -> None:
        while not ended.wait(BEAT_S):
            # A file system may fail for a while. A run that has the folder now keeps it.
            with contextlib.suppress(Py4JJavaError):
                if not self.is_there():
                    return
                self.write()


def _wait_until_left(files: Files, path: str, found: dict[str, Any]) -> None:
    if found.get("machine") == _machine() and not _lives(found.get("process")):
        return
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        time.sleep(min(BEAT_S, PATIENCE_S) / 10)
        now = _read(files, path)
        if now is None:
            return
        # Half of what is being written says nothing of who writes it.
        if now and now != found:
            raise _taken(path, now)


def _taken(path: str, says: dict[str, Any]) -> PipelineError:
    folder = path.rpartition("/")[0]
    return PipelineError(
        f"{folder} is used by another run, since {says.get('since')} by process "
        f"{says.get('process')} on {says.get('machine')}; wait until it ends"
    )


def _read(files: Files, path: str) -> dict[str, Any] | None:
    """What the file says: nothing where it is being written, or spoilt; ``None``: there is none."""
    try:
        if not files.exists(path):
            return None
        found: dict[str, Any] = json.loads(files.read(path))
    except (Py4JJavaError, ValueError):
        return {}
    return found


def _machine() -> str:
    """Where process numbers mean the same: containers of one machine have their own."""
    try:
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbers = ""
    return f"{socket.gethostname()} {numbers}".strip()


def _lives(process: Any) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, TypeError, ValueError):
        return False
    except OSError:
        return True  # It is somebody else's.
    return True
