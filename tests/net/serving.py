"""An app that serves, and its log."""

import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from leader_hints import app
from leader_hints.address import Address
from leader_hints.settings.settings import Settings
from tests.harness.log_lines import check_name

_SECONDS = 10.0
ANY = Address("127.0.0.1", 0)


class Log(io.StringIO):
    """The log of an app."""

    def events(self, name: str) -> list[dict[str, Any]]:
        """Its lines of one event."""
        check_name(name)
        lines = map(json.loads, self.getvalue().splitlines())
        return [line for line in lines if line["event"] == name]


class Rounds:
    """Counts rounds of the event loop. ``now``: how many there were since it began."""

    def __init__(self) -> None:
        self.now = 0

    async def count(self) -> None:
        """Count until cancelled."""
        while True:
            self.now += 1
            await trio.lowlevel.checkpoint()


async def until_true(condition: Callable[[], Any], seconds: float = _SECONDS) -> Any:
    """Wait until a condition has a true value; return it."""
    with trio.fail_after(seconds):
        while not (value := condition()):  # noqa: ASYNC110 - a log has no event to wait for
            await trio.sleep(0.002)
    return value


@asynccontextmanager
async def serving(
    settings: Settings, log: Log, seconds: float = _SECONDS
) -> AsyncIterator[list[Address]]:
    """A running app, and where its routes listen. ``seconds``: for it to begin."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.serve, settings)
        await until_true(lambda: len(log.events("listening")) == len(settings.routes), seconds)
        yield [Address.parse(line["listen"]) for line in log.events("listening")]
        nursery.cancel_scope.cancel()


async def exchange(stream: trio.abc.Stream, request: bytes, size: int) -> bytes:
    """Send a request and read ``size`` bytes."""
    await stream.send_all(request)
    data = b""
    with trio.fail_after(_SECONDS):
        while len(data) < size and (chunk := await stream.receive_some()):
            data += bytes(chunk)
    return data
