import pytest
import trio

from leader_hints.app.replacement import Replacement
from leader_hints.core.events import Event, TakeoverFailed


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (OSError(12, "Cannot allocate memory"), "Cannot allocate memory"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
    ],
)
async def test_a_process_that_the_system_does_not_start_is_reported(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, reason: str
) -> None:
    """A thread that was refused ended the process that was to be replaced, with all its links."""

    async def refused(*_: object, **__: object) -> trio.Process:
        raise raised

    monkeypatch.setattr(trio.lowlevel, "open_process", refused)
    events: list[Event] = []
    replacement = Replacement(trio.Event(), events.append)
    for _ in range(2):
        await replacement.start()
    assert events == 2 * [TakeoverFailed(error=f"no new process can be started: {reason}")]
