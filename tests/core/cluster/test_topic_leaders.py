"""One topic's leaders and epochs, by partition."""

from collections.abc import Sequence

import pytest

from leader_hints.core.cluster.doubts import Doubts, Place, Source
from leader_hints.core.cluster.topic_leaders import UNKNOWN, TopicLeaders

_ID, _FORMER, _SYNTHETIC = bytes(15) + b"\1", bytes(15) + b"\2", bytes(15) + b"\3"


def _topic(leaders: Sequence[tuple[int, int]] = (), topic_id: bytes = _ID) -> TopicLeaders:
    topic = TopicLeaders("t", topic_id, (_FORMER,), _SYNTHETIC)
    topic.grow(len(leaders))
    for partition, (node, epoch) in enumerate(leaders):
        topic.replace(partition, node, epoch)
    return topic


def test_a_topic_is_known_by_its_id() -> None:
    topic = _topic()
    assert topic.key == _ID
    assert set(topic.aliases) == {"t", _ID, _SYNTHETIC}


def test_one_without_an_id_is_known_by_its_name() -> None:
    topic = _topic(topic_id=b"")
    assert topic.key == "t"
    assert set(topic.aliases) == {"t", _SYNTHETIC}


def test_a_new_leader_replaces_the_former_one_of_its_partition_alone() -> None:
    topic = _topic([(1, 5), (2, 6)])
    assert topic.replace(0, 3, 7) == (1, 5)
    assert [*topic.leaders] == [3, 2]
    assert [*topic.epochs] == [7, 6]


def test_partitions_that_are_added_have_no_known_leader() -> None:
    topic = _topic([(1, 5)])
    assert topic.grow(3) == 2
    assert [*topic.leaders] == [1, UNKNOWN, UNKNOWN]
    assert [*topic.epochs] == [5, UNKNOWN, UNKNOWN]
    assert topic.grow(2) == 0
    assert len(topic.leaders) == 3


def test_the_last_partitions_that_are_absent_and_unknown_are_dropped() -> None:
    topic = _topic([(1, 5), (UNKNOWN, UNKNOWN), (1, 5)])
    topic.grow(6)
    assert topic.shrink({1, 4, 5}, 10) == 2
    assert len(topic.leaders) == len(topic.epochs) == 4
    assert topic.shrink({1, 2, 3}, 10) == 1
    assert topic.shrink({1, 2}, 10) == 0
    assert len(topic.epochs) == 3


def test_no_more_partitions_are_dropped_than_may_be() -> None:
    topic = _topic()
    topic.grow(6)
    assert topic.shrink(range(6), 4) == 4
    assert len(topic.leaders) == len(topic.epochs) == 2


@pytest.mark.parametrize(("node", "partition"), [(1, 0), (2, 1), (3, 3), (4, None)])
def test_the_first_partition_of_a_leader_is_found(node: int, partition: int | None) -> None:
    topic = _topic([(1, 5), (2, 5), (1, 5), (3, 5)])
    assert topic.first_led(Doubts(lambda: 0.0, 10)).get(node) == partition


def test_a_topic_without_partitions_has_no_leaders() -> None:
    assert _topic([]).first_led(Doubts(lambda: 0.0, 10)) == {}


class _Doubtful(Doubts):
    """Some partitions of the topic are in doubt."""

    def __init__(self, *partitions: int) -> None:
        super().__init__(lambda: 0.0, 10)
        self._some = {(_ID, partition) for partition in partitions}

    def __len__(self) -> int:
        return len(self._some)

    def __contains__(self, place: Place) -> bool:
        return place in self._some


def test_partitions_in_doubt_are_passed_over() -> None:
    topic = _topic([(1, 5), (2, 5), (1, 5), (1, 5)])
    assert topic.first_led(_Doubtful(0)) == {1: 2, 2: 1}
    assert topic.first_led(_Doubtful(0, 2)) == {1: 3, 2: 1}
    assert topic.first_led(_Doubtful(0, 2, 3)) == {2: 1}


def test_a_former_id_counts_if_two_polls_in_a_row_of_one_broker_report_it() -> None:
    topic = _topic()
    assert not topic.insists(_FORMER, Source(1), set())
    assert topic.insists(_FORMER, Source(1), set())


def test_other_ids_in_between_count_for_nothing() -> None:
    topic = _topic()
    assert not topic.insists(_FORMER, Source(1), set())
    assert not topic.insists(b"", Source(1), set())
    assert not topic.insists(_FORMER, Source(1), set())


def test_brokers_that_report_it_at_the_same_time_count_for_nothing() -> None:
    topic = _topic()
    for source in (Source(1), Source(2, "inside"), Source(2, "outside"), Source(None, "three")):
        assert not topic.insists(_FORMER, source, set())
    assert topic.insists(_FORMER, Source(3, "three"), set())
