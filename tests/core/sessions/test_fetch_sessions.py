import sys
import tracemalloc
from collections.abc import Callable
from functools import cache, partial
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from leader_hints.apis.fetch_request import SMALL, FetchRequest, read_request
from leader_hints.apis.fetch_response import Topic
from leader_hints.apis.leader_hint import Failure
from leader_hints.core.sessions import fetch_sessions
from leader_hints.core.sessions.fetch_sessions import CAPACITY, FetchSessions
from leader_hints.wire.errors import WireError
from leader_hints.wire.steps import at_once
from tests.core.samples import fetch_request, topic_id

_PARTITIONS = st.tuples(st.integers(0, 2), st.integers(0, 2))
_EPOCHS = st.dictionaries(_PARTITIONS, st.integers(-1, 9), max_size=4)
_VERSIONS = st.sampled_from([12, 13, 15, 16])
_CAPACITY = 2


def _answered(sessions: FetchSessions, request: bytes, session_id: int) -> None:
    """Have a request followed, however large it is."""
    following = sessions.answered(request, session_id, 0)
    if following is not None:
        at_once(following)


def _epoch(sessions: FetchSessions, request: FetchRequest, topic: Topic, partition: int) -> int:
    failures = [Failure(topic, partition, 6, 0, 0)]
    (epoch,) = sessions.epochs(at_once(request.asked()), request.session_id, failures)
    return epoch


def test_the_session_that_was_unused_longest_goes_first() -> None:
    sessions = FetchSessions(2)
    for number in (1, 2):
        sessions.answered(fetch_request(12, 1, {("t", 0): number}, session=(0, 0)), number, 0)
    sessions.answered(fetch_request(12, 1, {}, session=(1, 1)), 1, 0)
    sessions.answered(fetch_request(12, 1, {("t", 0): 3}, session=(0, 0)), 3, 0)
    known = []
    for number in (1, 2, 3):
        request = read_request(memoryview(fetch_request(12, 1, {}, session=(number, 2))))
        known.append(_epoch(sessions, request, "t", 0))
    assert known == [1, -1, 3]


def test_what_leaves_a_session_is_forgotten() -> None:
    sessions = FetchSessions()
    opened = fetch_request(12, 1, {("t", 0): 5, ("t", 1): 6}, session=(0, 0))
    sessions.answered(opened, 7, 0)
    changed = fetch_request(12, 1, {("t", 0): 8}, session=(7, 1), forgotten=[("t", 1)])
    sessions.answered(changed, 7, 0)
    silent = read_request(memoryview(fetch_request(12, 1, {}, session=(7, 2))))
    assert [_epoch(sessions, silent, "t", p) for p in (0, 1)] == [8, -1]


def test_what_a_session_says_counts_where_it_began_before_the_process() -> None:
    sessions = FetchSessions()
    changed = fetch_request(12, 1, {("t", 0): 8}, session=(7, 9), forgotten=[("t", 1)])
    sessions.answered(changed, 7, 0)
    silent = read_request(memoryview(fetch_request(12, 1, {}, session=(7, 10))))
    assert [_epoch(sessions, silent, "t", p) for p in (0, 1, 2)] == [8, -1, -1]
    # What it has besides is not known.
    assert not sessions.asks_one(silent)


def test_a_session_of_before_that_says_too_much_is_not_followed() -> None:
    sessions = FetchSessions(most_weight=10)
    more: dict[tuple[Topic, int], int] = {("t", partition): 5 for partition in range(11)}
    sessions.answered(fetch_request(12, 1, more, session=(7, 9)), 7, 0)
    assert (len(sessions), sessions.weight) == (0, 0)
    sessions.answered(fetch_request(12, 1, {("t", 0): 5}, session=(0, 0)), 7, 0)
    silent = read_request(memoryview(fetch_request(12, 1, {}, session=(7, 1))))
    assert sessions.asks_one(silent)


def _knows(sessions: FetchSessions, number: int) -> bool:
    silent = read_request(memoryview(fetch_request(12, 1, {}, session=(number, 2))))
    return _epoch(sessions, silent, "t", 0) >= 0


