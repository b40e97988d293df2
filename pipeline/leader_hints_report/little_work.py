"""Whether a command has little to do: then most of its work would be Java's optimizing compiler's.

Tested in ``tests/pipeline/test_little_work.py``.
"""

import os
from pathlib import Path
from typing import Final

#: Bytes of a local journal, and of stored events and tables. A million events have 350 million
#: bytes as JSON, and 10 million as they are stored.
MOST_JOURNAL: Final = 350_000_000
MOST_STORED: Final = 10_000_000
_FILE: Final = "file:"
_COMPRESSED: Final = (".gz", ".zst", ".bz2")
#: How many times as long lines are as they are compressed, about.
_RATIO: Final = 10


def is_little(journal: str, out: str) -> bool:
    """Whether a journal, and what is stored of it in ``out``, have at most a million events or so.

    What is not on this machine, or is named by a pattern, may be large.
    """
    return _is_at_most(journal, MOST_JOURNAL) and is_little_stored(out)


def is_little_stored(out: str) -> bool:
    """Whether an output folder has at most a million events or so, and their tables."""
    is_elsewhere = "://" in out and not out.startswith(_FILE)
    return not is_elsewhere and (not _local(out).exists() or _is_at_most(out, MOST_STORED))


def _local(path: str) -> Path:
    return Path(path.removeprefix(_FILE))


def _is_at_most(path: str, most: int) -> bool:
    """Whether there is a local file or folder with so many bytes, looking at no more than that."""
    at, left = _local(path), most
    if not at.is_dir():
        return at.is_file() and _size(at) <= most
    for folder, _, names in os.walk(at):
        for name in names:
            left -= _size(Path(folder, name))
            if left < 0:
                return False
    return True


def _size(file: Path) -> int:
    try:
        size = file.stat().st_size
    except OSError:
        # It was removed meanwhile.
        return 0
    return size * _RATIO if file.suffix in _COMPRESSED else size
