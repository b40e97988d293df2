"""Replicas that are named in responses, on whole links, in front of brokers of every kind.

KIP-392: "Fetch from a follower" - the field stands in every response of v11 and above.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.keys import ApiKey
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.metadata import ZERO_ID, Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.events import ConsumerRead, ReplicaNamed
from leader_hints.core.link.budget import Budget
from leader_hints.core.mode import Mode
from leader_hints.core.replicas.bytes_read import EVERY
from leader_hints.core.replicas.closest_replica import Outcome
from leader_hints.core.replicas.followed import Followed
from leader_hints.core.replicas.named_replicas import PAUSE
from leader_hints.core.replicas.racks import Racks
from tests.apis.messages import (
    read_request_frame,
    read_response_frame,
    request_type,
    response_type,
)
from tests.core.brokers import BROKERS, CLUSTER, NAMES, names_before, route_before
from tests.core.conversation import decide
from tests.core.links import Driven
from tests.core.samples import (
    FENCED,
    fetch_answer,
    fetch_request,
    metadata_answer,
    request,
    topic_id,
    versions_answer,
)

ENDPOINTS = {
    node: Endpoint(f"n{node}", 9092, rack) for node, rack in ((1, "a"), (2, "b"), (3, "c"))
}
OWN, CLOSE = 1, 2
#: Broker, version asked, version sent: every cell in which a response has the field.
CELLS = [
    ("2.4", 12, 11),
    ("2.4", 11, 11),
    ("2.4+", 16, 11),
    ("2.6", 12, 11),
    ("2.6+", 16, 11),
    ("2.8", 16, 12),
    ("2.8", 12, 12),
    ("2.8+", 16, 12),
    ("3.4", 16, 13),
    ("3.6", 16, 15),
    ("3.6", 13, 13),
    ("3.6+", 16, 12),
]
_EACH = pytest.mark.parametrize(("release", "asked", "sent"), CELLS)
#: Those in which kafka-python asks: it knows no topic ids.
_BY_NAME = pytest.mark.parametrize(
    ("release", "asked", "sent"), [cell for cell in CELLS if cell[1] <= 12] + [("3.6", 12, 12)]
)
_JAVA = ("apache-kafka-java", "3.9.1")
_KAFKA_PYTHON = ("kafka-python", "3.0.12")
_OLD_SARAMA = ("sarama", "v1.61.0")


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _learn(
    view: LeaderView, release: str, *in_sync: int, leader: int = OWN, epoch: int = 6
) -> None:
    nodes = struct.pack(f">{len(in_sync)}i", *in_sync)
    for own_id, name in NAMES.items():
        known = ZERO_ID if release.startswith(("2.4", "2.6")) else own_id
        led = tuple(Led(partition, leader, epoch) for partition in range(2))
        view.learn(TopicMetadata(0, name, known, led, (nodes, nodes)), leader)


class Scene:
    """A link of a consumer in a rack, and what the broker in front of it is asked and answers."""

    def __init__(
        self,
        release: str = "3.6",
        asked: int = 16,
        sent: int = 15,
        *,
        rack: str = "b",
        mode: Mode = Mode.ON,
        hints: Mode = Mode.ON,
        software: tuple[str, str] | None = _JAVA,
        size: int = 4096,
        budget: Budget | None = None,
        lost: bool = False,
    ) -> None:
        self.clock = Clock()
        self.release, self.asked, self.sent, self.rack = release, asked, sent, rack
        #: With which leader epoch the consumer asks.
        self.epoch = 6
        self.route = route = route_before(release, hints)
        route.config = replace(route.config, closest_replica=mode, racks=Racks())
        view = LeaderView(CLUSTER, self.clock)
        view.hidden.take(TopicMetadata(3, "leader-hints-check", ZERO_ID, ()), route.name)
        _learn(view, release, 1, 2, 3)
        route.broker.view, route.broker.node, route.broker.endpoints = view, OWN, ENDPOINTS
        self.view = view
        if lost:
            route.broker.plan, route.broker.former_plan = None, route.broker.plan
        self.driven = Driven(
            route,
            decide=decide,
            budget=budget or Budget(1 << 31, 1 << 40),
            buffer_size=size,
        )
        if software is not None:
            name, number = software
            named = {"client_software_name": name, "client_software_version": number}
            self.driven.up(request(18, 3, 1, **named))
            self.driven.down(versions_answer(3, 1, BROKERS[release]))
        self.driven.to_client.clear()
        self.driven.to_broker.clear()
        self._correlation = 10

    def topics(self, version: int) -> list[Topic]:
        """The two topics as a version names them."""
        if (version == self.sent and self.sent != self.asked) or version <= 12:
            return [*NAMES] if version > 12 else [*NAMES.values()]
        return [*names_before(self.release)]

    def fetch(
        self,
        partitions: Sequence[tuple[int, int, bytes]],
        up: Iterable[int] = (),
        down: Iterable[int] = (),
        *,
        answered: dict[int, int] | None = None,
        offsets: tuple[int, int] = (0, 0),
    ) -> bytes:
        """Let the consumer fetch of the first topic; return what it gets.

        ``partitions``: partition, error, records.
        """
        self._correlation += 1
        asked = {(self.topics(self.asked)[0], p): self.epoch for p, _, _ in partitions}
        self.driven.to_client.clear()
        self.driven.up(
            fetch_request(self.asked, self._correlation, asked, rack=self.rack, wait=500), up
        )
        self.driven.down(self.answer(self.sent, partitions, answered or {}, offsets=offsets), down)
        return bytes(self.driven.to_client)

    def poll(
        self,
        partitions: Sequence[tuple[int, int, bytes]],
        session: tuple[int, int],
        answered: int,
        *,
        error: int = 0,
    ) -> tuple[int, dict[int, int]]:
        """Let the consumer fetch in a session, by its id and epoch, all of the first topic if that
        begins; return which epoch the broker is asked with, and who is named by partition.

        ``answered``: the id of the session that the broker answers with.
        """
        self._correlation += 1
        begins = session[1] in (-1, 0)
        asked = {(self.topics(self.asked)[0], p): self.epoch for p in range(2) if begins}
        self.driven.to_client.clear()
        self.driven.to_broker.clear()
        self.driven.up(
            fetch_request(self.asked, self._correlation, asked, rack=self.rack, session=session)
        )
        kind = request_type(ApiKey.FETCH, self.sent)
        _, sent = read_request_frame(kind, bytes(self.driven.to_broker))
        topic = self.topics(self.sent)[0]
        self.driven.down(
            fetch_answer(
                self.sent,
                self._correlation,
                [(topic, p, failed, records) for p, failed, records in partitions],
                session_id=answered,
                error=error,
            )
        )
        answer = response_type(ApiKey.FETCH, self.asked)
        got = read_response_frame(answer, bytes(self.driven.to_client))
        named = {
            partition.partition_index: partition.preferred_read_replica
            for one in got.responses
            for partition in one.partitions
            if partition.preferred_read_replica >= 0
        }
        return sent.session_epoch, named

    def answer(
        self,
        version: int,
        partitions: Sequence[tuple[int, int, bytes]],
        preferred: dict[int, int],
        *,
        offsets: tuple[int, int] = (0, 0),
    ) -> bytes:
        """Return the response in a version, with the preferred replicas by partition."""
        topic = self.topics(version)[0]
        return fetch_answer(
            version,
            self._correlation,
            [(topic, p, error, records) for p, error, records in partitions],
            preferred=preferred,
            offsets=offsets,
        )

    def got(self, partitions: Sequence[tuple[int, int, bytes]], preferred: dict[int, int]) -> bytes:
        """Return what a consumer gets in which these are named."""
        return self.answer(self.asked, partitions, preferred)

    @property
    def named(self) -> list[tuple[int, int, bool]]:
        """Partition, replica, and whether that was only counted, of all that was reported."""
        events = self.driven.link.state.events
        return [(e.partition, e.replica, e.observed) for e in events if isinstance(e, ReplicaNamed)]

    @property
    def reads(self) -> list[tuple[str, str, str, int, int]]:
        """Topic, both racks and bytes of what was reported, and how many of them are avoidable."""
        return [
            (e.topic, e.rack, e.broker_rack, e.bytes, e.avoidable_bytes)
            for e in self.driven.link.state.events
            if isinstance(e, ConsumerRead)
        ]


def _from(offset: int, size: int) -> bytes:
    """Records that begin at an offset."""
    return struct.pack(">q", offset) + bytes(size - 8)


BOTH = [(0, 0, bytes(900)), (1, 0, bytes(5000))]
_RECORDS = [(0, 0, bytes(900))]


@_EACH
@pytest.mark.parametrize("size", [4096, 1 << 16])
def test_a_replica_in_the_rack_is_named_in_place(
    release: str, asked: int, sent: int, size: int
) -> None:
    scene = Scene(release, asked, sent, size=size)
    assert scene.fetch(BOTH) == scene.got(BOTH, {0: CLOSE, 1: CLOSE})
    assert scene.named == [(0, CLOSE, False), (1, CLOSE, False)]
    # Its answer is that it comes back: it was refused there, and is left in peace for a while.
    assert scene.fetch(BOTH) == scene.got(BOTH, {})
    scene.clock.now += PAUSE
    assert scene.fetch(BOTH) == scene.got(BOTH, {0: CLOSE, 1: CLOSE})
    assert not scene.driven.not_understood


@_EACH
@settings(max_examples=40)
@given(st.data())
def test_in_any_chunks_nothing_but_the_field_changes(
    release: str, asked: int, sent: int, data: st.DataObject
) -> None:
    cuts = st.lists(st.integers(1, 6500), max_size=20)
    scene = Scene(release, asked, sent, size=data.draw(st.integers(300, 9000)))
    got = scene.fetch(BOTH, data.draw(cuts), data.draw(cuts))
    named = [dict.fromkeys(which, CLOSE) for which in ((), (0,), (1,), (0, 1))]
    assert got in [scene.got(BOTH, one) for one in named]
    assert len(scene.named) == len(next(one for one in named if scene.got(BOTH, one) == got))
    scene.driven.link.close()
    assert scene.driven.budget.used == 0


@_EACH
def test_byte_by_byte(release: str, asked: int, sent: int) -> None:
    scene = Scene(release, asked, sent)
    got = scene.fetch(BOTH, range(1, 9000), range(1, 9000))
    assert len(got) == len(scene.got(BOTH, {}))


def test_a_consumer_that_named_no_software_is_sent_there_too() -> None:
    scene = Scene("3.6", 11, 11, software=None)
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {0: CLOSE})


@pytest.mark.parametrize(
    ("mode", "hints"),
    [(Mode.OFF, Mode.ON), (Mode.ON, Mode.OFF), (Mode.OFF, Mode.OFF)],
)
def test_off_is_off_and_the_kill_switch_ends_it(mode: Mode, hints: Mode) -> None:
    scene = Scene("3.6", 11, 11, mode=mode, hints=hints)
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {})
    traffic = scene.route.rack_traffic
    assert (traffic.read, traffic.outcomes, scene.named) == ({}, {}, [])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("mode", [Mode.ON, Mode.OBSERVE])
def test_a_native_broker_passes_on_a_link_that_began_before_it_was_known(
    mode: Mode, known: bool
) -> None:
    """It restarts, and a client is there before the proxy's own connection; KIP-392 is its own
    selector's.
    """
    scene = Scene("3.7", 16, 16, mode=mode, lost=True)
    assert not scene.driven.link.responses.opaque
    if known:
        scene.route.broker.plan = scene.route.broker.former_plan
    for _ in range(2):
        assert scene.fetch(BOTH) == scene.got(BOTH, {})
    traffic = scene.route.rack_traffic
    assert (traffic.read, traffic.outcomes, scene.named) == ({}, {}, [])


@pytest.mark.parametrize(("mode", "hints"), [(Mode.OBSERVE, Mode.ON), (Mode.ON, Mode.OBSERVE)])
def test_in_observe_bytes_are_counted_and_none_changes(mode: Mode, hints: Mode) -> None:
    scene = Scene("3.6", 15, 15, mode=mode, hints=hints)
    for _ in range(2):
        assert scene.fetch(BOTH) == scene.got(BOTH, {})
    traffic = scene.route.rack_traffic
    assert traffic.read == {("a", "b"): 2 * len(scene.got(BOTH, {}))}
    assert traffic.avoidable == {("a", "b"): 2 * 5900}
    assert scene.named == [(0, CLOSE, True), (1, CLOSE, True)]


def test_the_switch_works_on_open_links() -> None:
    scene = Scene("3.6", 15, 15)
    scene.route.switch(Mode.OFF)
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {})
    scene.route.switch(Mode.ON)
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {0: CLOSE})


def test_the_switch_holds_for_responses_under_way() -> None:
    scene = Scene("3.6", 11, 11)
    name = scene.topics(11)[0]
    scene.driven.up(fetch_request(11, 11, {(name, 0): 6}, rack="b"))
    scene._correlation = 11
    scene.route.switch(Mode.OFF)
    scene.driven.down(scene.got(_RECORDS, {}))
    assert scene.driven.to_client == scene.got(_RECORDS, {})


def _unnamed(scene: Scene, outcome: Outcome, **more: object) -> None:
    answered = more.get("answered") or {}
    got = scene.fetch(_RECORDS, **more)  # type: ignore[arg-type]
    offsets = more.get("offsets", (0, 0))
    assert got == scene.answer(16, _RECORDS, answered, offsets=offsets)  # type: ignore[arg-type]
    assert scene.route.rack_traffic.outcomes == {outcome: 1}
    assert scene.named == []


def test_a_preferred_replica_of_the_brokers_own_selector_stands() -> None:
    scene = Scene()
    _unnamed(scene, Outcome.SELECTOR, answered={0: 3})
    # From then on the brokers choose: they know which follower has what.
    scene.clock.now += 1
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {})
    assert scene.named == []


def test_none_in_the_rack_or_out_of_sync() -> None:
    _unnamed(Scene(rack="d"), Outcome.NO_REPLICA)
    scene = Scene()
    _learn(scene.view, "3.6", 1, 3)
    _unnamed(scene, Outcome.NO_REPLICA)
    scene = Scene()
    scene.route.broker.endpoints = {1: ENDPOINTS[1]}
    _unnamed(scene, Outcome.NO_REPLICA)


def test_the_leader_is_in_the_rack() -> None:
    _unnamed(Scene(rack="a"), Outcome.SAME_RACK)


def test_a_partition_that_moved_or_is_not_known() -> None:
    scene = Scene()
    _learn(scene.view, "3.6", 1, 2, leader=2, epoch=7)
    _learn(scene.view, "3.6", 1, 2, leader=1, epoch=8)
    scene.epoch = 8
    _unnamed(scene, Outcome.MOVED)
    scene.clock.now += 5
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {0: CLOSE})
    scene = Scene()
    scene.route.broker.view = LeaderView(CLUSTER, scene.clock)
    _unnamed(scene, Outcome.UNKNOWN)


@_EACH
def test_none_is_named_to_a_consumer_that_knows_a_newer_leader_epoch(
    release: str, asked: int, sent: int
) -> None:
    """Replicas may be others by then: Java before 3.4 stays at what is none for five minutes."""
    scene = Scene(release, asked, sent)
    scene.epoch = 8
    assert scene.fetch(BOTH) == scene.got(BOTH, {})
    assert scene.route.rack_traffic.outcomes == {Outcome.UNKNOWN: 2}
    _learn(scene.view, release, 1, 2, epoch=8)
    scene.clock.now += 6
    assert scene.fetch(BOTH) == scene.got(BOTH, {0: CLOSE, 1: CLOSE})


@_EACH
def test_none_is_named_to_a_consumer_of_a_topic_that_has_begun_again(
    release: str, asked: int, sent: int
) -> None:
    scene = Scene(release, asked, sent)
    scene.epoch = 0
    # A broker of 2.4 may serve a session at a later epoch than it was asked for.
    named = {0: CLOSE, 1: CLOSE} if release.startswith("2.4") else {}
    assert scene.fetch(BOTH) == scene.got(BOTH, named)


@_EACH
def test_what_is_known_counts_for_a_consumer_that_says_no_leader_epoch(
    release: str, asked: int, sent: int
) -> None:
    scene = Scene(release, asked, sent)
    scene.epoch = -1
    assert scene.fetch(BOTH) == scene.got(BOTH, {0: CLOSE, 1: CLOSE})


def test_a_consumer_s_leader_epoch_is_that_of_its_session() -> None:
    scene = Scene()
    topic = scene.topics(16)[0]
    scene.driven.up(fetch_request(16, 2, {(topic, 0): 8}, session=(0, 0), rack="b"))
    scene.driven.down(fetch_answer(15, 2, [], session_id=5))
    scene.driven.up(fetch_request(16, 3, {}, session=(5, 1), rack="b"))
    scene.driven.down(fetch_answer(15, 3, [(topic, 0, 0, bytes(9))], session_id=5))
    assert scene.named == []
    assert scene.route.rack_traffic.outcomes == {Outcome.UNKNOWN: 1}


def test_a_partition_in_doubt() -> None:
    scene = Scene("2.6", 12, 11)
    _learn(scene.view, "2.6", 3, leader=3, epoch=6)
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {})
    assert scene.route.rack_traffic.outcomes == {Outcome.UNKNOWN: 1}


def test_a_failed_partition_stays_beside_one_that_is_named() -> None:
    scene = Scene("2.8", 12, 12)
    partitions = [(0, FENCED, b""), (1, 0, bytes(80))]
    got = scene.fetch(partitions)
    assert scene.named == [(1, CLOSE, False)]
    assert struct.pack(">i", CLOSE) in got


def test_the_oldest_records_are_read_from_the_leader() -> None:
    """A follower deletes by its own clock; at its OFFSET_OUT_OF_RANGE librdkafka would reset."""
    _unnamed(Scene(), Outcome.OLDEST, offsets=(50, 200))


def test_a_partition_without_records_behind_others_may_be_read_from_its_beginning() -> None:
    """A broker gives no records of a partition once those before it have used up MaxBytes."""
    scene = Scene()
    both = [(0, 0, bytes(900)), (1, 0, b"")]
    scene.fetch(both, offsets=(50, 200))
    assert scene.named == []
    assert scene.route.rack_traffic.outcomes == {Outcome.OLDEST: 2}


def test_a_consumer_that_has_read_all_there_is_goes_to_a_replica() -> None:
    scene = Scene()
    scene.fetch([(0, 0, b""), (1, 0, b"")], offsets=(50, 200))
    assert scene.named == [(0, CLOSE, False), (1, CLOSE, False)]


@pytest.mark.parametrize("software", [_JAVA, _OLD_SARAMA], ids=lambda software: software[0])
def test_a_follower_in_sync_is_left_in_peace_and_one_that_is_not_sends_back(
    software: tuple[str, str],
) -> None:
    scene = Scene(software=software)
    scene.route.broker.node = CLOSE
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {})
    assert scene.route.rack_traffic.outcomes == {Outcome.FOLLOWER: 1}
    _learn(scene.view, "3.6", 1, 3)
    scene.clock.now += 1
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {0: OWN})
    assert scene.route.rack_traffic.read == {("b", "b"): 2 * len(scene.got(_RECORDS, {}))}


@_EACH
def test_a_consumer_leaves_a_follower_that_replicates_nothing(
    release: str, asked: int, sent: int
) -> None:
    """What has no news stands in no response of a session (KIP-227): it read nothing for as long as
    its lease lasted, five minutes or half an hour.
    """
    scene = Scene(release, asked, sent)
    scene.route.broker.node = CLOSE
    assert scene.poll(BOTH, (0, 0), 7) == (0, {})
    assert [scene.poll([], (7, number), 7) for number in (1, 2)] == [(1, {}), (2, {})]
    _learn(scene.view, release, 1, 3)
    # If it has news it stands in one of the next responses.
    for number in (3, 4, 5):
        scene.clock.now += 0.6
        assert scene.poll([], (7, number), 7) == (number, {})
    # The broker answers INVALID_FETCH_SESSION_EPOCH, and its client asks for all of them.
    refused, _ = scene.poll([], (7, 6), 0, error=71)
    assert refused not in (-1, 0, 6)
    assert scene.poll(BOTH, (7, 0), 8) == (0, {0: OWN, 1: OWN})
    # It reads them elsewhere, so nothing is refused again, whatever changes.
    for number, in_sync in enumerate(((1,), (1, 2), (1, 3), (1, 3)), 1):
        _learn(scene.view, release, *in_sync)
        scene.clock.now += 9
        assert scene.poll([], (8, number), 8) == (number, {})


@pytest.mark.parametrize("error", [0, 74])
def test_a_consumer_leaves_a_follower_that_replicates_nothing_since_the_leader_moved(
    error: int,
) -> None:
    """What it got just after the move, FENCED_LEADER_EPOCH or the rest of the former leader's
    records, was taken for a sign that it does not read there any more.
    """
    scene = Scene()
    scene.route.broker.node = CLOSE
    assert scene.poll(BOTH, (0, 0), 7) == (0, {})
    _learn(scene.view, "3.6", 2, 3, leader=3, epoch=7)
    scene.epoch = 7
    news = [(0, error, b""), (1, error, b"")] if error else BOTH
    assert scene.poll(news, (7, 1), 7) == (1, {})
    scene.clock.now += 30
    _learn(scene.view, "3.6", 3, leader=3, epoch=7)
    sent = []
    for number in range(2, 6):
        scene.clock.now += 1
        sent.append(scene.poll([], (7, number), 7)[0])
    assert sent != [2, 3, 4, 5]


def test_a_consumer_leaves_a_follower_from_which_it_was_sent_back_lately() -> None:
    """Within 65 s the leader is not named again, and then nothing asked for it."""
    scene = Scene()
    scene.route.broker.node = CLOSE
    assert scene.poll(BOTH, (0, 0), 7) == (0, {})
    _learn(scene.view, "3.6", 1, 3)
    scene.clock.now += 1
    assert scene.poll(BOTH, (7, 1), 7) == (1, {0: OWN, 1: OWN})
    # The follower replicates again for a while, and the leader sends the consumer back there.
    _learn(scene.view, "3.6", 1, 2, 3)
    scene.clock.now += 20
    assert scene.poll(BOTH, (7, 2), 7) == (2, {})
    _learn(scene.view, "3.6", 1, 3)
    for number in (3, 4):
        scene.clock.now += 2
        assert scene.poll([], (7, number), 7) == (number, {})
    refused, _ = scene.poll([], (7, 5), 0, error=71)
    assert refused != 5
    assert scene.poll(BOTH, (7, 0), 8) == (0, {})
    # Whatever changes meanwhile, its session goes on until the leader may be named.
    for number in range(1, 21):
        scene.clock.now += 3
        _learn(scene.view, "3.6", 1, *(() if number % 2 else (3,)))
        assert scene.poll([], (8, number), 8) == (number, {})
    for number in (21, 22, 23):
        scene.clock.now += 3
        refused, _ = scene.poll([], (8, number), 8)
    assert refused != 23
    assert scene.poll(BOTH, (8, 0), 9) == (0, {0: OWN, 1: OWN})


def test_what_a_consumer_reads_now_is_remembered_rather_than_what_it_has_read() -> None:
    """The partitions of a group's consumer become others as the group does."""
    view = LeaderView(CLUSTER)
    topic = next(iter(NAMES.values()))
    nodes = struct.pack(">i", OWN)
    led = tuple(Led(partition, OWN, 6) for partition in range(400))
    view.learn(TopicMetadata(0, topic, ZERO_ID, led, (nodes,) * 400), OWN)
    followed = Followed()
    for partition in range(399):
        followed.note("of others", partition, Outcome.FOLLOWER, 1.0, in_sync=True)
    followed.note(topic, 399, Outcome.FOLLOWER, 2.0, in_sync=True)
    followed.changed(3.0)
    assert followed.fell_out(view, CLOSE, 9.0)


