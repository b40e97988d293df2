"""Writes down what an interposer sees.

Tested in ``tests/mock/test_lab.py``.
"""

from collections.abc import Callable

from leader_hints.apis.keys import ApiKey, api_name
from leader_hints.apis.kio_messages import Message, read_response
from leader_hints.conformance.wire_log import Said, Seen
from leader_hints.core.route import Route
from leader_hints.faults.asking import Asking
from leader_hints.wire.errors import WireError


class WireRecorder:
    """``seen``: all messages so far, in their order. ``clock``: seconds that never go back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seen: list[Seen] = []
        self._clock = clock

    def request(self, route: Route, asking: Asking) -> None:
        """Note a request."""
        self.seen.append(self._seen(route, asking, None))

    def response(self, route: Route, asking: Asking, frame: bytes) -> None:
        """Note a response, as it goes on to the client."""
        said = Said()
        if asking.header.key in (ApiKey.PRODUCE, ApiKey.FETCH):
            said = _said(route, asking, frame)
        self.seen.append(self._seen(route, asking, said))

    def _seen(self, route: Route, asking: Asking, said: Said | None) -> Seen:
        header = asking.header
        named = tuple(
            (route.broker.topic_name(topic), part) for topic, part in asking.asked.partitions
        )
        return Seen(
            self._clock(),
            route.name,
            asking.link,
            header.client_id or "",
            api_name(header.key),
            header.version,
            header.correlation_id,
            named,
            said,
        )


def _said(route: Route, asking: Asking, frame: bytes) -> Said:
    said = Said()
    try:
        message = read_response(asking.header.key, asking.header.version, memoryview(frame))
    except WireError:
        return said
    for topic in message.responses:
        name = _name(route, topic)
        parts = "partition_responses" if asking.header.key == ApiKey.PRODUCE else "partitions"
        for part in getattr(topic, parts):
            at = name, getattr(part, "partition_index", getattr(part, "index", -1))
            said.errors[at] = part.error_code.value
            leader = getattr(part, "current_leader", None)
            if leader is not None and leader.leader_id >= 0:
                said.hints[at] = leader.leader_id, leader.leader_epoch
    nodes = tuple(int(node.node_id) for node in getattr(message, "node_endpoints", ()))
    return Said(said.errors, said.hints, nodes)


def _name(route: Route, topic: Message) -> str:
    topic_id = getattr(topic, "topic_id", None)
    if topic_id is not None:
        return route.broker.topic_name(topic_id.bytes)
    name: str = getattr(topic, "topic", None) or topic.name
    return name
