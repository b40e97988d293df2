"""Links on which topic ids are synthetic."""

from collections.abc import Mapping
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from leader_hints.apis.keys import ApiKey
from leader_hints.apis.metadata import ZERO_ID, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.synthetic_ids import synthetic_id
from leader_hints.core.link.budget import Budget
from leader_hints.core.mode import Mode
from tests.apis.messages import (
    Entity,
    element,
    plain,
    read_request_frame,
    read_response_frame,
    request_type,
    response_type,
)
from tests.core.brokers import BROKERS, CLUSTER, route_before
from tests.core.conversation import NODES, ONE, decide
from tests.core.links import Driven
from tests.core.samples import (
    FENCED,
    answer,
    fetch_answer,
    fetch_request,
    request,
    topic_id,
    versions_answer,
)

P, F, M = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA
SYNTHETIC = synthetic_id(CLUSTER, "one")
_RELEASES = pytest.mark.parametrize("release", ["2.4", "2.6", "2.8", "3.6"])


def _hello(driven: Driven, release: str, name: str = "librdkafka", version: str = "2.14.0") -> None:
    """Exchange ApiVersions, and forget what came out."""
    driven.up(request(18, 3, 1, client_software_name=name, client_software_version=version))
    driven.down(versions_answer(3, 1, BROKERS[release]))
    driven.to_broker.clear()
    driven.to_client.clear()


def _link(release: str) -> Driven:
    driven = Driven(route_before(release + "+"), decide=decide, budget=Budget(1 << 31, 1 << 40))
    _hello(driven, release)
    return driven


def _answered(version: int, *topics: tuple[int, str, bytes]) -> bytes:
    """A Metadata response of (error, name, id)."""
    kind = element(response_type(M, version), "topics")
    made = []
    for error, name, known in topics:
        values: dict[str, object] = {"error_code": ErrorCode(error), "name": name}
        if version >= 10:
            values["topic_id"] = UUID(bytes=known) if known != ZERO_ID else None
        made.append(plain(kind, **values))
    broker = plain(element(response_type(M, version), "brokers"), node_id=1, host="one", port=9092)
    return answer(M, version, 5, brokers=(broker,), cluster_id=CLUSTER, topics=tuple(made))


def _asked(driven: Driven, names: list[str], version: int = 12) -> Entity:
    """Ask for topics by name; return what the broker got."""
    kind = element(request_type(M, version), "topics")
    topics = tuple(plain(kind, name=name, topic_id=None) for name in names)
    driven.up(request(M, version, 5, topics=topics))
    sent = driven.to_broker[7]
    _, read = read_request_frame(request_type(M, sent), bytes(driven.to_broker))
    return read


def _ids(driven: Driven, version: int = 12) -> dict[str, bytes | None]:
    read = read_response_frame(response_type(M, version), bytes(driven.to_client))
    return {t.name: t.topic_id.bytes if t.topic_id else None for t in read.topics}


@_RELEASES
@pytest.mark.parametrize("version", [10, 11, 12])
def test_topics_get_ids_whatever_the_broker_says(release: str, version: int) -> None:
    """What a client was given once it must be given for ever, also when real ids appear."""
    driven = _link(release)
    sent = min(version, BROKERS[release][M])
    assert _asked(driven, ["one", "no-id", "absent"], version).__version__ == sent
    driven.down(_answered(sent, (0, "one", ONE), (0, "no-id", ZERO_ID), (3, "absent", ZERO_ID)))
    assert _ids(driven, version) == {
        "one": SYNTHETIC,
        "no-id": synthetic_id(CLUSTER, "no-id"),
        "absent": None,
    }
    view = driven.link.state.route.broker.view
    assert view is not None
    assert view.topics.name(synthetic_id(CLUSTER, "no-id")) == "no-id"
    ((snooped, _),) = driven.link.state.snooped
    assert snooped == sent