def test_no_more_sessions_are_remembered_than_brokers_keep() -> None:
    sessions = FetchSessions()
    for number in range(1, 1102):
        sessions.answered(fetch_request(12, 1, {("t", 0): 5}, session=(0, 0)), number, 0)
    assert len(sessions) == CAPACITY == 1000
    assert [_knows(sessions, number) for number in (101, 102, 1101)] == [False, True, True]


def test_many_sessions_of_many_partitions_take_bounded_memory() -> None:
    weight = 4000
    sessions = FetchSessions(most_weight=weight)
    asked: dict[tuple[Topic, int], int] = {
        ("t", partition): 1000 + partition for partition in range(400)
    }
    opened = fetch_request(12, 1, asked, session=(0, 0))
    tracemalloc.start()
    try:
        for number in range(1, 51):
            _answered(sessions, opened, number)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Five times as many were asked for; numbers this large are objects of their own.
    assert taken < 160 * weight
    assert len(sessions) == weight // 401
    assert _knows(sessions, 50)
    assert not _knows(sessions, 1)


def test_a_session_that_grows_makes_others_give_way_and_at_last_itself() -> None:
    sessions = FetchSessions(most_weight=10)
    for number in (1, 2):
        sessions.answered(fetch_request(12, 1, {("t", 0): 5}, session=(0, 0)), number, 0)
    more: dict[tuple[Topic, int], int] = {("t", partition): 5 for partition in range(6)}
    sessions.answered(fetch_request(12, 1, more, session=(2, 1)), 2, 0)
    assert [_knows(sessions, number) for number in (1, 2)] == [True, True]
    sessions.answered(fetch_request(12, 1, {("u", 0): 5}, session=(2, 2)), 2, 0)
    assert [_knows(sessions, number) for number in (1, 2)] == [False, True]
    assert sessions.weight == 9
    gone = [("t", partition) for partition in range(1, 6)] + [("u", 0), ("v", 0)]
    sessions.answered(fetch_request(12, 1, {}, session=(2, 3), forgotten=gone), 2, 0)
    assert sessions.weight == 2
    sessions.answered(fetch_request(12, 1, {("x" * 2000, 0): 5}, session=(2, 4)), 2, 0)
    assert (len(sessions), sessions.weight) == (0, 0)


def test_a_session_is_not_known_until_a_large_request_was_followed() -> None:
    sessions = FetchSessions()
    sessions.answered(fetch_request(12, 1, {("t", 0): 5}, session=(0, 0)), 7, 0)
    asked: dict[tuple[Topic, int], int] = {(f"t{number}", 0): 6 for number in range(1000)}
    gone = [(f"t{number}", 0) for number in range(1, 1000)]
    following = sessions.answered(fetch_request(12, 1, asked, session=(7, 1)), 7, 0)
    assert following is not None
    assert (len(sessions), sessions.weight, _knows(sessions, 7)) == (0, 0, False)
    at_once(following)
    assert (len(sessions), sessions.weight, _knows(sessions, 7)) == (1, 2002, True)

    following = sessions.answered(fetch_request(12, 1, {}, session=(7, 2), forgotten=gone), 7, 0)
    assert following is not None
    at_once(following)
    assert (len(sessions), sessions.weight) == (1, 4)

    following = sessions.answered(fetch_request(12, 1, asked, session=(7, 3)), 7, 0)
    assert following is not None
    # Its link has ended meanwhile.
    following.close()
    assert (len(sessions), sessions.weight) == (0, 0)


def test_a_large_request_that_cannot_be_read_leaves_no_session() -> None:
    sessions = FetchSessions()
    asked: dict[tuple[Topic, int], int] = {(f"t{number}", 0): 6 for number in range(1000)}
    following = sessions.answered(fetch_request(12, 1, asked, session=(0, 0))[:-9], 7, 0)
    assert following is not None
    with pytest.raises(WireError):
        at_once(following)
    assert (len(sessions), sessions.weight) == (0, 0)


