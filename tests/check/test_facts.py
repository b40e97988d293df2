"""Facts: what follows from them."""

import pytest

from leader_hints.check.client_support import PLAIN
from leader_hints.check.facts import EndpointKind, ProbeResult, TopicFacts
from tests.check.samples import MAXIMA, proxy


@pytest.mark.parametrize(
    ("visible", "without_ids", "has"), [(3, 0, True), (3, 1, False), (3, 3, False), (0, 0, False)]
)
def test_a_cluster_has_topic_ids_if_all_its_topics_do(
    visible: int, without_ids: int, has: bool
) -> None:
    assert TopicFacts(visible=visible, without_ids=without_ids).have_ids is has


def test_what_a_broker_offers_is_what_it_offers_to_clients_without_hints() -> None:
    assert proxy().maxima == MAXIMA
    assert proxy().offers[PLAIN.name] == MAXIMA
    assert ProbeResult(kind=EndpointKind.UNREACHABLE).maxima == {}
