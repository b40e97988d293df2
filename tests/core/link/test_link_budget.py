"""What a link keeps is counted, small or large, and given back however the link ends."""

import struct
from collections.abc import Iterable

import pytest

from leader_hints.core.events import HintMissed
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.link.budget import Account, Budget
from leader_hints.core.link.held import Held, cost
from leader_hints.core.mode import Mode
from tests.core.brokers import route_before
from tests.core.links import Driven, route
from tests.core.samples import (
    NOT_LEADER,
    fetch_answer,
    fetch_request,
    metadata_answer,
    produce_answer,
    produce_request,
    request,
    topic_id,
    versions_answer,
)


def _asked(size: int = 3) -> bytes:
    return fetch_request(16, 1, {(topic_id(1), partition): 3 for partition in range(size)})


def test_a_small_response_is_counted_while_it_is_held_and_what_came_behind_it_too() -> None:
    driven = Driven(route())
    driven.up(produce_request(10, 1) + produce_request(10, 2))
    first, second = produce_answer(9, 1, {0: NOT_LEADER}), produce_answer(9, 2, {0: 0})
    driven.down(first)
    assert driven.held is not None
    kept = len(first) + cost(driven.held.scanned)
    assert driven.budget.used == kept
    driven.link.responses.flushed()
    assert driven.budget.used == kept
    driven.release([None])
    assert driven.budget.used == 0

    driven.up(produce_request(10, 3))
    driven.down(second + produce_answer(9, 3, {0: NOT_LEADER}))
    driven.release([None])
    assert driven.budget.used == 0


def test_what_came_behind_a_held_response_is_counted() -> None:
    driven = Driven(route())
    driven.up(produce_request(10, 1) + produce_request(10, 2))
    both = produce_answer(9, 1, {0: NOT_LEADER}) + produce_answer(9, 2, {0: 0})
    driven.down(both)
    assert driven.held is not None
    assert driven.budget.used == len(both) + cost(driven.held.scanned)
    driven.link.close()
    assert driven.budget.used == 0


def test_what_is_held_one_behind_the_other_is_counted_once() -> None:
    count = 50
    driven = Driven(route())
    driven.up(b"".join(produce_request(10, number) for number in range(count)))
    answers = [produce_answer(9, number, {0: NOT_LEADER}) for number in range(count)]
    every = b"".join(answers)
    driven.down(every)
    for answer in answers:
        assert driven.held is not None
        # Each has a copy of its own while it is held, beside the receive buffer's.
        kept = driven.budget.used - cost(driven.held.scanned)
        assert len(answer) <= kept <= 2 * len(every)
        driven.release([None])
    assert driven.to_client == every
    assert driven.budget.used == 0
    # It begins again.
    driven.up(produce_request(10, 1) + produce_request(10, 2))
    driven.down(answers[1] + answers[2])
    assert driven.held is not None
    assert driven.budget.used == len(answers[1] + answers[2]) + cost(driven.held.scanned)


def test_without_budget_a_small_response_is_not_held_and_that_is_reported() -> None:
    driven = Driven(route(), budget=Budget(20, 20))
    driven.up(produce_request(10, 1))
    answer = produce_answer(9, 1, {0: NOT_LEADER})
    driven.down(answer)
    assert driven.held is None
    assert driven.to_client == answer
    (missed,) = (e for e in driven.link.state.events if isinstance(e, HintMissed))
    assert missed.reason is MissReason.BUDGET


@pytest.mark.parametrize("partitions", [1, 1000])
def test_what_failed_counts_until_it_was_reported(partitions: int) -> None:
    seen: list[Held] = []

    def decide(held: Held) -> None:
        seen.append(held)

    driven = Driven(route(), decide=decide)
    driven.up(produce_request(10, 1))
    driven.down(produce_answer(9, 1, dict.fromkeys(range(partitions), NOT_LEADER)))
    (held,) = seen
    driven._send(
        driven.link.responses, driven.link.responses.release([None] * partitions), bytearray()
    )
    assert driven.budget.used == cost(held.scanned)
    # Also beyond the end of its link.
    driven.link.close()
    assert driven.budget.used == cost(held.scanned)
    held.give_back()
    held.give_back()
    assert (driven.budget.used, driven.budget.unauthenticated) == (0, 0)


