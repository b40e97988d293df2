"""What is kept of the versions that clients ask, and how much."""

from leader_hints.apis.keys import NEWEST, ApiKey
from leader_hints.core.events import ClientAsked
from leader_hints.core.versions import asked_versions
from leader_hints.core.versions.asked_versions import OTHERS, AskedVersions, ClientName, Origin


def _versions(asked: AskedVersions) -> dict[ClientName, dict[int, tuple[int, int]]]:
    return {name: one.versions for name, one in asked}


def _reported(asked: AskedVersions) -> list[ClientAsked]:
    return [event for events in asked.changes("r") for event in events]


def test_the_oldest_and_the_newest_version_of_each_api_are_kept() -> None:
    asked = AskedVersions()
    for version in (7, 3, 9):
        asked.note("sarama/1.27.0", "billing", ApiKey.PRODUCE, version)
    asked.note("sarama/1.27.0", "billing", ApiKey.FETCH, 11)
    asked.note("", "", ApiKey.FETCH, 2)

    assert _versions(asked) == {
        ClientName("sarama/1.27.0", "billing"): {ApiKey.PRODUCE: (3, 9), ApiKey.FETCH: (11, 11)},
        ClientName("", ""): {ApiKey.FETCH: (2, 2)},
    }


def test_what_no_kafka_has_and_what_any_broker_takes_is_not_kept() -> None:
    asked = AskedVersions()
    asked.note("a/1", "c", ApiKey.API_VERSIONS, 0)
    asked.note("a/1", "c", ApiKey.PRODUCE, -1)
    asked.note("a/1", "c", ApiKey.PRODUCE, 99)
    asked.note("a/1", "c", 20_000, 0)

    assert not [*asked]


def test_clients_beyond_the_most_are_kept_together() -> None:
    asked = AskedVersions()
    for number in range(asked_versions._MOST + 300):
        asked.note("a/1", f"c-{number}", ApiKey.PRODUCE, 7)
    asked.note("b/1", "late", ApiKey.PRODUCE, 0)
    asked.note("a/1", "c-0", ApiKey.PRODUCE, 2)

    kept = _versions(asked)
    assert len(kept) == asked_versions._MOST + 1
    assert kept[ClientName(OTHERS, OTHERS)] == {ApiKey.PRODUCE: (0, 7)}
    assert kept[ClientName("a/1", "c-0")] == {ApiKey.PRODUCE: (2, 7)}


def test_clients_that_have_gone_make_room_for_those_of_today() -> None:
    """Many have another id each time they start, such as a pod's name."""
    asked = AskedVersions()
    most = asked_versions._MOST
    asked.begin_day("2026-01-01")
    for number in range(most):
        asked.note("a/1", f"c-{number}", ApiKey.PRODUCE, number % 3, Origin("192.0.2.1"))
    assert len(_reported(asked)) == most
    # The last one asks more, and that is not reported yet.
    asked.note("a/1", f"c-{most - 1}", ApiKey.METADATA, 5)
    asked.begin_day("2026-01-02")
    for number in range(0, most, 2):
        asked.note("a/1", f"c-{number}", ApiKey.PRODUCE, 9)
    for number in range(most):
        asked.note("a/2", f"c-{number}", ApiKey.FETCH, 11)

    kept = dict(asked)
    assert len(kept) == most + 1
    others = kept.pop(ClientName(OTHERS, OTHERS))
    assert {one.last_day for one in kept.values()} == {"2026-01-02"}
    assert sum(name.software == "a/2" for name in kept) == most // 2
    # What those have asked that had to go is still known, and is no news.
    assert others.versions == {
        ApiKey.PRODUCE: (0, 2),
        ApiKey.FETCH: (11, 11),
        ApiKey.METADATA: (5, 5),
    }
    assert (others.addresses, others.last_day) == (("192.0.2.1",), "2026-01-02")
    last = (most - 1) % 3
    assert {(event.software, event.asked) for event in _reported(asked)} == {
        ("a/1", ((0, 9, 9),)),
        ("a/2", ((1, 11, 11),)),
        (OTHERS, ((0, last, last), (1, 11, 11), (3, 5, 5))),
    }


def test_the_first_origins_of_a_client_are_kept() -> None:
    asked = AskedVersions()
    for number in range(9):
        origin = Origin(f"192.0.2.{number}", f"CN={'x' * 300}" if number % 2 else "")
        asked.note("a/1", "c", ApiKey.PRODUCE, 7, origin)

    ((_, one),) = asked
    assert one.addresses == (*(f"192.0.2.{number}" for number in range(5)), OTHERS)
    assert one.principals == (f"CN={'x' * 252}",)