@_RELEASES
def test_fetches_by_synthetic_and_by_real_ids_go_by_name(release: str) -> None:
    sent = {"2.4": 10, "2.6": 11}.get(release, 12)
    # No topic of a cluster below 2.8 has a real one.
    for known in [SYNTHETIC] if sent < 12 else [SYNTHETIC, ONE]:
        driven = _link(release)
        driven.up(fetch_request(16, 5, {(known, 1): 5}, session=(0, 0)))
        assert driven.to_broker == fetch_request(sent, 5, {("one", 1): 5}, session=(0, 0))
        driven.down(fetch_answer(sent, 5, [("one", 1, FENCED, b"")], session_id=4))
        hints: dict[str, Mapping[int, object]] = {"leaders": {1: (2, 7)}, "nodes": {2: NODES[2]}}
        assert driven.to_client == fetch_answer(
            16,
            5,
            [(known, 1, FENCED, b"")],
            session_id=4,
            **hints,  # type: ignore[arg-type]
        )


def test_a_client_that_falls_back_to_names_is_served() -> None:
    driven = _link("2.6")
    driven.up(fetch_request(12, 5, {("one", 0): 5}))
    assert driven.to_broker == fetch_request(11, 5, {("one", 0): 5})
    driven.down(fetch_answer(11, 5, [("one", 0, 0, b"r")]))
    assert driven.to_client == fetch_answer(12, 5, [("one", 0, 0, b"r")])


@pytest.mark.parametrize("name", [None, "", "another"])
def test_what_is_asked_by_id_is_answered_by_that_id(name: str | None) -> None:
    """Java sends an empty name beside an id; brokers do not look at it."""
    driven = _link("3.6")
    topic = element(request_type(M, 12), "topics")
    unknown = topic_id(77)
    asked = [plain(topic, topic_id=UUID(bytes=known), name=name) for known in (ONE, unknown)]
    driven.up(request(M, 12, 5, topics=tuple(asked)))
    _, read = read_request_frame(request_type(M, 12), bytes(driven.to_broker))
    assert [(t.name, t.topic_id) for t in read.topics] == [("one", None)]
    # Nor do they create a topic that is asked for by id.
    assert read.allow_auto_topic_creation is False
    driven.down(_answered(12, (0, "one", ONE)))
    assert driven.link.state.topic_ids.lacking == [unknown]
    got = read_response_frame(response_type(M, 12), bytes(driven.to_client))
    assert [(t.error_code.value, t.topic_id.bytes) for t in got.topics] == [
        (0, ONE),
        (100, unknown),
    ]


@pytest.mark.parametrize(
    ("error", "got"), [(3, 100), (29, 29), (17, 17)], ids=["deleted", "not authorized", "other"]
)
def test_an_error_of_a_topic_that_is_asked_for_by_id_has_that_id_and_no_name(
    error: int, got: int
) -> None:
    """A client that may not describe a topic is not to learn of its name, and Java takes an answer
    without its id for no answer at all."""
    driven = _link("3.6")
    topic = plain(element(request_type(M, 12), "topics"), topic_id=UUID(bytes=ONE), name=None)
    driven.up(request(M, 12, 5, topics=(topic,)))
    driven.down(_answered(12, (error, "one", ONE if error == 17 else ZERO_ID)))
    (read,) = read_response_frame(response_type(M, 12), bytes(driven.to_client)).topics
    assert (read.error_code.value, read.name, read.topic_id.bytes) == (got, None, ONE)


def test_no_id_is_looked_for_upon_a_refusal_that_a_broker_gives_to_anybody() -> None:
    """As it does once to a client that is authenticating (SaslServerAuthenticator)."""
    driven = _link("3.6")
    topic = plain(element(request_type(M, 12), "topics"), topic_id=UUID(bytes=ONE[::-1]), name=None)
    driven.up(request(M, 12, 5, topics=(topic,)))
    driven.down(answer(M, 12, 5, cluster_id=None))
    assert driven.link.state.topic_ids.lacking == []


def test_ids_are_synthetic_before_anything_is_known_of_the_cluster() -> None:
    driven = _link("2.6")
    driven.link.state.route.broker.view = None
    _asked(driven, ["one"])
    driven.down(_answered(9, (0, "one", ZERO_ID)))
    assert _ids(driven) == {"one": SYNTHETIC}


def test_a_view_of_another_cluster_learns_no_names_of_this_one() -> None:
    driven = _link("2.6")
    driven.link.state.route.broker.view = other = LeaderView("other")
    _asked(driven, ["one"])
    driven.down(_answered(9, (0, "one", ZERO_ID)))
    assert _ids(driven) == {"one": SYNTHETIC}
    assert other.topics.name(SYNTHETIC) is None