def test_a_consumer_that_is_sent_back_by_a_response_keeps_its_session() -> None:
    scene = Scene()
    scene.route.broker.node = CLOSE
    assert scene.poll(BOTH, (0, 0), 7) == (0, {})
    _learn(scene.view, "3.6", 1, 3)
    for number in range(1, 9):
        scene.clock.now += 0.5
        news = BOTH if number == 2 else []
        assert scene.poll(news, (7, number), 7) == (number, {0: OWN, 1: OWN} if news else {})


def test_a_consumer_leaves_once_it_is_known_where_to() -> None:
    """Where brokers contradict each other, or the leader has just moved, nothing is named."""
    scene = Scene()
    scene.route.broker.node = CLOSE
    _learn(scene.view, "3.6", 1, 2, 3, leader=3, epoch=7)
    scene.epoch = 7
    scene.clock.now += 9
    assert scene.poll(BOTH, (0, 0), 7) == (0, {})
    _learn(scene.view, "3.6", 1, 3, leader=1, epoch=8)
    sent = []
    for number in range(1, 9):
        scene.clock.now += 1
        sent.append(scene.poll([], (7, number), 7)[0])
    # For five seconds after the move.
    assert sent[:6] == [1, 2, 3, 4, 5, 6]
    assert sent != [*range(1, 9)]


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.OFF])
def test_where_nothing_is_named_no_session_ends(mode: Mode) -> None:
    scene = Scene(mode=mode)
    scene.route.broker.node = CLOSE
    assert scene.poll(BOTH, (0, 0), 7) == (0, {})
    _learn(scene.view, "3.6", 1, 3)
    for number in range(1, 5):
        scene.clock.now += 9
        assert scene.poll([], (7, number), 7) == (number, {})


