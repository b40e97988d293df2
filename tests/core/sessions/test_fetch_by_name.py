"""A broker that knows topics by name, a client that asks by id, and a view that learns."""

import struct
import tracemalloc

import pytest

from leader_hints.apis.fetch_request import FetchRequest
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.sessions.fetch_by_name import FetchByName, FetchSessionsByName
from leader_hints.wire.steps import at_once

A, B, C = (bytes([n]) * 16 for n in (1, 2, 3))


def _asked(partition: int) -> bytes:
    return struct.pack(">iiqiqi", partition, 5, 0, -1, -1, 1000)


def _request(
    session: int = 0,
    epoch: int = 0,
    topics: dict[bytes, tuple[int, ...]] | None = None,
    forgotten: dict[bytes, tuple[int, ...]] | None = None,
) -> FetchRequest:
    asked = tuple((t, tuple(map(_asked, ps))) for t, ps in (topics or {}).items())
    return FetchRequest(
        -1, 500, 1, 1000, 0, session, epoch, asked, tuple((forgotten or {}).items()), "", None
    )


class _Scene:
    def __init__(self, **topics: bytes) -> None:
        self.view = LeaderView("k")
        self.sessions = FetchSessionsByName()
        for name, topic_id in topics.items():
            self.learn(name, topic_id)

    def learn(self, name: str, topic_id: bytes) -> None:
        self.view.learn(TopicMetadata(0, name, topic_id, (Led(0, 1, 0),)), 1)

    def down(self, request: FetchRequest) -> tuple[FetchRequest, FetchByName]:
        return at_once(self.sessions.down(request, self.view))

    def open(self, session: int, *topics: bytes) -> None:
        _, named = self.down(_request(topics=dict.fromkeys(topics, (0,))))
        named.opened(self.sessions, session)


def _names(request: FetchRequest) -> list[object]:
    return [topic for topic, _ in request.topics]


def test_a_full_fetch_goes_by_names() -> None:
    scene = _Scene(a=A, b=B)
    request = _request(topics={A: (0, 1), B: (2,)})
    sent, named = scene.down(request)
    assert sent == request._replace(
        topics=(("a", request.topics[0][1]), ("b", request.topics[1][1]))
    )
    assert not named.size(named=False)
    assert at_once(named.names(scene.view)) == ({"a": A, "b": B}, (), [])


def test_a_topic_that_is_not_known_is_answered_at_once_and_leaves_no_session() -> None:
    scene = _Scene(a=A)
    sent, named = scene.down(_request(session=9, topics={A: (0,), C: (4, 5)}))
    assert _names(sent) == ["a"]
    assert (sent.session_id, sent.session_epoch, sent.max_wait) == (9, -1, 0)
    assert at_once(named.names(scene.view)).unknown == [(C, (4, 5))]


@pytest.mark.parametrize("topics", [1, 3000])
def test_what_is_kept_of_ids_without_names_is_smaller_than_the_request(topics: int) -> None:
    """It is in no budget, and the broker gets a request that has nothing of it."""
    scene = _Scene(a=A)
    each = 30_000 // topics
    request = _request(
        topics={number.to_bytes(16, "big"): tuple(range(each)) for number in range(topics)}
    )
    size = sum(len(topic) + sum(map(len, asked)) for topic, asked in request.topics)
    scene.down(request)
    tracemalloc.start()
    try:
        _, named = scene.down(request)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < size / 4
    assert len(at_once(named.names(scene.view)).unknown) == topics
    assert at_once(named.names(scene.view)).unknown[-1] == (
        (topics - 1).to_bytes(16, "big"),
        tuple(range(each)),
    )


def test_a_session_goes_on_by_names() -> None:
    scene = _Scene(a=A, b=B)
    scene.open(7, A)
    sent, named = scene.down(_request(7, 1, {B: (0,)}, {A: (0,)}))
    assert (_names(sent), sent.forgotten) == (["b"], (("a", (0,)),))
    assert (sent.session_id, sent.session_epoch) == (7, 1)
    assert at_once(named.names(scene.view)).ids == {"a": A, "b": B}


def _is_lost(sent: FetchRequest) -> bool:
    """Whether the broker will say that there is no such session."""
    return (sent.session_id, sent.topics, sent.forgotten) == (-1, (), ())


