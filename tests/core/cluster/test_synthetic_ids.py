"""Ids that clients may hold for as long as they run: they must never change."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from leader_hints.core.cluster.synthetic_ids import synthetic_id

_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
#: Written down once. Where this fails, it is the code that is to be changed.
_GOLDEN = {
    (_CLUSTER, "orders"): "d6ad9d6e-c152-8cf8-95a6-9293f39d5ab6",
    (_CLUSTER, "__consumer_offsets"): "5716cbd6-8038-8abf-ad7a-09fffe8a4a8e",
    (_CLUSTER, "größe"): "59ccc77a-26a3-87f0-ac86-ddf250277fae",
    ("", ""): "638bf814-8f61-84f0-b227-70c3f9a58e21",
}


def test_they_are_the_same_for_ever() -> None:
    made = {asked: str(UUID(bytes=synthetic_id(*asked))) for asked in _GOLDEN}
    assert made == _GOLDEN


@given(st.text(max_size=30), st.text(max_size=300))
def test_none_can_be_an_id_of_kafka(cluster_id: str, name: str) -> None:
    """Kafka's own are of version 4; 0 and 1 are reserved and have no version."""
    made = UUID(bytes=synthetic_id(cluster_id, name))
    assert made.version == 8
    assert made.variant == "specified in RFC 4122"
    assert made.int > 1


def test_topics_and_clusters_are_distinguished() -> None:
    asked = [("a", "b"), ("a", "c"), ("ab", ""), ("", "ab"), ("b", "a")]
    assert len({synthetic_id(*one) for one in asked}) == len(asked)
