"""Topics that brokers hide from the proxy: from which of its routes."""

import pytest

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.metadata import ANY_TOPIC
from leader_hints.core.cluster.leader_view import LeaderView
from tests.core.cluster.views import answer, view_of
from tests.core.samples import topic_id

_HIDDEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NOT_THERE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _ask(view: LeaderView, route: str) -> None:
    """Have a route's broker asked whether it hides topics, which it does not."""
    view.hidden.take(answer({}, name=ANY_TOPIC, error=_NOT_THERE), route)


def test_a_topic_is_hidden_until_an_answer_shows_it() -> None:
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    assert not view.hidden

    view.hidden.take(answer({}, name="secret", error=_HIDDEN), "r")

    assert "secret" in view.hidden
    assert topic_id(1) not in view.hidden
    assert [*view.hidden.names("r")] == ["secret"]

    view.hidden.take(answer({0: (1, 5)}, name="secret"), "r")

    assert "secret" not in view.hidden
    assert not view.hidden


def test_an_unknown_id_may_be_a_hidden_topics() -> None:
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    assert topic_id(2) not in view.hidden
    seen = view.changes.count

    view.hidden.take(answer({}, name="secret", error=_HIDDEN), "r")

    assert topic_id(2) in view.hidden
    # So there is news of any topic.
    assert view.changes.since(seen) is None


def test_none_is_hidden_only_where_brokers_were_asked() -> None:
    view = view_of()
    assert not view.hidden.none("r")

    _ask(view, "r")
    assert view.hidden.none("r")
    assert not view.hidden.none("another")

    view.hidden.take(answer({}, name="secret", error=_HIDDEN), "r")
    assert not view.hidden.none("r")


def test_a_topic_is_hidden_from_the_routes_whose_principal_cannot_see_it() -> None:
    """One that any route could not see counted as hidden from all of them."""
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    _ask(view, "blind")
    _ask(view, "seeing")
    view.hidden.take(answer({0: (1, 5)}, topic=topic_id(1)), "seeing")
    view.hidden.take(answer({}, error=_HIDDEN), "blind")

    assert view.hidden.hides("blind", "t")
    assert not view.hidden.hides("seeing", "t")
    assert (view.hidden.some("blind"), view.hidden.none("blind")) == (True, False)
    assert (view.hidden.some("seeing"), view.hidden.none("seeing")) == (False, True)
    # What the other route learns gives hints to all.
    assert "t" not in view.hidden
    assert topic_id(1) not in view.hidden
    assert topic_id(2) not in view.hidden

    view.hidden.take(answer({}, error=_HIDDEN), "seeing")
    assert "t" in view.hidden
    assert topic_id(2) in view.hidden


@pytest.mark.parametrize("gone", ["lost", "leave"])
def test_what_a_route_saw_that_is_gone_nobody_sees(gone: str) -> None:
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    for route in ("blind", "seeing"):
        _ask(view, route)
    view.hidden.take(answer({}, error=_HIDDEN), "blind")
    view.hidden.take(answer({0: (1, 5)}, topic=topic_id(1)), "seeing")
    assert "t" not in view.hidden
    seen = view.changes.count

    {"lost": view.hidden.lost, "leave": view.leave}[gone]("seeing")

    assert "t" in view.hidden
    assert topic_id(2) in view.hidden
    assert view.changes.since(seen) is None
    # Its own clients may be connected still.
    assert view.hidden.none("seeing") == (gone == "lost")

    view.hidden.take(answer({0: (1, 5)}, topic=topic_id(1)), "seeing")
    assert "t" not in view.hidden


def test_what_was_hidden_from_a_route_that_left_is_hidden_no_more() -> None:
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    told: list[str] = []
    view.hidden.changed = told.append
    for route in ("one", "another"):
        view.hidden.take(answer({}, error=_HIDDEN), route)
    view.leave("one")
    assert [*view.hidden.routes] == ["another"]
    assert not view.hidden.hides("one", "t")
    assert "t" in view.hidden
    view.leave("another")
    assert not view.hidden
    assert [*view.hidden.names("another")] == []
    assert told == ["one", "another", "one", "another"]


def test_no_more_names_are_remembered_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader_hints.core.cluster.hidden_topics._MOST", 2)
    view = view_of()
    for name in ("a", "b", "c", "b"):
        view.learn(answer({0: (1, 5)}, name=name), 1)
        for route in ("r", "s"):
            view.hidden.take(answer({}, name=name, error=_HIDDEN), route)
    assert {*view.hidden.names("r")} == {*view.hidden.names("s")} == {"a", "b"}


def test_names_of_topics_that_were_deleted_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers say of them that they are hidden: after 10,000 no other topic was ever noted."""
    monkeypatch.setattr("leader_hints.core.cluster.hidden_topics._MOST", 2)
    view = view_of({0: (1, 5)})
    told: list[str] = []
    view.hidden.changed = told.append
    for name in ("t", "a", "b", "c"):
        view.hidden.take(answer({}, name=name, error=_HIDDEN), "r")
    assert [*view.hidden.names("r")] == ["t", "c"]
    assert told == ["r"]
    for name in ("t", "c"):
        view.hidden.take(answer({}, name=name), "r")
    assert not view.hidden


def test_a_route_that_leads_elsewhere_has_no_set_made_for_each_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """300 routes and 10,000 hidden topics took 35 ms in one step."""
    view, names = LeaderView("cluster"), [f"t{number}" for number in range(50)]
    for route in ("r", "s", "t"):
        for name in names:
            view.hidden.take(answer({}, name=name, error=_HIDDEN), route)
    made, shared = list[frozenset[str]](), view.topics._shared

    def noted(routes: frozenset[str]) -> frozenset[str]:
        made.append(routes)
        return shared(routes)

    monkeypatch.setattr(view.topics, "_shared", noted)
    view.hidden.leave("r")
    assert made == [{"s", "t"}]
    assert [*view.hidden.names("r")] == []
    assert [*view.hidden.names("s")] == [*view.hidden.names("t")] == names