def test_sessions_are_bounded_by_their_topics_too() -> None:
    """The one used last stays, however large it is; a client of another begins a new one."""
    scene = _Scene(a=A, b=B)
    scene.sessions = FetchSessionsByName(most_topics=3)
    for session in (1, 2, 3):
        scene.open(session, A)
    # A session grows by what it asks for later.
    assert not _is_lost(scene.down(_request(1, 1, {B: (0,)}))[0])
    assert _is_lost(scene.down(_request(2, 1))[0])
    assert not _is_lost(scene.down(_request(1, 2))[0])
    assert not _is_lost(scene.down(_request(3, 1))[0])
    scene.sessions = FetchSessionsByName(most_topics=1)
    scene.open(4, A, B)
    assert not _is_lost(scene.down(_request(4, 1))[0])
    assert len(scene.sessions) == 1


def test_a_session_that_does_not_fit_takes_no_room_from_others() -> None:
    """All others were forgotten, so each of their clients began a new one again and again."""
    scene = _Scene(a=A, b=B)
    scene.sessions = FetchSessionsByName(most_topics=1)
    scene.open(1, A)
    scene.open(2, A, B)
    assert not _is_lost(scene.down(_request(1, 1))[0])
    assert _is_lost(scene.down(_request(2, 1))[0])


def test_a_session_that_is_not_known_begins_again() -> None:
    scene = _Scene(a=A)
    assert _is_lost(scene.down(_request(8, 3, {A: (0,)}))[0])
    assert _is_lost(scene.down(_request(8, 3))[0])


def test_a_session_that_gets_a_topic_that_is_not_known_begins_again() -> None:
    scene = _Scene(a=A)
    for request in (_request(7, 1, {C: (0,)}), _request(7, 1, forgotten={C: (0,)})):
        scene.open(7, A)
        assert _is_lost(scene.down(request)[0])
        assert len(scene.sessions) == 0


def test_a_session_whose_topic_was_recreated_begins_again() -> None:
    scene = _Scene(a=A, b=B)
    scene.open(7, A, B)
    scene.learn("b", C)
    assert _is_lost(scene.down(_request(7, 1))[0])
    assert _is_lost(scene.down(_request(7, 2))[0])


def test_a_topic_that_goes_elsewhere_leaves_other_sessions_alone() -> None:
    scene = _Scene(a=A, b=B)
    scene.open(7, A)
    scene.learn("b", C)
    sent, named = scene.down(_request(7, 1))
    assert sent.session_id == 7
    assert at_once(named.names(scene.view)) == ({"a": A}, (), [])


def test_a_topic_recreated_while_a_fetch_waits_is_reported_in_the_answer() -> None:
    scene = _Scene(a=A, b=B)
    _, named = scene.down(_request(topics={A: (0,), B: (0,)}))
    scene.learn("b", C)
    assert list(at_once(named.names(scene.view)).stale) == ["b"]


def test_a_topic_that_came_back_within_a_session_is_another_one() -> None:
    scene = _Scene(a=A, b=B)
    scene.open(7, A, B)
    scene.learn("b", C)
    assert _is_lost(scene.down(_request(7, 1, {C: (0,)}))[0])


def test_a_full_fetch_ends_the_session_that_it_names() -> None:
    scene = _Scene(a=A)
    scene.open(7, A)
    scene.down(_request(7, -1, {A: (0,)}))
    assert len(scene.sessions) == 0


def test_the_least_recently_used_session_goes() -> None:
    scene = _Scene(a=A)
    scene.sessions = FetchSessionsByName(2)
    scene.open(1, A)
    scene.open(2, A)
    assert not _is_lost(scene.down(_request(1, 1))[0])
    scene.open(3, A)
    assert _is_lost(scene.down(_request(2, 1))[0])
    assert not _is_lost(scene.down(_request(1, 2))[0])
    assert not _is_lost(scene.down(_request(3, 1))[0])


def test_what_was_right_by_one_view_is_looked_at_again_by_another() -> None:
    """An address led to another cluster for a while, in which a topic was recreated: the view that
    is made again knows the new one alone, and has found none recreated either.
    """
    scene = _Scene(a=A)
    scene.open(7, A)
    scene.view = LeaderView("k")
    scene.learn("a", B)
    sent, _ = scene.down(_request(7, 1))
    assert _is_lost(sent)


def test_so_is_what_an_answer_is_about() -> None:
    scene = _Scene(a=A)
    _, named = scene.down(_request(topics={A: (0,)}))
    scene.view = LeaderView("k")
    scene.learn("a", B)
    assert at_once(named.names(scene.view)).stale == {"a"}
