"""What passed on a route, by API and version."""

from leader_hints.apis.keys import ApiKey
from leader_hints.core.link.traffic_counters import TrafficCounters


def test_requests_are_counted_by_the_version_asked_and_the_version_sent() -> None:
    traffic = TrafficCounters()
    traffic.cell(ApiKey.PRODUCE, 10, 9).requests += 2
    traffic.cell(ApiKey.PRODUCE, 10, 9).requests += 1
    traffic.cell(ApiKey.PRODUCE, 9, 9).requests += 1
    assert traffic.requests == {(0, 10, 9): 3, (0, 9, 9): 1}


def test_responses_are_counted_by_the_version_asked() -> None:
    traffic = TrafficCounters()
    traffic.cell(ApiKey.FETCH, 16, 15).responses += 2
    traffic.cell(ApiKey.FETCH, 16, 12).responses += 3
    assert traffic.responses == {(1, 16): 5}


def test_cells_in_which_nothing_was_counted_are_not_shown() -> None:
    traffic = TrafficCounters()
    traffic.cell(ApiKey.FETCH, 16, 15)
    assert traffic.requests == {}
    assert traffic.responses == {}


def test_what_no_kafka_client_asks_takes_few_cells() -> None:
    traffic = TrafficCounters()
    for version in range(14, 1000):
        traffic.cell(ApiKey.PRODUCE, version, version).requests += 1
    for key in range(1000, 2000):
        traffic.cell(key, 0, 0).requests += 1
    assert len(traffic.cells) == 65
    assert traffic.requests[-1, -1, -1] == 986 + 1000 - 64


def test_known_apis_have_their_cells_even_then() -> None:
    traffic = TrafficCounters()
    for key in range(1000, 2000):
        traffic.cell(key, 0, 0)
    traffic.cell(ApiKey.PRODUCE, 13, 13).requests += 1
    assert traffic.requests == {(0, 13, 13): 1}


def test_all_that_a_client_can_ask_takes_a_page_of_bounded_size() -> None:
    """Anybody may ask it before the broker has authenticated anybody."""
    traffic = TrafficCounters()
    for key in range(-1, 200):
        for version in range(-1, 200):
            traffic.cell(key, version, version)
    assert len(traffic.cells) < 420
