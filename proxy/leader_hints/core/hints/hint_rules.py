"""Which hint a failed partition gets: give it now, wait for more, or none.

A hint is good if leader and epoch come from one answer, and the epoch is above the newest one that
is known of client and broker. An epoch also rises while the leader stays, so a rule that waits for
another leader may wait in vain. Besides, one of the proofs in :data:`PROOFS` must hold.

A Produce request carries no epoch, and some Fetch requests carry none. So the named leader must be
another broker than the one that answered, or the epoch must be above the last one at which that
broker was known to lead. The proof of a move counts for about a second only: later the broker may
have led again without a report to this proxy, and a client that knows of that takes no older epoch.

A topic may have been deleted and recreated without a report to this proxy. Then its epochs begin
with 0 again, and an epoch above the client's may be of the former topic. Only a client that gives
the topic's own id cannot mean another one. So a recent move proves something only to a client that
knew the epoch before it. What brokers contradict (:mod:`leader_hints.core.cluster.doubts`) is no
hint until that is settled.

A hint that arrives before the leader serves costs the client an attempt and a longer back-off. So
a hint waits until the leader confirms it: briefly if the leader answers nothing, and as long as the
response may be held if the leader answers that it does not lead yet.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from leader_hints.apis.error_codes import ErrorCode
from leader_hints.apis.leader_hint import Failure, LeaderHint
from leader_hints.core.cluster.doubts import Source
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.hints.failed_partition import FailedPartition
from leader_hints.core.hints.miss_reason import MissReason
from leader_hints.core.route import Route
from leader_hints.core.sessions.fetch_sessions import UNKNOWN_EPOCH


class Named(Enum):
    """Whom the view names as leader: the broker that answered, another one, one of both, nobody."""

    ITSELF = auto()
    ANOTHER = auto()
    EITHER = auto()
    NOBODY = auto()


class Limit(Enum):
    """How long a response may be held for a partition without a hint (rule 9)."""

    DEADLINE = auto()
    GRACE = auto()
    NOT_AT_ALL = auto()


class Judgement(NamedTuple):
    """``known``: the view's leader. ``hint``: a good one; ``reason``: why there is none so far."""

    known: Leader | None
    hint: LeaderHint | None
    reason: MissReason | None


def _own_id(route: Route, partition: FailedPartition, recent: float) -> bool:
    """Whether the client means the topic that the view has."""
    view = route.broker.view
    return view is None or not view.topics.may_be_former(partition.failure.topic)


def _own_id_since_a_move(route: Route, partition: FailedPartition, recent: float) -> bool:
    """As :func:`_own_id`, if the view has just learnt of the last move.

    That a partition has no leader ends with the next election, of which the view may not hear.
    """
    return _own_id(route, partition, recent) and has_just_moved(route, partition, recent)


def _asked(route: Route, partition: FailedPartition, recent: float) -> bool:
    """Whether the broker itself has answered after the error, and does not contradict the view."""
    return partition.asked and not is_contradicted(route, partition)


def is_contradicted(route: Route, partition: FailedPartition) -> bool:
    """Whether what the broker reported last contradicts the view.

    The leader's own confirmation settles a contradiction. But one that has not learnt that a topic
    was recreated still leads the former one, and confirms that. And one that reports another id of
    the topic means another topic: it lags, or the view does.
    """
    view = route.broker.view
    if view is None:
        return False
    topic, number = partition.failure[:2]
    about = view.topics.get(topic)
    # Mostly neither: each failed partition of a storm of moves comes here.
    if about is None or not (about.elsewhere or about.former or view.disagreements):
        return False
    source = Source(route.broker.proved_node, route.name)
    if about.is_another_to(source):
        return True
    known = view.leader(topic, number)
    place = view.topics.key(topic), number
    return known is not None and view.disagreements.contradicts(place, source, known)


def has_just_moved(route: Route, partition: FailedPartition, recent: float) -> bool:
    """Whether the error can be of the last move that the view knows."""
    view = route.broker.view
    moved_at = view.moved_at(*partition.failure[:2]) if view is not None else None
    return moved_at is not None and moved_at > partition.since - recent


def _knew_all_but_a_move(route: Route, partition: FailedPartition, recent: float) -> bool:
    """As :func:`has_just_moved`, if the client knew the epoch before that move.

    One at a lower epoch may mean a topic of the same name that was recreated within that time.
    """
    topic, number = partition.failure[:2]
    before = route.broker.view.before(topic, number) if route.broker.view else None
    knew = before is not None and partition.client_epoch >= before.epoch
    return knew and has_just_moved(route, partition, recent)


def _fenced_by_a_move(route: Route, partition: FailedPartition, recent: float) -> bool:
    """As :func:`_knew_all_but_a_move`, for FENCED_LEADER_EPOCH.

    Without a recent move, a broker that fences an epoch may have been overtaken since: it compares
    epochs before it looks whether it leads.
    """
    fenced = partition.failure.error == ErrorCode.FENCED_LEADER_EPOCH
    return fenced and _knew_all_but_a_move(route, partition, recent)


