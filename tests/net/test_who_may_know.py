"""A client learns nothing that its own principal could not: hints answer errors that prove it."""

import pytest
import trio
from kio.schema.errors import ErrorCode
from kio.schema.produce.v10.response import ProduceResponse
from kio.serial import entity_reader

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import HintGiven, HintMissed
from leader_hints.core.route import Route
from tests.net import messages
from tests.net.messages import FENCED, NOT_LEADER, TOPIC_ID
from tests.net.rig import Rig, hinting_route, opened, received

#: A broker checks rights before leaders; these errors mean nothing for its leadership.
_NO_PROOF = sorted({int(code) for code in ErrorCode} - {NOT_LEADER, FENCED, -1})


def _knowing_route() -> Route:
    """A route that knows where all leaders have gone."""
    route = hinting_route()
    route.broker.view = LeaderView("k", trio.current_time)
    for epoch, leader in ((4, 1), (5, 2)):
        led = tuple(Led(number, leader, epoch) for number in range(3))
        route.broker.view.learn(TopicMetadata(0, "t", TOPIC_ID, led), leader)
    route.broker.endpoints = {2: Endpoint("two", 9092, None)}
    return route


@pytest.mark.parametrize("error", _NO_PROOF)
async def test_no_other_error_gets_a_hint(error: int) -> None:
    with opened(Rig()) as rig:
        ends = rig.link(_knowing_route())
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.send(ends.client, messages.fetch_request(16, 2, epoch=4))
        answers = messages.produce_response(1, {0: error}) + messages.fetch_response(2, error)
        rig.send(ends.broker, answers)
        assert received(ends.client) == answers
        assert not any(isinstance(event, HintGiven | HintMissed) for event in rig.events)


async def test_beside_a_partition_that_may_be_known_the_other_gets_none() -> None:
    denied = int(ErrorCode.topic_authorization_failed)
    with opened(Rig()) as rig:
        ends = rig.link(_knowing_route())
        rig.send(ends.client, messages.produce_request(10, 1))
        rig.send(ends.broker, messages.produce_response(1, {0: denied, 1: NOT_LEADER}))
        answer = received(ends.client)
        response, _ = entity_reader(ProduceResponse)(answer[9:], 0)
        (topic,) = response.responses
        leaders = {int(p.index): int(p.current_leader.leader_id) for p in topic.partition_responses}
        assert leaders == {0: -1, 1: 2}
        assert {int(node.node_id) for node in response.node_endpoints} == {2}