def test_each_error_that_finds_no_room_goes_on_and_is_counted() -> None:
    """What failed may need more than the frame: 1,000 partitions stand in 37 KB."""
    errors = dict.fromkeys(range(1000), NOT_LEADER)
    answer = produce_answer(9, 1, errors)
    budget = Budget(1 << 20, 1 << 22)
    links = [Driven(route(), budget=budget) for _ in range(10)]
    for driven in links:
        driven.up(produce_request(10, 1))
        driven.down(answer)
        assert budget.used <= budget.total
    held = [driven for driven in links if driven.held is not None]
    assert 0 < len(held) < len(links)
    for driven in links:
        missed = [e for e in driven.link.state.events if isinstance(e, HintMissed)]
        if driven not in held:
            assert driven.to_client == answer
            assert [e.answered.partition for e in missed] == [*errors]
            assert {e.reason for e in missed} == {MissReason.BUDGET}
        else:
            assert missed == []
            driven.release([None] * len(errors))
    assert budget.used == 0


@pytest.mark.parametrize("ending", ["answered", "closed", "unmatched"])
def test_a_request_that_awaits_its_response_is_counted(ending: str) -> None:
    driven = Driven(route())
    driven.up(_asked())
    assert driven.budget.used == len(_asked())
    if ending == "answered":
        driven.down(fetch_answer(15, 1, []))
    elif ending == "closed":
        driven.link.close()
    else:
        # A response to nothing: from here on nothing is looked at, so nothing is kept.
        driven.down(fetch_answer(15, 99, []))
        assert driven.budget.used == 0
        driven.up(_asked())
    assert driven.budget.used == 0


def test_without_budget_no_copy_of_a_request_is_kept() -> None:
    driven = Driven(route(), budget=Budget(20, 20))
    driven.up(_asked())
    assert driven.budget.used == 0
    assert driven.link.state.exchanges.waiting[0].request is None


def test_a_response_that_is_only_looked_at_is_not_kept_once_it_has_gone_on() -> None:
    seen: list[Held] = []

    def decide(held: Held) -> list[None]:
        seen.append(held)
        return [None]

    driven = Driven(route(Mode.OBSERVE), decide=decide)
    driven.up(produce_request(9, 1))
    driven.down(produce_answer(9, 1, {0: NOT_LEADER}))
    assert len(seen[0].frame) == 0
    assert driven.budget.used == 0


def test_records_of_a_response_that_is_only_looked_at_go_by_unread() -> None:
    """They are most of what a consumer of several partitions gets."""
    driven = Driven(route(), budget=Budget(1000, 1 << 22), buffer_size=1 << 18)
    driven.up(fetch_request(16, 1, {(topic_id(1), partition): 3 for partition in range(4)}))
    errors = [0, 0, 0, NOT_LEADER]
    partitions = [(topic_id(1), i, error, bytes(300_000)) for i, error in enumerate(errors)]
    answer = fetch_answer(16, 1, partitions)
    flow, received, sent, at = driven.link.responses, 0, bytearray(), 0
    while at < len(answer):
        if (moved := min(flow.passing, len(answer) - at)) >= 1 << 16:
            flow.passed(moved)
            sent += answer[at : at + moved]
            at += moved
            continue
        buffer = flow.buffer()
        size = min(len(buffer), len(answer) - at)
        buffer[:size] = answer[at : at + size]
        received += size
        sent += b"".join(flow.received(size))
        at += size
    assert sent == answer
    assert [
        e.answered.partition for e in driven.link.state.events if isinstance(e, HintMissed)
    ] == [3]
    # The first bytes, and little for each further partition.
    assert received < (1 << 18) + 4 * (1 << 13)


_SESSION = 9


def _in_session(asked: dict[tuple[str | bytes, int], int], epoch: int) -> bytes:
    return fetch_request(16, epoch, asked, session=(_SESSION if epoch else 0, epoch))


def _epochs_after(changed: Driven, answer: bytes, cuts: Iterable[int] = ()) -> list[int]:
    """Return the epochs of an error after a request that changes the session of another link."""
    opened = Driven(changed.link.state.route)
    opened.up(_in_session({(topic_id(1), 0): 5}, 0))
    opened.down(fetch_answer(15, 0, [], session_id=_SESSION))
    changed.up(_in_session({(topic_id(1), partition): 7 for partition in range(20)}, 1))
    changed.down(answer, cuts)
    opened.up(_in_session({}, 2))
    opened.down(fetch_answer(15, 2, [(topic_id(1), 0, NOT_LEADER, b"")], session_id=_SESSION))
    assert opened.held is not None
    return list(opened.held.epochs)


def test_a_session_is_forgotten_whose_change_could_not_be_kept() -> None:
    # Epoch 5 would have a hint of epoch 6 given to a client that is at 7.
    answer = fetch_answer(15, 1, [], session_id=_SESSION)
    assert _epochs_after(Driven(route()), answer) == [7]
    assert _epochs_after(Driven(route(), budget=Budget(20, 20)), answer) == [-1]


