"""What the admin server has for faults: `/faults`, where they are allowed."""

from collections.abc import Callable, Collection
from typing import Final

from pydantic import ValidationError

from leader_hints.faults.fault import Fault, Faults
from leader_hints.faults.problems import problems
from leader_hints.net.admin.admin import TEXT, Reply, Request, json_reply

PATH: Final = "/faults"
_ALLOWED: Final = "DELETE, GET, HEAD, POST"


class FaultPages:
    """GET lists the faults in force, POST begins the one in the body, DELETE takes all back.

    DELETE of `/faults/NUMBER` takes one back. ``begin``: puts a fault in force. ``routes``: returns
    the names of the routes that there are.
    """

    def __init__(
        self,
        faults: Faults,
        begin: Callable[[Fault], int],
        routes: Callable[[], Collection[str]],
    ) -> None:
        self._faults = faults
        self._begin = begin
        self._routes = routes

    def has(self, path: str) -> bool:
        """Whether a path is one of these."""
        return path == PATH or path.startswith(f"{PATH}/")

    async def answer(self, request: Request) -> Reply:
        """Answer ``request``."""
        number = request.path.removeprefix(PATH).removeprefix("/")
        if number:
            return self._one(request.method, number)
        if request.method in ("GET", "HEAD"):
            return json_reply(200, [_shown(begun.number, begun.fault) for begun in self._faults])
        if request.method == "POST":
            return self._add(request.body)
        if request.method == "DELETE":
            self._faults.clear()
            return json_reply(200, [])
        return Reply(405, b"only DELETE, GET, HEAD and POST\n", TEXT, (("Allow", _ALLOWED),))

    def _one(self, method: str, number: str) -> Reply:
        if method != "DELETE":
            return Reply(405, b"only DELETE\n", TEXT, (("Allow", "DELETE"),))
        # Not turned into a number first: Python refuses that for thousands of digits.
        begun = {str(fault.number): fault.number for fault in self._faults}
        if number not in begun or not self._faults.end(begun[number]):
            return json_reply(404, {"error": "no such fault"})
        return json_reply(200, {"number": begun[number]})

    def _add(self, body: bytes) -> Reply:
        try:
            fault = Fault.model_validate_json(body)
        except ValidationError as error:
            return json_reply(400, {"error": "; ".join(problems(error, "fault"))})
        routes = self._routes()
        if unknown := sorted(fault.routes.difference(routes)):
            there_are = ", ".join(sorted(routes)) or "none yet"
            reason = f"no such route: {', '.join(unknown)}; there are: {there_are}"
            return json_reply(400, {"error": reason})
        return json_reply(201, _shown(self._begin(fault), fault))


def _shown(number: int, fault: Fault) -> dict[str, object]:
    return {"number": number, **fault.model_dump(mode="json", exclude_defaults=True)}