def _freed(step: Callable[[], object]) -> int:
    """Return how many objects of Python's own memory a step frees, in all."""
    before = sys.getallocatedblocks()
    step()
    return before - sys.getallocatedblocks()


@cache
def _asking(begin: int, topics: int, partition: int, session: tuple[int, int]) -> bytes:
    """Return a request for a partition of so many topics."""
    asked: dict[tuple[Topic, int], int] = {
        (topic_id(topic), partition): 5 for topic in range(begin, begin + topics)
    }
    return fetch_request(16, 1, asked, session=session)


@pytest.mark.parametrize("end", ["ended", "refused", "missed", "broken off", "all"])
def test_a_large_session_is_freed_in_steps(end: str) -> None:
    sessions = FetchSessions()
    _answered(sessions, _asking(0, 20_000, 0, (0, 0)), 7)
    ended, silent = (_asking(0, 0, 0, session) for session in ((7, -1), (7, 1)))
    more = _asking(0, 1000, 1, (7, 1))

    def break_off() -> None:
        following = sessions.answered(more, 7, 0)
        assert following is not None
        next(following)
        following.close()

    def forget_all() -> None:
        nonlocal sessions
        sessions = sessions.empty()

    steps: dict[str, Callable[[], object]] = {
        "ended": lambda: sessions.answered(ended, 0, 0),
        "refused": lambda: sessions.answered(silent, 7, 71),
        "missed": lambda: sessions.missed(7),
        "broken off": break_off,
        "all": forget_all,
    }
    freed = [_freed(steps[end])]
    assert (len(sessions), sessions.weight) == (0, 0)
    sweep = sessions.sweep()
    freed += [_freed(lambda: next(sweep, None)) for _ in range(20)]
    assert max(freed) < 15_000
    assert sum(freed) > 40_000
    assert next(sessions.sweep(), 0) == 0


def test_sessions_that_make_room_for_a_large_one_are_freed_in_steps() -> None:
    request = _asking(0, 20_000, 0, (0, 0))
    most = []
    for others in (0, 80):
        sessions = FetchSessions(most_weight=50_000)
        for number in range(others):
            _answered(sessions, _asking(200 * number, 200, 0, (0, 0)), number + 1)
        following = sessions.answered(request, 99, 0)
        assert following is not None
        # Of the request itself more is freed at the end.
        most.append(max(_freed(partial(next, following, None)) for _ in range(1000)))
    assert (len(sessions), _knows(sessions, 99)) == (26, False)
    assert most[1] < most[0] + 1000


def test_a_session_that_does_not_fit_takes_no_room_from_others() -> None:
    """All others were forgotten, and then it was."""
    sessions = FetchSessions(most_weight=3000)
    for number in range(10):
        _answered(sessions, _asking(0, 50, 0, (0, 0)), number + 1)
    weight = sessions.weight
    _answered(sessions, _asking(0, 2000, 0, (0, 0)), 99)
    assert (len(sessions), sessions.weight) == (10, weight)


def test_what_was_forgotten_is_freed_while_others_are_followed() -> None:
    sessions = FetchSessions()
    _answered(sessions, _asking(0, 20_000, 0, (0, 0)), 7)
    sessions.missed(7)
    silent = _asking(0, 0, 0, (8, 1))
    assert sum(_freed(lambda: sessions.answered(silent, 8, 0)) for _ in range(20)) > 40_000