def test_what_is_not_read_here_ends_no_session() -> None:
    """The leader's consumers, and those of a follower that stays in sync."""
    for node in (OWN, 3):
        scene = Scene(rack="c")
        scene.route.broker.node = node
        scene.poll(BOTH, (0, 0), 7)
        _learn(scene.view, "3.6", 1, 3)
        for number in range(1, 5):
            scene.clock.now += 9
            assert scene.poll([], (7, number), 7) == (number, {})


def test_a_consumer_without_a_session_asks_for_all_of_them_anyway() -> None:
    scene = Scene()
    scene.route.broker.node = CLOSE
    scene.poll(BOTH, (0, -1), 0)
    _learn(scene.view, "3.6", 1, 3)
    for _ in range(3):
        scene.clock.now += 1
        assert scene.poll([], (0, -1), 0) == (-1, {})
    assert scene.poll(BOTH, (0, -1), 0) == (-1, {0: OWN, 1: OWN})


def test_a_change_of_what_is_in_sync_is_looked_at_in_the_next_responses() -> None:
    """A consumer would go on to read from what lags, for the pause to which looks have grown."""
    scene = Scene()
    scene.route.broker.node = CLOSE
    for _ in range(9):
        scene.fetch(_RECORDS)
        scene.clock.now += 2
    _learn(scene.view, "3.6", 1, 3)
    # The first response may be of another partition.
    scene.fetch([])
    scene.clock.now += 0.3
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {0: OWN})


