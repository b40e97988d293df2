"""Hints switched at run time under a client that keeps its connections and its versions."""

from pathlib import Path

import pytest

from tests.harness.proxyproc import Hints
from tests.mock.moving import Scene, open_scene


def _switch(scene: Scene, hints: Hints) -> None:
    for route in scene.proxy.status()["routes"]:
        scene.proxy.switch_hints(route["name"], hints)


def _raised(scene: Scene) -> float:
    """How many Produce requests came in the version that the cluster lacks."""
    return scene.proxy.metric("leader_hints_requests_total", api="Produce", asked="10", sent="9")


def _seen(scene: Scene) -> float:
    """How many errors hints were thought of for."""
    return scene.proxy.metric("leader_hints_errors_seen_total")


@pytest.mark.parametrize("hints", ["off", "observe"])
def test_no_hint_is_given_while_it_is_off_and_every_record_arrives(
    tmp_path: Path, hints: Hints
) -> None:
    with open_scene(tmp_path) as scene:
        scene.produce_on_the_move()
        given = scene.proxy.metric("leader_hints_hints_given_total", mode="on")
        assert given > 0

        _switch(scene, hints)
        links, raised = scene.proxy.metric("leader_hints_links_total"), _raised(scene)
        seen = _seen(scene)
        scene.produce_on_the_move()
        assert scene.proxy.metric("leader_hints_hints_given_total", mode="on") == given
        # On the links that there were, in the versions that were agreed.
        assert scene.proxy.metric("leader_hints_links_total") == links
        assert _raised(scene) > raised
        assert (_seen(scene) > seen) is (hints == "observe")

        _switch(scene, "on")
        scene.produce_on_the_move()
        assert scene.proxy.metric("leader_hints_hints_given_total", mode="on") > given


def test_hints_come_on_for_new_links_of_a_process_that_began_without(tmp_path: Path) -> None:
    with open_scene(tmp_path, "off") as scene:
        assert _raised(scene) == 0
        _switch(scene, "on")
        with scene.another_producer():
            scene.produce_on_the_move()
        assert _raised(scene) > 0
        assert scene.proxy.metric("leader_hints_hints_given_total", mode="on") > 0