class Sessions(RuleBasedStateMachine):
    """Clients and a broker that keep sessions as KIP-227 says, and what the proxy remembers.

    ``live``: the epochs in each session, by id, the longest unused first. A broker forgets
    sessions without a word; the proxy, that has room for as many, must not know more than
    what was last said in a session.
    """

    @initialize(version=_VERSIONS, small=st.sampled_from([0, SMALL]))
    def begin(self, version: int, small: int) -> None:
        """Begin; with ``small`` 0 each request is followed in steps."""
        self.version = version
        self.small = small
        self.sessions = FetchSessions(_CAPACITY)
        self.live: dict[int, dict[tuple[Topic, int], int]] = {}
        self.opened = 0

    def _answered(self, request: bytes, session_id: int, error: int) -> None:
        with patch.object(fetch_sessions, "SMALL", self.small):
            following = self.sessions.answered(request, session_id, error)
        if following is not None:
            at_once(following)

    def _named(self, epochs: dict[tuple[int, int], int]) -> dict[tuple[Topic, int], int]:
        return {(self._topic(topic), p): epoch for (topic, p), epoch in epochs.items()}

    def _topic(self, number: int) -> Topic:
        return f"t{number}" if self.version < 13 else topic_id(number)

    def _pick(self, data: st.DataObject, *, live: int = 1) -> int:
        """Return a session id; ``live``: how likely it is one that is known."""
        return data.draw(st.sampled_from([0, 0, 999, *self.live, *[*self.live] * live]))

    def _ask(self, asked: dict[tuple[Topic, int], int], **session: object) -> bytes:
        return fetch_request(self.version, 1, asked, **session)  # type: ignore[arg-type]

    @rule(epochs=_EPOCHS, data=st.data(), refused=st.booleans())
    def full_fetch_that_wants_a_session(
        self, epochs: dict[tuple[int, int], int], data: st.DataObject, refused: bool
    ) -> None:
        old = self._pick(data, live=0)
        asked = self._named(epochs)
        self.live.pop(old, None)
        self.opened += 1
        session_id = 0 if refused else self.opened
        self._answered(self._ask(asked, session=(old, 0)), session_id, 0)
        if session_id:
            self.live[session_id] = asked
            if len(self.live) > _CAPACITY:
                self.live.pop(next(iter(self.live)))

    @rule(epochs=_EPOCHS, data=st.data())
    def full_fetch_that_ends_a_session(
        self, epochs: dict[tuple[int, int], int], data: st.DataObject
    ) -> None:
        old = self._pick(data)
        self.live.pop(old, None)
        self._answered(self._ask(self._named(epochs), session=(old, -1)), 0, 0)

    @rule(epochs=_EPOCHS, forgotten=st.sets(_PARTITIONS), data=st.data(), epoch=st.integers(1, 99))
    def incremental_fetch(
        self,
        epochs: dict[tuple[int, int], int],
        forgotten: set[tuple[int, int]],
        data: st.DataObject,
        epoch: int,
    ) -> None:
        session_id = self._pick(data, live=4)
        asked = self._named(epochs)
        dropped = [(self._topic(t), p) for t, p in forgotten if (t, p) not in epochs]
        request = self._ask(asked, session=(session_id, epoch), forgotten=dropped)
        if session_id in self.live:
            self._answered(request, session_id, 0)
            session = self.live.pop(session_id)
            session.update(asked)
            self.live[session_id] = {k: v for k, v in session.items() if k not in dropped}
        else:
            self._answered(request, 0, 70)

    @rule(epochs=_EPOCHS)
    def incremental_fetch_in_a_session_of_before(self, epochs: dict[tuple[int, int], int]) -> None:
        asked = self._named(epochs)
        self.opened += 1
        self.sessions.answered(self._ask(asked, session=(self.opened, 5)), self.opened, 0)
        if asked:
            self.live[self.opened] = asked
            if len(self.live) > _CAPACITY:
                self.live.pop(next(iter(self.live)))

    @rule(epochs=_EPOCHS, data=st.data(), error=st.sampled_from([70, 71]))
    def fetch_that_the_broker_refuses(
        self, epochs: dict[tuple[int, int], int], data: st.DataObject, error: int
    ) -> None:
        # The client begins again with a full fetch; what it asked now is not in the session.
        session_id = self._pick(data)
        request = self._ask(self._named(epochs), session=(session_id, 3))
        self._answered(request, 0, error)
        self.live.pop(session_id, None)

    @invariant()
    def knows_what_was_last_said_in_each_session(self) -> None:
        if not hasattr(self, "live"):
            return
        assert len(self.sessions) == len(self.live) <= _CAPACITY
        topics = [{topic for topic, _ in said} for said in self.live.values()]
        assert self.sessions.weight >= sum(map(len, self.live.values())) + sum(map(len, topics))
        assert self.live or not self.sessions.weight
        for session_id in [0, 999, *self.live]:
            silent = read_request(memoryview(self._ask({}, session=(session_id, 5))))
            said = self.live.get(session_id, {})
            for number in range(3):
                topic = self._topic(number)
                for partition in range(3):
                    known = _epoch(self.sessions, silent, topic, partition)
                    assert known == said.get((topic, partition), -1)

    @rule(epoch=st.integers(-1, 9), data=st.data())
    def what_the_request_itself_says_counts_first(self, epoch: int, data: st.DataObject) -> None:
        asked = self._ask({(self._topic(0), 0): epoch}, session=(self._pick(data), 5))
        request = read_request(memoryview(asked))
        assert _epoch(self.sessions, request, self._topic(0), 0) == epoch


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=40, stateful_step_count=25)