def test_partitions_of_every_second_response_are_looked_at_too() -> None:
    """A consumer may ask for some of its partitions in one request, and for others in the next."""
    scene = Scene()
    scene.route.broker.node = CLOSE
    for _ in range(9):
        scene.fetch(_RECORDS)
        scene.fetch([(1, 0, bytes(80))])
        scene.clock.now += 6
    in_sync = struct.pack(">2i", 1, 3)
    topic_id, name = next(iter(NAMES.items()))
    scene.view.learn(TopicMetadata(0, name, topic_id, (Led(1, OWN, 6),), (in_sync,)), OWN)
    scene.fetch(_RECORDS)
    scene.fetch([(1, 0, bytes(80))])
    assert scene.named == [(1, OWN, False)]


def test_a_client_that_goes_on_by_topic_id_is_not_named_the_same_replica_again() -> None:
    scene = Scene("3.6", 12, 12)
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {0: CLOSE})
    scene.asked, scene.sent = 16, 15
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {})


@_BY_NAME
@pytest.mark.parametrize("size", [4096, 1 << 16])
def test_kafka_python_gets_no_records_beside_a_named_replica(
    release: str, asked: int, sent: int, size: int
) -> None:
    """It comes back after each response of a replica (3.0.12), and would read half of all here."""
    scene = Scene(release, asked, sent, software=_KAFKA_PYTHON, size=size)
    for round_ in range(4):
        both = [(0, 0, _from(9 * round_, 900)), (1, 0, _from(7 * round_, 5000))]
        assert scene.fetch(both) == scene.got([(0, 0, b""), (1, 0, b"")], {0: CLOSE, 1: CLOSE})
        scene.clock.now += 0.1
    assert scene.route.rack_traffic.outcomes == {Outcome.NAMED: 8}
    # It is reported once: it is no news.
    assert scene.named == [(0, CLOSE, False), (1, CLOSE, False)]
    assert not scene.driven.not_understood
    scene.driven.link.close()
    assert scene.driven.budget.used == 0


