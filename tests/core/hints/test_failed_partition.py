"""Failed partitions: what is settled, and which one is judged next."""

import pytest

from leader_hints.apis.leader_hint import Endpoint, Failure, LeaderHint
from leader_hints.core.hints.failed_partition import FailedPartition, FailedPartitions
from leader_hints.core.hints.miss_reason import MissReason

_FAILURES = [Failure("t", partition, 6, 0, 0) for partition in range(3)]
_EPOCHS = [5, 6, 7]


def _partition(client_epoch: int = 5, led: int = -1) -> FailedPartition:
    return FailedPartition(_FAILURES[0], client_epoch, 0.0, led)


def _make(failure: Failure, epoch: int) -> FailedPartition:
    return FailedPartition(failure, epoch, 0.0, -1)


@pytest.mark.parametrize(
    ("reason", "settled"),
    [
        (None, False),
        (MissReason.NO_ENDPOINT, False),
        (MissReason.HOLD_EXPIRED, False),
        (MissReason.NO_LEADER, True),
        (MissReason.NOT_AUTHORIZED, True),
    ],
)
def test_only_some_reasons_settle_a_partition(reason: MissReason | None, settled: bool) -> None:
    partition = _partition()
    partition.reason = reason
    assert partition.settled is settled


def test_a_hint_settles_a_partition() -> None:
    partition = _partition()
    partition.hint = LeaderHint(2, 6, Endpoint("two", 9092, None))
    assert partition.settled


@pytest.mark.parametrize(
    ("client_epoch", "led", "newest"), [(5, 9, 5), (0, 9, 0), (-1, 9, 9), (-1, -1, -1)]
)
def test_the_clients_epoch_counts_first(client_epoch: int, led: int, newest: int) -> None:
    assert _partition(client_epoch, led).newest == newest


def test_each_partition_is_judged_once_in_the_order_of_the_response() -> None:
    partitions = FailedPartitions(_FAILURES, _EPOCHS)
    seen = []
    while not partitions.judged:
        seen.append(partitions.next_one(_make))
        assert partitions.missing == len(_FAILURES) - len(seen)
    assert [(one.failure, one.client_epoch) for one in seen] == [
        *zip(_FAILURES, _EPOCHS, strict=True)
    ]
    assert partitions.seen == seen
    assert partitions.settled


def test_a_response_is_not_settled_while_a_partition_was_never_judged() -> None:
    partitions = FailedPartitions(_FAILURES, _EPOCHS)
    partitions.next_one(_make)
    assert not partitions.judged
    assert not partitions.settled
    assert [*partitions.rest()] == [(_FAILURES[1], 6), (_FAILURES[2], 7)]


def test_those_that_lack_a_hint_are_judged_again_before_new_ones() -> None:
    partitions = FailedPartitions(_FAILURES, _EPOCHS)
    first, second = partitions.next_one(_make), partitions.next_one(_make)
    partitions.lacking += [first, second]
    partitions.stale = 2
    assert not partitions.judged
    assert [partitions.next_one(_make) for _ in range(3)] == [first, second, partitions.seen[2]]
    assert partitions.judged


def test_partitions_that_were_judged_before_are_sought_again() -> None:
    sought = [_partition(), _partition()]
    partitions = FailedPartitions.of(sought)
    assert [*partitions.lacking] == sought
    assert partitions.judged
    assert not partitions.settled
    assert [*partitions.rest()] == []