def _opened_elsewhere_too() -> FetchSessions:
    """Return sessions of a worker, of which session 7 has gone on once."""
    sessions = FetchSessions(moves=True)
    _answered(sessions, fetch_request(12, 1, {("t", 0): 5, ("t", 1): 6}, session=(0, 0)), 7)
    _answered(sessions, fetch_request(12, 1, {("t", 0): 8}, session=(7, 1)), 7)
    return sessions


def _silent(number: int) -> FetchRequest:
    return read_request(memoryview(fetch_request(12, 1, {}, session=(7, number))))


def test_a_session_that_may_move_and_stays_is_known() -> None:
    sessions = _opened_elsewhere_too()
    _answered(sessions, fetch_request(12, 1, {}, session=(7, 2)), 7)
    _answered(sessions, fetch_request(12, 1, {("t", 0): 9}, session=(7, 3)), 7)
    assert [_epoch(sessions, _silent(4), "t", p) for p in (0, 1)] == [9, 6]


@pytest.mark.parametrize("asked", [{}, {("t", 0): 9}])
def test_a_session_that_comes_back_from_another_worker_is_not_known(
    asked: dict[tuple[Topic, int], int],
) -> None:
    """What it has said there, such as a newer epoch, must not be overlooked."""
    sessions = _opened_elsewhere_too()
    # Number 2 went elsewhere.
    _answered(sessions, fetch_request(12, 1, asked, session=(7, 3)), 7)
    assert _epoch(sessions, _silent(4), "t", 1) == -1
    assert _epoch(sessions, _silent(4), "t", 0) == asked.get(("t", 0), -1)
    # What it says from then on is known.
    _answered(sessions, fetch_request(12, 1, {("t", 1): 7}, session=(7, 4)), 7)
    assert _epoch(sessions, _silent(5), "t", 1) == 7


def test_a_session_that_was_elsewhere_may_ask_for_several_partitions() -> None:
    sessions = FetchSessions(moves=True)
    _answered(sessions, fetch_request(12, 1, {("t", 0): 5}, session=(0, 0)), 7)
    assert sessions.asks_one(_silent(1))
    assert not sessions.asks_one(_silent(2))


def test_the_number_that_follows_the_last_one_is_one() -> None:
    sessions = FetchSessions(moves=True)
    _answered(sessions, fetch_request(12, 1, {("t", 0): 5}, session=(0, 0)), 7)
    sessions._sessions[7].last = 2**31 - 1
    _answered(sessions, fetch_request(12, 1, {("t", 0): 6}, session=(7, 1)), 7)
    assert _epoch(sessions, _silent(2), "t", 0) == 6


def test_sessions_that_are_emptied_go_on_to_notice_moves() -> None:
    sessions = _opened_elsewhere_too().empty()
    _answered(sessions, fetch_request(12, 1, {("t", 0): 5}, session=(0, 0)), 7)
    _answered(sessions, fetch_request(12, 1, {}, session=(7, 2)), 7)
    assert _epoch(sessions, _silent(3), "t", 0) == -1
