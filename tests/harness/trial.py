"""A long trial of one command, with a folder for its logs."""

import shutil
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import trio


def run_trial(name: str, trial: Callable[[Path], Awaitable[None]]) -> int:
    """Run a trial in a folder of its own; returns the exit code.

    1 where an assertion failed: it is printed, and the folder stays. Otherwise the folder goes.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"leader-hints-{name}-"))
    failed = False
    try:
        trio.run(partial(trial, folder))
    except* AssertionError as failures:
        traceback.print_exception(failures)
        print(f"logs: {folder}", file=sys.stderr)
        failed = True
    if not failed:
        shutil.rmtree(folder)
    return int(failed)