def _led_until_a_move(route: Route, partition: FailedPartition, recent: float) -> bool:
    """As :func:`has_just_moved`, if the broker was known to lead before."""
    return partition.led >= 0 and has_just_moved(route, partition, recent)


Proof = Callable[[Route, FailedPartition, float], bool]

#: Any one of these is enough, by whether the client's epoch is known and whom the view names. A
#: broker that is named itself must have answered: a KRaft broker may learn up to 500 ms later that
#: it leads.
PROOFS: Mapping[tuple[bool, Named], tuple[Proof, ...]] = {
    (True, Named.ITSELF): (_asked, _fenced_by_a_move),
    (True, Named.ANOTHER): (_own_id, _asked, _knew_all_but_a_move),
    (True, Named.EITHER): (_own_id, _asked, _knew_all_but_a_move),
    (True, Named.NOBODY): (_own_id_since_a_move, _asked, _knew_all_but_a_move),
    (False, Named.ITSELF): (_asked,),
    (False, Named.ANOTHER): (_asked, _led_until_a_move),
    (False, Named.EITHER): (),
    (False, Named.NOBODY): (_asked,),
}

_NAMED = {True: Named.ITSELF, False: Named.ANOTHER, None: Named.EITHER}


def led_epoch(route: Route, failure: Failure) -> int:
    """Return the epoch at which the answering broker is known to have led last."""
    view = route.broker.view
    if view is None or view.in_doubt(failure.topic, failure.partition):
        return UNKNOWN_EPOCH
    known = view.leader(failure.topic, failure.partition)
    before = view.before(failure.topic, failure.partition)
    for leader in (known, before):
        if leader is not None and route.broker.is_self(leader.node):
            return leader.epoch
    return UNKNOWN_EPOCH


def judge(route: Route, partition: FailedPartition, recent: float) -> Judgement:
    """Return the hint that the view has, or why there is none so far.

    ``recent``: seconds for which a move proves something.
    """
    failure, view = partition.failure, route.broker.view
    leader = view.leader(failure.topic, failure.partition) if view is not None else None
    if leader is None or not _is_good(route, partition, leader, recent):
        # To ask would bring nothing. Clients still get what is known.
        hidden = view is not None and failure.topic in view.hidden
        return Judgement(leader, None, MissReason.NOT_AUTHORIZED if hidden else None)
    if leader.node < 0:
        return Judgement(leader, None, MissReason.NO_LEADER)
    endpoint = route.endpoint(leader.node)
    if endpoint is None:
        return Judgement(leader, None, MissReason.NO_ENDPOINT)
    return Judgement(leader, LeaderHint(leader.node, leader.epoch, endpoint), None)


def _is_good(route: Route, partition: FailedPartition, leader: Leader, recent: float) -> bool:
    if leader.epoch <= partition.newest:
        return False
    named = _NAMED[route.broker.is_self(leader.node)] if leader.node >= 0 else Named.NOBODY
    for proof in PROOFS[partition.client_epoch >= 0, named]:
        if proof(route, partition, recent):
            return True
    return False


def confirmation(route: Route, partition: FailedPartition, hint: LeaderHint) -> bool | None:
    """Return whether the leader itself confirms a hint; ``None``: it has answered nothing.

    False as well if brokers contradict it, and that is not settled.
    """
    topic, number, error, _, _ = partition.failure
    view = route.broker.view
    if view is not None and view.in_doubt(topic, number):
        return False
    if route.broker.is_self(hint.leader):
        # NOT_LEADER_OR_FOLLOWER is the answer of no leader, FENCED_LEADER_EPOCH may be of one.
        fenced = error == ErrorCode.FENCED_LEADER_EPOCH and not partition.is_fenced_blindly
        return True if fenced and partition.serves is None else partition.serves
    return view.is_confirmed(topic, number) if view is not None else None


def is_settled(route: Route, partition: FailedPartition) -> bool:
    """Whether no error waits, or not any more, until all brokers' Metadata names the leader."""
    if not partition.settles:
        return True
    (topic, number, *_), view = partition.failure, route.broker.view
    return view is not None and view.metadata_brokers.all_name((view.topics.key(topic), number))


def produce_limit(route: Route, partition: FailedPartition, recent: float) -> Limit:
    """Return how long a Produce error of a partition without a hint may be held (rule 9).

    Not at all if the broker that answered comes to lead, and only briefly if nobody knows whether
    it does: the client may know of a move that the view does not, and the broker's Metadata shows
    that.
    """
    leader, view = partition.known, route.broker.view
    itself = route.broker.is_self(leader.node) if leader is not None and leader.node >= 0 else None
    just = has_just_moved(route, partition, recent)
    if leader is not None and itself:
        serves = view is not None and view.serves(*partition.failure[:2])
        return Limit.NOT_AT_ALL if just and not serves else Limit.DEADLINE
    if itself is None or partition.led < 0 or not just:
        return Limit.NOT_AT_ALL if partition.asked else Limit.GRACE
    return Limit.DEADLINE
