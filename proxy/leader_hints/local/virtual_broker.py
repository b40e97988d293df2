"""A broker of a virtual cluster, and what its list says of others.

Tested in ``tests/local/test_membership.py``.
"""

from collections.abc import Mapping, Sequence

import trio

from leader_hints.address import Address
from leader_hints.apis.leader_hint import Endpoint
from leader_hints.core.route import Route

#: Where a broker's Metadata has the brokers of its cluster.
Listed = Mapping[int, Endpoint]


class VirtualBroker:
    """A broker: its route, where it is, and its listener while that is open.

    ``without_port``: its listener should be open, and cannot be. ``left``: the cluster has it no
    more. ``refused``: why no client is joined to it, "": they are.
    """

    def __init__(self, route: Route, upstream: Address) -> None:
        self.route = route
        self.upstream = upstream
        self.scope: trio.CancelScope | None = None
        self.without_port = False
        self.left = False
        self.refused = ""

    @property
    def cluster(self) -> str | None:
        """The cluster of the broker that is where the route leads, as far as that is known."""
        broker = self.route.broker
        return broker.view.cluster_id if broker.reachable and broker.view is not None else None

    def is_of(self, cluster: str | None) -> bool:
        """Whether a broker of ``cluster`` is where the route leads."""
        return cluster is not None and self.cluster == cluster

    def stays(self, node: int, cluster: str | None, lists: Sequence[Listed]) -> bool:
        """Whether this broker, which is ``node`` of ``cluster``, is where its route leads, or is
        listed there.
        """
        if self.is_of(cluster) and self.route.broker.proved_node == node:
            return True
        listed = filter(None, (endpoints.get(node) for endpoints in lists))
        return any((at.host, at.port) == (self.upstream.host, self.upstream.port) for at in listed)
