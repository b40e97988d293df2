"""In which rack each node is."""

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.replicas.racks import Racks

ENDPOINTS = {1: Endpoint("one", 9092, "a"), 2: Endpoint("two", 9092, None)}


def test_metadata_says_it_and_the_configuration_counts_before_it() -> None:
    assert [Racks().of(node, ENDPOINTS) for node in (1, 2, 3)] == ["a", "", ""]
    configured = Racks({1: "b", 3: "c"})
    assert [configured.of(node, ENDPOINTS) for node in (1, 2, 3)] == ["b", "", "c"]


def test_which_racks_there_are_follows_the_brokers() -> None:
    racks = Racks({9: "z"})
    assert racks.has("a", ENDPOINTS)
    assert racks.has("z", ENDPOINTS)
    assert not racks.has("b", ENDPOINTS)
    assert racks.has("b", {4: Endpoint("four", 9092, "b")})
    assert not racks.has("a", {4: Endpoint("four", 9092, "b")})
