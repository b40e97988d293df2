"""Which node stands behind a broker.

No request asks a broker for its id, and addresses do not tell: brokers advertise the
proxies'. But only a leader answers ListOffsets, and it leads one partition at one epoch: a
broker that answers for a partition at the epoch that the view has is that partition's leader,
and one that answers NOT_LEADER_OR_FOLLOWER is another.

The first is a proof. The second is one only if it lasts: a broker that restarts does not know at
once what it leads. Where all others are ruled out, the broker is taken for the one that is left.
That is a guess, which never stands against a proof: a KRaft broker that restarts answers before its
own Metadata lists it, and then one that leads nothing is left in its place. So what a broker says
of itself counts as the word of a node only where that node is proved.

What is proved stays so over restarts, as long as the node is advertised at one address. A node that
is advertised elsewhere may have moved, as a new pod has, and another node may stand here.
Where that one leads nothing, and the former one neither, no answer would ever tell.

Brokers are asked by name. While a broker lags behind the view, or leads the view, after a topic was
recreated, it may lead the one topic at the epoch at which another node leads the other. So a proof
that contradicts an earlier one, of which node the broker is or is not, must last as well. If the
name leads to another address than it did then, another broker stands there. If not, neither of two
proofs counts for a while: the broker may never lead anything again by which it would be known.
"""

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from leader_hints.apis.leader_hint import Endpoint
from leader_hints.apis.list_offsets import Partition
from leader_hints.core.broker_state import BrokerState
from leader_hints.core.cluster.doubts import Source
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.leadership_answer import LeadershipAnswer, leadership_answer

Probe = dict[Partition, Leader]

#: Seconds after which a broker is taken to have heard that a topic was recreated.
_DISPUTED_SECONDS = 30.0
#: Nodes that are not listed of which it is remembered where they were.
_MOST_LEFT = 1000


def probing(view: LeaderView, probe: Probe, source: Source) -> Iterator[None]:
    """Add one partition for each node that leads something, to be asked of the broker ``source``.

    In steps: there may be very many topics.
    """
    return view.one_led_by_each(probe, source)


def leave(broker: BrokerState) -> None:
    """Know nothing any more: the route leads to another cluster, whose nodes are others."""
    forget(broker)
    broker.endpoints = broker.left = MappingProxyType({})
    broker.disputed = None


def forget(broker: BrokerState) -> None:
    """Know nothing any more of which node the broker is."""
    broker.node, broker.guessed, broker.others = None, False, frozenset()
    broker.former_others = frozenset()
    broker.refused = MappingProxyType({})
    broker.contradicted = broker.proved_at = None


class Listed(NamedTuple):
    """What a list of the cluster's brokers changes. ``moved``: nodes in whose places others
    may stand now. ``refuted``: it was proved which node the broker is, and is not any more."""

    moved: set[int]
    refuted: bool


def listed(broker: BrokerState, endpoints: Mapping[int, Endpoint]) -> Listed:
    """Take the list of the cluster's brokers."""
    moved = _moved(broker, endpoints)
    broker.former_others -= moved
    broker.endpoints = endpoints
    node = broker.proved_node
    if node is None:
        # More than one may be left of a guess.
        broker.node, broker.guessed = None, False
        return Listed(moved, refuted=False)
    former = broker.proved_at
    _note_address(broker, node)
    # It may not be listed, while it restarts, and another one where it was.
    taken = node not in endpoints and any(at[:2] == former for at in endpoints.values())
    if former in (None, broker.proved_at) and not taken:
        return Listed(moved, refuted=False)
    forget(broker)
    return Listed(moved | {node}, refuted=True)


def presume(broker: BrokerState, peer: str = "") -> None:
    """Keep what is proved alone: a new connection may lead to another broker.

    But have those go on to be polled that it was proved not to be: it mostly leads to the same one.
    ``peer``: the IP address to which it leads.
    """
    broker.peer = peer
    if broker.proved_node is None:
        others = broker.others | broker.former_others
        forget(broker)
        broker.former_others = others
    broker.refused = MappingProxyType({})
    broker.contradicted = None