def test_a_session_is_forgotten_whose_changes_answer_could_not_be_kept() -> None:
    # The request fits, and the answer does not.
    failed = [(topic_id(1), partition, NOT_LEADER, b"") for partition in range(20)]
    answer = fetch_answer(15, 1, failed, session_id=_SESSION)
    asked = _in_session({(topic_id(1), partition): 7 for partition in range(20)}, 1)
    budget = Budget(max(len(asked), len(answer) - 1), 1 << 20)
    driven = Driven(route(), budget=budget, buffer_size=256)
    assert len(asked) < len(answer)
    assert _epochs_after(driven, answer) == [-1]


@pytest.mark.parametrize("cut", [9, 100], ids=["before its session id", "behind it"])
def test_a_session_is_forgotten_of_which_neither_request_nor_answer_could_be_kept(
    cut: int,
) -> None:
    failed = [(topic_id(1), partition, NOT_LEADER, b"") for partition in range(20)]
    answer = fetch_answer(15, 1, failed, session_id=_SESSION)
    driven = Driven(route(), budget=Budget(20, 20), buffer_size=256)
    assert _epochs_after(driven, answer, cuts=[cut]) == [-1]


def test_copies_of_long_polls_leave_room_for_errors() -> None:
    """Consumers without fetch sessions, as of librdkafka, name all partitions in each request."""
    budget = Budget(1 << 16, 1 << 18)
    consumers = [Driven(route(), budget=budget) for _ in range(60)]
    for driven in consumers:
        driven.up(_asked(0))
        driven.down(fetch_answer(15, 1, []))
        driven.up(_asked(200))
    copied = [driven.link.state.exchanges.waiting[0].request for driven in consumers]
    assert None in copied
    assert any(copied)
    assert budget.used <= budget.total // 2
    producer = Driven(route(), budget=budget)
    producer.up(produce_request(10, 1))
    producer.down(produce_answer(9, 1, {0: NOT_LEADER}))
    assert producer.held is not None
    # Who has no copy is held all the same; its epochs are not known.
    consumer = consumers[copied.index(None)]
    consumer.down(fetch_answer(15, 1, [(topic_id(1), 0, NOT_LEADER, b"")]))
    assert consumer.held is not None
    assert consumer.held.epochs == [-1]
    for driven in (producer, *consumers):
        driven.link.close()
    assert (budget.used, budget.copied, budget.unauthenticated) == (0, 0, 0)


# Before the broker has shown that it serves the client.


def _unfinished(version: int = 10) -> bytes:
    """Return the beginning of a Produce request of 300 MB, which must be kept to be recoded."""
    head = produce_request(version, 5, records=bytes(60_000), partitions=2)
    return struct.pack(">i", 300 << 20) + head[4:1000]


def test_unauthenticated_clients_keep_no_more_than_their_share_together() -> None:
    budget = Budget(1 << 22, 1 << 26)
    links = [Driven(route_before("2.6"), budget=budget, largest_request=1 << 30) for _ in range(40)]
    begun, more = _unfinished(), bytes(60_000)
    for driven in links:
        driven.up(begun)
    for _ in range(30):
        for driven in links:
            driven.up(more)
            assert budget.used <= budget.total // 4
    # They sent 70 MB.
    faults = [driven.link.requests.fault for driven in links]
    assert any(fault and "must be kept whole" in fault for fault in faults)
    for driven in links:
        driven.link.close()
    assert (budget.used, budget.unauthenticated) == (0, 0)


def test_an_unauthenticated_client_with_many_links_leaves_others_their_first_requests() -> None:
    """As in front of 2.6 with SASL: Produce is kept until its last partition begins."""
    budget = Budget(1 << 22, 1 << 26)
    before = route_before("2.6")
    greedy = [
        Driven(before, budget=budget, largest_request=1 << 30, address=f"10.0.0.66:{port}")
        for port in range(40)
    ]
    for driven in greedy:
        driven.up(_unfinished())
    for _ in range(30):
        for driven in greedy:
            driven.up(bytes(60_000))
    assert any(driven.link.requests.fault for driven in greedy)
    records = bytes(1 << 20)
    asked, sent = (produce_request(v, 2, records=records, partitions=2) for v in (10, 8))
    for number in range(3):
        # All begin before any ends.
        other = Driven(before, budget=budget, largest_request=1 << 30, address=f"10.0.0.{number}:1")
        other.up(asked[:-20])
        assert other.link.requests.fault is None
        other.up(asked[-20:])
        assert other.to_broker == sent
        greedy.append(other)
    for driven in greedy:
        driven.link.close()
    assert (budget.used, budget.unauthenticated, budget.by_address) == (0, 0, {})