def _waits(scene: Scene) -> int:
    """For how many milliseconds the broker may wait for records, by the last request."""
    kind = request_type(ApiKey.FETCH, scene.sent)
    _, read = read_request_frame(kind, bytes(scene.driven.to_broker))
    return int(read.max_wait / timedelta(milliseconds=1))


@_BY_NAME
@pytest.mark.parametrize("cuts", [(), range(60, 2000, 60)], ids=["whole", "in parts"])
def test_kafka_python_does_not_wait_for_records_that_it_would_not_get(
    release: str, asked: int, sent: int, cuts: Sequence[int]
) -> None:
    """A broker that names a replica answers at once (ReplicaManager.fetchMessages)."""
    scene = Scene(release, asked, sent, software=_KAFKA_PYTHON)
    many = [(0, 0, b""), *((partition, 0, b"") for partition in range(2, 40))]
    waits = []
    for partitions in (many, many, [], many):
        scene.driven.to_broker.clear()
        scene.fetch(partitions, cuts)
        waits.append(_waits(scene))
    # Where none was named the next request waits: nobody is to ask again and again.
    assert (waits[0] > 0, waits[1], waits[2], waits[3] > 0) == (True, 0, 0, True)


def test_after_the_switch_kafka_python_waits_again() -> None:
    scene = Scene("2.8", 12, 12, software=_KAFKA_PYTHON)
    scene.fetch(_RECORDS)
    scene.route.switch(Mode.OFF)
    scene.driven.to_broker.clear()
    scene.fetch(_RECORDS)
    assert _waits(scene) > 0


