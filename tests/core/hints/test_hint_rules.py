"""The table of the hint rules: give, wait or none."""

import itertools

import pytest

from leader_hints.apis.leader_hint import Failure
from leader_hints.apis.metadata import Led, TopicMetadata
from leader_hints.core.cluster.doubts import Source
from leader_hints.core.hints import hint_rules
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.hint_rules import PROOFS, Named
from leader_hints.core.hints.hold_rules import RECENT
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.route import Route
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH
from tests.core.cluster.views import answer
from tests.core.hold_queues import BEGIN, learn, route
from tests.core.samples import FENCED, NOT_LEADER, topic_id

_NODES = {Named.ITSELF: 1, Named.ANOTHER: 2, Named.EITHER: 2, Named.NOBODY: -1}


def _partition(
    on: Route, *, epoch: int, asked: bool, fenced: bool, by_id: bool, late: bool
) -> FailedPartition:
    topic = topic_id(1) if by_id else "t"
    failure = Failure(topic, 0, FENCED if fenced else NOT_LEADER, 0, 0)
    since = BEGIN + (2 if late else 0)
    partition = FailedPartition(failure, epoch, since, hint_rules.led_epoch(on, failure))
    partition.asked = asked
    return partition


@pytest.mark.parametrize("named", Named)
@pytest.mark.parametrize("epoch", [-1, 4, 5])
def test_a_hint_is_good_as_the_table_says(named: Named, epoch: int) -> None:
    for led, asked, fenced, by_id, late in itertools.product([False, True], repeat=5):
        on = route(node=None if named is Named.EITHER else 1)
        former = 1 if led else 3
        learn(on, {0: (former, 5)}, topic_id=topic_id(1))
        learn(on, {0: (_NODES[named], 6)}, topic_id=topic_id(1))
        partition = _partition(on, epoch=epoch, asked=asked, fenced=fenced, by_id=by_id, late=late)
        known_to_have_led = led and on.broker.node == 1
        # A client at an earlier epoch may mean a topic that was recreated since the move.
        last_move = epoch == 5 and not late
        good = {
            (True, Named.ITSELF): asked or (fenced and last_move),
            (True, Named.ANOTHER): by_id or asked or last_move,
            (True, Named.EITHER): by_id or asked or last_move,
            (True, Named.NOBODY): (by_id and not late) or asked or last_move,
            (False, Named.ITSELF): asked,
            (False, Named.ANOTHER): asked or (known_to_have_led and not late),
            (False, Named.EITHER): False,
            (False, Named.NOBODY): asked,
        }[epoch >= 0, named]
        if named is Named.ITSELF:
            # The view has it that the broker that answered leads at this epoch already.
            good &= epoch >= 0
        known, hint, reason = hint_rules.judge(on, partition, RECENT)
        assert known == (_NODES[named], 6)
        assert (hint is not None) == (good and named is not Named.NOBODY)
        assert reason == (MissReason.NO_LEADER if good and named is Named.NOBODY else None)


def test_the_table_has_a_row_for_each_case() -> None:
    assert PROOFS.keys() == {*itertools.product([False, True], Named)}


@pytest.mark.parametrize("epoch", [6, 7])
def test_an_epoch_that_the_client_knows_is_no_news(epoch: int) -> None:
    on = route()
    learn(on, {0: (1, 5)}, topic_id=topic_id(1))
    learn(on, {0: (2, 6)}, topic_id=topic_id(1))
    partition = _partition(on, epoch=epoch, asked=True, fenced=False, by_id=True, late=False)
    assert hint_rules.judge(on, partition, RECENT) == ((2, 6), None, None)


def test_a_broker_has_led_at_the_last_epoch_of_its_own_unless_that_is_in_doubt() -> None:
    on = route()
    failure = Failure("t", 0, NOT_LEADER, 0, 0)
    assert hint_rules.led_epoch(on, failure) == UNKNOWN_EPOCH
    learn(on, {0: (1, 5)})
    assert hint_rules.led_epoch(on, failure) == 5
    learn(on, {0: (2, 6)})
    assert hint_rules.led_epoch(on, failure) == 5
    # Either this broker lags, or the topic was recreated: then node 1 did not lead it at epoch 5.
    learn(on, {0: (3, 0)}, source=3)
    assert hint_rules.led_epoch(on, failure) == UNKNOWN_EPOCH


@pytest.mark.parametrize("node", [1, None])
@pytest.mark.parametrize("fenced", [False, True])
def test_no_hint_by_name_while_the_broker_reports_another_id(
    node: int | None, *, fenced: bool
) -> None:
    """A process that begins while a topic is recreated may learn of the former one last.

    Then it takes that for the newer until polls show the truth.
    """
    on = route(node=1)
    own, former, present = Source(node, "route"), topic_id(1), topic_id(2)
    assert on.broker.view is not None

    def report(leader: Led, topic: bytes, source: Source) -> None:
        led = TopicMetadata(0, "t", topic, (leader,))
        on.broker.view.learn(led, source.node, route=source.route)  # type: ignore[union-attr]

    report(Led(0, 1, 2), present, Source(3))
    report(Led(0, 3, 3), former, Source(2))
    report(Led(0, 1, 3), present, own)
    partition = _partition(on, epoch=-1, asked=True, fenced=fenced, by_id=False, late=True)
    assert hint_rules.judge(on, partition, RECENT) == ((3, 3), None, None)

    report(Led(0, 3, 3), former, own)
    _, hint, _ = hint_rules.judge(on, partition, RECENT)
    assert hint is not None


@pytest.mark.parametrize("hidden", [False, True])
def test_a_hint_of_a_hidden_topic_is_not_waited_for(hidden: bool) -> None:
    on = route()
    learn(on, {0: (1, 5)}, topic_id=topic_id(1))
    assert on.broker.view is not None
    on.broker.view.hidden.take(answer({}, error=29 if hidden else 0), on.name)
    partition = _partition(on, epoch=5, asked=True, fenced=False, by_id=True, late=False)
    reason = MissReason.NOT_AUTHORIZED if hidden else None
    assert hint_rules.judge(on, partition, RECENT) == ((1, 5), None, reason)
