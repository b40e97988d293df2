"""The status as a document: valid by its schema, whatever the process has seen."""

import dataclasses
import json
from collections import Counter
from functools import partial
from typing import Any

import jsonschema

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.events import (
    ClientSeen,
    Event,
    HintGiven,
    HintMissed,
    Recovered,
    RoutePlan,
    UpstreamGivesHints,
)
from leader_hints.core.mode import Mode
from leader_hints.core.route import Route, RouteConfig
from leader_hints.core.versions.client_capabilities import BUILT_IN, form_names
from leader_hints.core.versions.plan import plan_for
from leader_hints.observe.counts import Counts
from leader_hints.observe.history import History
from leader_hints.observe.status import Status, route_statuses, schema, status
from tests.core.samples import BROKER_3_6
from tests.harness.lines import lines_of, most_lines
from tests.observe.watching import ANSWERED, MOVED, ROSE, cluster, watched

_NOW = 1_800_000_000.0


def _seen(software: str, version: str) -> ClientSeen:
    forms = BUILT_IN.known_forms(ClientSoftware(software, version))
    return ClientSeen(
        route="a",
        link=1,
        client_id="c",
        software=software,
        version=version,
        uses=None if forms is None else form_names(forms),
    )


def _told() -> Status:
    counts, past = Counts(), History(lambda: _NOW)
    heard = cluster("k", 3, 2.5)
    first = Route(
        "a", Mode.ON, broker=BrokerState(plan=plan_for(BROKER_3_6), node=1, view=heard.view)
    )
    first.advertised.crossed = "crossed: node 1 advertises one:1, where node 2 answers"
    cell = first.traffic.cell(0, 10, 9)
    cell.requests = cell.responses = 4
    events: list[Event] = [
        HintGiven(answered=ANSWERED, leader=2, epoch=2),
        HintMissed(answered=ANSWERED, reason="no_leader"),
        MOVED,
        ROSE,
        ROSE,
        Recovered(
            route="a",
            link=7,
            client_id="c",
            software="kgo/v1.18.0",
            api="Produce",
            topic="t",
            partition=3,
            epoch=5,
            recovery_ms=12.5,
            hinted=True,
        ),
        _seen("apache-kafka-java", "3.9.1"),
        _seen("apache-kafka-java", "3.6.2"),
        _seen("kafka-python", "3.0.1"),
        _seen("sarama", "1.43"),
        # Its versions are no versions, so they are counted as one.
        _seen("kgo", "a b"),
    ]
    for event in events:
        counts.take(event)
        past.take(event)
    routes = [first, Route("b", Mode.OFF)]
    addresses = {"a": ("127.0.0.1:1", "one:9092"), "b": ("", "two:9092")}
    seen = watched(routes, counts, heard)
    return status(seen, past, [*route_statuses(seen, past, addresses)], _NOW - 60, _NOW)


def test_it_is_valid_by_its_schema() -> None:
    document = schema()
    jsonschema.Draft202012Validator.check_schema(document)
    for told in (_told(), status(watched(), History(lambda: _NOW), [], _NOW, _NOW)):
        written = json.loads(told.model_dump_json())
        jsonschema.validate(written, document, cls=jsonschema.Draft202012Validator)


def test_every_member_says_what_it_is() -> None:
    document = schema()
    for model in [document, *document["$defs"].values()]:
        assert model["description"]
        for name, member in model["properties"].items():
            assert member.get("description"), name


def test_a_route_is_reported_with_its_broker_and_its_counts() -> None:
    first, second = _told().routes

    assert (first.name, first.listen, first.hints) == ("a", "127.0.0.1:1", "on")
    assert first.upstream.model_dump() == {
        "address": "one:9092",
        "answers": True,
        "error": "",
        "node": 1,
        "cluster": "k",
        "crossed": "crossed: node 1 advertises one:1, where node 2 answers",
        "past": False,
        "native": False,
        "hints_behind": False,
        "raised": {"Produce": (9, 10), "Fetch": (15, 16)},
    }
    assert (first.requests, first.responses, first.errors) == (4, 4, 2)
    assert (first.hints_given, first.hints_missed) == (1, {"no_leader": 1})
    assert first.hold is not None
    assert (first.hold.count, first.hold.p50_ms) == (2, 4.0)
    (recovery,) = first.recovery
    assert (recovery.api, recovery.hinted, recovery.times.most_ms) == ("Produce", True, 12.5)
    assert second.upstream.model_dump() == {
        "address": "two:9092",
        "answers": None,
        "error": "",
        "node": None,
        "cluster": None,
        "crossed": "",
        "past": False,
        "native": None,
        "hints_behind": False,
        "raised": {},
    }
    assert second.hold is None