def test_what_a_replica_asks_by_id_passes() -> None:
    driven = Driven(route_before("3.6+"))
    asked = fetch_request(15, 5, {(ONE, 0): 5}, replica_id=2)
    answered = fetch_answer(15, 5, [(ONE, 0, FENCED, b"")])
    driven.up(asked)
    driven.down(answered)
    assert driven.to_broker == asked
    assert driven.to_client == answered


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_fetch_without_an_id_ends_the_link(forgotten: bool) -> None:
    """So librdkafka 2.5.0 to 2.5.3 ask for what another broker told them without ids."""
    driven = _link("2.6")
    if forgotten:
        driven.up(fetch_request(16, 5, {}, session=(4, 1), forgotten=[(ZERO_ID, 0)]))
    else:
        driven.up(fetch_request(16, 5, {(SYNTHETIC, 0): 5, (ZERO_ID, 0): 5}))
    assert driven.link.requests.fault == "Fetch v16 for a topic without an id"
    assert driven.link.state.topic_ids.without_ids
    assert not driven.to_broker


def test_metadata_that_cannot_be_read_is_forwarded_unchanged() -> None:
    driven = _link("2.6")
    asked = request(M, 12, 5, topics=None)
    broken = asked[:-4] + b"\x7f" + asked[-3:]
    driven.up(broken)
    assert driven.to_broker == broken
    assert driven.link.state.traffic.raw["not understood"] == 1


def test_metadata_that_cannot_be_converted_ends_the_link() -> None:
    driven = _link("2.6")
    _asked(driven, ["one"])
    driven.down(b"\0\0\0\x0a\0\0\0\x05" + bytes([255] * 6))
    assert driven.link.responses.fault is not None
    assert driven.link.responses.fault.startswith("Metadata v9 response")
    assert not driven.to_client


@pytest.mark.parametrize("cut", [9, 15, 30, 60])
def test_large_metadata_in_pieces(cut: int) -> None:
    driven = Driven(route_before("2.6+"), buffer_size=100)
    _hello(driven, "2.6")
    names = [f"topic-{n}" for n in range(300)]
    kind = element(request_type(M, 12), "topics")
    topics = tuple(plain(kind, name=name, topic_id=None) for name in names)
    driven.up(request(M, 12, 5, topics=topics), range(cut, 20_000, cut))
    driven.down(_answered(9, *((0, name, ZERO_ID) for name in names)), range(cut, 20_000, cut))
    assert _ids(driven) == {name: synthetic_id(CLUSTER, name) for name in names}
    driven.link.close()
    assert driven.budget.used == 0


# Who is offered what.

_ALL = {P: 10, F: 16, M: 10}


@pytest.mark.parametrize(
    ("software", "everywhere", "offered"),
    [
        (("librdkafka", "2.14.0"), True, _ALL),
        (("apache-kafka-java", "3.9.1"), True, _ALL),
        (("apache-kafka-java", "3.9.1"), False, {P: 10, F: 12}),
        (("librdkafka", "2.14.0"), False, {P: 10}),
        # Without a use for Fetch 16.
        (("kafka-python", "3.0.0"), True, {F: 12}),
        (("librdkafka", "2.3.0"), True, {}),
        # Proxies ask whether this one synthesizes them.
        (("leader-hints", "1"), False, _ALL),
    ],
)
def test_who_is_offered_synthetic_ids(
    software: tuple[str, str], everywhere: bool, offered: Mapping[int, int]
) -> None:
    route = route_before("2.6+")
    route.broker.ids_everywhere = everywhere
    driven = Driven(route)
    name, version = software
    driven.up(request(18, 3, 1, client_software_name=name, client_software_version=version))
    driven.down(versions_answer(3, 1, BROKERS["2.6"]))
    assert driven.to_client == versions_answer(3, 1, {**BROKERS["2.6"], **offered})


