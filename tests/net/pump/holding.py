"""Routes whose responses are held, and what clients get then."""

import struct
from typing import Any

import trio
from kio.schema.fetch.v16.response import FetchResponse
from kio.schema.produce.v10.response import ProduceResponse
from kio.serial import entity_reader

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.route import Route
from tests.net import messages
from tests.net.messages import TOPIC_ID
from tests.net.rig import (
    Ends,
    Rig,
    hinting_route,
)

#: Correlation ids of :func:`ask_both`.
PRODUCED, FETCHED, LISTED = 1, 2, 3


def moving_route() -> Route:
    """A route before node 1, which led partition 0 of t at epoch 3 as far as is known."""
    route = hinting_route()
    route.broker.view = LeaderView("k", trio.current_time)
    route.broker.endpoints = {1: Endpoint("one", 9091, None), 2: Endpoint("two", 9092, "rack")}
    learn(route, leader=1, epoch=3)
    return route


def learn(route: Route, *, leader: int, epoch: int) -> None:
    """Have the view learn of a leader, from that leader."""
    assert route.broker.view is not None
    for topic, topic_id in (("t", bytes(16)), ("by id", TOPIC_ID)):
        answer = TopicMetadata(0, topic, topic_id, (Led(0, leader, epoch),))
        route.broker.view.learn(answer, leader)


def hint_of(frame: bytes) -> tuple[int, int, str, int, str | None]:
    """Leader, epoch, host, port and rack of the one hint in the answer to ask_both's requests."""
    (correlation,) = struct.unpack_from(">i", frame, 4)
    kind: Any = ProduceResponse if correlation == PRODUCED else FetchResponse
    read, size = entity_reader(kind)(frame[9:], 0)
    assert size == len(frame) - 9
    (topic,) = read.responses
    (partition,) = topic.partition_responses if correlation == PRODUCED else topic.partitions
    (node,) = read.node_endpoints
    leader = partition.current_leader
    assert node.node_id == leader.leader_id
    return leader.leader_id, leader.leader_epoch, node.host, node.port, node.rack


def ask_both(rig: Rig, ends: Ends) -> None:
    """Have a Produce, a Fetch and a Metadata request under way."""
    rig.send(ends.client, messages.produce_request(10, PRODUCED))
    rig.send(ends.client, messages.fetch_request(16, FETCHED, epoch=3))
    rig.send(ends.client, messages.metadata_request(12, LISTED))
