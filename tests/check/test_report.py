"""The report of `leader-hints check`: its schema and its lines; tests/cli has the command."""

import json
from pathlib import Path

import jsonschema
import pytest

from leader_hints.check.facts import MachineFacts, RouteFacts
from leader_hints.check.report import CheckReport, lines, make_report, to_json
from leader_hints.check.rules import judge
from leader_hints.core.mode import Mode
from tests.check.samples import BOUNDS, MACHINE, RIGHT, changed

SCHEMA = Path(__file__).parents[2] / "docs" / "check.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def report(*routes: RouteFacts, machine: MachineFacts = MACHINE) -> CheckReport:
    return make_report(routes, judge(routes, machine, BOUNDS))


def test_the_published_schema_is_that_of_the_report() -> None:
    published = json.loads(SCHEMA.read_text(encoding="utf-8"))

    jsonschema.Draft202012Validator.check_schema(published)
    assert published == {"$schema": _DIALECT, **CheckReport.model_json_schema()}


def test_what_is_settled_in_words() -> None:
    (all_others,) = (
        line for line in lines(report(changed(settle=True))) if "all other clients" in line
    )
    assert all_others == (
        "  all other clients         9 settled   15 settled  "
        "no byte changed; errors wait for settled Metadata"
    )


@pytest.mark.parametrize("route", [RIGHT, changed(silence="closed"), changed(nodes=frozenset())])
def test_a_report_is_valid_by_the_schema(route: RouteFacts) -> None:
    written = json.loads(to_json(report(route)))

    jsonschema.validate(written, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert written["version"] == 1


def test_a_right_route_in_words() -> None:
    assert list(lines(report(RIGHT))) == [
        "route 0.0.0.0:19092 = 127.0.0.1:9092",
        "  fine",
        "    versions_raised: node 1 of cluster k answers; it takes Produce 9 and Fetch 15",
        "    listen_free: 0.0.0.0:19092 is free to listen on",
        "    advertised_right: node 1 advertises b1:19092, which leads to this route",
        "",
        "what clients get            Produce     Fetch",
        "  Java 3.7 or newer         10 hints    16 hints",
        "  librdkafka 2.5 or newer   10 hints    16 hints    keeps its own back-off on Produce",
        "  franz-go 1.17 or newer    10 hints    16 hints    NOT_LEADER_OR_FOLLOWER only",
        "  kafka-python 3.0 or newer 9           15 hints",
        "  all other clients         9           15          served as without the proxy",
        "",
        "this machine",
        "  fine",
        "    descriptors_enough: 65536 file descriptors are allowed, enough for 32640 clients; the "
        "brokers have 10 connections now",
        "    clock_synchronised: this machine's clock is synchronised, to within 0 ms",
        "",
        "No problems found.",
    ]


def test_what_clients_get_stands_once_for_all_routes_that_are_alike() -> None:
    two = changed(name="two", listen="0.0.0.0:19093", brokers=())
    older = changed(name="old", listen="0.0.0.0:19094", mode=Mode.OBSERVE)
    unknown = changed(name="none", listen="0.0.0.0:19095", silence="closed")

    alike = [line for line in lines(report(RIGHT, two)) if line.startswith("what clients get")]
    assert alike == ["what clients get            Produce     Fetch"]
    others = [
        line
        for line in lines(report(RIGHT, older, two, unknown))
        if line.startswith(("what clients get", "  all other clients"))
    ]
    assert others == [
        "what clients get on 0.0.0.0:19092, 0.0.0.0:19093",
        "  all other clients         9           15          served as without the proxy",
        "what clients get on 0.0.0.0:19094",
        "  all other clients         9           15          served as without the proxy",
    ]


def test_a_wrong_route_in_words() -> None:
    shown = list(lines(report(changed(silence="closed by\x1b[2J\nits broker"))))

    start = shown.index("  problems")
    assert shown[start + 1] == (
        "    upstream_metadata: upstream 127.0.0.1:9092 answers ApiVersions but not Metadata: "
        r"closed by\x1b[2J\nits broker"
    )
    assert shown[start + 2].startswith("      -> See the broker's log.")
    assert shown[-1] == "Problems found: 1"


def test_json_holds_no_character_that_a_terminal_would_follow() -> None:
    text = to_json(report(changed(silence="\x1b[2J \x7f \u202e")))

    assert all(char == "\n" or " " <= char <= "~" for char in text)
    assert "\x1b[2J \x7f \u202e" in json.loads(text)["routes"][0]["findings"][0]["text"]