def test_a_client_is_reported_when_there_is_more_than_before() -> None:
    asked = AskedVersions()
    asked.note("a/1", "c", ApiKey.PRODUCE, 7, Origin("192.0.2.1", "CN=c"))
    asked.note("a/1", "c", ApiKey.FETCH, 11, Origin("192.0.2.1", "CN=c"))
    first = ClientAsked(
        route="r",
        client_id="c",
        software="a/1",
        asked=((0, 7, 7), (1, 11, 11)),
        addresses=("192.0.2.1",),
        principals=("CN=c",),
    )
    assert _reported(asked) == [first]
    for _ in range(1000):
        asked.note("a/1", "c", ApiKey.FETCH, 11, Origin("192.0.2.1", "CN=c"))
    assert not _reported(asked)

    asked.note("a/1", "c", ApiKey.FETCH, 4, Origin("192.0.2.2"))
    (second,) = _reported(asked)
    assert second.asked == ((0, 7, 7), (1, 4, 11))
    assert second.addresses == ("192.0.2.1", "192.0.2.2")


def test_what_a_client_asks_is_reported_on_each_day_of_that_day() -> None:
    """So it is seen that a client was upgraded, or set to ask newer versions."""
    asked = AskedVersions()
    asked.note("a/1", "c", ApiKey.PRODUCE, 2)
    assert not asked.begin_day("2026-01-01")
    assert [event.asked for event in _reported(asked)] == [((0, 2, 2),)]
    asked.note("a/1", "c", ApiKey.PRODUCE, 2)
    assert not asked.begin_day("2026-01-01")
    assert not _reported(asked)

    assert asked.begin_day("2026-01-02")
    assert not _reported(asked)
    asked.note("a/1", "c", ApiKey.PRODUCE, 9)
    assert [event.asked for event in _reported(asked)] == [((0, 9, 9),)]
    # A running proxy says what was asked since its start.
    assert _versions(asked) == {ClientName("a/1", "c"): {ApiKey.PRODUCE: (2, 9)}}


def test_a_day_begins_also_after_the_clock_was_set_back() -> None:
    """A clock that was a year ahead had nothing reported for a year, of clients that went on."""
    asked = AskedVersions()
    asked.begin_day("2027-01-01")
    asked.note("a/1", "c", ApiKey.PRODUCE, 2)
    assert len(_reported(asked)) == 1
    for day in ("2026-01-01", "2026-01-02"):
        assert asked.begin_day(day)
        asked.note("a/1", "c", ApiKey.PRODUCE, 2)
        assert [event.asked for event in _reported(asked)] == [((0, 2, 2),)]
        assert not asked.begin_day(day)
    assert [one.last_day for _, one in asked] == ["2026-01-02"]


def test_what_was_not_reported_when_a_day_ends_is_reported_on_the_next() -> None:
    asked = AskedVersions()
    asked.begin_day("2026-01-01")
    asked.note("a/1", "c", ApiKey.PRODUCE, 2)
    asked.begin_day("2026-01-02")
    asked.note("a/1", "c", ApiKey.FETCH, 4)
    assert [event.asked for event in _reported(asked)] == [((0, 2, 2), (1, 4, 4))]


def test_the_last_day_of_a_client_is_known() -> None:
    asked = AskedVersions()
    for client_id in ("goes", "stays"):
        asked.note("a/1", client_id, ApiKey.PRODUCE, 9)
    asked.begin_day("2026-01-01")
    asked.begin_day("2026-01-05")
    asked.note("a/1", "stays", ApiKey.PRODUCE, 9)
    assert {name.client_id: one.last_day for name, one in asked} == {
        "goes": "2026-01-01",
        "stays": "2026-01-05",
    }


def test_all_that_may_be_reported_in_a_day_is_bounded() -> None:
    """A client that a broker serves could fill the disk with the journal otherwise."""
    asked = AskedVersions()
    reports = 0
    kinds = [(key, version) for key, newest in NEWEST.items() for version in range(newest + 1)]
    for number, (key, version) in enumerate(kinds * 3):
        asked.note("a/1", "c", key, version, Origin(f"192.0.2.{number}", f"CN={number}"))
        reports += len([*asked.changes("r")])
    # Each version once, and each origin that is kept.
    assert reports <= len(kinds) + 2 * 6
    assert reports >= len(kinds) - len(NEWEST)


def test_many_apis_are_reported_in_parts_that_fit() -> None:
    asked = AskedVersions()
    for key, newest in NEWEST.items():
        asked.note("a/1", "c", key, newest)
    parts = _reported(asked)
    keys = [key for part in parts for key, _, _ in part.asked]
    assert keys == sorted(NEWEST.keys() - {ApiKey.API_VERSIONS})
    assert max(len(part.asked) for part in parts) * len("99:10-12,") <= 256
