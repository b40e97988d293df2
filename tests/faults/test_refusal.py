import uuid

import pytest

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint, LeaderHint
from leader_hints.core.versions.address_rewriting import NEWEST
from leader_hints.faults.refusal import read_asked, refuse
from tests.apis.messages import read_response_frame, response_type
from tests.core.samples import FENCED, NOT_LEADER, fetch_request, produce_request, topic_id

_HINT = LeaderHint(2, 7, Endpoint("two.example", 9092, "rack-b"))


@pytest.mark.parametrize("version", range(3, NEWEST[ApiKey.PRODUCE] + 1))
def test_a_produce_request_is_refused_in_its_version(version: int) -> None:
    request = memoryview(produce_request(version, 9))
    assert read_asked(request).partitions == (("t", 0),)
    written = refuse(request, 9, NOT_LEADER, lambda *at: True, lambda *at: _HINT)
    answer = read_response_frame(response_type(ApiKey.PRODUCE, version), written)
    ((partition,),) = [topic.partition_responses for topic in answer.responses]
    assert (partition.index, partition.error_code.value) == (0, NOT_LEADER)
    assert partition.base_offset == -1
    if version >= 10:
        leader = partition.current_leader
        assert (leader.leader_id, leader.leader_epoch) == (2, 7)
        assert [(n.node_id, n.host, n.port, n.rack) for n in answer.node_endpoints] == [
            (2, "two.example", 9092, "rack-b")
        ]


@pytest.mark.parametrize("version", range(4, NEWEST[ApiKey.FETCH] + 1))
def test_a_full_fetch_is_refused_for_the_chosen_partitions(version: int) -> None:
    topic = topic_id(1) if version >= 13 else "t"
    request = memoryview(fetch_request(version, 9, {(topic, 0): 1, (topic, 1): 1}))
    assert set(read_asked(request).partitions) == {(topic, 0), (topic, 1)}
    written = refuse(request, 9, FENCED, lambda _, partition: partition == 1, lambda *at: _HINT)
    answer = read_response_frame(response_type(ApiKey.FETCH, version), written)
    partitions = {p.partition_index: p for t in answer.responses for p in t.partitions}
    assert {number: p.error_code.value for number, p in partitions.items()} == {0: 0, 1: FENCED}
    assert not any(p.records for p in partitions.values())
    if version >= 13:
        assert {t.topic_id for t in answer.responses} == {uuid.UUID(bytes=topic_id(1))}
    if version >= 12:
        assert partitions[1].current_leader.leader_epoch == 7
        assert partitions[0].current_leader.leader_epoch == -1
    if version >= 16:
        assert [n.node_id for n in answer.node_endpoints] == [2]


@pytest.mark.parametrize("version", range(7, NEWEST[ApiKey.FETCH] + 1))
def test_an_incremental_fetch_is_asked_for_in_full(version: int) -> None:
    request = memoryview(fetch_request(version, 9, {}, session=(5, 3)))
    assert read_asked(request).incremental
    written = refuse(request, 9, FENCED, lambda *at: True, lambda *at: None)
    answer = read_response_frame(response_type(ApiKey.FETCH, version), written)
    assert answer.error_code.value == 70
    assert not answer.responses


def test_a_produce_request_without_acks_wants_no_answer() -> None:
    assert read_asked(memoryview(produce_request(9, 1, acks=0))).silent
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == NOT_LEADER
