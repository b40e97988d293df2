"""When brokers are asked for ids that clients use, and what follows from their answers."""

from itertools import count, islice, pairwise

import pytest

from leader_hints.core.cluster.unknown_ids import MOST_IDS, UnknownIds

A, B = bytes([1] * 16), bytes([2] * 16)


def _nobody(topic_id: bytes) -> str | None:
    return None


def _id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def test_brokers_are_asked_at_once_and_then_less_and_less_for_the_same_id() -> None:
    ids = UnknownIds()
    asked = [now / 100 for now in range(1000, 20000) if ids.used([A], now / 100)]
    pauses = [after - before for before, after in pairwise(asked)]
    assert asked[0] == 10.0
    assert pauses == sorted(pauses)
    assert pauses[-1] > 50
    assert len(asked) < 13


def test_one_question_is_about_all_ids_that_are_used_by_then() -> None:
    ids = UnknownIds()
    assert ids.used([A, B], 1.0)
    assert not ids.used([B], 1.05)
    assert not ids.used([A], 1.05)


def test_however_many_ids_are_used_brokers_are_asked_about_once_a_second() -> None:
    ids = UnknownIds()
    asked = sum(ids.used([_id(number)], number / 1000) for number in range(60_000))
    assert 60 <= asked <= 66


def test_what_takes_long_is_asked_for_rarely() -> None:
    ids = UnknownIds()
    asked = 0
    for number in range(6000):
        now = number / 10
        if ids.used([_id(number)], now):
            asked += 1
            ids.answered(_nobody, now, now + 2)
    # Two seconds of every forty, after a burst.
    assert asked <= 600 / 40 + 6


def test_an_id_that_came_after_the_question_is_not_judged_by_its_answer() -> None:
    ids = UnknownIds()
    ids.used([A], 1.0)
    ids.used([B], 2.0)
    ids.answered(_nobody, 1.5, 2.5)
    assert ids.unnameable(A, hides=True)
    assert not ids.unnameable(B, hides=True)


def test_brokers_that_may_lag_do_not_show_that_an_id_has_no_name() -> None:
    ids = UnknownIds()
    ids.used([A], 1.0)
    for asked_at in (1.0, 1.9):
        ids.answered(_nobody, asked_at, asked_at)
        assert not ids.unnameable(A, hides=False)
    ids.answered(_nobody, 2.0, 2.0)
    assert ids.unnameable(A, hides=False)


def test_an_id_that_is_named_later_begins_again_when_it_is_lost_again() -> None:
    ids = UnknownIds()
    for now in (1.0, 3.0):
        ids.used([A], now)
        ids.answered(_nobody, now, now)
    assert ids.unnameable(A, hides=False)
    ids.answered(lambda topic_id: "a", 4.0, 4.0)
    assert not ids.unnameable(A, hides=True)
    assert ids.used([A], 5.0)


def test_what_is_remembered_is_bounded() -> None:
    ids = UnknownIds()
    for number in range(5000):
        ids.used([_id(number)], 0.0)
        ids.withhold((str(number), ""), A)
    ids.used([_id(number) for number in range(5000)], 0.0)
    for now in (1.0, 3.0):
        ids.answered(_nobody, now, now)
    assert sum(ids.unnameable(_id(number), hides=True) for number in range(5000)) <= 1024
    assert sum(ids.withheld((str(number), ""), _nobody) for number in range(5000)) <= 1024


def test_a_client_that_used_an_id_without_a_name_is_served_by_name_for_a_while_only() -> None:
    now, client = [100.0], ("host", "client")
    ids = UnknownIds(lambda: now[0])
    assert not ids.withheld(client, _nobody)
    ids.withhold(client, A)
    now[0] = 699.0
    assert ids.withheld(client, _nobody)
    assert not ids.withheld(client, lambda topic_id: "a")
    assert not ids.withheld(("host", "other"), _nobody)
    now[0] = 700.0
    assert not ids.withheld(client, _nobody)
    ids.withhold(client, A)
    assert ids.withheld(client, _nobody)


@pytest.mark.parametrize("another", [False, True], ids=["the same ids", "other ids each time"])
def test_what_other_addresses_use_does_not_push_an_id_out(another: bool) -> None:
    """One request with 1,024 ids each second kept all other clients' ids without a name."""
    ids = UnknownIds()
    many = (_id(number) for number in count(1))
    crowd = [*islice(many, MOST_IDS)]
    for now in range(1, 9):
        ids.used([A], now, "10.0.0.1")
        crowd = [*islice(many, MOST_IDS)] if another else crowd
        for host in ("10.0.0.2", "10.0.0.3"):
            ids.used(crowd, now, host)
        ids.answered(_nobody, now, now)
    assert ids.unnameable(A, hides=False)


def test_all_addresses_together_have_so_many_ids() -> None:
    ids = UnknownIds()
    for number in range(3 * MOST_IDS):
        ids.used([_id(number), A], 0.0, f"10.0.0.{number % 7}")
        ids.used([_id(number)], 0.0, f"host{number}")
    ids.answered(_nobody, 1.0, 1.0)
    assert MOST_IDS // 4 < len(ids.lacking()) <= MOST_IDS


def test_an_id_of_several_addresses_is_known_until_the_last_one_gives_way() -> None:
    ids = UnknownIds()
    for host in ("10.0.0.1", "10.0.0.2"):
        ids.used([A], 0.0, host)
    ids.used([_id(number) for number in range(3, MOST_IDS + 3)], 0.0, "10.0.0.2")
    ids.answered(_nobody, 1.0, 1.0)
    assert ids.unnameable(A, hides=True)
    # Named, it leaves room for as many as it had taken.
    ids.answered(lambda topic_id: "a" if topic_id == A else None, 2.0, 2.0)
    assert not ids.unnameable(A, hides=True)
    ids.used([_id(number) for number in range(3, MOST_IDS + 3)], 3.0, "10.0.0.2")
    ids.answered(_nobody, 4.0, 4.0)
    assert len(ids.lacking()) == MOST_IDS
