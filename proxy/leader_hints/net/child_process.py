"""A process that this one has started, and when it has ended."""

from typing import Final

import trio

#: Seconds between two looks.
_MOMENT: Final = 0.05


async def ended(process: trio.Process) -> int:
    """Return what a process has ended with, once it has.

    It is looked at now and then. Where the system has no pidfd_open (Linux before 5.3, and older
    sandboxes), or no descriptor for it, `trio.Process.wait` has a thread wait; and where there is
    no room for that thread either, all of this process ends (TrioInternalError).
    """
    while (code := process.returncode) is None:  # noqa: ASYNC110 - the system tells nobody
        await trio.sleep(_MOMENT)
    return code
