"""The JSON document of the clients and the versions that they ask."""

import json

from leader_hints.apis.keys import ApiKey
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.core.versions.asked_versions import Origin
from leader_hints.observe.clients import document
from tests.harness.lines import most_lines
from tests.observe.watching import many_routes


def test_each_client_of_each_route_is_there_with_what_it_asked() -> None:
    one, other = Route("one", Mode.ON), Route("other", Mode.OFF)
    one.asked.note("librdkafka/1.2.0", "c", ApiKey.FETCH, 11, Origin("192.0.2.1", "CN=c"))
    one.asked.note("librdkafka/1.2.0", "c", ApiKey.PRODUCE, 7)
    one.asked.note("librdkafka/1.2.0", "c", ApiKey.PRODUCE, 2)
    one.asked.begin_day("2026-01-31")
    other.asked.note("", "", ApiKey.METADATA, 0)

    assert json.loads(b"".join(document([one, other]))) == {
        "format": 1,
        "unread": [],
        "clients": [
            {
                "route": "one",
                "software": "librdkafka/1.2.0",
                "client_id": "c",
                "asked": [
                    {"key": 0, "oldest": 2, "newest": 7},
                    {"key": 1, "oldest": 11, "newest": 11},
                ],
                "last_day": "2026-01-31",
                "addresses": ["192.0.2.1"],
                "principals": ["CN=c"],
            },
            {
                "route": "other",
                "software": "",
                "client_id": "",
                "asked": [{"key": 3, "oldest": 0, "newest": 0}],
                "last_day": "",
                "addresses": [],
                "principals": [],
            },
        ],
    }


def test_it_is_made_piece_by_piece() -> None:
    """With 20 routes of 500 clients it may have 26 MB, and links wait for each step of it."""
    route = Route("r", Mode.ON)
    for number in range(500):
        route.asked.note("librdkafka/1.2.0", f"client-{number}", ApiKey.FETCH, 11)

    pieces = [*document([route])]
    assert max(piece.count(b"client-") for piece in pieces) == 1
    assert len(json.loads(b"".join(pieces))["clients"]) == 500


def test_routes_with_many_cells_are_looked_through_in_a_short_step() -> None:
    """With 1000 routes of which each had 344 cells it took 76 ms."""
    assert most_lines(document(many_routes())) < 10_000


def test_without_clients_it_has_none() -> None:
    assert json.loads(b"".join(document([]))) == {"format": 1, "unread": [], "clients": []}


def test_links_on_which_nothing_is_read_are_counted() -> None:
    route = Route("r", Mode.ON)
    route.traffic.cell(ApiKey.SASL_HANDSHAKE, 0, 0).responses += 2
    route.traffic.cell(ApiKey.SASL_HANDSHAKE, 1, 1).responses += 5

    made = json.loads(b"".join(document([route, Route("other", Mode.ON)])))
    assert made["unread"] == [{"route": "r", "links": 2}]