@pytest.mark.parametrize("addresses", [1, 2, 7])
def test_unauthenticated_clients_leave_as_much_as_any_of_their_addresses_has(
    addresses: int,
) -> None:
    budget = Budget(1 << 22, 1 << 26)
    share = budget.total // 2
    accounts = [Account(budget, f"10.0.0.{number}:1") for number in range(addresses)]
    refused = 0
    while refused < 3 * addresses:
        for account in accounts:
            refused += not account.take_anyway(1 << 10)
    assert max(budget.by_address.values()) <= share - budget.unauthenticated
    assert budget.unauthenticated <= share * addresses // (addresses + 1)
    assert Account(budget, "10.0.1.1:1").take_anyway(share // (2 * (addresses + 1)))


def test_a_large_request_that_must_be_kept_costs_no_other_link_its_hints() -> None:
    budget = Budget(1 << 22, 1 << 24)
    greedy = Driven(route_before("2.6"), budget=budget, largest_request=1 << 30)
    greedy.up(_unfinished())
    while greedy.link.requests.fault is None:
        greedy.up(bytes(60_000))
    other = Driven(route(), budget=budget)
    other.up(produce_request(10, 1))
    answer = produce_answer(9, 1, {0: NOT_LEADER})
    other.down(answer)
    assert other.held is not None


def test_nothing_is_kept_of_requests_that_the_broker_takes_no_more() -> None:
    budget = Budget(1 << 20, 1 << 22)
    driven = Driven(route_before("2.6"), budget=budget, largest_request=1 << 30)
    driven.up(_unfinished())
    assert budget.used > 0
    driven.link.requests.abandon()
    assert (budget.used, budget.unauthenticated) == (0, 0)
    driven.up(_unfinished() + bytes(60_000))
    assert (budget.used, driven.link.requests.fault) == (0, None)


def test_whom_the_broker_answers_may_keep_what_its_requests_need() -> None:
    budget = Budget(1 << 20, 1 << 22)
    driven = Driven(route_before("2.6"), budget=budget, largest_request=1 << 30)
    driven.up(request(3, 5, 1, topics=()))
    driven.down(metadata_answer(5, 1, {}))
    records = bytes(3 << 20)
    asked, sent = (produce_request(v, 2, records=records, partitions=2) for v in (10, 8))
    before = len(driven.to_broker)
    driven.up(asked)
    assert driven.to_broker[before:] == sent
    assert (budget.used, budget.unauthenticated) == (0, 0)


def test_where_the_broker_serves_any_client_all_are_trusted() -> None:
    budget = Budget(1 << 20, 1 << 22)
    before = route_before("2.6")
    before.broker.serves_anybody = True
    records = bytes(5 << 20)
    asked, sent = (produce_request(v, 2, records=records, partitions=2, acks=0) for v in (10, 8))
    driven = Driven(before, budget=budget, largest_request=1 << 30)
    # Those with acks=0 are answered by nobody.
    for _ in range(2):
        driven.up(asked)
    assert driven.to_broker == 2 * sent
    assert (budget.used, budget.unauthenticated) == (0, 0)


@pytest.mark.parametrize("trusted", [False, True])
def test_what_was_reserved_before_authentication_is_given_back_after_it(
    trusted: bool,
) -> None:
    driven = Driven(route())
    driven.up(_asked())
    assert driven.budget.unauthenticated == driven.budget.used == len(_asked())
    driven.up(request(18, 0, 2) if not trusted else _asked())
    if trusted:
        driven.down(fetch_answer(15, 1, []))
        assert driven.budget.unauthenticated == 0
        assert driven.budget.used == len(_asked())
    driven.link.close()
    assert (driven.budget.used, driven.budget.unauthenticated) == (0, 0)


def test_what_a_broker_answers_to_anybody_shows_nothing() -> None:
    driven = Driven(route(), requests_in_flight=1000)
    for number in range(99):
        driven.up(request(18, 0, number))
    driven.down(versions_answer(0, 0, {}))
    assert not driven.link.crowded
    driven.up(request(18, 0, 100) + request(17, 1, 101, mechanism="PLAIN"))
    assert driven.link.crowded
    for number in range(1, 99):
        driven.down(versions_answer(0, number, {}))
    assert not driven.link.crowded
    driven.link.close()
    served = Driven(route(), requests_in_flight=1000)
    served.up(request(3, 5, 0, topics=()))
    served.down(metadata_answer(5, 0, {}))
    for number in range(200):
        served.up(request(18, 0, number))
    assert not served.link.crowded


def test_the_beginning_of_a_produce_request_is_kept_only_as_far_as_any_needs() -> None:
    driven = Driven(route(), buffer_size=1 << 17)
    begun = struct.pack(">ihhih", 1 << 20, 0, 9, 1, 32_000) + bytes(9000)
    driven.up(begun)
    assert driven.link.requests.opaque
    assert driven.to_broker == begun