def conclude(
    broker: BrokerState,
    asked: Probe,
    errors: dict[Partition, int],
    now: float = 0.0,
    patience: float = 0.0,
) -> None:
    """Take the broker's answer: set its ``node``, or what it is not.

    ``patience``: seconds for which a broker must have refused to be a node that it is not. An
    answer that contradicts what was known undoes it: another broker may stand there now.
    """
    answers = {place: leadership_answer(errors.get(place)) for place in asked}
    leads = {asked[p].node for p, answer in answers.items() if answer is LeadershipAnswer.LEADS}
    if len(leads) == 1:
        (node,) = leads
        if not _stands(broker, node, now, patience):
            return
        if broker.proved_node != node:
            broker.proved_at = None
        broker.node, broker.guessed, broker.others = node, False, frozenset()
        broker.former_others = frozenset()
        broker.refused = MappingProxyType({})
        broker.proved_peer = broker.peer
        _note_address(broker, node)
        return
    refused = {
        asked[p].node for p, answer in answers.items() if answer is LeadershipAnswer.NEVER_LEADS
    }
    since = {node: broker.refused.get(node, now) for node in refused}
    nodes = {leader.node for leader in asked.values()}
    others = {node: at for node, at in broker.refused.items() if node not in nodes}
    broker.refused = MappingProxyType(others | since)
    ruled_out = {node for node in refused if now >= since[node] + patience}
    if broker.node in ruled_out:
        broker.node, broker.guessed, broker.others = None, False, frozenset()
    forgotten = broker.view.topics.forgotten if broker.view is not None else 0
    if forgotten != broker.forgotten:
        # What ruled a node out may have been a former topic of the name.
        broker.others &= nodes
        broker.forgotten = forgotten
    broker.others |= ruled_out
    # Of the rest it was not asked, so nothing proves it any more.
    broker.former_others = (broker.former_others & nodes) - broker.others
    if broker.proved_node is None:
        _guess(broker)


def next_conclusion(broker: BrokerState, now: float, patience: float) -> float:
    """Return when a refusal, or a proof against an earlier one, will have lasted for ``patience``
    seconds; infinity: none waits.
    """
    due = [at + patience for node, at in broker.refused.items() if node not in broker.others]
    if broker.contradicted is not None:
        due.append(broker.contradicted[1] + patience)
    if broker.disputed is not None:
        due.append(broker.disputed[1])
    return min((at for at in due if at > now), default=math.inf)


def is_settled(broker: BrokerState) -> bool:
    """Whether it is proved which node the broker is, and listed, and nothing speaks against it.

    A broker that restarts may not list itself.
    """
    node = broker.proved_node
    doubtful = node in broker.refused or broker.contradicted is not None
    return node in broker.endpoints and not doubtful


def _stands(broker: BrokerState, node: int, now: float, patience: float) -> bool:
    """Whether a proof that the broker is ``node`` counts."""
    if broker.disputed is not None:
        nodes, until = broker.disputed
        if node in nodes and now < until:
            return False
        broker.disputed = None
    former = broker.proved_node
    if former == node or (former is None and node not in broker.others):
        broker.contradicted = None
        return True
    if broker.contradicted is None or broker.contradicted[0] != node:
        broker.contradicted = node, now
    if now < broker.contradicted[1] + patience:
        return False
    broker.contradicted = None
    if former is None or broker.peer != broker.proved_peer:
        return True
    forget(broker)
    broker.disputed = frozenset({former, node}), now + _DISPUTED_SECONDS
    return False


def _moved(broker: BrokerState, endpoints: Mapping[int, Endpoint]) -> set[int]:
    """Return the nodes that are advertised elsewhere now.

    One that restarts is mostly not listed in between.
    """
    before = {**broker.left, **broker.endpoints}
    left = [(node, at) for node, at in before.items() if node not in endpoints]
    broker.left = dict(left[-_MOST_LEFT:])
    return {node for node, at in before.items() if endpoints.get(node, at)[:2] != at[:2]}


def _note_address(broker: BrokerState, node: int) -> None:
    """Remember where the proved node is advertised, if it is listed."""
    endpoint = broker.endpoints.get(node)
    if endpoint is not None:
        broker.proved_at = endpoint.host, endpoint.port


def _guess(broker: BrokerState) -> None:
    """Take the broker for the only node that is left; there may be more of them than before."""
    left = broker.endpoints.keys() - broker.others
    broker.node = next(iter(left)) if len(left) == 1 else None
    broker.guessed = broker.node is not None
