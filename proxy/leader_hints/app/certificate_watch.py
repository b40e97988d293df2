"""Reads TLS files again when they have changed.

Tested in ``tests/net/tls/test_tls.py``.
"""

from typing import Final

import trio

from leader_hints.app.observers import Observers
from leader_hints.core.events import CertificatesReloaded, FilesReloaded
from leader_hints.net.tls.route_security import LOOK_SECONDS, Security

#: Events of one step: there may be hundreds of routes.
_EMITTED_AT_ONCE: Final = 20


class CertificateWatch:
    """Watches the TLS files of all routes."""

    def __init__(self, security: Security, observers: Observers) -> None:
        self._security = security
        self._observers = observers
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
            self._observers.task_failed("certificates", error)
            return
        for number, event in enumerate(events, 1):
            self._observers.emit(event)
            if number % _EMITTED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        if all_of_them:
            used = sum(isinstance(event, CertificatesReloaded) for event in events)
            self._observers.emit(FilesReloaded(tls=used, refused=len(events) - used))
