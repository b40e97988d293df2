"""Reads TLS files again when they have changed.

Tested in ``tests/net/tls/test_tls.py``.
"""

from collections.abc import Callable
from typing import Final

import trio

from leader_hints.core.events import CertificatesReloaded, Event, FilesReloaded
from leader_hints.net.tls.route_security import LOOK_SECONDS, Security

#: Events of one step: there may be hundreds of routes.
_EMITTED_AT_ONCE: Final = 20


class CertificateWatch:
    """Watches the TLS files of all routes.

    ``emit`` takes what came of each look, ``failed`` the name of the task and a defect that ended
    one. One look follows the other: an older one that a slow disk has kept must not have the last
    word.
    """

    def __init__(
        self,
        security: Security,
        emit: Callable[[Event], None],
        failed: Callable[[str, Exception], None],
    ) -> None:
        self._security = security
        self._emit = emit
        self._failed = failed
        #: Set when all files are to be read again.
        self._renewal = trio.Event()

    def renew(self) -> None:
        """Have all TLS files read again."""
        self._renewal.set()

    async def run(self) -> None:
        """Read files that have changed, or all on request, until cancelled."""
        while True:
            with trio.move_on_after(LOOK_SECONDS):
                await self._renewal.wait()
            all_of_them, self._renewal = self._renewal.is_set(), trio.Event()
            await self._reload(all_of_them=all_of_them)

    async def _reload(self, *, all_of_them: bool) -> None:
        try:
            events = await self._security.reload(all_of_them=all_of_them)
        except Exception as error:
            self._failed("certificates", error)
            return
        for number, event in enumerate(events, 1):
            self._emit(event)
            if number % _EMITTED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        if all_of_them:
            used = sum(isinstance(event, CertificatesReloaded) for event in events)
            self._emit(FilesReloaded(tls=used, refused=len(events) - used))
