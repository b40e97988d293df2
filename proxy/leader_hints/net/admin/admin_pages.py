"""What the admin server has at which path.

Tested in ``tests/net/admin/test_admin.py``.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol
from urllib.parse import unquote

import trio

from leader_hints.core.mode import Mode
from leader_hints.net.admin.admin import JSON, TEXT, Reply, Request, json_reply
from leader_hints.net.admin.shared_work import SharedWork
from leader_hints.observe.metrics import OPENMETRICS, Metrics, format_for
from leader_hints.observe.page import CONTENT_SECURITY_POLICY, PAGE

_MODES: Final = ", ".join(Mode)
_SWITCH: Final = ("/routes/", "/hints")
READINESS: Final = "/readyz"


class MorePages(Protocol):
    """Pages of a part that not every process has."""

    def has(self, path: str) -> bool:
        """Whether a path is one of these."""

    async def answer(self, request: Request) -> Reply:
        """Answer ``request``, whose path is one of these."""


class AdminPages:
    """Answers requests.

    ``metrics``: of the process. ``status``, ``clients``: each makes a JSON document.
    ``readiness``: by route name why it is not ready, an empty text where it is. ``modes``: what
    each route does about hints now; ``switch`` changes that, or returns why that cannot be.
    ``more``: of parts that not every process has. ``fresh``: awaited before metrics are read.
    """

    def __init__(
        self,
        metrics: Metrics,
        status: Callable[[], Awaitable[bytes]],
        clients: Callable[[], Awaitable[bytes]],
        readiness: Callable[[], Awaitable[Mapping[str, str]]],
        modes: Callable[[], Mapping[str, Mode]],
        switch: Callable[[str, Mode], str | None],
        more: Sequence[MorePages] = (),
        fresh: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
    ) -> None:
        self._fresh = fresh
        self._more = more
        self._metrics = metrics
        #: A thread of its own: tasks that are slow may have all others.
        self._reading = trio.CapacityLimiter(1)
        # Either has megabytes where there are many routes.
        self._status = SharedWork(status)
        self._clients = SharedWork(clients)
        self._exposition = {
            kind: SharedWork(partial(self._expose, kind)) for kind in ("", OPENMETRICS)
        }
        self._readiness = readiness
        self._modes = modes
        self._switch = switch
        self._pages: dict[str, Callable[[Request], Awaitable[Reply]]] = {
            "/": self._page,
            "/metrics": self._metrics_page,
            "/livez": self._livez,
            READINESS: self._readyz,
            "/status": self._status_page,
            "/clients": self._clients_page,
        }

    async def answer(self, request: Request) -> Reply:
        """Answer ``request``."""
        before, after = _SWITCH
        if request.path.startswith(before) and request.path.endswith(after):
            name = unquote(request.path[len(before) : -len(after)])
            return self._hints(request, name)
        for pages in self._more:
            if pages.has(request.path):
                return await pages.answer(request)
        page = self._pages.get(request.path)
        if page is None:
            return Reply(404, b"not found\n")
        if request.method not in ("GET", "HEAD"):
            return Reply(405, b"only GET and HEAD\n", TEXT, (("Allow", "GET, HEAD"),))
        return await page(request)

    async def _page(self, request: Request) -> Reply:
        policy = ("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return Reply(200, PAGE, "text/html; charset=utf-8", (policy,))

    async def _metrics_page(self, request: Request) -> Reply:
        return await self._exposition[format_for(request.headers.get("accept", ""))].result()

    async def _expose(self, accept: str) -> Reply:
        await self._fresh()
        # It lists the descriptors, and there may be tens of thousands.
        process = await trio.to_thread.run_sync(self._metrics.read_process, limiter=self._reading)
        pieces, kind = self._metrics.render(accept, process)
        body = bytearray()
        for piece in pieces:
            body += piece
            await trio.lowlevel.checkpoint()
        return Reply(200, bytes(body), kind)

    async def _livez(self, request: Request) -> Reply:
        # An answer shows that the event loop runs.
        return Reply(200, b"alive\n")

    async def _readyz(self, request: Request) -> Reply:
        reasons = await self._readiness()
        ready = not any(reasons.values())
        return json_reply(
            200 if ready else 503,
            {
                "ready": ready,
                "not_ready": {name: reason for name, reason in reasons.items() if reason},
            },
        )

    async def _status_page(self, request: Request) -> Reply:
        return Reply(200, await self._status.result(), JSON)

    async def _clients_page(self, request: Request) -> Reply:
        return Reply(200, await self._clients.result(), JSON)

    def _hints(self, request: Request, name: str) -> Reply:
        mode = self._modes().get(name)
        if mode is None:
            known = ", ".join(self._modes())
            return json_reply(404, {"error": f"no such route; there are: {known}"})
        if request.method in ("GET", "HEAD"):
            return json_reply(200, {"route": name, "hints": mode})
        if request.method != "PUT":
            return Reply(405, b"only GET, HEAD and PUT\n", TEXT, (("Allow", "GET, HEAD, PUT"),))
        asked = request.body.decode("latin-1").strip()
        if asked not in [*Mode]:
            return json_reply(400, {"error": f"the body must be one of: {_MODES}"})
        refused = self._switch(name, Mode(asked))
        if refused is not None:
            return json_reply(409, {"error": refused})
        return json_reply(200, {"route": name, "hints": asked, "before": mode})
