"""Which node stands behind a route.

No request asks a broker for its id, and addresses do not tell: brokers advertise the
proxies'. But only a leader answers ListOffsets, and it leads one partition at one epoch: a
broker that answers for a partition at the epoch that the view has is that partition's leader,
and one that answers NOT_LEADER_OR_FOLLOWER is another.

The first is a proof. The second is one only if it lasts: a broker that restarts does not know at
once what it leads. Where all others are ruled out, the broker is taken for the one that is left.
That is a guess, which never stands against a proof: a KRaft broker that restarts answers before its
own Metadata lists it, and then one that leads nothing is left in its place. So what a broker says
of itself counts as the word of a node only where that node is proved.
"""

import math
from types import MappingProxyType

from leader_hints.apis.list_offsets import Partition
from leader_hints.core.cluster.leader import Leader
from leader_hints.core.cluster.leader_view import LeaderView
from leader_hints.core.cluster.leadership_answer import LeadershipAnswer, leadership_answer
from leader_hints.core.route import Route

Probe = dict[Partition, Leader]


def probe(view: LeaderView) -> Probe:
    """Return one partition for each node that leads something, to be asked of the broker."""
    return {(name, partition): leader for name, partition, leader in view.one_led_by_each()}


def forget(route: Route) -> None:
    """Know nothing any more: the route leads to another cluster."""
    route.node, route.guessed, route.others = None, False, frozenset()
    route.refused = MappingProxyType({})


def presume(route: Route) -> None:
    """Keep what is proved alone: a new connection may lead to another broker."""
    if route.proved_node is None:
        forget(route)
    route.refused = MappingProxyType({})


def conclude(
    route: Route,
    asked: Probe,
    errors: dict[Partition, int],
    now: float = 0.0,
    patience: float = 0.0,
) -> None:
    """Take the broker's answer: set the route's ``node``, or what it is not.

    ``patience``: seconds for which a broker must have refused to be a node that it is not. An
    answer that contradicts what was known undoes it: another broker stands there now.
    """
    answers = {place: leadership_answer(errors.get(place)) for place in asked}
    leads = {asked[p].node for p, answer in answers.items() if answer is LeadershipAnswer.LEADS}
    if len(leads) == 1:
        (route.node,), route.guessed, route.others = leads, False, frozenset()
        route.refused = MappingProxyType({})
        return
    refused = {
        asked[p].node for p, answer in answers.items() if answer is LeadershipAnswer.NEVER_LEADS
    }
    since = {node: route.refused.get(node, now) for node in refused}
    nodes = {leader.node for leader in asked.values()}
    others = {node: at for node, at in route.refused.items() if node not in nodes}
    route.refused = MappingProxyType(others | since)
    ruled_out = {node for node in refused if now >= since[node] + patience}
    if route.node in ruled_out:
        route.node, route.guessed, route.others = None, False, frozenset()
    route.others |= ruled_out
    if route.proved_node is None:
        _guess(route)


def next_conclusion(route: Route, now: float, patience: float) -> float:
    """Return when a refusal will have lasted for ``patience`` seconds; infinity: none waits."""
    due = (at + patience for node, at in route.refused.items() if node not in route.others)
    return min((at for at in due if at > now), default=math.inf)


def _guess(route: Route) -> None:
    """Take the broker for the only node that is left; there may be more of them than before."""
    left = route.endpoints.keys() - route.others
    route.node = next(iter(left)) if len(left) == 1 else None
    route.guessed = route.node is not None
