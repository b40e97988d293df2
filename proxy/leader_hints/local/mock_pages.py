"""What the admin server has for a mock cluster: leaders that move, brokers that stop and start.

Tested in ``tests/mock/test_mock_commands.py``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import trio
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leader_hints.errors import BrokerError
from leader_hints.faults.problems import problems
from leader_hints.net.admin.admin import TEXT, Reply, Request, json_reply

_LEADERS: Final = "/mock/leaders"
_BROKERS: Final = "/mock/brokers"

_LARGEST: Final = (1 << 31) - 1

#: Returns the known partitions by topic.
Partitions = Callable[[], Mapping[str, Sequence[int]]]


class MockControl(Protocol):
    """Changes a mock cluster. Its methods block, and raise BrokerError for what is not there."""

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make a node the leader of a partition."""

    def set_running(self, node: int, *, running: bool) -> None:
        """Have a broker take connections, or end all and take none."""


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Move(_Body):
    topic: str
    partition: int | None = Field(default=None, ge=0, le=_LARGEST)
    to: int


class _Broker(_Body):
    node: int
    running: bool


class MockPages:
    """POST moves leaders, or stops and starts a broker.

    ``partitions``: those that the process knows, for moves of a whole topic.
    """

    def __init__(self, mock: MockControl, partitions: Partitions) -> None:
        self._mock = mock
        self._partitions = partitions
        #: The mock cluster takes one command at a time.
        self._thread = trio.CapacityLimiter(1)

    def has(self, path: str) -> bool:
        """Whether a path is one of these."""
        return path in (_LEADERS, _BROKERS)

    async def answer(self, request: Request) -> Reply:
        """Answer ``request``."""
        if request.method != "POST":
            return Reply(405, b"only POST\n", TEXT, (("Allow", "POST"),))
        try:
            if request.path == _LEADERS:
                return await self._move(_Move.model_validate_json(request.body))
            asked = _Broker.model_validate_json(request.body)
            await self._do(lambda: self._mock.set_running(asked.node, running=asked.running))
            return json_reply(200, asked.model_dump())
        except ValidationError as error:
            return json_reply(400, {"error": "; ".join(problems(error, "body"))})
        except BrokerError as error:
            return json_reply(400, {"error": str(error)})

    async def _move(self, asked: _Move) -> Reply:
        known = self._partitions()
        chosen = known.get(asked.topic, ()) if asked.partition is None else (asked.partition,)
        if not chosen:
            there_are = ", ".join(sorted(known)) or "none yet"
            return json_reply(400, {"error": f"no topic {asked.topic}; there are: {there_are}"})
        for partition in chosen:
            await self._do(lambda: self._mock.move_leader(asked.topic, partition, asked.to))  # noqa: B023 - done before the next
        moved = [{"topic": asked.topic, "partition": p, "leader": asked.to} for p in chosen]
        return json_reply(200, moved)

    async def _do(self, command: Callable[[], None]) -> None:
        await trio.to_thread.run_sync(command, limiter=self._thread)
