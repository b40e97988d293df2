"""Faults of responses, where clients meet them: at the interposer."""

from collections.abc import Mapping

import pytest
import trio
import trio.testing

from leader_hints.core.events import Event
from leader_hints.faults.fault import Action, Fault, Faults
from leader_hints.faults.interposer import Interposer
from leader_hints.faults.stale_metadata import read_told
from tests.core.samples import metadata_answer
from tests.faults.interposed import RESPONSE, interposed
from tests.net.messages import framed, metadata_request


@pytest.mark.parametrize(
    "values", [{"delay_ms": 60_000}, {"bytes_per_second": 1}], ids=["delay", "throttle"]
)
async def test_a_response_that_is_under_way_arrives_although_its_link_has_ended(
    values: dict[str, int], autojump_clock: trio.testing.MockClock
) -> None:
    faults = Faults()
    action = Action.DELAY if "delay_ms" in values else Action.THROTTLE
    faults.begin(Fault.model_validate({"action": action, **values}), {})
    interposer = Interposer(faults, lambda event: None)
    async with interposed(interposer, seconds=100) as (client, link):
        await client.send_all(metadata_request(12, 1))
        await link.receive_some()
        await link.send_all(RESPONSE)
        await link.aclose()
        received = b""
        while chunk := await client.receive_some():
            received += chunk
    assert received == RESPONSE


async def test_of_several_delays_the_oldest_alone_is_done(
    autojump_clock: trio.testing.MockClock,
) -> None:
    faults = Faults()
    done: list[Event] = []
    for seconds in (5, 7):
        faults.begin(Fault(action=Action.DELAY, delay_ms=seconds * 1000, times=1), {})
    interposer = Interposer(faults, done.append)
    async with interposed(interposer, seconds=100) as (client, link):
        for seconds in (5, 7):
            await client.send_all(metadata_request(12, 1))
            await link.receive_some()
            begun = trio.current_time()
            await link.send_all(RESPONSE)
            assert await client.receive_some() == RESPONSE
            assert trio.current_time() - begun == pytest.approx(seconds)
        await client.aclose()
    assert len(done) == 2


async def _told_leaders(
    faults: Faults, now: Mapping[str, tuple[int, int]], done: list[Event], version: int = 12
) -> dict[tuple[str, int], tuple[int, int]]:
    """The leaders that a client gets where a broker answers ``now``."""
    interposer = Interposer(faults, done.append)
    async with interposed(interposer) as (client, link):
        await client.send_all(metadata_request(version, 1))
        await link.receive_some()
        says = {topic: {0: leader} for topic, leader in now.items()}
        await link.send_all(metadata_answer(version, 1, says))
        told = await client.receive_some()
        await client.aclose()
    return dict(read_told(memoryview(bytes(told)), version).leaders)


async def test_leaders_of_chosen_topics_alone_are_reported_as_they_were() -> None:
    faults = Faults()
    done: list[Event] = []
    former = {("a", 0): (1, 4), ("b", 0): (1, 4)}
    faults.begin(Fault(action=Action.STALE_METADATA, topics=frozenset({"a"})), former)
    told = await _told_leaders(faults, {"a": (2, 5), "b": (2, 5)}, done)
    assert told == {("a", 0): (1, 4), ("b", 0): (2, 5)}
    assert len(done) == 1


async def test_metadata_is_stale_as_often_as_asked_for_and_not_before_it_differs() -> None:
    """Clients ask for brokers alone at first, and for leaders that have not moved yet."""
    faults = Faults()
    done: list[Event] = []
    faults.begin(Fault(action=Action.STALE_METADATA, times=1), {("a", 0): (1, 4)})
    for unchanged in ({}, {"a": (1, 4)}, {"b": (2, 7)}):
        assert await _told_leaders(faults, unchanged, done) == {
            (topic, 0): leader for topic, leader in unchanged.items()
        }
    assert not done
    assert await _told_leaders(faults, {"a": (2, 5)}, done) == {("a", 0): (1, 4)}
    assert len(done) == 1
    assert await _told_leaders(faults, {"a": (2, 5)}, done) == {("a", 0): (2, 5)}


async def test_of_two_faults_that_choose_a_partition_the_older_says_its_leader() -> None:
    faults = Faults()
    done: list[Event] = []
    faults.begin(Fault(action=Action.STALE_METADATA), {("a", 0): (1, 4)})
    faults.begin(Fault(action=Action.STALE_METADATA), {("a", 0): (2, 5), ("b", 0): (2, 5)})
    told = await _told_leaders(faults, {"a": (3, 6), "b": (3, 6)}, done)
    assert told == {("a", 0): (1, 4), ("b", 0): (2, 5)}


async def test_metadata_with_an_array_that_is_null_ends_the_connection_alone() -> None:
    """It was reported as a defect of the proxy."""
    faults, told = Faults(), list[Event]()
    faults.begin(Fault(action=Action.STALE_METADATA), {("a", 0): (1, 4)})
    async with interposed(Interposer(faults, told.append)) as (client, link):
        await client.send_all(metadata_request(1, 1))
        await link.receive_some()
        # No brokers, the controller, and topics that are null.
        await link.send_all(framed(bytes.fromhex("00000001 00000000 ffffffff ffffffff")))
        assert await client.receive_some() == b""
    assert told == []
