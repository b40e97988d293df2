"""Leader views, and the Metadata answers that they learn from."""

from collections.abc import Mapping

from leader_hints.apis.list_offsets import Partition
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.doubts import Source
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView

#: Node and epoch by partition.
Partitions = Mapping[int, tuple[int, int]]


def answer(
    partitions: Partitions, *, name: str = "t", topic: bytes = ZERO_ID, error: int = 0
) -> TopicMetadata:
    """Return what a Metadata answer has of one topic."""
    led = tuple(Led(p, node, epoch) for p, (node, epoch) in partitions.items())
    return TopicMetadata(error, name, topic, led)


def led_by_each(view: LeaderView) -> list[tuple[str, int, Leader]]:
    """Return one partition with its leader for each node that leads any."""
    found: dict[Partition, Leader] = {}
    for _ in view.one_led_by_each(found, Source(None)):
        pass
    return [(name, partition, leader) for (name, partition), leader in found.items()]


def view_of(*answers: Partitions, topic: bytes = ZERO_ID) -> LeaderView:
    """Return a view that has learnt these answers about one topic, one after the other."""
    view = LeaderView("cluster")
    for partitions in answers:
        view.learn(answer(partitions, topic=topic), None)
    return view


def old_view_of(*answers: Partitions, topic: bytes) -> LeaderView:
    """Do as :func:`view_of`; no broker has not learnt of the topic any more."""
    now = [0.0]
    view = LeaderView("cluster", lambda: now[0])
    for partitions in answers:
        view.learn(answer(partitions, topic=topic), None)
    now[0] = 100.0
    return view
