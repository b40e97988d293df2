"""The JSON document of the clients and the versions that they ask."""

from leader_hints.apis.keys import ApiKey
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route
from leader_hints.observe.clients import FORMAT, Clients, clients


def test_each_client_of_each_route_is_there_with_what_it_asked() -> None:
    one, other = Route("one", Mode.ON), Route("other", Mode.OFF)
    one.asked.note("librdkafka/1.2.0", "c", ApiKey.FETCH, 11)
    one.asked.note("librdkafka/1.2.0", "c", ApiKey.PRODUCE, 7)
    one.asked.note("librdkafka/1.2.0", "c", ApiKey.PRODUCE, 2)
    other.asked.note("", "", ApiKey.METADATA, 0)

    assert Clients(format=FORMAT, clients=[*clients([one, other])]).model_dump() == {
        "format": 1,
        "clients": [
            {
                "route": "one",
                "software": "librdkafka/1.2.0",
                "client_id": "c",
                "asked": [
                    {"key": 0, "oldest": 2, "newest": 7},
                    {"key": 1, "oldest": 11, "newest": 11},
                ],
            },
            {
                "route": "other",
                "software": "",
                "client_id": "",
                "asked": [{"key": 3, "oldest": 0, "newest": 0}],
            },
        ],
    }