def test_what_kafka_python_has_not_read_at_the_replica_it_gets_from_the_leader() -> None:
    scene = Scene("2.8", 12, 12, software=_KAFKA_PYTHON)
    first, second = [(0, 0, _from(3, 900))], [(0, 0, _from(20, 900))]
    for _ in range(3):
        # The follower has something of another partition, and learns later that this is committed.
        assert scene.fetch(first) == scene.got([(0, 0, b"")], {0: CLOSE})
        scene.clock.now += 0.4
    assert scene.fetch(first) == scene.got(first, {})
    assert scene.fetch(second) == scene.got(second, {})
    assert scene.route.rack_traffic.outcomes == {Outcome.NAMED: 3, Outcome.PAUSED: 2}
    scene.clock.now += PAUSE
    third = [(0, 0, _from(40, 900))]
    assert scene.fetch(third) == scene.got([(0, 0, b"")], {0: CLOSE})


def test_kafka_python_gets_records_of_partitions_without_a_replica() -> None:
    scene = Scene("2.8", 12, 12, software=_KAFKA_PYTHON)
    partitions = [(5, 0, _from(6, 800)), (1, 0, _from(5, 900)), (6, 0, b""), (7, 3, _from(8, 700))]
    left = [(5, 0, _from(6, 800)), (1, 0, b""), (6, 0, b""), (7, 3, _from(8, 700))]
    assert scene.fetch(partitions) == scene.got(left, {1: CLOSE})


def test_an_error_beside_records_that_are_taken_out_gets_its_hint() -> None:
    scene = Scene("2.8", 12, 12, software=_KAFKA_PYTHON)
    records = _from(5, 900)
    scene.fetch([(0, FENCED, b""), (1, 0, records)])
    assert scene.named == [(1, CLOSE, False)]
    assert records not in scene.driven.to_client
    assert struct.pack(">i", CLOSE) in scene.driven.to_client


