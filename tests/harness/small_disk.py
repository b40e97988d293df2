"""A real file system with room for next to nothing."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class NoMountError(Exception):
    """A small disk cannot be mounted here; the text says why."""


@contextlib.contextmanager
def mounted(folder: Path, size: int) -> Iterator[None]:
    """Mount ``size`` bytes of memory at ``folder``.

    :raises NoMountError: that is not allowed.
    """
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NoMountError("there is no mount command") from None
    if done.returncode != 0:
        raise NoMountError(f"a small disk cannot be mounted: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def mounted_small_disk(folder: Path, size: int) -> Iterator[None]:
    """As :func:`mounted`; skips the test where that is not allowed."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(mounted(folder, size))
        except NoMountError as reason:
            pytest.skip(str(reason))
        yield
