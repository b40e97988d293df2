"""Which node stands behind a route.

No request asks a broker for its id, and addresses do not tell: brokers advertise the
proxies'. But only a leader answers ListOffsets, and it leads one partition at one epoch: a
broker that answers for a partition at the epoch that the view has is that partition's leader,
and one that answers NOT_LEADER_OR_FOLLOWER is another.
"""

from proxy.apis.error_codes import ErrorCode
from proxy.apis.list_offsets import Partition
from proxy.core.leader import Leader
from proxy.core.route import Route
from proxy.core.view import LeaderView

Probe = dict[Partition, Leader]


def probe(view: LeaderView) -> Probe:
    """Return one partition for each node that leads something, to be asked of the broker."""
    return {(name, partition): leader for name, partition, leader in view.one_led_by_each()}


def conclude(route: Route, asked: Probe, errors: dict[Partition, int]) -> None:
    """Take the broker's answer: set the route's ``node``, or what it is not.

    Where all other nodes are ruled out, the one that is left is the broker's. An answer that
    contradicts what was known undoes it: another broker stands there now.
    """
    ruled_out: set[int] = set()
    for partition, leader in asked.items():
        error = errors.get(partition)
        if error == ErrorCode.NONE:
            route.node, route.others = leader.node, frozenset()
            return
        if error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            ruled_out.add(leader.node)
    if route.node in ruled_out:
        route.node, route.others = None, frozenset()
    route.others |= ruled_out
    left = route.endpoints.keys() - route.others
    if len(left) == 1:
        route.node = next(iter(left))
