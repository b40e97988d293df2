"""Work that is done every second."""

import structlog
import trio
from trio.testing import MockClock

from leader_hints.apis.fetch_response import Topic
from leader_hints.app.periodic import tick
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.observe.event_log import EventLog
from leader_hints.settings.log import LogLevels
from leader_hints.wire.steps import at_once
from tests.core.samples import fetch_request, topic_id
from tests.net.rig import Rig, opened


async def test_what_is_left_of_forgotten_fetch_sessions_is_freed(
    autojump_clock: MockClock,
) -> None:
    routes = [Route(f"r{number}", Mode.ON) for number in range(3)]
    asked: dict[tuple[Topic, int], int] = {(topic_id(topic), 0): 5 for topic in range(5000)}
    request = fetch_request(16, 1, asked, session=(0, 0))
    for route in routes:
        following = route.sessions.answered(request, 7, 0)
        assert following is not None
        at_once(following)
        # Then no link calls them any more.
        route.switch(Mode.OFF)
    levels = dict.fromkeys(LogLevels.model_fields, "info")
    log = EventLog(structlog.get_logger(), levels, 3, trio.current_time)
    with opened(Rig()) as rig:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick, rig.pump, log.tick, routes)
            await trio.sleep(1.5)
            nursery.cancel_scope.cancel()
    assert not [step for route in routes for step in route.sessions.sweep()]
