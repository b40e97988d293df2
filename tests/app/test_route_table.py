from collections.abc import Sequence

import pytest

from leader_hints.apis.fetch_request import INITIAL_EPOCH, FetchRequest
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.app import route_table
from leader_hints.app.route_table import RouteTable
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.mode import Mode
from leader_hints.core.sessions.fetch_by_name import FetchSessionsByName
from leader_hints.wire.steps import at_once
from tests.core.samples import topic_id
from tests.settings.samples import settings_of


def _kept(sessions: FetchSessionsByName) -> int:
    """Return how many of ten sessions of one topic each are remembered."""
    view = LeaderView("k")
    view.learn(TopicMetadata(0, "t", topic_id(1), (Led(0, 1, 0),)), 1)
    topics = ((topic_id(1), ()),)
    asked = FetchRequest(-1, 500, 1, 1000, 0, 0, INITIAL_EPOCH, topics, (), "", None)
    for number in range(1, 11):
        _, named = at_once(sessions.down(asked, view))
        named.opened(sessions, number)
    return len(sessions)


@pytest.mark.parametrize(("workers", "kept"), [(1, 8), (2, 4), (3, 3)])
def test_workers_share_what_is_remembered_of_sessions_by_name(
    workers: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_table, "MOST_TOPICS", 8)
    settings = settings_of()
    route = RouteTable(settings, workers).add(settings.routes[0])
    assert _kept(route.sessions_by_name) == kept


@pytest.mark.parametrize(
    ("switched", "is_joining", "mode"),
    [
        ((Mode.OFF, Mode.OFF), True, Mode.OFF),
        ((Mode.OFF, Mode.OBSERVE), True, Mode.ON),
        ((Mode.OFF, Mode.OFF), False, Mode.ON),
    ],
)
def test_a_broker_that_joins_is_switched_as_all_others_are(
    switched: Sequence[Mode], is_joining: bool, mode: Mode
) -> None:
    """Of a virtual cluster; routes of the settings have that of the settings."""
    table = RouteTable(settings_of())
    (settings,) = settings_of().routes
    for number, now in enumerate(switched):
        table.add(settings.model_copy(update={"name": str(number)})).mode = now
    joining = settings.model_copy(update={"name": "new"})
    assert table.add(joining, joins=is_joining).mode is mode


@pytest.mark.parametrize("joins", [False, True])
def test_a_broker_that_joins_keeps_what_was_switched(joins: bool) -> None:
    """It had hints, though the kill switch's file said that it has none."""
    table = RouteTable(settings_of())
    table.switched = {"new": Mode.OFF}
    (settings,) = settings_of().routes
    table.add(settings)
    assert table.add(settings.model_copy(update={"name": "new"}), joins=joins).mode is Mode.OFF


def test_it_is_known_whether_some_client_is_being_joined() -> None:
    table = RouteTable(settings_of())
    route = table.add(settings_of().routes[0])
    assert not table.joining()
    route.traffic.connecting += 1
    assert table.joining()
