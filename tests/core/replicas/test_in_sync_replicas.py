"""Which replicas are in sync, by Metadata."""

import struct
import tracemalloc

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.replicas.in_sync_replicas import InSyncReplicas


def _nodes(*nodes: int) -> bytes:
    return struct.pack(f">{len(nodes)}i", *nodes)


def test_they_belong_to_the_epoch_with_which_they_were_reported() -> None:
    replicas = InSyncReplicas()
    assert replicas.report(Led(1, 4, 7), _nodes(4, 5), None)
    assert not replicas.report(Led(1, 4, 7), _nodes(4, 5), None)
    assert replicas.at(1, 7) == (4, 5)
    assert replicas.at(1, 8) is None
    assert replicas.at(0, 7) is None
    assert replicas.at(2, 7) is None
    assert replicas.report(Led(1, 4, 7), _nodes(4), None)
    assert replicas.at(1, 7) == (4,)


def test_what_the_leader_took_out_no_other_broker_brings_back() -> None:
    """A broker that was cut off, and answered still, took itself for in sync."""
    replicas = InSyncReplicas()
    led = Led(0, 1, 7)
    assert replicas.report(led, _nodes(1, 2, 3), 3)
    assert replicas.report(led, _nodes(1, 2), 1)
    assert not replicas.disputed
    for reporter in (3, None):
        assert not replicas.report(led, _nodes(1, 2, 3), reporter)
    assert replicas.at(0, 7) == (1, 2)
    assert replicas.disputed == {0}
    assert not replicas.report(led, _nodes(1, 2), 1)
    assert not replicas.disputed
    # Others may learn sooner than the leader is asked again.
    assert replicas.report(led, _nodes(3, 1), 3)
    assert replicas.at(0, 7) == (1,)
    assert replicas.report(led, _nodes(1, 2, 3), 1)
    assert replicas.at(0, 7) == (1, 2, 3)
    # Of the next leader nothing is known before it reports.
    assert replicas.report(Led(0, 2, 8), _nodes(2, 3), 3)
    assert replicas.report(Led(0, 2, 8), _nodes(2, 1), 1)
    assert replicas.at(0, 8) == (2, 1)


def _learn(view: LeaderView, leader: int, epoch: int, *nodes: int) -> None:
    _learn_of(view, (leader, epoch), leader, *nodes)


def _learn_of(view: LeaderView, led: tuple[int, int], source: int, *nodes: int) -> None:
    view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, *led),), (_nodes(*nodes),)), source)


def test_the_view_takes_those_that_are_reported_beside_its_own_leader() -> None:
    view = LeaderView("k")
    _learn(view, 1, 5, 1, 2)
    assert view.in_sync("t", 0) == (1, 2)
    # A broker that lags, or contradicts the view, says nothing of the present leader's.
    _learn(view, 1, 4, 1, 2, 3)
    _learn(view, 2, 5, 2)
    assert view.in_sync("t", 0) == (1, 2)
    # After a move nothing is known until they are reported with it.
    view.learn(TopicMetadata(0, "t", ZERO_ID, (Led(0, 2, 6),)), 2)
    assert view.in_sync("t", 0) is None
    _learn(view, 2, 6, 2)
    assert view.in_sync("t", 0) == (2,)
    assert view.in_sync("t", 1) is None
    assert view.in_sync("u", 0) is None


def test_the_leader_is_to_be_asked_again_whether_a_replica_is_back() -> None:
    """A sidecar asks a leader behind no route once, after a move: one was out of sync for ever."""
    view = LeaderView("k")
    _learn(view, 2, 6, 2, 3)
    assert not view.in_sync_disputed
    _learn_of(view, (2, 6), 1, 2, 3, 1)
    assert view.in_sync("t", 0) == (2, 3)
    assert [*view.in_sync_disputed] == ["t"]
    _learn(view, 2, 6, 2, 3, 1)
    assert view.in_sync("t", 0) == (2, 3, 1)
    assert not view.in_sync_disputed
    # Nor after a move, or when the topic is gone.
    _learn_of(view, (2, 6), 1, 1)
    _learn_of(view, (2, 6), 3, 2, 3)
    assert [*view.in_sync_disputed] == ["t"]
    _learn(view, 3, 7, 2, 3)
    assert not view.in_sync_disputed
    _learn_of(view, (3, 7), 1, 1, 2, 3)
    assert [*view.in_sync_disputed] == ["t"]
    view.learn(TopicMetadata(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t", ZERO_ID, ()), 3)
    assert not view.in_sync_disputed


def test_that_one_is_disputed_costs_nothing_by_how_many_are() -> None:
    """Each partition of 100,000 copied them all: two polls after a broker came back took 31 s."""
    replicas = InSyncReplicas()
    for partition in range(50_000):
        replicas.report(Led(partition, 1, 7), _nodes(1, 2), 1)
        replicas.report(Led(partition, 1, 7), _nodes(1, 2, 3), 2)
    assert len(replicas.disputed) == 50_000
    tracemalloc.start()
    try:
        replicas.report(Led(0, 1, 7), _nodes(1, 2), 1)
        replicas.report(Led(0, 1, 7), _nodes(1, 2, 3), 2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000