@pytest.mark.parametrize("release", ["2.6+", "3.6+"])
def test_other_proxies_get_none_where_topics_are_hidden(release: str) -> None:
    """They would offer ids to their clients, which this one's never get."""
    route = route_before(release)
    route.broker.ids_everywhere = False
    view = route.broker.view
    assert view is not None
    before, then = Driven(route), Driven(route)
    _hello(before, release.rstrip("+"), "leader-hints")
    assert not before.link.state.topic_ids.outdated
    view.hidden.take(TopicMetadata(29, "hidden", ZERO_ID, ()), route.name)
    # What it has been told is over, so it is to ask again.
    assert before.link.state.topic_ids.outdated
    _hello(then, release.rstrip("+"), "leader-hints")
    assert [one.link.state.policies.plan.synthetic for one in (before, then)] == [True, False]
    assert not then.link.state.topic_ids.outdated
    view.hidden.take(TopicMetadata(3, "hidden", ZERO_ID, ()), route.name)
    assert then.link.state.topic_ids.outdated


def test_a_link_that_was_offered_them_keeps_them() -> None:
    driven = _link("2.6")
    driven.link.state.route.broker.ids_everywhere = False
    _asked(driven, ["one"])
    driven.down(_answered(9, (0, "one", ZERO_ID)))
    assert _ids(driven) == {"one": SYNTHETIC}


def _later(release: str, name: str = "librdkafka", mode: Mode = Mode.ON) -> Driven:
    """Return a link that agreed on versions while some broker gave no synthetic ids."""
    route = route_before(release, mode)
    route.broker.ids_everywhere = False
    driven = Driven(route, decide=decide)
    _hello(driven, release.rstrip("+"), name)
    assert not driven.link.state.topic_ids.outdated
    route.broker.ids_everywhere = True
    return driven


@pytest.mark.parametrize("release", ["2.6+", "3.6+"])
def test_a_link_of_before_they_were_offered_is_outdated_then(release: str) -> None:
    """Else its Metadata takes ids away that others give, and its broker gets ids of theirs."""
    driven = _later(release)
    assert driven.link.state.topic_ids.outdated
    again = Driven(driven.link.state.route, decide=decide)
    _hello(again, release.rstrip("+"))
    assert not again.link.state.topic_ids.outdated


def test_so_is_one_without_api_versions() -> None:
    route = route_before("2.6+")
    route.broker.ids_everywhere = False
    links = [Driven(route) for _ in range(2)]
    route.broker.ids_everywhere = True
    assert [driven.link.state.topic_ids.outdated for driven in links] == [True, True]
    # One that has not agreed yet is offered them.
    _hello(links[0], "2.6")
    assert [driven.link.state.topic_ids.outdated for driven in links] == [False, True]


@pytest.mark.parametrize(
    ("release", "name", "mode"),
    [
        ("2.6+", "sarama", Mode.ON),
        ("2.6+", "leader-hints", Mode.ON),
        ("2.6", "librdkafka", Mode.ON),
        ("2.6+", "librdkafka", Mode.OBSERVE),
        ("2.6+", "librdkafka", Mode.OFF),
    ],
)
def test_a_link_that_can_have_none_goes_on(release: str, name: str, mode: Mode) -> None:
    assert not _later(release, name, mode).link.state.topic_ids.outdated


@pytest.mark.parametrize("everywhere", [True, False])
def test_a_link_without_api_versions_does_as_a_new_one(everywhere: bool) -> None:
    route = route_before("2.8+")
    route.broker.ids_everywhere = everywhere
    driven = Driven(route)
    _asked(driven, ["one"], 11)
    driven.down(_answered(11, (0, "one", ONE)))
    assert _ids(driven, 11) == {"one": SYNTHETIC if everywhere else ONE}


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.OFF])
def test_without_hints_nothing_is_synthetic(mode: Mode) -> None:
    driven = Driven(route_before("2.8+", mode))
    hello = request(18, 3, 1, client_software_name="leader-hints", client_software_version="1")
    driven.up(hello)
    versions = versions_answer(3, 1, BROKERS["2.8"])
    driven.down(versions)
    asked, answered = request(M, 11, 5, topics=None), _answered(11, (0, "one", ONE))
    driven.up(asked)
    driven.down(answered)
    assert driven.to_broker == hello + asked
    assert driven.to_client == versions + answered
