from leader_hints.core.cluster.synthetic_id_agreement import AWAY_SECONDS, SyntheticIdAgreement
from leader_hints.core.events import TopicIdsOffered, TopicIdsWithheld

_NODES = (1, 2, 3)
_NOW = 100.0
_OFFERED = TopicIdsOffered(cluster="k")


def _agreed() -> SyntheticIdAgreement:
    agreement = SyntheticIdAgreement("k")
    for node in _NODES:
        assert agreement.judge(node, str(node), None) == []
    assert agreement.review(_NODES, _NOW) == [_OFFERED]
    return agreement


def test_who_was_never_asked_gives_none() -> None:
    agreement = SyntheticIdAgreement("k")
    assert agreement.review((), _NOW) == []
    agreement.judge(1, "1", None)
    agreement.judge(2, "2", None)
    assert agreement.review(_NODES, _NOW) == []
    assert not agreement.reached


def test_it_is_reported_once_when_all_give_them() -> None:
    agreement = _agreed()
    assert agreement.reached
    assert agreement.review(_NODES, _NOW) == []


def test_one_that_does_not_is_reported_once_until_it_does() -> None:
    agreement = _agreed()
    withheld = TopicIdsWithheld(cluster="k", broker="two:9092", reason="none")
    assert agreement.judge(2, "two:9092", "none") == [withheld]
    assert agreement.judge(2, "two:9092", "none") == []
    assert agreement.review(_NODES, _NOW) == []
    assert not agreement.reached
    assert agreement.judge(2, "two:9092", None) == []
    assert agreement.review(_NODES, _NOW) == [_OFFERED]
    assert agreement.judge(2, "two:9092", "none") == [withheld]


def test_a_broker_that_gives_them_and_is_gone_does_not_count() -> None:
    agreement = _agreed()
    assert agreement.review((1, 3), _NOW) == []
    assert agreement.reached
    assert agreement.review((1, 3, 4), _NOW) == []
    assert not agreement.reached


def test_a_broker_that_gives_none_counts_until_it_is_gone_for_long() -> None:
    agreement = _agreed()
    nodes = (*_NODES, 4)
    agreement.judge(4, "4", "none")
    agreement.review(nodes, _NOW)
    # It restarts, and comes back as it was: ids that clients got meanwhile would be gone again.
    assert agreement.review(_NODES, _NOW + 5) == []
    assert not agreement.reached
    assert agreement.review(nodes, _NOW + 8) == []
    # It leaves for good.
    assert agreement.review(_NODES, _NOW + 10) == []
    assert agreement.is_news("the same", _NOW + 10)
    assert not agreement.is_news("the same", _NOW + 9 + AWAY_SECONDS)
    assert agreement.review(_NODES, _NOW + 9 + AWAY_SECONDS) == []
    assert agreement.is_news("the same", _NOW + 10 + AWAY_SECONDS)
    assert agreement.review(_NODES, _NOW + 10 + AWAY_SECONDS) == [_OFFERED]
    assert not agreement.is_news("the same", _NOW + 11 + AWAY_SECONDS)


def test_a_broker_that_joins_and_is_gone_before_it_was_asked_does_not_count() -> None:
    agreement = _agreed()
    agreement.review((*_NODES, 4), _NOW)
    assert not agreement.reached
    assert agreement.review(_NODES, _NOW + 1) == [_OFFERED]


def test_a_broker_that_comes_back_with_them_lacks_nothing() -> None:
    agreement = _agreed()
    agreement.judge(2, "2", "none")
    agreement.review(_NODES, _NOW)
    agreement.review((1, 3), _NOW + 5)
    agreement.judge(2, "2", None)
    assert agreement.review(_NODES, _NOW + 8) == [_OFFERED]


def test_what_clients_say_has_brokers_asked_now_and_then_and_withholds_nothing() -> None:
    agreement = _agreed()
    # Five links a second, for a minute: anybody can open them.
    asked = sum(agreement.doubted(at / 5) for at in range(300))
    assert 1 <= asked <= 7
    assert agreement.reached
    assert agreement.review(_NODES, _NOW) == []


def test_the_answer_to_a_doubt_withholds_them() -> None:
    agreement = _agreed()
    assert agreement.doubted(100.0)
    agreement.judge(3, "3", "none")
    agreement.review(_NODES, _NOW)
    assert not agreement.reached