def test_in_observe_kafka_python_gets_all_records() -> None:
    scene = Scene("2.8", 12, 12, software=_KAFKA_PYTHON, mode=Mode.OBSERVE)
    for _ in range(2):
        assert scene.fetch(BOTH) == scene.got(BOTH, {})
    assert scene.named == [(0, CLOSE, True), (1, CLOSE, True)]


def test_kafka_python_in_the_leader_s_rack_is_not_kept_back() -> None:
    _unnamed(Scene(software=_KAFKA_PYTHON, rack="a"), Outcome.SAME_RACK)


@pytest.mark.parametrize("mode", [Mode.ON, Mode.OBSERVE])
def test_no_replica_is_named_to_a_client_that_ends_where_that_lacks_its_offset(mode: Mode) -> None:
    """A follower may have fallen behind since it was known to be in sync."""
    _unnamed(Scene(software=_OLD_SARAMA, mode=mode), Outcome.CLIENT)


def test_what_is_taken_out_is_never_counted_as_read() -> None:
    """Not even before all of it is there: a counter that falls counts as one that began again."""
    scene = Scene("2.8", 12, 12, software=_KAFKA_PYTHON)
    name = scene.topics(12)[0]
    scene.driven.up(fetch_request(12, 11, {(name, 0): 6, (name, 1): 6}, rack="b"))
    scene._correlation = 11
    answer = scene.answer(12, BOTH, {})
    scene.driven.down(answer[:3000])
    assert scene.route.rack_traffic.read == {}
    scene.driven.down(answer[3000:])
    got = scene.got([(0, 0, b""), (1, 0, b"")], {0: CLOSE, 1: CLOSE})
    assert scene.driven.to_client == got
    assert scene.route.rack_traffic.read == {("a", "b"): len(got)}
    scene.driven.link.close()
    assert scene.reads == [(name, "b", "a", len(got), 0)]


@_BY_NAME
@pytest.mark.parametrize("budget", [Budget(2000, 1 << 20), Budget(1 << 20, 2000)])
def test_beyond_the_budget_a_replica_is_named_beside_the_records(
    release: str, asked: int, sent: int, budget: Budget
) -> None:
    scene = Scene(release, asked, sent, software=_KAFKA_PYTHON, budget=budget)
    assert scene.fetch(BOTH) == scene.got(BOTH, {0: CLOSE, 1: CLOSE})


@_BY_NAME
def test_a_response_that_grows_beyond_the_budget_goes_on_with_its_records(
    release: str, asked: int, sent: int
) -> None:
    budget = Budget(1 << 20, 100_000)
    scene = Scene(release, asked, sent, software=_KAFKA_PYTHON, budget=budget)
    large = [(0, 0, _from(1, 900)), (1, 0, _from(2, 150_000)), (5, 0, _from(3, 900))]
    assert scene.fetch(large, (), range(4000, 150_000, 4000)) == scene.got(
        large, {0: CLOSE, 1: CLOSE}
    )
    scene.driven.link.close()
    assert budget.used == 0


@_BY_NAME
@settings(max_examples=40)
@given(st.data())
def test_in_any_chunks_records_are_taken_out_or_left(
    release: str, asked: int, sent: int, data: st.DataObject
) -> None:
    cuts = st.lists(st.integers(1, 6500), max_size=20)
    total = data.draw(st.sampled_from([500, 70_000, 1 << 30]))
    scene = Scene(
        release,
        asked,
        sent,
        software=_KAFKA_PYTHON,
        size=data.draw(st.integers(300, 9000)),
        budget=Budget(total, total),
    )
    for _ in range(2):
        scene.fetch([(0, 0, b"")])
    got = scene.fetch(BOTH, data.draw(cuts), data.draw(cuts))
    named = [dict.fromkeys(which, CLOSE) for which in ((), (0,), (1,), (0, 1))]
    left = [scene.got(BOTH, one) for one in named]
    assert got in [*left, scene.got([(0, 0, b""), (1, 0, b"")], named[-1])]
    if total == 1 << 30:
        assert got not in left
    scene.driven.link.close()
    assert scene.driven.budget.used == 0


_PARTITIONS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([0, 0, 0, FENCED, 3]),
        st.sampled_from([0, 9, 900, 9000, 70_000]),
    ),
    max_size=6,
    unique_by=lambda one: one[0],
)


@_BY_NAME
@settings(max_examples=60)
@given(st.data())
def test_whatever_comes_records_are_there_or_another_broker_is_named(
    release: str, asked: int, sent: int, data: st.DataObject
) -> None:
    total = data.draw(st.sampled_from([500, 20_000, 100_000, 1 << 30]))
    budget = Budget(data.draw(st.sampled_from([total, 1 << 30])), total)
    scene = Scene(
        release,
        asked,
        sent,
        software=_KAFKA_PYTHON,
        size=data.draw(st.integers(300, 20_000)),
        budget=budget,
    )
    cuts = st.lists(st.integers(1, 200_000), max_size=20)
    for number in range(data.draw(st.integers(1, 3))):
        partitions = [
            (partition, error, b"" if error else _from(number, max(size, 8)))
            for partition, error, size in data.draw(_PARTITIONS)
        ]
        got = scene.fetch(partitions, data.draw(cuts), data.draw(cuts))
        read = read_response_frame(response_type(ApiKey.FETCH, asked), got)
        found = [p for topic in read.responses for p in topic.partitions]
        assert [(p.partition_index, p.error_code) for p in found] == [p[:2] for p in partitions]
        for one, (partition, error, records) in zip(found, partitions, strict=True):
            away = one.preferred_read_replica == CLOSE
            assert away or one.preferred_read_replica in (0, -1)
            assert not (away and (error or partition > 1))
            assert (one.records or b"") == records or (away and not one.records)
    scene.driven.link.close()
    assert budget.used == 0


