import pytest

from leader_hints.core.cluster.topic_changes import TopicChanges


def test_news_are_of_the_topics_that_changed_since_a_count() -> None:
    changes = TopicChanges()
    changes.add(("a", b"id of a"))
    seen = changes.count
    assert changes.since(seen) == set()

    for topic in ("b", "c", "b"):
        changes.add((topic,))

    assert changes.since(seen) == {("b",), ("c",)}
    assert changes.since(0) == {("a", b"id of a"), ("b",), ("c",)}


def test_the_last_news_come_first() -> None:
    changes = TopicChanges()
    topics = [(f"t{number * 7 % 20}",) for number in range(20)]
    for topic in topics:
        changes.add(topic)
    assert [*(changes.since(0) or ())] == topics[::-1]


def test_news_may_be_of_any_topic_where_too_many_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader_hints.core.cluster.topic_changes._REMEMBERED", 2)
    changes = TopicChanges()
    for topic in "abc":
        changes.add((topic,))

    assert changes.since(0) is None
    assert changes.since(1) == {("b",), ("c",)}


def test_news_of_any_topic_are_not_narrowed_down() -> None:
    changes = TopicChanges()
    changes.add(("a",))
    changes.add_any()

    assert changes.since(0) is None
    assert changes.since(changes.count) == set()

    seen = changes.count
    changes.add_any()
    assert changes.since(seen) is None
