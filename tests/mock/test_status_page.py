"""The status and its page on real data: a client that meets leader moves, a browser that looks."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from leader_hints.mock.cluster import BEFORE_HINTS, MockCluster
from leader_hints.observe.status import schema
from tests.harness.browser import dom_of
from tests.harness.proxyproc import ProxyProcess
from tests.harness.waiting import until
from tests.mock.moving import TOPIC, Scene, open_scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A scene in which the first records have gone all the way."""
    with open_scene(tmp_path) as made:
        yield made


def _text(dom: str, id_: str) -> str:
    """The text of an element, as a person reads it; what follows it counts too."""
    _, _, rest = dom.partition(f'id="{id_}"')
    assert rest, id_
    return html.unescape(re.sub(r"<[^>]*>", " ", rest.partition(">")[2]))


def test_the_status_tells_what_happened_as_its_schema_says(scene: Scene) -> None:
    scene.produce_on_the_move()
    status = scene.proxy.status()

    jsonschema.validate(status, schema(), cls=jsonschema.Draft202012Validator)
    routes = status["routes"]
    given = len(scene.proxy.events("hint_given"))
    assert given >= 1
    assert sum(route["hints_given"] for route in routes) == given
    assert sum(route["hold"]["count"] for route in routes if route["hold"]) >= given
    assert {route["upstream"]["node"] for route in routes} <= {None, 1, 2, 3}
    assert all(route["upstream"]["answers"] for route in routes)
    assert all(route["requests"] >= route["responses"] > 0 for route in routes)
    (cluster,) = status["clusters"]
    assert (cluster["topics"], cluster["partitions"]) == (1, 2)
    moved = scene.proxy.events("leader_moved")
    assert cluster["leader_moves"] == len(moved) == len(status["moves"]) >= 1
    assert sum(slot["leader_moves"] for slot in status["slots"]) == len(moved)
    newest = status["moves"][0]
    assert newest["topic"] == TOPIC
    assert newest["epoch"] == moved[-1]["epoch"]


def test_a_browser_shows_what_the_status_says_and_runs_no_text(
    scene: Scene, tmp_path: Path
) -> None:
    scene.produce_on_the_move()
    first = scene.proxy.status()["routes"][0]["name"]
    scene.proxy.switch_hints(first, "off")
    dom = dom_of(f"{scene.proxy.admin}/", tmp_path / "chromium")

    status = scene.proxy.status()
    given = sum(route["hints_given"] for route in status["routes"])
    assert re.search(r"as of \d\d:\d\d:\d\d", _text(dom, "state"))
    assert re.match(rf"\s*Links open .* Hints given\s+{given}\s", _text(dom, "tiles"))
    for route in status["routes"]:
        assert route["name"] in _text(dom, "routes")
        assert f"{route['upstream']['address']}" in _text(dom, "routes")
    assert "Produce\u00a09\u00a0→\u00a010" in _text(dom, "routes")
    pressed = re.findall(r'aria-pressed="true"[^>]*>([a-z]+)<', dom)
    assert pressed == ["off", "on", "on"]
    assert re.search(r'<rect class="move"', dom)
    assert re.search(rf"\ba hint\s+{given}\b", _text(dom, "reasons"))
    assert re.search(r'id="observe"[^>]*hidden', dom)
    assert f"{TOPIC}-{status['moves'][0]['partition']}" in _text(dom, "moves")
    assert "<img" not in dom
    assert status["clusters"][0]["id"] in _text(dom, "clusters")


def test_where_hints_are_observed_a_browser_says_so_and_none_was_given(tmp_path: Path) -> None:
    with open_scene(tmp_path, hints="observe") as scene:
        scene.produce_on_the_move()
        dom = dom_of(f"{scene.proxy.admin}/", tmp_path / "chromium")
        routes = scene.proxy.status()["routes"]

    would_give = sum(route["observed_given"] for route in routes)
    would_miss = sum(sum(route["observed_missed"].values()) for route in routes)
    assert would_give >= 1
    assert not any(route["hints_given"] or route["hints_missed"] for route in routes)
    assert "OBSERVE: nothing is changed for clients." in _text(dom, "observe")
    assert f"{would_give} of {would_give + would_miss} errors" in _text(dom, "observe")
    assert re.match(
        rf"\s*Links open .* Hints that would be given\s+{would_give}\s", _text(dom, "tiles")
    )
    assert "none raised; with hints on: Produce\u00a09\u00a0→\u00a010" in _text(dom, "routes")
    assert "<i></i>hints that would be given<" in dom


def test_a_cluster_without_topics_reads_well(tmp_path: Path) -> None:
    with (
        MockCluster(1, {}, BEFORE_HINTS) as cluster,
        ProxyProcess([(("127.0.0.1", 0), cluster.brokers[1])], tmp_path / "log") as proxy,
    ):
        until(lambda: proxy.status()["clusters"], "the cluster is known", 30.0)
        dom = dom_of(f"{proxy.admin}/", tmp_path / "chromium")

    assert re.search(r"Partitions known\s+0\s+no topics yet", _text(dom, "tiles"))
    assert "node not known yet" in _text(dom, "routes")
    assert "no leader moves and no errors so far" in _text(dom, "timeline")
    assert "up to" not in _text(dom, "timeline").partition("Errors")[0]
    assert re.search(r"Leader moves\s+0\s+Epoch rises, same leader\s+0", _text(dom, "clusters"))