def test_what_came_of_errors_that_wait_for_metadata_is_reported() -> None:
    counts, past = Counts(), History(lambda: _NOW)
    observed = dataclasses.replace(ANSWERED, observed=True)
    for answered, settling in (
        (ANSWERED, "settled"),
        (ANSWERED, "settled"),
        (ANSWERED, ""),
        (observed, "metadata_behind"),
    ):
        counts.take(HintMissed(answered=answered, reason="replica", settling=settling))
    seen = watched([Route("a", Mode.ON)], counts)
    (route,) = route_statuses(seen, past, {"a": ("", "b:1")})
    assert (route.settled, route.observed_settled) == ({"settled": 2}, {"metadata_behind": 1})


def test_what_clients_can_use_is_reported() -> None:
    found = {(client.software, client.version): client.uses for client in _told().clients}

    assert found == {
        ("apache-kafka-java", "3.6.2"): [],
        ("apache-kafka-java", "3.9.1"): ["fetch", "fetch_without_endpoints", "produce"],
        ("kafka-python", "3.0.1"): ["fetch_without_endpoints"],
        ("kgo", "other"): None,
        ("sarama", "1.43"): None,
    }


def test_the_past_is_reported() -> None:
    told = _told()

    assert [(slot.leader_moves, slot.hints_given, slot.hints_missed) for slot in told.slots] == [
        (1, 1, 1)
    ]
    (move,) = told.moves
    assert (move.topic, move.partition, move.leader_before, move.leader) == ("t", 0, 1, 2)
    (known,) = told.clusters
    assert (known.id, known.partitions, known.age_seconds) == ("k", 3, 2.5)
    assert (known.leader_moves, known.epoch_rises) == (1, 2)


def test_counts_are_added_up_once_for_all_routes() -> None:
    """Else each request for the page would take a time that grows with the square of the routes."""
    read = 0

    class Counted(Counter[Any]):
        """Counts how often all of it is read."""

        def items(self) -> Any:
            nonlocal read
            read += 1
            return super().items()

    counts = Counts()
    counts.errors, counts.given, counts.missed = Counted(), Counted(), Counted()
    routes = [Route(f"r{number}", Mode.ON) for number in range(20)]
    for route in routes:
        answered = dataclasses.replace(ANSWERED, route=route.name)
        counts.take(HintGiven(answered=answered, leader=2, epoch=2))
        counts.take(HintMissed(answered=answered, reason="no_leader"))
    places = {route.name: ("", "b:1") for route in routes}
    told = route_statuses(watched(routes, counts), History(lambda: _NOW), places)
    assert {(r.errors, r.hints_given, *r.hints_missed.items()) for r in told} == {
        (2, 1, ("no_leader", 1))
    }
    assert read == 3


def test_the_routes_are_looked_at_in_steps() -> None:
    """All of them took 250 ms with 300 routes, in which no link was served."""
    most = []
    for count in (2, 20):
        past = History(lambda: _NOW)
        routes = [Route(f"r{number}", Mode.ON) for number in range(count)]
        for route in routes:
            answered = dataclasses.replace(ANSWERED, route=route.name)
            for _ in range(1000):
                past.take(HintGiven(answered=answered, leader=2, epoch=2))
        places = {route.name: ("", "b:1") for route in routes}
        seen = watched(routes, Counts())
        statuses = [*route_statuses(seen, past, places)]
        most.append(most_lines(route_statuses(seen, past, places)))
        most[-1] = max(most[-1], lines_of(partial(status, seen, past, statuses, _NOW, _NOW)))
    assert most[0] == most[1] < 2500


def test_a_route_that_looks_at_racks_says_what_was_read_between_them() -> None:
    route = Route("a", Mode.OBSERVE, RouteConfig(closest_replica=Mode.ON))
    route.rack_traffic.read.update({("x", "y"): 30, ("x", "x"): 70})
    route.rack_traffic.avoidable["x", "y"] = 20
    route.rack_traffic.outcomes["named"] = 2
    seen = watched([route])
    addresses = {"a": ("l:1", "u:1")}
    (told,) = route_statuses(seen, History(lambda: _NOW), addresses)

    assert told.closest_replica is not None
    assert told.closest_replica.model_dump() == {
        "mode": "observe",
        "racks": [
            {"broker_rack": "x", "client_rack": "x", "bytes": 70, "avoidable": 0},
            {"broker_rack": "x", "client_rack": "y", "bytes": 30, "avoidable": 20},
        ],
        "partitions": {"named": 2},
    }
    assert all(one.closest_replica is None for one in _told().routes)


def test_a_proxy_behind_is_reported_until_the_route_leads_to_a_broker() -> None:
    counts, past = Counts(), History(lambda: _NOW)
    routes = [Route("a", Mode.ON), Route("b", Mode.ON)]
    seen = watched(routes, counts, cluster("k", 3, 2.5))

    def behind() -> list[bool]:
        found = route_statuses(seen, past, {"a": ("", ""), "b": ("", "")})
        return [one.upstream.hints_behind for one in found]

    assert behind() == [False, False]
    counts.take(RoutePlan(route="b", native=True, raised={}))
    counts.take(UpstreamGivesHints(route="b"))
    assert behind() == [False, True]
    counts.take(RoutePlan(route="b", native=True, raised={}))
    assert behind() == [False, False]