@_EACH
def test_the_rack_is_read_from_a_request_that_comes_in_parts(
    release: str, asked: int, sent: int
) -> None:
    """It stands last, behind all partitions; librdkafka and sarama name all in each request."""
    scene = Scene(release, asked, sent)
    many = [(partition, 0, b"") for partition in range(400)]
    scene.fetch(many, range(900, 40_000, 900))
    assert scene.named == [(0, CLOSE, False), (1, CLOSE, False)]
    scene.driven.link.close()
    assert scene.driven.budget.used == 0


def test_a_broker_of_which_it_is_not_known_which_it_is_names_none() -> None:
    scene = Scene()
    scene.route.broker.node = None
    assert scene.fetch(_RECORDS) == scene.got(_RECORDS, {})
    assert scene.named == []


def test_who_names_no_rack_and_who_is_a_replica_costs_nothing() -> None:
    for rack, replica in (("", -1), ("b", 5)):
        scene = Scene("3.6", 15, 15, rack=rack)
        topic = scene.topics(15)[0]
        scene.driven.up(fetch_request(15, 11, {(topic, 0): 6}, rack=rack, replica_id=replica))
        scene._correlation = 11
        scene.driven.down(scene.got(_RECORDS, {}))
        assert scene.driven.to_client == scene.got(_RECORDS, {})
        assert scene.route.rack_traffic.read == {}


@pytest.mark.parametrize("topics", [1000, 1001, 3000])
def test_the_rack_is_found_behind_a_first_request_for_very_many_topics(topics: int) -> None:
    """That one is not looked through, and the rack of the link was taken for none, for good."""
    scene = Scene(size=1 << 16)
    (first, *_) = scene.topics(scene.asked)
    others: list[Topic] = [topic_id(number) for number in range(1000, 999 + topics)]
    asked = {(topic, 0): scene.epoch for topic in (first, *others)}
    scene.driven.up(fetch_request(scene.asked, 1, asked, rack=scene.rack, wait=500))
    scene.driven.down(scene.answer(scene.sent, [(0, 0, b"")], {}))
    scene.fetch(BOTH)
    assert scene.driven.link.state.client.rack == scene.rack


def test_what_cannot_be_read_is_not_looked_through_for_ever() -> None:
    scene = Scene(size=1 << 16)
    (first, *_) = scene.topics(scene.asked)
    others: list[Topic] = [topic_id(number) for number in range(1000, 3000)]
    asked = {(topic, 0): scene.epoch for topic in (first, *others)}
    for number in range(10):
        assert scene.driven.link.state.client.rack is None
        scene.driven.up(fetch_request(scene.asked, number, asked, rack=scene.rack, wait=500))
        scene.driven.down(scene.answer(scene.sent, [(0, 0, b"")], {}))
    assert scene.driven.link.state.client.rack == ""


def test_a_response_that_ends_before_its_partitions_leaves_the_next_ones_alone() -> None:
    scene = Scene("3.6", 11, 11)
    asked = {(scene.topics(11)[0], 0): 6}
    scene.driven.up(fetch_request(11, 11, asked, rack="b"))
    scene.driven.up(request(3, 12, 12, topics=None))
    scene._correlation = 11
    broken = bytearray(scene.got([(0, 0, bytes(900))], {}))
    # Its records claim to be longer than the frame.
    broken[-904:-900] = struct.pack(">i", 9000)
    topics = {"t": dict.fromkeys(range(400), (1, 5))}
    other = metadata_answer(12, 12, topics)
    scene.driven.down(bytes(broken) + other, range(1000, 9000, 500))
    assert scene.driven.to_client[-len(other) :] == other


@pytest.mark.parametrize(("mode", "avoidable"), [(Mode.ON, 0), (Mode.OBSERVE, 5900)])
def test_what_was_read_is_reported_every_few_minutes_and_at_the_end(
    mode: Mode, avoidable: int
) -> None:
    scene = Scene("3.6", 11, 11, mode=mode)
    topic, size = scene.topics(11)[0], len(scene.got(BOTH, {}))
    for _ in range(2):
        scene.fetch(BOTH)
    scene.clock.now += EVERY
    assert scene.reads == []
    scene.fetch(_RECORDS)
    first = (topic, "b", "a", 2 * size + len(scene.got(_RECORDS, {})))
    assert [one[:4] for one in scene.reads] == [first]
    assert scene.reads[0][4] == 2 * avoidable
    scene.fetch(BOTH)
    scene.driven.link.close()
    assert [one[3] for one in scene.reads] == [first[3], size]
    scene.driven.link.close()
    assert len(scene.reads) == 2


def test_where_it_is_observed_and_the_rack_is_the_same_topics_are_known_too() -> None:
    scene = Scene("3.6", 11, 11, rack="a", mode=Mode.OBSERVE)
    for _ in range(9):
        scene.fetch(BOTH)
    scene.driven.link.close()
    assert scene.reads == [(scene.topics(11)[0], "a", "a", 9 * len(scene.got(BOTH, {})), 0)]
    assert scene.route.rack_traffic.outcomes == {Outcome.SAME_RACK: 2 * 4}


def test_racks_that_no_broker_has_are_counted_together() -> None:
    scene = Scene(rack="no broker's")
    scene.fetch(_RECORDS)
    assert [*scene.route.rack_traffic.read] == [("a", "other")]
