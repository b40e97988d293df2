"""Of so many exchanges of Produce and Fetch one is timed, and nothing else about them changes."""

from leader_hints.apis.keys import ApiKey
from leader_hints.core.events import LatencySampled
from leader_hints.core.link.latency_sampler import LatencySampler
from leader_hints.core.route import RouteConfig
from tests.core.conversation import conversation, decide
from tests.core.links import Driven, route
from tests.core.samples import (
    answer,
    fetch_answer,
    fetch_request,
    produce_answer,
    produce_request,
    request,
)


class _Clock:
    """``asked``: how often somebody looked at it."""

    def __init__(self) -> None:
        self.now = 50.0
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self.now


def _driven(every: int, clock: _Clock) -> Driven:
    sampled = route()
    sampled.config = RouteConfig(latencies=LatencySampler(every, clock))
    return Driven(sampled, decide=decide)


def _samples(driven: Driven) -> list[LatencySampled]:
    return [event for event in driven.link.state.events if isinstance(event, LatencySampled)]


def _produce(driven: Driven, clock: _Clock, number: int, *, seconds: float = 0.001) -> None:
    driven.up(produce_request(9, number))
    clock.now += seconds
    driven.down(produce_answer(9, number, {0: 0}))


def test_a_sample_says_whose_it_is_and_how_long_it_took() -> None:
    clock = _Clock()
    driven = _driven(1, clock)
    driven.up(
        request(
            ApiKey.API_VERSIONS, 3, 1, client_software_name="soft", client_software_version="1.2"
        )
    )
    driven.down(answer(ApiKey.API_VERSIONS, 3, 1))
    _produce(driven, clock, 2, seconds=0.25)

    assert _samples(driven) == [
        LatencySampled(
            route="route",
            link=1,
            client_id="c",
            software="soft/1.2",
            api="Produce",
            version=9,
            latency_ms=250.0,
        )
    ]


def test_the_version_is_the_one_that_the_client_asked() -> None:
    clock = _Clock()
    driven = _driven(1, clock)
    driven.up(fetch_request(12, 1, {("t", 0): 3}))
    clock.now += 0.5
    driven.down(fetch_answer(12, 1, [("t", 0, 0, b"records")]))

    (sample,) = _samples(driven)
    assert (sample.api, sample.version, sample.latency_ms) == ("Fetch", 12, 500.0)


def test_one_of_so_many_is_timed_and_the_clock_is_asked_for_no_other() -> None:
    clock = _Clock()
    driven = _driven(10, clock)
    for number in range(100):
        _produce(driven, clock, number)

    assert len(_samples(driven)) == 10
    assert clock.asked == 20


def test_other_apis_count_for_nothing() -> None:
    clock = _Clock()
    driven = _driven(1, clock)
    driven.up(request(ApiKey.METADATA, 12, 1))
    driven.down(answer(ApiKey.METADATA, 12, 1))

    assert not _samples(driven)
    assert not clock.asked


def test_a_link_has_one_timed_at_a_time() -> None:
    clock = _Clock()
    driven = _driven(1, clock)
    for number in range(5):
        driven.up(produce_request(9, number))
        clock.now += 1
    for number in range(5):
        driven.down(produce_answer(9, number, {0: 0}))

    assert [sample.latency_ms for sample in _samples(driven)] == [5000.0]


def test_no_byte_differs() -> None:
    clock = _Clock()
    plain, sampled = Driven(route(), decide=decide), _driven(1, clock)
    for driven in (plain, sampled):
        for exchanged in conversation():
            driven.up(exchanged.asked)
            driven.down(exchanged.answered)

    assert _samples(sampled)
    assert sampled.to_broker == plain.to_broker
    assert sampled.to_client == plain.to_client
