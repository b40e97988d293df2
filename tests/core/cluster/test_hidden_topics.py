from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.metadata import ANY_TOPIC
from tests.core.cluster.views import answer, view_of
from tests.core.samples import topic_id

_HIDDEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_topic_is_hidden_until_an_answer_shows_it() -> None:
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    assert not view.hidden

    view.hidden.take(answer({}, name="secret", error=_HIDDEN))

    assert "secret" in view.hidden
    assert topic_id(1) not in view.hidden
    assert [*view.hidden.names] == ["secret"]

    view.hidden.take(answer({0: (1, 5)}, name="secret"))

    assert "secret" not in view.hidden
    assert not view.hidden


def test_an_unknown_id_may_be_a_hidden_topics() -> None:
    view = view_of({0: (1, 5)}, topic=topic_id(1))
    assert topic_id(2) not in view.hidden
    seen = view.changes.count

    view.hidden.take(answer({}, name="secret", error=_HIDDEN))

    assert topic_id(2) in view.hidden
    # So there is news of any topic.
    assert view.changes.since(seen) is None


def test_none_is_hidden_only_where_brokers_were_asked() -> None:
    view = view_of()
    assert not view.hidden.none

    view.hidden.take(answer({}, name=ANY_TOPIC, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert view.hidden.none

    view.hidden.take(answer({}, name="secret", error=_HIDDEN))
    assert not view.hidden.none
